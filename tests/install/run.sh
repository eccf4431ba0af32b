#!/usr/bin/env bash
# run.sh installed BUILD WORK: installs BUILD under WORK and builds the consumer against that by find_package.
# run.sh subdirectory SOURCE WORK: builds the consumer with SOURCE added by add_subdirectory; what uses emulation is
# configured and left unbuilt, since compiling all of it once more takes minutes.
# Either way the consumer's programs must then run.
set -euo pipefail
how=$1 halfulp=$2 work=$3
consumer=$(cd "$(dirname "$0")/consumer" && pwd)
rm -rf "$work"
mkdir -p "$work"

case $how in
  installed)
    cmake --install "$halfulp" --prefix "$work/prefix" >/dev/null
    [ -x "$work/prefix/bin/halfulp" ] && "$work/prefix/bin/halfulp" --version
    options=("-DCMAKE_PREFIX_PATH=$work/prefix") libraries="formats lib emulation" ;;
  subdirectory) options=("-DHALFULP_SOURCE=$halfulp" -DHALFULP_CUDA=OFF) libraries="formats lib" ;;
  *) echo "usage: run.sh installed|subdirectory ..." >&2; exit 2 ;;
esac
cmake -S "$consumer" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug "${options[@]}"
for library in $libraries; do
  cmake --build "$work/build" --target "uses_$library"
  "$work/build/uses_$library" || { echo "uses_$library: wrong answer" >&2; exit 1; }
done

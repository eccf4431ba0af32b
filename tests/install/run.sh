#!/usr/bin/env bash
# run.sh installed BUILD WORK: installs BUILD under WORK and builds the consumer against that by find_package.
# run.sh subdirectory SOURCE WORK: builds the consumer with SOURCE added by add_subdirectory.
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
    option=-DCMAKE_PREFIX_PATH=$work/prefix ;;
  subdirectory) option=-DHALFULP_SOURCE=$halfulp ;;
  *) echo "usage: run.sh installed|subdirectory ..." >&2; exit 2 ;;
esac
cmake -S "$consumer" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release "$option"
cmake --build "$work/build"
for library in formats lib emulation; do
  "$work/build/uses_$library" || { echo "uses_$library: wrong answer" >&2; exit 1; }
done

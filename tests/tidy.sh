#!/usr/bin/env bash
# tidy.sh BUILD: runs clang-tidy 14 with .clang-tidy over lib, formats, emulation and tools. Slow, so no test.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$1
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$build" --target halfulp >/dev/null
cd "$root"
find lib emulation tools -name '*.cpp' | sort | xargs -P "$(nproc)" -n 1 clang-tidy-14 --quiet -p "$build" \
  --extra-arg=-Wno-unknown-warning-option

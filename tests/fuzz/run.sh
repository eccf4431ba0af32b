#!/bin/sh
# tests/fuzz/run.sh [BUILD_DIR [SECONDS]]: builds both fuzzers with clang and runs each for that long (20 s), from the
# golden files as seeds. Ends with 77 where clang or its fuzzer runtime is missing.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build-fuzz}
seconds=${2:-20}

skip() {
  echo "SKIPPED: fuzzing: $1" >&2
  exit 77
}

compiler=${CLANGXX:-$(command -v clang++ || command -v clang++-14 || true)}
[ -n "$compiler" ] || skip "no clang++ (Debian: clang)"
mkdir -p "$build"
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' >"$build/probe.cpp"
"$compiler" -fsanitize=fuzzer,address,undefined "$build/probe.cpp" -o "$build/probe" 2>"$build/probe.log" ||
  skip "$compiler cannot link -fsanitize=fuzzer,address,undefined; see $build/probe.log"

cmake -S "$root" -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Debug -DHALFULP_FUZZ=ON \
  -DHALFULP_CUDA=OFF -DHALFULP_BENCH=OFF -DHALFULP_INSTALL=OFF >"$build/configure.log" || {
  cat "$build/configure.log"
  exit 1
}
cmake --build "$build" --parallel 2 --target safetensors_fuzz npy_fuzz

for format in safetensors npy; do
  corpus=$build/corpus-$format
  mkdir -p "$corpus"
  cp "$root"/tests/golden/files/*."$format" "$corpus"
  echo "$format: $seconds s"
  (cd "$build" && "$build/bin/${format}_fuzz" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 \
    -dict="$root/tests/fuzz/$format.dict" -print_final_stats=1 -print_funcs=0 -verbosity=0 "$corpus")
done

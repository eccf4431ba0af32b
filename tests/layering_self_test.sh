#!/usr/bin/env bash
# Plants one violation of each kind in a tree of its own: layering.sh must name the line; and it must pass what is right.
set -euo pipefail
layering=$(cd "$(dirname "$0")" && pwd)/layering.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# judge FILE LINE: whether layering.sh finds fault with a file that has this line.
judge() {
  mkdir -p "$tree/$(dirname "$1")"
  printf '#pragma once\n%s\n' "$2" >"$tree/$1"
  grep -qF "$1:2: " <<<"$("$layering" "$tree" 2>&1)"
}

forbidden() {
  judge "$@" || { echo "not found: $1: $2"; failures=$((failures + 1)); }
  rm "$tree/$1"
}

allowed() {
  ! judge "$@" || { echo "wrongly found: $1: $2"; failures=$((failures + 1)); }
  rm "$tree/$1"
}

forbidden lib/a.h '#include "formats/catalog.h"'
forbidden formats/a.h '#include "emulation/backend.h"'
forbidden emulation/blocks/a.h '#include "cuda/check.h"'
forbidden emulation/a.cpp '#include "tools/options.h"'
forbidden cuda/a.cu '#include "tools/options.h"'
forbidden tools/a.cpp '#include "tests/oracle/slow_round.h"'
forbidden tools/a.cpp '#include "options.h"'
forbidden tools/a.cpp '#include "../lib/bits.h"'
forbidden tools/a.cpp '#include "tools/../tests/a.h"'
forbidden tests/a.cpp '#include "gtest/gtest.h"'
forbidden formats/a.h '#include <fmt/format.h>'
forbidden formats/a.h '#include <Eigen/Dense>'
forbidden formats/a.h '#include <cuda_runtime.h>'
forbidden lib/a.h '#include <Eigen/Dense>'
forbidden emulation/a.h '#include <cuda_fp8.h>'
forbidden tools/a.cpp '#include <thrust/device_vector.h>'
forbidden cuda/a.cu '#include <cuda_fp4.h>'
forbidden cuda/a.cuh '#include <cuda_bf16.h>'
forbidden tests/cuda/a.cpp '#include <cuda_fp16.h>'
forbidden cuda/a.cu '  asm volatile("nop;");'
forbidden emulation/a.h '  __asm__("nop");'
forbidden cuda/a.cuh '  if (__CUDA_ARCH__ >= 900) {}'
forbidden cuda/a.cuh 'constexpr bool specific = __CUDA_ARCH_FAMILY_SPECIFIC__ >= 1000;'
forbidden tests/ptx/a.cu '  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(d) : "f"(a));'
forbidden tests/lib/a.cpp '  auto y = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);'
forbidden cuda/a.cu '  y[i] = __float2bfloat16_rn(x[i]);'
forbidden cuda/a.cuh '  const float cut = __double2float_rz(x);'
forbidden lib/a.h '#define MAX(a, b) a'
forbidden emulation/a.h '#ifdef __AVX2__'

allowed formats/a.h '#include "lib/bits.h"'
allowed formats/a.h '#include <type_traits>'
allowed formats/a.h '    .source = "CUDA math API, __nv_fp8_e4m3",'
allowed formats/a.h '// asm is for cuda/arch/'
allowed lib/a.h '#include <sys/mman.h>'
allowed emulation/a.cpp '#include <Eigen/Dense>'
allowed cuda/a.cu '#include <cuda_runtime.h>'
allowed cuda/arch/a.cuh '#include <cuda_fp8.h>'
allowed cuda/arch/a.cuh '  asm("nop;");'
allowed tests/oracle/a.cpp '#include <cuda_fp8.h>'
allowed tests/exhaustive/a.cpp '  auto y = __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3);'
allowed lib/host_device.h '#ifdef __FAST_MATH__'

[ "$failures" -eq 0 ]

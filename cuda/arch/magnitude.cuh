#pragma once
// Largest magnitudes of FP32 numbers and of packed BF16 ones.

#include <cstdint>

#include "cuda/arch/capability.h"
#include "lib/bits.h"

namespace halfulp::arch {

// The larger magnitude; NaN where either is.
__device__ inline float larger_magnitude(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(fabsf(a)), "f"(fabsf(b)));
  return larger;
}

namespace detail {
// PTX ISA 9.0, max: .xorsign.abs requires sm_86.
inline constexpr bool kHasXorsign = kTarget.name() != "80";
}  // namespace detail

// Likewise of both BF16 halves of a register; their signs are arbitrary.
__device__ inline uint32_t larger_bf16_magnitudes(uint32_t a, uint32_t b) {
  if constexpr (detail::kHasXorsign) {
    uint32_t larger;
    asm("max.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
  } else {
    constexpr uint32_t kMagnitudes = 0x7fff'7fff;
    return __vmaxu2(a & kMagnitudes, b & kMagnitudes);  // NaN's bits are above all others
  }
}

}  // namespace halfulp::arch

#pragma once
// Largest magnitudes in packed and in FP32 registers.

#include <cstdint>

#include "lib/bits.h"

namespace halfulp::arch {

// The larger magnitude; NaN where either is.
__device__ inline float larger_magnitude(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(fabsf(a)), "f"(fabsf(b)));
  return larger;
}

}  // namespace halfulp::arch

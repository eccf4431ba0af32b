#pragma once
// Largest magnitudes over the threads of a kernel.

#include <cstdint>

#include "cuda/arch/magnitude.cuh"
#include "emulation/blocks/block.h"

namespace halfulp::gpu {

// Magnitudes are ordered as their bits are, NaN above Inf.
__device__ inline uint32_t magnitude_bits(float x) { return bit_cast<uint32_t>(x) & 0x7fff'ffffu; }

template <bool nan_wins>
__device__ float larger(float amax, float x) {
  if constexpr (nan_wins) return arch::larger_magnitude(amax, x);
  return fmaxf(amax, fabsf(x));
}

template <bool nan_wins>
__device__ void raise(float amax, float* result) {
  for (int distance = 16; distance > 0; distance /= 2)
    amax = larger<nan_wins>(amax, __shfl_xor_sync(~0u, amax, distance));
  if (threadIdx.x % 32 != 0) return;
  const uint32_t bits = amax == amax ? magnitude_bits(amax) : bit_cast<uint32_t>(detail::quiet_nan());
  atomicMax(reinterpret_cast<uint32_t*>(result), bits);
}

}  // namespace halfulp::gpu

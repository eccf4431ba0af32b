#pragma once
// What an encoding kernel is called with, beside EncodeConstants. Between simd.h and the kernels; not for others.

#include <cstddef>
#include <cstdint>

#include "emulation/simd/simd.h"

namespace halfulp::simd {

// Element i has the factor factors[i >> block_log2].
struct EncodeJob {
  const float* x;
  std::size_t count;
  const float* factors;
  int block_log2;
  FactorUse use;
  const uint32_t* words;  // of WordOfFour
  PhiloxWords philox;
  std::byte* codes;
};

// Elements are taken as they are: all have the factor 1. A NaN's payload is not left to a multiplication by it.
inline constexpr float kNoFactor[1] = {1};
inline constexpr int kOneBlock = 63;

}  // namespace halfulp::simd

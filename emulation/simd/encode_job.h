#pragma once
// What an encoding kernel is called with, beside EncodeConstants. Between simd.h and the kernels; not for others.

#include <cstddef>
#include <cstdint>

#include "emulation/simd/simd.h"

namespace halfulp::simd {

// Element i has the factor factors[i >> block_log2], or none has.
struct EncodeJob {
  const float* x = nullptr;
  std::size_t count = 0;
  const float* factors = nullptr;
  int block_log2 = 0;
  FactorUse use = FactorUse::multiply;
  const uint32_t* words = nullptr;  // of WordOfFour
  PhiloxWords philox = {};
  std::byte* codes = nullptr;
};

}  // namespace halfulp::simd

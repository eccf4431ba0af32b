// Compiled once for each instruction set, as encode.cpp is.
#include <hwy/foreach_target.h>

#include "emulation/simd/amax_kernels.h"
#include "emulation/simd/simd.h"

namespace halfulp::simd {
namespace {

HWY_EXPORT(amax_array);
HWY_EXPORT(block_amax_array);

}  // namespace

void block_amax(std::span<const float> x, std::size_t block, NanMagnitude nan, std::span<float> amax) {
  HWY_DYNAMIC_DISPATCH(block_amax_array)(x, block, nan, amax);
}

float amax(std::span<const float> x, NanMagnitude nan, float start) {
  return HWY_DYNAMIC_DISPATCH(amax_array)(x, nan, start);
}

}  // namespace halfulp::simd

#pragma once
// The largest magnitude of an array in the memory of a GPU.

#include <cstdint>

#include "emulation/blocks/recipe.h"
#include "lib/dtype.h"

namespace halfulp {

// Raises *amax, an FP32 magnitude, to the largest one among `count` elements of F32, F16 or BF16, as
// largest_magnitude() does; on the default stream, and x and amax in the memory of the present GPU. A NaN is FP32's
// 0x7fc0'0000. Throws EnvironmentError for what the GPU refuses.
void raise_largest_magnitude(AmaxNan nan, Dtype dtype, const void* x, uint64_t count, float* amax);

}  // namespace halfulp

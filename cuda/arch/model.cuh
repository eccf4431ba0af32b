#pragma once
// The sum of a matrix instruction's model, once in a kernel's code for all that call it: it is long.

#include "emulation/matmul/dot_product.h"

namespace halfulp::arch::detail {

static __device__ __noinline__ uint32_t modelled_sum(const Accumulator* is, const DotOperand* a, const DotOperand* b,
                                                     int k, uint32_t c) {
  return dot_product(*is, *a, *b, k, c);
}

}  // namespace halfulp::arch::detail

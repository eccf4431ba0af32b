#pragma once
// The sums that matrix instructions are compared with: exact, and in FP32 as ordinary programs add up.

#include "emulation/matmul/dot_product.h"

namespace halfulp {

// c + sum of a[k] * b[k], first <= k < end, for rows that keep all bits of a product. As add_products(), but scales are
// optional.
uint32_t add_reference_products(const Accumulator& row, const DotOperand& a, const DotOperand& b, int first, int end,
                                uint32_t c);

}  // namespace halfulp

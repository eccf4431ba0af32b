#pragma once
// The sum of a matrix instruction's model, once in a kernel's code for all that call it: it is long.

#include <string_view>

#include "emulation/matmul/dot_product.h"

namespace halfulp::arch::detail {

// Of a row that adds in ascending order to FP32 cut toward zero, as all of Blackwell's do here: what the compiler knows
// of it it leaves out.
constexpr bool has_modelled_sum(std::string_view accumulator) {
  const Accumulator& row = kAccumulators[std::size_t(find_accumulator(accumulator))];
  return row.order == SumOrder::ascending && row.sum.format == halfulp::detail::kToF32.format &&
         row.sum.rounding == halfulp::detail::kToF32.rounding && row.sum.unused_bits == 0;
}

template <class Table>
constexpr bool have_modelled_sums(const Table& table) {
  for (const auto& entry : table)
    if (!has_modelled_sum(entry.accumulator)) return false;
  return true;
}

static __device__ __noinline__ uint32_t modelled_sum(const Accumulator* is, const DotOperand* a, const DotOperand* b,
                                                     int k, uint32_t c) {
  Accumulator row = *is;
  row.order = SumOrder::ascending;
  row.sum = halfulp::detail::kToF32;
  return dot_product(row, *a, *b, k, c);
}

}  // namespace halfulp::arch::detail

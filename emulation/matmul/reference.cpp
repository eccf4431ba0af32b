#include "emulation/matmul/reference.h"

#include <cmath>

#include "emulation/matmul/slices.h"
#include "lib/exact_sum.h"

namespace halfulp {
namespace {

float scale_at(const DotOperand& x, int k) {
  return x.scales == nullptr ? 1.0f : decode(x.scale_format, x.scales[k / x.scaled]);
}
float scaled_element(const DotOperand& x, int k) { return decode(x.format, x.codes[k]) * scale_at(x, k); }

// The double next to the sum that is odd where the sum is no double, so that it rounds to FP32 as the sum does.
double rounded_to_odd(ExactSum& sum) {
  const double nearest = sum.value();
  if (!std::isfinite(nearest)) return nearest;
  sum.add(-nearest);
  const double rest = sum.value();
  if (rest == 0 || (bit_cast<uint64_t>(nearest) & 1) != 0) return nearest;
  return std::nextafter(nearest, rest > 0 ? HUGE_VAL : -HUGE_VAL);
}

// Exact as a double: significands of 24 bits without scales, and of at most 11 with scales of at most 4.
double exact_product(const DotOperand& a, const DotOperand& b, int k) {
  const double product = double(decode(a.format, a.codes[k])) * double(decode(b.format, b.codes[k]));
  return product * (double(scale_at(a, k)) * double(scale_at(b, k)));
}

float exact_sum(const DotOperand& a, const DotOperand& b, int first, int end, float c) {
  ExactSum sum;
  sum.add(double(c));
  for (int k = first; k < end; ++k) sum.add(exact_product(a, b, k));
  return float(rounded_to_odd(sum));
}

float sequential_sum(const DotOperand& a, const DotOperand& b, int first, int end, float c) {
  for (int k = first; k < end; ++k) c = std::fma(scaled_element(a, k), scaled_element(b, k), c);
  return c;
}

float sum_of_halves(const DotOperand& a, const DotOperand& b, int first, int end) {
  if (end - first == 1) return scaled_element(a, first) * scaled_element(b, first);
  const int half = 1 << floor_log2(uint64_t(end - first - 1));
  return sum_of_halves(a, b, first, first + half) + sum_of_halves(a, b, first + half, end);
}

}  // namespace

uint32_t add_reference_products(const Accumulator& row, const DotOperand& a, const DotOperand& b, int first, int end,
                                uint32_t c) {
  const float start = bit_cast<float>(c);
  if (end <= first) return f32_code(start);
  if (row.order == SumOrder::halves) return f32_code(sum_of_halves(a, b, first, end) + start);
  if (row.block == kAllProducts) return f32_code(exact_sum(a, b, first, end, start));
  return f32_code(sequential_sum(a, b, first, end, start));
}

}  // namespace halfulp

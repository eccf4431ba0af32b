#include "emulation/analysis/exact_product.h"

#include <algorithm>
#include <cmath>

#include "formats/codec.h"
#include "lib/exact_sum.h"

namespace halfulp {
namespace {

constexpr int kMostBits = 62;  // of a multiple

// x * y as two doubles. Exact unless the second is beyond the range of doubles.
void add_product(ExactSum& sum, double x, double y) {
  const double product = x * y;
  sum.add(product);
  if (std::isfinite(product)) sum.add(std::fma(x, y, -product));
}

std::vector<double> parts_of(ExactSum& sum) {
  std::vector<double> parts{sum.value()};
  while (std::isfinite(parts.back()) && parts.back() != 0) {
    sum.add(-parts.back());
    parts.push_back(sum.value());
  }
  return parts;
}

std::vector<double> parts_of(__int128 sum, int unit) {
  std::vector<double> parts;
  while (sum != 0) {
    const double part = double(sum);  // to nearest: what is left has 53 bits less
    parts.push_back(std::ldexp(part, unit));
    sum -= static_cast<__int128>(part);
  }
  return parts;
}

// The exponents of the lowest and the highest bit of a row's values.
struct BitRange {
  int low = 2000, high = -2000;
  bool finite = true;
  void merge(const BitRange& other) { low = std::min(low, other.low), high = std::max(high, other.high); }
};
BitRange range_of(std::span<const double> row) {
  BitRange range;
  for (const double x : row) {
    const Unpacked u = unpack(x);
    if (u.kind != Unpacked::Kind::finite) range.finite = false;
    if (u.kind != Unpacked::Kind::finite || u.significand == 0) continue;
    range.low = std::min(range.low, u.exponent + __builtin_ctzll(u.significand));
    range.high = std::max(range.high, u.exponent + floor_log2(u.significand));
  }
  return range;
}

template <class Total>
Total dot(const int64_t* a, const int64_t* b, std::size_t k) {
  Total sum = 0;
  for (std::size_t i = 0; i < k; ++i) sum += Total(a[i]) * b[i];
  return sum;
}

}  // namespace

ExactProduct::Fixed ExactProduct::fixed(const ExactOperand& x) {
  Fixed fixed;
  BitRange all;
  for (std::size_t i = 0; i < x.rows; ++i) {
    const BitRange row = range_of(x.values.subspan(i * x.k, x.k));
    fixed.fits.push_back(row.finite ? 1 : 0);
    if (row.finite) all.merge(row);
  }
  if (all.low > all.high) all = {.low = 0, .high = 0};  // nothing but zeros
  fixed.unit = all.low;
  fixed.bits = all.high - all.low + 1;
  if (fixed.bits > kMostBits) return fixed;
  fixed.multiples.resize(x.rows * x.k);
  for (std::size_t i = 0; i < x.rows; ++i)
    for (std::size_t k = 0; fixed.fits[i] && k < x.k; ++k)
      fixed.multiples[i * x.k + k] = int64_t(std::ldexp(x.values[i * x.k + k], -fixed.unit));
  return fixed;
}

ExactProduct::ExactProduct(const ExactOperand& a, const ExactOperand& b)
    : a_(a), b_(b), fixed_a_(fixed(a)), fixed_b_(fixed(b)), sum_(Sum::exact) {
  if (std::max(fixed_a_.bits, fixed_b_.bits) > kMostBits) return;
  // |sum| < k * 2^(bits of a + bits of b), and k <= 2^(floor_log2(k) + 1).
  const int bits = fixed_a_.bits + fixed_b_.bits + (a.k == 0 ? 0 : floor_log2(a.k) + 1);
  sum_ = bits <= 63 ? Sum::of_64_bits : bits <= 126 ? Sum::of_128_bits : Sum::exact;
}

std::vector<double> ExactProduct::element(std::size_t i, std::size_t j) const {
  const std::size_t k = a_.k;
  if (sum_ != Sum::exact && fixed_a_.fits[i] && fixed_b_.fits[j]) {
    const int64_t *a = fixed_a_.multiples.data() + i * k, *b = fixed_b_.multiples.data() + j * k;
    const int unit = fixed_a_.unit + fixed_b_.unit;
    return sum_ == Sum::of_64_bits ? parts_of(dot<int64_t>(a, b, k), unit) : parts_of(dot<__int128>(a, b, k), unit);
  }
  ExactSum sum;
  for (std::size_t at = 0; at < k; ++at) add_product(sum, a_.values[i * k + at], b_.values[j * k + at]);
  return parts_of(sum);
}

Rounded scaled_sum(std::span<const double> parts, double factor, double x, double y) {
  ExactSum sum;
  for (const double part : parts) add_product(sum, part, factor);
  add_product(sum, x, y);
  const double nearest = sum.value();
  if (!std::isfinite(nearest)) return {nearest, nearest};
  sum.add(-nearest);
  const double rest = sum.value();
  const bool is_odd = (bit_cast<uint64_t>(nearest) & 1) != 0;
  return {nearest, rest == 0 || is_odd ? nearest : std::nextafter(nearest, rest > 0 ? HUGE_VAL : -HUGE_VAL)};
}

}  // namespace halfulp

#include "lib/exact_sum.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace halfulp {
namespace {

constexpr uint64_t kHiddenBit = uint64_t{1} << 52;

// The 64 bits of a non-negative canonical number from bit `position` on.
template <class Limbs>
uint64_t bits_from(const Limbs& limbs, size_t position) {
  const size_t i = position / 32;
  const size_t shift = position % 32;
  const uint64_t low = uint64_t(limbs[i]) | uint64_t(limbs[i + 1]) << 32;
  return shift == 0 ? low : low >> shift | uint64_t(limbs[i + 2]) << (64 - shift);
}

template <class Limbs>
bool any_bit_below(const Limbs& limbs, size_t position) {
  for (size_t i = 0; i < position / 32; ++i) {
    if (limbs[i] != 0) return true;
  }
  return (uint64_t(limbs[position / 32]) & low_mask(int(position % 32))) != 0;
}

// A non-negative canonical number in units of 2^-1074, to the nearest double, ties to even.
template <class Limbs>
double nearest_double(const Limbs& limbs) {
  size_t top = limbs.size() - 1;
  while (top > 0 && limbs[top] == 0) --top;
  if (limbs[top] == 0) return 0.0;
  const size_t highest = 32 * top + size_t(floor_log2(uint64_t(limbs[top])));
  if (highest <= 52) return bit_cast<double>(bits_from(limbs, 0));  // subnormal or smallest exponent: exact
  const size_t lowest = highest - 52;
  const uint64_t significand = bits_from(limbs, lowest) & low_mask(53);
  const bool half = (bits_from(limbs, lowest - 1) & 1) != 0;
  const bool up = half && ((significand & 1) != 0 || any_bit_below(limbs, lowest - 1));
  const uint64_t exponent = highest - 51;
  if (exponent > 2046) return std::numeric_limits<double>::infinity();
  return bit_cast<double>((exponent << 52) + (significand - kHiddenBit) + (up ? 1 : 0));  // may carry into Inf
}

}  // namespace

void ExactSum::count_special(double x) {
  if (x != x) {
    ++nan_;
  } else {
    ++(x > 0 ? plus_inf_ : minus_inf_);
  }
}

void ExactSum::carry() {
  int64_t carried = 0;
  for (size_t i = 0; i + 1 < limbs_.size(); ++i) {
    const int64_t sum = limbs_[i] + carried;
    limbs_[i] = sum & int64_t(low_mask(32));
    carried = sum >> 32;
  }
  limbs_.back() += carried;
  pending_ = 0;
}

void ExactSum::add_limbs(std::span<const int64_t, kLimbs> limbs) {
  ExactSum addend;
  std::copy(limbs.begin(), limbs.end(), addend.limbs_.begin());
  merge(addend);
}

void ExactSum::merge(const ExactSum& other) {
  ExactSum addend = other;
  addend.carry();  // so that no limb is larger than what add() may add
  for (size_t i = 0; i < limbs_.size(); ++i) limbs_[i] += addend.limbs_[i];
  count_addend();
  plus_inf_ += other.plus_inf_;
  minus_inf_ += other.minus_inf_;
  nan_ += other.nan_;
}

double ExactSum::value() const {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (nan_ > 0 || (plus_inf_ > 0 && minus_inf_ > 0)) return std::numeric_limits<double>::quiet_NaN();
  if (plus_inf_ > 0) return kInf;
  if (minus_inf_ > 0) return -kInf;
  ExactSum sum = *this;
  sum.carry();
  if (sum.limbs_.back() >= 0) return nearest_double(sum.limbs_);
  for (int64_t& limb : sum.limbs_) limb = -limb;
  sum.carry();
  return -nearest_double(sum.limbs_);
}

bool operator==(const ExactSum& a, const ExactSum& b) {
  ExactSum x = a;
  ExactSum y = b;
  x.carry();
  y.carry();
  return x.limbs_ == y.limbs_ && x.plus_inf_ == y.plus_inf_ && x.minus_inf_ == y.minus_inf_ && x.nan_ == y.nan_;
}

}  // namespace halfulp

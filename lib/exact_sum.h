#pragma once
// The exact sum of any number of doubles, independent of their order and of how they were divided among threads or
// machines. It is rounded only when its value is asked for. Not a fast sum.

#include <array>
#include <cstdint>
#include <span>

#include "lib/bits.h"

namespace halfulp {

// A finite double in limbs of 32 bits, of which bit 0 of number 0 weighs 2^-1074: three of them from number `first` on,
// which all have its sign. |x| < 2^33 for each.
struct ExactAddend {
  uint32_t first;
  int64_t limbs[3];
};

HOST_DEVICE constexpr ExactAddend exact_addend(double x) {
  const uint64_t bits = bit_cast<uint64_t>(x);
  const uint64_t fraction = bits & low_mask(52);
  const uint32_t exponent = uint32_t(bits >> 52) & 0x7ff;
  // |x| = significand * 2^(position - 1074); subnormals share the exponent of the smallest normals.
  const uint64_t significand = exponent == 0 ? fraction : fraction | uint64_t{1} << 52;
  const uint32_t position = exponent == 0 ? 0 : exponent - 1;
  const uint32_t shift = position % 32;
  const uint64_t low = (significand & low_mask(32)) << shift;  // < 2^63
  const uint64_t high = (significand >> 32) << shift;          // < 2^52
  const int64_t sign = 1 - 2 * int64_t(bits >> 63);
  return {.first = position / 32,
          .limbs = {sign * int64_t(low & low_mask(32)),
                    sign * int64_t((low >> 32) + (high & low_mask(32))),  // < 2^33
                    sign * int64_t(high >> 32)}};
}

class ExactSum {
 public:
  // Bit 0 of limb 0 weighs 2^-1074. The largest double reaches bit 2097, in limb 65; 2^63 addends of that size reach
  // bit 2160, in limb 67, which alone carries the sign. add() touches limbs up to 2045 / 32 + 2 = 65.
  static constexpr int kLimbs = 68;

  void add(double x) {
    if ((bit_cast<uint64_t>(x) >> 52 & 0x7ff) == 0x7ff) return count_special(x);
    const ExactAddend addend = exact_addend(x);
    for (uint32_t i = 0; i < 3; ++i) limbs_[addend.first + i] += addend.limbs[i];
    count_addend();
  }
  // Adds what another one summed up, limb by limb: each below 2^62.
  void add_limbs(std::span<const int64_t, kLimbs> limbs);
  void merge(const ExactSum& other);

  // The exact sum rounded once, to nearest with ties to even. With Inf or NaN among the addends what IEEE 754 addition
  // gives: NaN if any was NaN or if both infinities were there. A sum of zero is +0.
  double value() const;

  // Same exact sum, and as many Inf and NaN of each kind.
  friend bool operator==(const ExactSum& a, const ExactSum& b);

 private:
  // An addend changes a limb by less than 2^33, and carry() leaves less than 2^32 in it (the last one holds less than
  // 2^17 after 2^63 addends), so |limb| < 2^32 + 2^29 * 2^33 < 2^63: no overflow between two carries.
  static constexpr uint32_t kMaxPending = 1u << 29;
  static_assert((uint64_t{1} << 32) + (uint64_t{kMaxPending} << 33) < uint64_t{1} << 63);
  using Limbs = std::array<int64_t, kLimbs>;

  void count_addend() {
    if (++pending_ == kMaxPending) carry();
  }
  void count_special(double x);
  // Brings every limb but the last into [0, 2^32), the one form that a sum has.
  void carry();

  Limbs limbs_{};
  uint32_t pending_ = 0;  // addends since the last carry()
  uint64_t plus_inf_ = 0;
  uint64_t minus_inf_ = 0;
  uint64_t nan_ = 0;
};

}  // namespace halfulp

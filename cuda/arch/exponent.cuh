#pragma once
// Software forms of the saturating conversion of FP32 magnitudes to E8M0, an exponent of FP32 by itself. They give the
// bits of the model in formats/codec.h, against which they are tested on every magnitude and NaN.

#include <cstdint>

#include "formats/catalog.h"
#include "formats/policy.h"

namespace halfulp::arch {

constexpr bool has_exponent_code(const Format& f, const Policy& p) {
  const bool rounds = p.rounding == Rounding::up || p.rounding == Rounding::nearest_even;
  return f == kFormatAt<format_id("e8m0")> && rounds &&
         p == Policy{.rounding = p.rounding, .overflow = Overflow::saturate};
}

// The code of a magnitude or NaN. What is added carries into the exponent; below 2^-126 the exponent says nothing, and
// 2^-127 has code 0. A significand without fraction is odd below a tie, 1, and even above, 2: a tie goes up.
template <Rounding rounding>
__device__ uint32_t exponent_code(uint32_t bits) {
  constexpr uint32_t kMantissa = 23, kSmallestNormal = 1u << kMantissa, kLargest = 254, kNan = 255, kInf = 0x7f80'0000;
  constexpr bool up = rounding == Rounding::up;
  constexpr uint32_t kCarry = up ? kSmallestNormal - 1 : kSmallestNormal / 2;
  constexpr uint32_t kLastOfCode0 = up ? kSmallestNormal / 2 : kSmallestNormal / 4 * 3 - 1;
  const uint32_t code = min((bits + kCarry) >> kMantissa, kLargest);
  return bits > kInf ? kNan : bits < kSmallestNormal ? bits > kLastOfCode0 : code;
}

}  // namespace halfulp::arch

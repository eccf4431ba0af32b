#pragma once
// Every rounding mode, asked one question: does the magnitude move one ulp away from zero?

#include <array>
#include <cstdint>
#include <string_view>

#include "lib/bits.h"

namespace halfulp {

enum class Rounding { nearest_even, nearest_away, nearest_zero, toward_zero, up, down, to_odd, stochastic };

struct RoundingEntry {
  std::string_view name;
  Rounding rounding;
  std::string_view ptx;  // PTX modifier, empty where PTX has none
  std::string_view meaning;
};

inline constexpr std::array kRoundings{
    RoundingEntry{
        "nearest-even", Rounding::nearest_even, "rn",
        "to the nearest; a tie to the even significand, away from zero where both are odd (IEEE 754-2019 §4.3.1 "
        "roundTiesToEven)"},
    RoundingEntry{"nearest-away", Rounding::nearest_away, "rna",
                  "to the nearest; a tie away from zero (IEEE 754-2019 §4.3.1 roundTiesToAway)"},
    RoundingEntry{"nearest-zero", Rounding::nearest_zero, "",
                  "to the nearest; a tie toward zero (IEEE 754-2019 §9.5 roundTiesTowardZero)"},
    RoundingEntry{"toward-zero", Rounding::toward_zero, "rz", "drops what does not fit (roundTowardZero)"},
    RoundingEntry{"up", Rounding::up, "rp", "toward +Inf (roundTowardPositive)"},
    RoundingEntry{"down", Rounding::down, "rm", "toward -Inf (roundTowardNegative)"},
    RoundingEntry{
        "to-odd", Rounding::to_odd, "",
        "inexact: to the neighbour with the odd significand, so that a second rounding to fewer bits is right "
        "(Boldo and Melquiond 2008)"},
    RoundingEntry{"stochastic", Rounding::stochastic, "rs",
                  "away from zero if the fraction of an ulp, cut to n bits, plus n random bits carries"},
};
static_assert([] {
  for (std::size_t i = 0; i < kRoundings.size(); ++i)
    if (kRoundings[i].rounding != Rounding(i)) return false;
  return kRoundings.size() == std::size_t(Rounding::stochastic) + 1;
}());

HOST_DEVICE constexpr bool is_stochastic(Rounding mode) { return mode == Rounding::stochastic; }

// The random bits of one stochastic rounding: the low `count` bits of `word`, 1 <= count <= 32.
struct RandomBits {
  uint32_t word = 0;
  int count = 32;
};

// What lies below the last kept bit.
struct Tail {
  bool negative;      // sign of the value
  bool odd;           // last kept bit
  uint32_t fraction;  // in units of 2^-32 ulp, cut
  bool sticky;        // whether the cut lost anything

  HOST_DEVICE constexpr bool inexact() const { return fraction != 0 || sticky; }
};

// A new mode is one enumerator, one row above and one case here; forgetting the case does not compile.
HOST_DEVICE constexpr bool rounds_away(Rounding mode, const Tail& t, RandomBits random) {
  constexpr uint32_t kHalf = uint32_t{1} << 31;
  switch (mode) {
    case Rounding::nearest_even: return t.fraction > kHalf || (t.fraction == kHalf && (t.sticky || t.odd));
    case Rounding::nearest_away: return t.fraction >= kHalf;
    case Rounding::nearest_zero: return t.fraction > kHalf || (t.fraction == kHalf && t.sticky);
    case Rounding::toward_zero: return false;
    case Rounding::up: return t.inexact() && !t.negative;
    case Rounding::down: return t.inexact() && t.negative;
    case Rounding::to_odd: return t.inexact() && !t.odd;
    case Rounding::stochastic: {
      const uint64_t fraction = t.fraction >> (32 - random.count);
      return ((fraction + (random.word & low_mask(random.count))) >> random.count) != 0;
    }
  }
  return false;
}

// Whether a magnitude beyond the largest finite one leaves the finite range, IEEE 754-2019 §7.4: to-nearest modes
// and the direction away from zero do; toward zero, the opposite direction and to-odd stop at the largest finite
// value. A stochastic mode does: its upper neighbour lies outside the range whatever the random bits.
HOST_DEVICE constexpr bool overflows(Rounding mode, bool negative) {
  return rounds_away(mode, {.negative = negative, .odd = true, .fraction = ~uint32_t{0}, .sticky = true},
                     {.word = ~uint32_t{0}, .count = 32});
}

}  // namespace halfulp

#pragma once
// Rounding by definition: find the two values of the format around the exact input, then pick the one that the mode
// asks for. Shares nothing with formats/codec.h but the struct Format. Finite inputs only.

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "formats/format.h"
#include "formats/policy.h"
#include "formats/rounding.h"

namespace halfulp::oracle {

// Holds every float, double, int64_t and uint64_t exactly, and every difference of neighbours formed below.
using Exact = long double;
static_assert(std::numeric_limits<Exact>::digits >= 64 && std::numeric_limits<Exact>::min_exponent < -4096);

// 2^e, from a table because the search below asks for it so often.
inline Exact power_of_two_exact(int e) {
  constexpr int kLowest = -1200, kHighest = 4200;
  static const std::vector<Exact> kPowers = [] {
    std::vector<Exact> powers;
    for (int i = kLowest; i <= kHighest; ++i) powers.push_back(std::ldexp(Exact{1}, i));
    return powers;
  }();
  return kPowers[size_t(e - kLowest)];
}

// The value of a magnitude code. Codes beyond max_code() go on as if the exponent field had no end, which is how
// IEEE 754-2019 §7.4 defines overflow.
inline Exact magnitude_of(const Format& f, uint64_t code) {
  const uint64_t codes_per_binade = uint64_t{1} << f.mantissa_bits;
  const auto field = int(code / codes_per_binade);
  const auto digits = Exact(code % codes_per_binade);
  const int unit = -f.bias - f.mantissa_bits;
  if (field == 0 && f.subnormals == Subnormals::yes) return digits * power_of_two_exact(1 + unit);
  return (digits + Exact(codes_per_binade)) * power_of_two_exact(field + unit);
}

// The largest code whose value is at most m. Requires m >= magnitude_of(f, 0), m finite.
inline uint64_t code_at_or_below(const Format& f, Exact m) {
  uint64_t low = 0, high = uint64_t{f.max_code()} + 1;
  if (magnitude_of(f, high) <= m) high = uint64_t{4096} << f.mantissa_bits;
  while (high - low > 1) {
    const uint64_t middle = (low + high) / 2;
    (magnitude_of(f, middle) <= m ? low : high) = middle;
  }
  return low;
}

// Whether the last digit of a code's significand is odd. With a one-digit significand it always is.
inline bool last_digit_is_odd(const Format& f, uint64_t code) { return f.mantissa_bits == 0 || code % 2 == 1; }

// Whether the value at `position` (0 < position < 1) of the way from the code `below` to the next one goes to the next.
inline bool takes_upper(const Format& f, Rounding mode, bool negative, uint64_t below, Exact position, RandomBits r) {
  const bool odd = last_digit_is_odd(f, below);
  switch (mode) {
    // A tie goes to the even neighbour or, where neither is even, to the larger magnitude (IEEE 754-2019 §4.3.1).
    case Rounding::nearest_even: return position > 0.5L || (position == 0.5L && odd);
    case Rounding::nearest_away: return position >= 0.5L;
    case Rounding::nearest_zero: return position > 0.5L;
    case Rounding::toward_zero: return false;
    case Rounding::up: return !negative;
    case Rounding::down: return negative;
    case Rounding::to_odd: return !odd;
    case Rounding::stochastic: {
      const Exact steps = std::ldexp(Exact{1}, r.count);
      return std::floor(position * steps) + std::fmod(Exact(r.word), steps) >= steps;
    }
  }
  return false;
}

// The magnitude code that the finite x rounds to; beyond max_code() where it overflows.
inline uint64_t slow_magnitude(const Format& f, Rounding mode, Exact x, RandomBits random = {}) {
  const Exact m = std::fabs(x);
  if (m <= magnitude_of(f, 0)) return 0;  // zero, or below the smallest value of a format without zero
  const uint64_t below = code_at_or_below(f, m);
  const Exact low = magnitude_of(f, below), step = magnitude_of(f, below + 1) - low;
  if (m == low) return below;
  return below + takes_upper(f, mode, x < 0, below, (m - low) / step, random);
}

// Whether IEEE 754-2019 §7.4 delivers infinity, rather than the largest finite value, for an overflow in this mode.
inline bool delivers_infinity(Rounding mode, bool negative) {
  switch (mode) {
    case Rounding::nearest_even:
    case Rounding::nearest_away:
    case Rounding::nearest_zero:
    case Rounding::stochastic: return true;
    case Rounding::up: return !negative;
    case Rounding::down: return negative;
    case Rounding::toward_zero:
    case Rounding::to_odd: return false;
  }
  return false;
}

// The code of max (saturating) or of what follows it (not saturating), sign included.
inline uint32_t slow_overflow(const Format& f, Overflow overflow, bool negative) {
  const uint32_t sign = negative && f.sign == Sign::one_bit ? uint32_t{1} << (f.bits() - 1) : 0;
  if (overflow == Overflow::saturate || f.specials == Specials::finite_only) return sign | f.max_code();
  if (f.specials == Specials::negative_zero) return uint32_t{1} << (f.bits() - 1);
  return sign | (f.max_code() + 1);
}

// The code of a finite input from its sign and its slow_magnitude.
inline uint32_t slow_code(const Format& f, Rounding mode, Overflow overflow, bool negative, uint64_t magnitude) {
  if (magnitude > f.max_code())
    return slow_overflow(f, delivers_infinity(mode, negative) ? overflow : Overflow::saturate, negative);
  const bool signless_zero = magnitude == 0 && f.specials == Specials::negative_zero;
  const bool signed_code = negative && f.sign == Sign::one_bit && !signless_zero;
  return uint32_t(magnitude) | (signed_code ? uint32_t{1} << (f.bits() - 1) : 0);
}

}  // namespace halfulp::oracle

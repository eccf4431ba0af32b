#pragma once
// The only conversion there is: a number to the code of a format, and back. Total: every input has a code.

#include <cstdint>
#include <type_traits>

#include "formats/format.h"
#include "formats/policy.h"
#include "formats/rounding.h"
#include "lib/bits.h"

namespace halfulp {

// A number taken apart: (-1)^negative * significand * 2^exponent, exactly. A NaN has its payload in the upper bits
// of significand (bit 63 is the quiet bit).
struct Unpacked {
  enum class Kind { finite, inf, nan };
  uint64_t significand;
  int exponent;
  bool negative;
  Kind kind;
};

namespace detail {
template <int exponent_bits, int mantissa_bits>
HOST_DEVICE constexpr Unpacked unpack_ieee(uint64_t bits) {
  constexpr int kMaxField = (1 << exponent_bits) - 1, kBias = kMaxField / 2;
  const uint64_t fraction = bits & low_mask(mantissa_bits);
  const int field = int(bits >> mantissa_bits) & kMaxField;
  const bool negative = (bits >> (mantissa_bits + exponent_bits)) & 1;
  if (field == kMaxField)
    return {fraction << (64 - mantissa_bits), 0, negative, fraction ? Unpacked::Kind::nan : Unpacked::Kind::inf};
  if (field == 0) return {fraction, 1 - kBias - mantissa_bits, negative, Unpacked::Kind::finite};
  return {fraction | uint64_t{1} << mantissa_bits, field - kBias - mantissa_bits, negative, Unpacked::Kind::finite};
}
}  // namespace detail

// Exact for float, double and every integer of up to 64 bits: no source is narrowed before it is rounded.
template <class Source>
HOST_DEVICE constexpr Unpacked unpack(Source x) {
  if constexpr (std::is_same_v<Source, float>) {
    return detail::unpack_ieee<8, 23>(bit_cast<uint32_t>(x));
  } else if constexpr (std::is_same_v<Source, double>) {
    return detail::unpack_ieee<11, 52>(bit_cast<uint64_t>(x));
  } else {
    static_assert(std::is_integral_v<Source>);
    const bool negative = x < Source{0};
    const uint64_t magnitude = negative ? ~uint64_t(x) + 1 : uint64_t(x);
    return {magnitude, 0, negative, Unpacked::Kind::finite};
  }
}

// The all-ones magnitude of a NaN as the format has it: +max where there is no NaN.
HOST_DEVICE constexpr uint32_t canonical_nan(const Format& f) {
  return f.specials == Specials::negative_zero ? f.sign_mask() : f.magnitude_mask();
}

// Magnitude and sign to code. The formats whose -0 is their NaN keep no sign on zero.
HOST_DEVICE constexpr uint32_t with_sign(const Format& f, uint32_t magnitude, bool negative) {
  const bool drop = f.specials == Specials::negative_zero && magnitude == 0;
  return negative && !drop ? f.sign_mask() | magnitude : magnitude;
}

// A NaN of an IEEE-like format with the given payload; the canonical NaN where NaN has a single magnitude.
HOST_DEVICE constexpr uint32_t ieee_nan(const Format& f, uint32_t payload, bool negative) {
  if (f.specials != Specials::ieee || f.mantissa_bits == 0)
    return f.specials == Specials::negative_zero ? f.sign_mask() : with_sign(f, f.magnitude_mask(), negative);
  return with_sign(f, (f.max_code() + 1) | payload, negative);
}

HOST_DEVICE constexpr uint32_t nan_code(const Format& f, NanInput policy, const Unpacked& u) {
  const uint32_t upper = f.mantissa_bits ? uint32_t(u.significand >> (64 - f.mantissa_bits)) : 0;
  const uint32_t quiet = f.hidden() >> 1;
  switch (policy) {
    case NanInput::all_ones: return canonical_nan(f);
    case NanInput::signed_all_ones: return ieee_nan(f, f.hidden() - 1, u.negative);
    case NanInput::payload: return ieee_nan(f, upper | quiet, u.negative);
    case NanInput::quiet: return ieee_nan(f, quiet, u.negative);
    case NanInput::zero: return f.has_nan() ? ieee_nan(f, upper | quiet, u.negative) : with_sign(f, 0, u.negative);
    case NanInput::truncate: return ieee_nan(f, upper, u.negative);
    case NanInput::truncate_minus_ulp: return ieee_nan(f, upper, u.negative) - 1;
  }
  return canonical_nan(f);
}

// Code of a value whose magnitude is past the largest finite one after rounding, or of Inf.
HOST_DEVICE constexpr uint32_t overflow_code(const Format& f, Overflow overflow, bool negative) {
  if (overflow == Overflow::saturate || f.specials == Specials::finite_only)
    return with_sign(f, f.max_code(), negative);
  if (f.specials == Specials::negative_zero) return canonical_nan(f);
  return with_sign(f, f.max_code() + 1, negative);  // Inf (ieee) or NaN (nan_only)
}

// Magnitude code of a finite value, rounded as if the exponent range had one more binade: it can exceed max_code().
HOST_DEVICE constexpr uint32_t round_magnitude(const Format& f, Rounding mode, const Unpacked& u, RandomBits random) {
  if (u.significand == 0) return 0;
  const int leading = u.exponent + floor_log2(u.significand);
  if (leading > f.max_exponent()) return f.max_code() + 1;  // whatever the rounding; the exponent may fit no code
  const int exponent = leading > f.min_exponent() ? leading : f.min_exponent();
  const int shift = exponent - f.mantissa_bits - u.exponent;  // bits of the significand that fall below one ulp

  uint32_t kept = 0;
  Tail tail{.negative = u.negative, .odd = false, .fraction = 0, .sticky = false};
  if (shift <= 0) {
    kept = uint32_t(u.significand << -shift);  // fits: the leading bit lands on the hidden bit or below
  } else {
    kept = shift < 64 ? uint32_t(u.significand >> shift) : 0;
    const uint64_t below = u.significand & low_mask(shift < 64 ? shift : 64);
    if (shift <= 32) {
      tail.fraction = uint32_t(below << (32 - shift));
    } else {
      const int cut = shift - 32;
      tail.fraction = cut < 64 ? uint32_t(below >> cut) : 0;
      tail.sticky = (below & low_mask(cut < 64 ? cut : 64)) != 0;
    }
  }
  tail.odd = (kept & 1) != 0;
  kept += rounds_away(mode, tail, random);

  // kept holds the hidden bit, so adding it carries that bit, and any carry of the rounding, into the exponent field.
  const uint32_t base = uint32_t(exponent - f.min_exponent()) << f.mantissa_bits;
  if (f.subnormals == Subnormals::yes) return base + kept;
  return kept < f.hidden() ? 0 : base + kept - f.hidden();  // below the smallest value: the smallest value
}

// The code of u in f, in the low f.bits() bits.
HOST_DEVICE constexpr uint32_t encode_unpacked(const Format& f, const Policy& policy, Unpacked u, RandomBits random) {
  if (u.kind == Unpacked::Kind::nan) return nan_code(f, policy.nan, u);
  if (f.sign == Sign::none && u.negative) {
    const bool zero = u.kind == Unpacked::Kind::finite && u.significand == 0;
    if (!zero && policy.negative == NegativeInput::to_nan) return canonical_nan(f);
    if (policy.negative == NegativeInput::to_zero) return 0;
    u.negative = false;
  }
  if (u.kind == Unpacked::Kind::inf) {
    const bool nan = policy.inf == InfInput::to_nan && !f.has_inf();
    return overflow_code(f, nan ? Overflow::to_special : policy.overflow, u.negative);
  }
  const uint32_t magnitude = round_magnitude(f, policy.rounding, u, random);
  const bool unsigned_zero = magnitude == 0 && policy.zero == ZeroResult::positive;
  if (magnitude <= f.max_code()) return with_sign(f, magnitude, u.negative && !unsigned_zero);
  return overflows(policy.rounding, u.negative) ? overflow_code(f, policy.overflow, u.negative)
                                                : with_sign(f, f.max_code(), u.negative);
}

// The code of x in f. `random` is read by Rounding::stochastic only.
template <class Source>
HOST_DEVICE constexpr uint32_t encode(const Format& f, const Policy& policy, Source x, RandomBits random = {}) {
  return encode_unpacked(f, policy, unpack(x), random);
}

HOST_DEVICE constexpr bool is_nan_code(const Format& f, uint32_t code) {
  switch (f.specials) {
    case Specials::ieee: return (code & f.magnitude_mask()) > f.max_code() + 1;
    case Specials::nan_only: return (code & f.magnitude_mask()) > f.max_code();
    case Specials::negative_zero: return (code & f.code_mask()) == f.sign_mask();
    case Specials::finite_only: return false;
  }
  return false;
}

HOST_DEVICE constexpr bool is_inf_code(const Format& f, uint32_t code) {
  return f.specials == Specials::ieee && (code & f.magnitude_mask()) == f.max_code() + 1;
}

// The value of a code; bits above f.bits() are ignored. Exact: FP32 holds every format of the catalog. A NaN keeps
// its sign and is quiet.
HOST_DEVICE constexpr float decode(const Format& f, uint32_t code) {
  const uint32_t magnitude = code & f.magnitude_mask();
  const uint32_t sign = (code & f.sign_mask()) != 0 ? 0x8000'0000u : 0;
  if (is_nan_code(f, code)) return bit_cast<float>(sign | 0x7fc0'0000u);
  if (is_inf_code(f, code)) return bit_cast<float>(sign | 0x7f80'0000u);
  const int field = int(magnitude >> f.mantissa_bits);
  const bool subnormal = field == 0 && f.subnormals == Subnormals::yes;
  const uint32_t significand = (magnitude & (f.hidden() - 1)) | (subnormal ? 0 : f.hidden());
  const float value = float(significand) * power_of_two((subnormal ? 1 : field) - f.bias - f.mantissa_bits);
  return bit_cast<float>(sign | bit_cast<uint32_t>(value));
}

// decode() for a code whose NaN payload matters: a NaN of an IEEE-like format keeps its sign and, at the top of the
// mantissa, its payload, and stays signalling if it is. So f32 passes through unchanged.
HOST_DEVICE constexpr float decode_bits(const Format& f, uint32_t code) {
  if (f.bits() == 32) return bit_cast<float>(code);
  if (f.specials != Specials::ieee || !is_nan_code(f, code)) return decode(f, code);
  const uint32_t sign = (code & f.sign_mask()) != 0 ? 0x8000'0000u : 0;
  const uint32_t payload = (code & (f.hidden() - 1)) << (23 - f.mantissa_bits);
  return bit_cast<float>(sign | 0x7f80'0000u | payload);
}

}  // namespace halfulp

#pragma once
// A format and a policy as the numbers that the encoding kernels broadcast: a kernel never asks which format it has.
//
// The kernels work on a line: the FP32 bits of a magnitude, shifted right by `shift` and less `offset`, are its code,
// because the codes of a format, like FP32's, are in the order of their values. Only its subnormals leave that line;
// they are brought back to it first.

#include <cstdint>

#include "emulation/simd/simd.h"
#include "formats/codec.h"
#include "formats/format.h"
#include "formats/policy.h"

namespace halfulp::simd {

// How a magnitude comes to the line.
enum class Line {
  subnormals,  // the format's subnormals are normal numbers of FP32
  as_f32,      // the exponents are FP32's: nothing to do (BF16)
  binades,     // no subnormals: a smaller magnitude is the smallest one (E8M0)
};

// Which kernel makes magnitude codes.
enum class Round {
  nearest_sum,   // nearest-even, by adding a number whose ulp is the format's
  nearest_line,  // nearest-even on the line as_f32
  any,           // every mode that reads no random bits
  random16,
  random32,
};

// What is left to do with a magnitude code: the first two put in a NaN and a sign, and nothing else.
enum class Finish {
  nan_without_sign,
  nan_with_sign,
  any,  // everything that a policy can ask for; also all that has no kernel of its own
};

struct EncodeConstants {
  // What the scalar code needs.
  Format format;
  Policy policy;
  Storage storage;

  Line line;
  Round round;
  Finish finish;

  int shift;                // 23 - mantissa_bits
  uint32_t smallest;        // FP32 bits of the smallest normal magnitude
  uint32_t offset;          // of the line
  uint32_t sum_low;         // low bits of the number that nearest_sum adds: they take the offset off
  uint32_t always_odd;      // 1: every last kept bit counts as odd
  uint32_t magnitude_mask;  // of a code
  int sign_shift;           // brings the sign to its place in a code; 31, inside the magnitude, where there is none

  uint32_t most[2];   // a magnitude of that sign (0: positive) that is larger is taken as this one
  uint32_t step[2];   // what is added before bits are dropped
  uint32_t odd_step;  // and added on top where the last kept bit is odd

  uint32_t nan_on_line;  // what a NaN's magnitude is taken as, unless finish is any
  uint32_t line_flip;    // random rounding leaves the offset in: these bits of a code are then wrong

  uint32_t inf_code;  // magnitude code of Inf
  uint32_t nan_code;  // a NaN's code is ((payload & nan_payload) | nan_code | (sign & nan_sign)) - nan_minus
  uint32_t nan_payload;
  uint32_t nan_sign;
  uint32_t nan_minus;
  uint32_t sign;            // the sign bit of a code
  uint32_t zero_sign;       // what is kept of the sign of a zero
  uint32_t negative_other;  // all ones: a negative number of a format without sign has the code negative_code
  uint32_t negative_code;
};

// A value of the line: the FP32 bits of a magnitude code of the format, normal or one above the largest.
constexpr uint32_t f32_bits_of(const EncodeConstants& k, uint32_t code) { return (code << k.shift) + k.offset; }

constexpr void set_nan(EncodeConstants& k) {
  const Format& f = k.format;
  const auto code_of = [&](bool negative, uint64_t significand) {
    return nan_code(f, k.policy.nan, {significand, 0, negative, Unpacked::Kind::nan});
  };
  const bool minus = k.policy.nan == NanInput::truncate_minus_ulp;
  k.nan_minus = minus ? 1 : 0;
  k.nan_code = code_of(false, 0) + k.nan_minus;
  k.nan_sign = (code_of(true, 0) + k.nan_minus) ^ k.nan_code;
  k.nan_payload = (code_of(false, ~uint64_t{0}) + k.nan_minus) & ~k.nan_code & (f.hidden() - 1);
}

constexpr void set_overflow(EncodeConstants& k) {
  const Format& f = k.format;
  const Policy& p = k.policy;
  const bool inf_is_nan = p.inf == InfInput::to_nan && !f.has_inf();
  k.inf_code = overflow_code(f, inf_is_nan ? Overflow::to_special : p.overflow, false);
  for (const int negative : {0, 1}) {
    const bool is_negative = negative != 0 && f.sign == Sign::one_bit;
    const bool leaves =
        overflows(p.rounding, is_negative) && p.overflow == Overflow::to_special && f.specials != Specials::finite_only;
    k.most[negative] = f32_bits_of(k, f.max_code() + (leaves ? 1 : 0));
  }
}

// Adding `step` and dropping `shift` bits is the rounding; the line keeps a bit for what was lost before.
constexpr void set_steps(EncodeConstants& k) {
  const uint32_t half = uint32_t{1} << (k.shift - 1), all = 2 * half - 1;
  k.odd_step = 0;
  for (const int negative : {0, 1}) {
    const bool is_negative = negative != 0 && k.format.sign == Sign::one_bit;
    switch (k.policy.rounding) {
      case Rounding::nearest_even:
        k.step[negative] = half - 1;
        k.odd_step = 1;
        break;
      case Rounding::nearest_away: k.step[negative] = half; break;
      case Rounding::nearest_zero: k.step[negative] = half - 1; break;
      case Rounding::up: k.step[negative] = is_negative ? 0 : all; break;
      case Rounding::down: k.step[negative] = is_negative ? all : 0; break;
      case Rounding::to_odd:
        k.step[negative] = all;
        k.odd_step = uint32_t{0} - all;
        break;
      case Rounding::toward_zero:
      case Rounding::stochastic: k.step[negative] = 0; break;
    }
  }
}

constexpr void set_signs(EncodeConstants& k) {
  const Format& f = k.format;
  k.sign = f.sign_mask();
  k.sign_shift = f.sign == Sign::one_bit ? 31 - f.sign_shift() : 31;
  const bool keeps = f.specials != Specials::negative_zero && k.policy.zero == ZeroResult::keeps_sign;
  k.zero_sign = keeps ? k.sign : 0;
  const bool other = f.sign == Sign::none && k.policy.negative != NegativeInput::magnitude;
  k.negative_other = other ? ~uint32_t{0} : 0;
  k.negative_code = k.policy.negative == NegativeInput::to_nan ? canonical_nan(f) : 0;
}

// The offset's share of a code can be taken off by flipping the highest bit, or not at all.
constexpr bool offset_flips(const EncodeConstants& k) {
  return k.line_flip == 0 || k.line_flip == (k.magnitude_mask + 1) / 2;
}

constexpr Finish finish_of(const EncodeConstants& k) {
  const Format& f = k.format;
  const bool plain = k.zero_sign == k.sign && k.negative_other == 0 && k.nan_payload == 0 && k.nan_minus == 0 &&
                     k.most[0] == k.most[1] && f32_bits_of(k, k.inf_code) == k.most[0] &&
                     f.specials != Specials::negative_zero;
  const bool nan_is_normal = k.nan_code >= f.hidden() && k.nan_code <= k.magnitude_mask;
  const bool random_fits = k.storage.bits <= 8 && k.line == Line::subnormals && offset_flips(k);
  if (!plain || !nan_is_normal || (is_stochastic(k.policy.rounding) && !random_fits)) return Finish::any;
  return k.nan_sign == 0 && f.sign == Sign::one_bit ? Finish::nan_without_sign : Finish::nan_with_sign;
}

enum class RandomKind { none, word_of_four, philox };

constexpr Round round_of(const EncodeConstants& k, RandomKind random) {
  const Format& f = k.format;
  if (is_stochastic(k.policy.rounding)) return random == RandomKind::philox ? Round::random32 : Round::random16;
  if (k.policy.rounding != Rounding::nearest_even || k.finish == Finish::any) return Round::any;
  if (k.line == Line::as_f32 && k.storage.bits == 16) return Round::nearest_line;
  // The largest number that is added must be one of FP32.
  const bool sums = k.line == Line::subnormals && f.mantissa_bits >= 1 && f.max_exponent() + 1 + k.shift <= 127;
  return sums ? Round::nearest_sum : Round::any;
}

// Whether there is a kernel. There is none for 32-bit storage and for codes that do not lie in the low bits (TF32,
// F32), for more than 10 bits of mantissa, for exponents beyond FP32's, for subnormals without mantissa bits, and for
// 16 random bits where fewer than 16 are dropped (F16), or 17 where the format has subnormals that FP32 does not have.
constexpr bool has_encode_kernel(const Format& f, const Policy& policy, Storage storage, RandomKind random) {
  const bool stored = storage.shift == 0 && storage.bits <= 16 && f.bits() <= storage.bits;
  const bool in_f32 = f.mantissa_bits <= 10 && f.min_exponent() >= -127 && f.max_exponent() <= 127 &&
                      (f.subnormals == Subnormals::no || (f.min_exponent() >= -126 && f.mantissa_bits >= 1));
  if (!is_stochastic(policy.rounding)) return stored && in_f32;
  const int unread = 7 - f.mantissa_bits;  // bits that are dropped and lie below the 16 random ones
  const bool word_fits = unread >= (f.subnormals == Subnormals::yes && f.min_exponent() > -126 ? 1 : 0);
  return stored && in_f32 && random != RandomKind::none && (random == RandomKind::philox || word_fits);
}

// Requires has_encode_kernel().
constexpr EncodeConstants encode_constants(const Format& f, const Policy& policy, Storage storage, RandomKind random) {
  EncodeConstants k{};
  k.format = f;
  k.policy = policy;
  k.storage = storage;
  const uint32_t smallest_field = uint32_t(f.min_exponent() + 127);
  k.line = f.subnormals == Subnormals::no ? Line::binades : smallest_field == 1 ? Line::as_f32 : Line::subnormals;
  k.shift = 23 - f.mantissa_bits;
  k.smallest = smallest_field << 23;
  k.offset = f.subnormals == Subnormals::no ? k.smallest : k.smallest - 0x0080'0000;
  k.sum_low = (uint32_t{0} - (smallest_field << f.mantissa_bits)) & 0xffff;
  k.always_odd = f.mantissa_bits == 0 ? 1 : 0;
  k.magnitude_mask = f.magnitude_mask();
  set_signs(k);
  set_nan(k);
  set_overflow(k);
  set_steps(k);
  k.nan_on_line = f32_bits_of(k, k.nan_code);
  k.line_flip = (k.offset >> k.shift) & k.magnitude_mask;
  k.finish = finish_of(k);
  k.round = round_of(k, random);
  return k;
}

}  // namespace halfulp::simd

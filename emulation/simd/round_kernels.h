// FP32 bits to codes, lane by lane: rounding, limits, signs, Inf and NaN. A part of encode_kernels.h, which includes it
// after vectors.h, once for each instruction set: no include guard.

#include "emulation/simd/constants.h"

HWY_BEFORE_NAMESPACE();
namespace halfulp::simd::HWY_NAMESPACE {

using Mask = decltype(greater(VU{}, VU{}));

// The format's subnormals: x + smallest has an ulp of 2^-23 smallest, so its bits count those. The sum is rounded to
// nearest: where that was upward, `cut` goes one back; `lost` is where it changed x.
struct Subnormals {
  VU smallest;
  VF below_smallest;  // by half of that ulp

  explicit HWY_INLINE Subnormals(const EncodeConstants& k)
      : smallest(words(k.smallest)), below_smallest(float_of(words(k.smallest - 1))) {}

  HWY_INLINE Mask here(VU magnitude) const { return greater(smallest, magnitude); }

  HWY_INLINE VU cut(VU magnitude) const {
    const VF x = float_of(magnitude), sum = hn::Add(x, float_of(smallest));
    const Mask above = hn::RebindMask(kWords, hn::Gt(hn::Sub(sum, float_of(smallest)), x)), subnormal = here(magnitude);
    const VU line = hn::IfThenElse(subnormal, hn::Sub(bits_of(sum), words(0x0080'0000)), magnitude);
    return hn::IfThenElse(hn::And(subnormal, above), hn::Sub(line, words(1)), line);
  }

  // As `cut` but for the lowest bit, which is arbitrary. Half an ulp less makes rounding to nearest cut, but for an odd
  // multiple of the ulp, which is a tie and may lose one; it makes zero the number below the smallest, which
  // `larger_of` mends.
  HWY_INLINE VU cut_but_lowest(VU magnitude) const {
    const VU sum = larger_of(bits_of(hn::Add(float_of(magnitude), below_smallest)), smallest);
    return hn::IfThenElse(here(magnitude), hn::Sub(sum, words(0x0080'0000)), magnitude);
  }

  HWY_INLINE Mask lost(VU magnitude) const {
    const VF x = float_of(magnitude), sum = hn::Add(x, float_of(smallest));
    return hn::And(here(magnitude), hn::RebindMask(kWords, hn::Ne(hn::Sub(sum, float_of(smallest)), x)));
  }
};

// Magnitudes on the line, plus the offset, cut.
template <Line line>
struct ToLine;

template <>
struct ToLine<Line::subnormals> {
  Subnormals subnormals;
  explicit HWY_INLINE ToLine(const EncodeConstants& k) : subnormals(k) {}
  HWY_INLINE VU cut(VU m) const { return subnormals.cut(m); }
  HWY_INLINE VU cut_but_lowest(VU m) const { return subnormals.cut_but_lowest(m); }
  HWY_INLINE Mask lost(VU m) const { return subnormals.lost(m); }
};

template <>
struct ToLine<Line::as_f32> {
  explicit HWY_INLINE ToLine(const EncodeConstants&) {}
  HWY_INLINE VU cut(VU m) const { return m; }
  HWY_INLINE VU cut_but_lowest(VU m) const { return m; }
  HWY_INLINE Mask lost(VU) const { return hn::MaskFromVec(hn::Zero(kWords)); }
};

// A format whose smallest number is 2^-127 has FP32's subnormals down to it as its lowest binade: doubled, their bits
// continue the line downward.
template <>
struct ToLine<Line::binades> {
  VU smallest, doubled_below;
  explicit HWY_INLINE ToLine(const EncodeConstants& k)
      : smallest(words(k.smallest)), doubled_below(words(k.smallest == 0 ? 0x0080'0000 : 0)) {}
  HWY_INLINE VU cut(VU m) const {
    const VU hidden = words(0x0080'0000);
    const VU doubled = hn::Sub(larger_of(hn::Add(m, m), hidden), hidden);
    return larger_of(smallest, hn::IfThenElse(greater(doubled_below, m), doubled, m));
  }
  HWY_INLINE VU cut_but_lowest(VU m) const { return cut(m); }
  HWY_INLINE Mask lost(VU) const { return hn::MaskFromVec(hn::Zero(kWords)); }
};

// A magnitude that is not beyond `most`, to its code at bit kCodeShift; other bits are arbitrary. Of the random modes,
// what `fast` gives has line_flip in it.
template <Round round, Line line>
struct Rounder;

constexpr bool is_random(Round round) { return round == Round::random16 || round == Round::random32; }

// magnitude + 2^(e + shift) has the ulp of the format at exponent e, the larger one of x and of the smallest normal.
template <Line line>
struct Rounder<Round::nearest_sum, line> {
  static constexpr int kCodeShift = 0;
  VU exponents = words(0x7f80'0000), smallest, addend;
  Count shift;

  explicit HWY_INLINE Rounder(const EncodeConstants& k)
      : smallest(words(k.smallest)), addend(words((uint32_t(k.shift) << 23) | k.sum_low)), shift(k.shift) {}

  HWY_INLINE VU fast(VU magnitude, VU) const {
    const VU e = larger_of(hn::And(magnitude, exponents), smallest);
    const VF sum = hn::Add(float_of(magnitude), float_of(hn::Add(e, addend)));
    return hn::Add(bits_of(sum), shift_right(e, shift));
  }
};

template <Line line>
struct Rounder<Round::nearest_line, line> {
  static constexpr int kCodeShift = 0;
  VU step, one = words(1);
  Count shift;

  explicit HWY_INLINE Rounder(const EncodeConstants& k) : step(words(k.step[0])), shift(k.shift) {}

  HWY_INLINE VU fast(VU magnitude, VU) const {
    const VU odd = hn::And(shift_right(magnitude, shift), one);
    return shift_right(hn::Add(hn::Add(magnitude, step), odd), shift);
  }
};

template <Line line>
struct Rounder<Round::any, line> {
  ToLine<line> to_line;
  VU offset, positive_step, negative_step, odd_step, always_odd;
  Count shift;

  explicit HWY_INLINE Rounder(const EncodeConstants& k)
      : to_line(k),
        offset(words(k.offset)),
        positive_step(words(k.step[0])),
        negative_step(words(k.step[1])),
        odd_step(words(k.odd_step)),
        always_odd(words(k.always_odd)),
        shift(k.shift) {}

  HWY_INLINE VU exact(VU magnitude, Mask negative, VU) const {
    const VU one = words(1), cut = hn::Sub(to_line.cut(magnitude), offset);
    const VU on_line = hn::IfThenElse(to_line.lost(magnitude), hn::Or(cut, one), cut);
    const VU odd = hn::And(hn::Or(shift_right(on_line, shift), always_odd), one);
    const VU step = hn::IfThenElse(negative, negative_step, positive_step);
    const VU odd_part = hn::And(odd_step, hn::Sub(hn::Zero(kWords), odd));
    return shift_right(hn::Add(hn::Add(on_line, step), odd_part), shift);
  }
};

// 16 random bits, added to the upper 16 of those that are dropped: of a format with subnormals, at least 17.
template <Line line>
struct Rounder<Round::random16, line> {
  static constexpr int kCodeShift = 16;
  ToLine<line> to_line;
  VU offset;
  Count unread;

  explicit HWY_INLINE Rounder(const EncodeConstants& k) : to_line(k), offset(words(k.offset)), unread(k.shift - 16) {}

  HWY_INLINE VU fast(VU magnitude, VU random) const {
    return hn::Add(shift_right(to_line.cut_but_lowest(magnitude), unread), random);
  }
  HWY_INLINE VU exact(VU magnitude, Mask, VU random) const {
    const VU on_line = hn::Sub(to_line.cut_but_lowest(magnitude), offset);
    return hn::ShiftRight<16>(hn::Add(shift_right(on_line, unread), random));
  }
};

// 32 random bits, of which those that lie below the line are not added: they matter only where the sum of the others
// is all ones and the magnitude lost bits on its way to the line. `undecided` is 0 in such lanes, and in a few more.
template <Line line>
struct Rounder<Round::random32, line> {
  static constexpr int kCodeShift = 0;
  ToLine<line> to_line;
  VU offset, dropped;
  Count shift, unread;

  explicit HWY_INLINE Rounder(const EncodeConstants& k)
      : to_line(k),
        offset(words(k.offset)),
        dropped(words((uint32_t{1} << k.shift) - 1)),
        shift(k.shift),
        unread(32 - k.shift) {}

  // The offset has no bits among those that are dropped.
  HWY_INLINE VU sum(VU magnitude, VU random) const {
    return hn::Add(to_line.cut(magnitude), shift_right(random, unread));
  }
  HWY_INLINE VU fast(VU magnitude, VU random) const { return shift_right(sum(magnitude, random), shift); }
  HWY_INLINE VU exact(VU magnitude, Mask, VU random) const {
    return shift_right(hn::Sub(sum(magnitude, random), offset), shift);
  }
  HWY_INLINE VU undecided(VU magnitude, VU random) const { return hn::AndNot(sum(magnitude, random), dropped); }
};

template <Round round, Line line, Finish finish>
struct Encoder {
  static constexpr int kCodeShift = Rounder<round, line>::kCodeShift;
  Rounder<round, line> rounder;
  VU magnitude_bits = words(0x7fff'ffff), inf = words(0x7f80'0000);
  VU most, nan, magnitude_mask;
  Count sign_shift;

  explicit HWY_INLINE Encoder(const EncodeConstants& k)
      : rounder(k),
        most(words(k.most[0])),
        nan(words(finish == Finish::nan_with_sign ? k.nan_on_line : (k.nan_code ^ flip_of(k)) << kCodeShift)),
        magnitude_mask(words(k.magnitude_mask << kCodeShift)),
        sign_shift(k.sign_shift - kCodeShift) {}

  static HWY_INLINE uint32_t flip_of(const EncodeConstants& k) { return is_random(round) ? k.line_flip : 0; }

  HWY_INLINE VU limited(VU x) const { return smaller_of(hn::And(x, magnitude_bits), most); }

  // A NaN with a sign takes the way of a number, one without a sign is put in at the end.
  HWY_INLINE VU code(VU x, VU random) const {
    const Mask is_nan = greater(hn::And(x, magnitude_bits), inf);
    const VU sign = shift_right(x, sign_shift);
    if constexpr (finish == Finish::nan_with_sign) {
      return select_bits(magnitude_mask, rounder.fast(hn::IfThenElse(is_nan, nan, limited(x)), random), sign);
    } else {
      return hn::IfThenElse(is_nan, nan, select_bits(magnitude_mask, rounder.fast(limited(x), random), sign));
    }
  }
};

template <Round round, Line line>
struct Encoder<round, line, Finish::any> {
  static constexpr int kCodeShift = 0;
  const EncodeConstants& k;
  Rounder<round, line> rounder;
  Count sign_shift, shift;

  explicit HWY_INLINE Encoder(const EncodeConstants& constants)
      : k(constants), rounder(constants), sign_shift(constants.sign_shift), shift(constants.shift) {}

  static HWY_INLINE VU magnitude_of(VU x) { return hn::And(x, words(0x7fff'ffff)); }
  static HWY_INLINE Mask is_negative(VU x) {
    return hn::MaskFromVec(hn::BitCast(kWords, hn::BroadcastSignBit(ints_of(x))));
  }

  HWY_INLINE VU limited(VU x) const {
    return smaller_of(magnitude_of(x), hn::IfThenElse(is_negative(x), words(k.most[1]), words(k.most[0])));
  }

  HWY_INLINE VU nan_code_of(VU x) const {
    const VU payload = hn::And(shift_right(magnitude_of(x), shift), words(k.nan_payload));
    const VU sign = hn::And(shift_right(x, sign_shift), words(k.nan_sign));
    return hn::Sub(hn::Or(hn::Or(payload, words(k.nan_code)), sign), words(k.nan_minus));
  }

  HWY_INLINE VU code(VU x, VU random) const {
    const VU magnitude = magnitude_of(x), inf = words(0x7f80'0000);
    VU code = rounder.exact(limited(x), is_negative(x), random);
    code = hn::IfThenElse(hn::Eq(magnitude, inf), words(k.inf_code), code);
    const VU sign = shift_right(x, sign_shift), zero = hn::Zero(kWords);
    const VU kept = hn::IfThenElse(hn::Eq(code, zero), words(k.zero_sign), words(k.sign));
    code = hn::Or(code, hn::And(sign, kept));
    const VU other = hn::IfThenElseZero(greater(magnitude, zero), words(k.negative_other));
    code = hn::IfThenElse(hn::And(is_negative(x), hn::MaskFromVec(other)), words(k.negative_code), code);
    return hn::IfThenElse(greater(magnitude, inf), nan_code_of(x), code);
  }
};

}  // namespace halfulp::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#pragma once
// Software forms of the saturating conversion of FP32 to nearest even, as short as the integer and FP32 units allow.
// They give the bits of the model in formats/codec.h, against which they are tested on every float.

#include <cstdint>

#include "formats/catalog.h"
#include "formats/codec.h"
#include "formats/policy.h"
#include "lib/bits.h"

namespace halfulp::arch {

// Whether nearest_code() is defined: it adds numbers up to 2^23 ulps of the format's largest, which FP32 must have.
constexpr bool has_nearest_code(const Format& f, const Policy& p) {
  const bool sums = f.subnormals == Subnormals::yes && f.mantissa_bits >= 1 && f.mantissa_bits <= 10 &&
                    f.min_exponent() > -126 && f.max_exponent() + 1 + 23 - f.mantissa_bits <= 127;
  const Policy nearest{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate};
  return sums && f.specials != Specials::negative_zero && p == nearest;
}

// Whether line_code() is, too: the format has three binades, with the subnormals below the first, and no NaN or Inf.
constexpr bool has_line_code(const Format& f) {
  return f.subnormals == Subnormals::yes && f.sign == Sign::one_bit && f.specials == Specials::finite_only &&
         f.max_exponent() - f.min_exponent() == 2;
}

namespace detail {
// Variables, because device code may not call what constant expressions may.
template <int format_id>
struct Nearest {
  static constexpr Format format = kFormats[format_id].format;
  static constexpr int mantissa_bits = format.mantissa_bits, shift = 23 - mantissa_bits;
  static constexpr uint32_t smallest_field = uint32_t(format.min_exponent() + 127);
  static constexpr uint32_t smallest = smallest_field << 23;
  static constexpr uint32_t excess = smallest_field << mantissa_bits;
  static constexpr float scale = power_of_two(shift);
  static constexpr float largest = decode(format, format.max_code());
  static constexpr uint32_t sign_shift = uint32_t(31 - format.sign_shift());
  static constexpr uint32_t sign_mask = format.sign_mask(), magnitude_mask = format.magnitude_mask();
  // From 2^23 on the ulp is 1.
  static constexpr float steps = power_of_two(mantissa_bits - format.min_exponent());  // per 1, in the first binade
  static constexpr float binade = float(1 << mantissa_bits);                           // of codes
  static constexpr uint32_t max_code = format.max_code();
};
}  // namespace detail

// The code of the FP32 number `bits`. NaN gives the positive code of all ones. Magnitude + 2^(e + shift) has the
// format's ulp at exponent e, so that its low bits count ulps; the exponent's share of the code is added.
template <int format_id>
__device__ uint32_t nearest_code(uint32_t bits) {
  using Is = detail::Nearest<format_id>;
  const uint32_t magnitude = bits & 0x7fff'ffffu;
  const float m = fminf(bit_cast<float>(magnitude), Is::largest);
  const uint32_t e = max(bit_cast<uint32_t>(m) & 0x7f80'0000u, Is::smallest);
  const float sum = fmaf(bit_cast<float>(e), Is::scale, m);  // the product is exact: one rounding
  const uint32_t code = (bit_cast<uint32_t>(sum) + (e >> Is::shift) - Is::excess) & Is::magnitude_mask;
  return magnitude > 0x7f80'0000u ? Is::magnitude_mask : code | (bits >> Is::sign_shift & Is::sign_mask);
}

// In the binades i = 0, 1, 2 the code is i * 2^mantissa_bits + magnitude / ulp, and elsewhere such a line lies above
// it: the code is the least of the three. They are fused multiply-adds, for whose units there is less to do.

__device__ inline int least(float a, float b, float c) {
  return __vimin3_s32(bit_cast<int>(a), bit_cast<int>(b), bit_cast<int>(c));
}

// kLineBase plus the code of a magnitude.
inline constexpr float kLineStart = 0x1p23f;
inline constexpr uint32_t kLineBase = bit_cast<uint32_t>(kLineStart);
template <int format_id>
__device__ uint32_t line_code(float magnitude) {
  using Is = detail::Nearest<format_id>;
  const float first = fmaf(magnitude, Is::steps, kLineStart);
  const float second = fmaf(magnitude, Is::steps / 2, kLineStart + Is::binade);
  const float third = fmaf(magnitude, Is::steps / 4, kLineStart + 2 * Is::binade);
  return uint32_t(min(least(first, second, third), int(kLineBase + Is::max_code)));
}

// The code of a magnitude, and more where it is beyond the largest, in the high half: `random`, of 16 bits, is added to
// the first 16 bits below the code. Above the code's bits are those of kLineBase.
template <int format_id>
__device__ uint32_t stochastic_line(float magnitude, uint32_t random) {
  using Is = detail::Nearest<format_id>;
  constexpr float kUnits = 0x1p16f;
  const float first = __fmaf_rz(magnitude, Is::steps * kUnits, kLineStart);
  const float second = __fmaf_rz(magnitude, Is::steps / 2 * kUnits, kLineStart + Is::binade * kUnits);
  const float third = __fmaf_rz(magnitude, Is::steps / 4 * kUnits, kLineStart + 2 * Is::binade * kUnits);
  return uint32_t(least(first, second, third)) + random;
}

// The codes of four such, a byte each, the first of them lowest.
template <int format_id>
__device__ uint32_t stochastic_codes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  constexpr uint32_t kMost = (kLineBase >> 16 | detail::Nearest<format_id>::max_code) * 0x1'0001;
  constexpr uint32_t kHighHalves = 0x7632, kLowBytes = 0x6420;
  return __byte_perm(__vminu2(__byte_perm(a, b, kHighHalves), kMost), __vminu2(__byte_perm(c, d, kHighHalves), kMost),
                     kLowBytes);
}

// The highest bytes of four numbers, the first of them lowest.
__device__ inline uint32_t highest_bytes(float a, float b, float c, float d) {
  return __byte_perm(__byte_perm(bit_cast<uint32_t>(a), bit_cast<uint32_t>(b), 0x0073),
                     __byte_perm(bit_cast<uint32_t>(c), bit_cast<uint32_t>(d), 0x0073), 0x5410);
}

// The signs of eight numbers at those of their 4-bit codes.
__device__ inline uint32_t nibble_signs(const float* x) {
  const uint32_t even = highest_bytes(x[0], x[2], x[4], x[6]), odd = highest_bytes(x[1], x[3], x[5], x[7]);
  return (even >> 4 & 0x0808'0808u) | (odd & 0x8080'8080u);
}

// The 4-bit codes of eight products x * m, the first in the lowest bits. Requires that m >= 0 and no product is NaN.
template <int format_id>
__device__ uint32_t line_nibbles(const float* x, float m) {
  constexpr uint32_t kOnes = 0x1111'1111;
  uint32_t codes = 0 - kLineBase * kOnes;
#pragma unroll
  for (int i = 0; i < 8; ++i) codes += line_code<format_id>(fabsf(x[i]) * m) << 4 * i;
  return codes | nibble_signs(x);
}

// Likewise, rounded stochastically by a word for each four, as cvt.rs takes it.
template <int format_id>
__device__ uint32_t stochastic_line_nibbles(const float* x, float m, uint32_t low_word, uint32_t high_word) {
  uint32_t codes[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4) {
    const uint32_t word = i == 0 ? low_word : high_word, reversed = __brev(word);
    const uint32_t fields[4] = {__byte_perm(word, 0, 0x4420), __byte_perm(reversed, 0, 0x4431),
                                __byte_perm(word, 0, 0x4431), __byte_perm(reversed, 0, 0x4420)};
#pragma unroll
    for (int k = 0; k < 4; ++k) codes[i + k] = stochastic_line<format_id>(fabsf(x[i + k]) * m, fields[k]);
  }
  const uint32_t even = stochastic_codes<format_id>(codes[0], codes[2], codes[4], codes[6]);
  const uint32_t odd = stochastic_codes<format_id>(codes[1], codes[3], codes[5], codes[7]);
  return even | odd << 4 | nibble_signs(x);
}

}  // namespace halfulp::arch

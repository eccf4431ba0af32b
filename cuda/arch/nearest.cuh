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

// Magnitudes below this round to no code beyond the largest: it is half an ulp above that one, in the third binade.
template <int format_id>
inline constexpr float kLineEnd = detail::Nearest<format_id>::largest + 0.5f / (detail::Nearest<format_id>::steps / 4);

// kLineBase plus the code of a magnitude.
inline constexpr float kLineStart = 0x1p23f;
inline constexpr uint32_t kLineBase = bit_cast<uint32_t>(kLineStart);
enum class Magnitudes { any, below_line_end };
template <int format_id, Magnitudes magnitudes>
__device__ uint32_t line_code(float magnitude) {
  using Is = detail::Nearest<format_id>;
  const float first = fmaf(magnitude, Is::steps, kLineStart);
  const float second = fmaf(magnitude, Is::steps / 2, kLineStart + Is::binade);
  const float third = fmaf(magnitude, Is::steps / 4, kLineStart + 2 * Is::binade);
  const int code = least(first, second, third);
  return uint32_t(magnitudes == Magnitudes::below_line_end ? code : min(code, int(kLineBase + Is::max_code)));
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
template <int format_id, Magnitudes magnitudes = Magnitudes::any>
__device__ uint32_t line_nibbles(const float* x, float m) {
  constexpr uint32_t kOnes = 0x1111'1111;
  uint32_t codes = 0 - kLineBase * kOnes;
#pragma unroll
  for (int i = 0; i < 8; ++i) codes += line_code<format_id, magnitudes>(fabsf(x[i]) * m) << 4 * i;
  return codes | nibble_signs(x);
}

}  // namespace halfulp::arch

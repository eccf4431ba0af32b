#pragma once
// The software form of a saturating conversion from FP32 to nearest even, in about eight instructions. Gives the bits
// of the model in formats/codec.h, over which it is tested on every float. Not for formats without subnormals.

#include <cstdint>

#include "formats/catalog.h"
#include "lib/bits.h"

namespace halfulp::arch {

// Whether nearest_code() is defined: the largest number that it adds must be one of FP32.
constexpr bool has_nearest_code(const Format& f) {
  return f.subnormals == Subnormals::yes && f.mantissa_bits >= 1 && f.mantissa_bits <= 10 && f.min_exponent() > -126 &&
         f.max_exponent() + 1 + 23 - f.mantissa_bits <= 127 && f.sign == Sign::one_bit &&
         f.specials != Specials::negative_zero;
}

// The magnitude code of a magnitude that is not NaN, in the low bits; those above it are arbitrary. m + 2^(e + shift)
// has the format's ulp at exponent e, so its low bits count ulps; the exponent's share of the code is added.
template <int format_id>
__device__ uint32_t nearest_magnitude(float m) {
  constexpr Format f = kFormats[format_id].format;
  constexpr int shift = 23 - f.mantissa_bits;
  constexpr uint32_t smallest = uint32_t(f.min_exponent() + 127) << 23;
  constexpr float scale = power_of_two(shift);
  // The code of the smallest normal is 2^mantissa_bits; what the exponent's field gives beyond that is taken off.
  constexpr uint32_t excess = (uint32_t(f.min_exponent() + 127) << f.mantissa_bits);
  const uint32_t e = max(bit_cast<uint32_t>(m) & 0x7f80'0000u, smallest);
  const float sum = fmaf(bit_cast<float>(e), scale, m);  // exact but for the one rounding that is wanted
  return bit_cast<uint32_t>(sum) + (e >> shift) - excess;
}

// The code of the FP32 number `bits`. NaN gives the positive code of all ones.
template <int format_id>
__device__ uint32_t nearest_code(uint32_t bits) {
  constexpr Format f = kFormats[format_id].format;
  constexpr float largest = decode(f, f.max_code());
  constexpr uint32_t sign_shift = uint32_t(31 - f.sign_shift());
  const uint32_t magnitude = bits & 0x7fff'ffffu;
  const uint32_t code = nearest_magnitude<format_id>(fminf(bit_cast<float>(magnitude), largest)) & f.magnitude_mask();
  const uint32_t sign = bits >> sign_shift & f.sign_mask();
  return magnitude > 0x7f80'0000u ? f.magnitude_mask() : code | sign;
}

}  // namespace halfulp::arch

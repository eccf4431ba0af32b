#pragma once
// Software forms of the saturating stochastic conversion of FP32, as short as the integer and FP32 units allow. They
// give the bits of the model in formats/codec.h, against which they are tested on every float.

#include <cstdint>

#include "cuda/arch/nearest.cuh"
#include "formats/catalog.h"
#include "formats/policy.h"
#include "lib/bits.h"

namespace halfulp::arch {

// Whether there are stochastic forms: of codes in a byte or less.
constexpr bool has_stochastic_code(const Format& f, const Policy& p) {
  const bool fits = f.bits() <= 8 && f.subnormals == Subnormals::yes && f.mantissa_bits >= 1 && f.exponent_bits <= 5;
  const Policy stochastic{.rounding = Rounding::stochastic, .overflow = Overflow::saturate};
  return fits && f.specials != Specials::negative_zero && p == stochastic;
}

namespace detail {
// Variables, because device code may not call what constant expressions may. Everything is scaled so that the smallest
// normal number is 2: the exponent's low bits are 0 there, and count binades.
template <int format_id>
struct Stochastic {
  static constexpr Format format = kFormats[format_id].format;
  static constexpr int fraction_bits = 23 - format.mantissa_bits;
  static constexpr int low_bits = 32 - fraction_bits;  // of a word, below the bits of an FP32 number
  static constexpr float scale = power_of_two(1 - format.min_exponent());
  static constexpr uint32_t doubled_scale_field = uint32_t(2 - format.min_exponent()) << 23;
  // From the smallest subnormal of FP32 to 2^-32 of the format's.
  static constexpr float low_scale = power_of_two(149 - 32 + format.min_exponent() - format.mantissa_bits);
  static constexpr int half_shift = fraction_bits - 16;  // of a code in the high half
  // The high half of the largest code with any fraction, over that of 2.
  static constexpr uint32_t most = bit_cast<uint32_t>(2.0f) >> 16 | format.max_code() << half_shift |
                                   uint32_t(low_mask(half_shift));
  static constexpr uint32_t magnitude_mask = format.magnitude_mask();
  static constexpr int sign_shift = format.sign == Sign::one_bit ? format.sign_shift() : 0;
  static constexpr uint32_t sign_mask = format.sign_mask();
};

// The code of a magnitude at bit fraction_bits, and its fraction of an ulp below, cut, over the bits of 2. Two numbers
// have it: 2 + magnitude, whose mantissa counts steps of the subnormals' size, below 2, and 2 * magnitude, whose bits
// count binades, from 2 on. The right one is the larger one.
template <int format_id>
__device__ uint32_t code_and_fraction(float magnitude, float above_2) {
  constexpr int kDoubled = int(Stochastic<format_id>::doubled_scale_field);
  return uint32_t(__viaddmax_s32(bit_cast<int>(magnitude), kDoubled, bit_cast<int>(above_2)));
}

// What two have in their high halves, side by side; a code beyond the largest is the largest.
template <int format_id>
__device__ uint32_t two_codes(uint32_t low, uint32_t high) {
  constexpr uint32_t kMost = Stochastic<format_id>::most * 0x1'0001, kHighHalves = 0x7632;
  return __vminu2(__byte_perm(low, high, kHighHalves), kMost);
}

__device__ inline uint32_t select(uint32_t mask, uint32_t a, uint32_t b) { return (a & mask) | (b & ~mask); }

// Left where `by` is positive.
template <int by>
__device__ uint32_t shift(uint32_t x) {
  if constexpr (by < 0) {
    return x >> -by;
  } else {
    return x << by;
  }
}
}  // namespace detail

// The code of a magnitude at bit fraction_bits, rounded by a word of 32 random bits; what is above belongs to 2. Bits
// that are below those of 2 in the word are added first, as an FP32 subnormal, and cut: only a carry of theirs counts,
// and only a magnitude below the smallest normal number has bits to carry with.
template <int format_id>
__device__ uint32_t stochastic_code(float magnitude, uint32_t word) {
  using Is = detail::Stochastic<format_id>;
  const float low = bit_cast<float>(word & uint32_t(low_mask(Is::low_bits)));
  const float above_2 = __fmaf_rz(__fmaf_rz(low, Is::low_scale, magnitude), Is::scale, 2);
  return detail::code_and_fraction<format_id>(magnitude, above_2) + (word >> Is::low_bits);
}

// Likewise by 16 random bits, which are compared with as many of the fraction.
template <int format_id>
__device__ uint32_t stochastic_code_of_16(float magnitude, uint32_t random) {
  using Is = detail::Stochastic<format_id>;
  const float above_2 = __fmaf_rz(magnitude, Is::scale, 2);
  return detail::code_and_fraction<format_id>(magnitude, above_2) + (random << Is::half_shift);
}

// Codes of 4 bits of eight numbers, the first lowest, from what stochastic_code() gives for their magnitudes.
template <int format_id>
__device__ uint32_t join_nibbles(const uint32_t (&codes)[8], const float* x) {
  using namespace detail;
  constexpr int kShift = Stochastic<format_id>::half_shift;
  const uint32_t first = select(0x000f'000f, shift<-kShift>(two_codes<format_id>(codes[0], codes[4])),
                                shift<4 - kShift>(two_codes<format_id>(codes[1], codes[5])));
  const uint32_t second = select(0x0f00'0f00, shift<8 - kShift>(two_codes<format_id>(codes[2], codes[6])),
                                 shift<12 - kShift>(two_codes<format_id>(codes[3], codes[7])));
  return select(0x7777'7777, select(0x00ff'00ff, first, second), nibble_signs(x));
}

// Codes in bytes of four, likewise.
template <int format_id>
__device__ uint32_t join_codes(const uint32_t (&codes)[4], const float* x) {
  using namespace detail;
  using Is = Stochastic<format_id>;
  constexpr int kShift = Is::half_shift;
  constexpr uint32_t kBytes = 0x0101'0101;
  const uint32_t bytes = select(0x00ff'00ff, shift<-kShift>(two_codes<format_id>(codes[0], codes[2])),
                                shift<8 - kShift>(two_codes<format_id>(codes[1], codes[3])));
  if constexpr (Is::sign_mask == 0) return bytes & Is::magnitude_mask * kBytes;
  const uint32_t signs = highest_bytes(x[0], x[1], x[2], x[3]) >> (7 - Is::sign_shift);
  return (bytes & Is::magnitude_mask * kBytes) | (signs & Is::sign_mask * kBytes);
}

// A register of codes of the products x * m, the first in the lowest bits, each rounded by a word of its own. Requires
// that m >= 0 and no product is NaN.
template <int format_id, int n>
__device__ uint32_t stochastic_register(const float* x, float m, const uint32_t (&words)[n]) {
  uint32_t codes[n];
#pragma unroll
  for (int i = 0; i < n; ++i) codes[i] = stochastic_code<format_id>(fabsf(x[i]) * m, words[i]);
  if constexpr (n == 8) {
    return join_nibbles<format_id>(codes, x);
  } else {
    return join_codes<format_id>(codes, x);
  }
}

// Likewise eight codes of 4 bits, rounded by a word for each four, as cvt.rs takes it.
template <int format_id>
__device__ uint32_t stochastic_nibbles(const float* x, float m, uint32_t low_word, uint32_t high_word) {
  uint32_t codes[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4) {
    const uint32_t word = i == 0 ? low_word : high_word, reversed = __brev(word);
    const uint32_t fields[4] = {__byte_perm(word, 0, 0x4420), __byte_perm(reversed, 0, 0x4431),
                                __byte_perm(word, 0, 0x4431), __byte_perm(reversed, 0, 0x4420)};
#pragma unroll
    for (int k = 0; k < 4; ++k) codes[i + k] = stochastic_code_of_16<format_id>(fabsf(x[i + k]) * m, fields[k]);
  }
  return join_nibbles<format_id>(codes, x);
}

}  // namespace halfulp::arch

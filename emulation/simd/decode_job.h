#pragma once
// A format as the numbers that the decoding kernels broadcast, and what a kernel is called with. Between simd.h and the
// kernels; not for others.

#include <array>
#include <cstddef>
#include <cstdint>

#include "emulation/simd/simd.h"
#include "formats/codec.h"

namespace halfulp::simd {

// What a NaN becomes: decode() or decode_bits().
enum class NanOutput { quiet, payload };

// Which magnitudes are no numbers.
enum class NotNumbers {
  none,
  above_most,    // all beyond the largest finite one are special_bits and what is kept of them
  inf_then_nan,  // the first beyond is special_bits, the others are NaN
  minus_zero,
};

enum class DecodeKernel { subnormals, binades, shift, table };

struct DecodeConstants {
  DecodeKernel kernel;
  NotNumbers not_numbers;
  int storage_bits;
  int shift;                // from a magnitude code to FP32's mantissa
  uint32_t magnitude_mask;  // of a code
  int sign_shift;           // from a code's sign to FP32's
  uint32_t sign;            // FP32's sign bit, 0 where there is none
  uint32_t rebias;          // what is added to FP32's exponent
  uint32_t most;            // shifted magnitude of the largest finite number
  uint32_t special_kept;    // bits of the shifted magnitude
  uint32_t special_bits;
  uint32_t minus_zero;  // its code
  std::array<float, 16> table;
};

struct DecodeJob {
  const std::byte* codes;
  std::size_t count;
  const float* factors;
  int block_log2;
  float* y;
};

constexpr NotNumbers not_numbers_of(const Format& f, NanOutput nan) {
  switch (f.specials) {
    case Specials::finite_only: return NotNumbers::none;
    case Specials::nan_only: return NotNumbers::above_most;
    case Specials::negative_zero: return NotNumbers::minus_zero;
    case Specials::ieee: return nan == NanOutput::payload ? NotNumbers::above_most : NotNumbers::inf_then_nan;
  }
  return NotNumbers::none;
}

constexpr DecodeKernel decode_kernel_of(const Format& f, Storage storage, NanOutput nan) {
  if (storage.bits == 4) return DecodeKernel::table;
  if (f.subnormals == Subnormals::no) return DecodeKernel::binades;
  const bool top_half = f.bits() == 16 && f.exponent_bits == 8 && f.bias == 127 && f.specials == Specials::ieee;
  return top_half && nan == NanOutput::payload ? DecodeKernel::shift : DecodeKernel::subnormals;
}

// There is no kernel for 32-bit storage, for codes that do not lie in the low bits, for exponents beyond FP32's, and
// for a format without subnormals but with Inf.
constexpr bool has_decode_kernel(const Format& f, Storage storage) {
  const bool stored = storage.shift == 0 && storage.bits <= 16 && f.bits() <= storage.bits;
  const bool in_f32 = f.mantissa_bits <= 10 && f.min_exponent() >= -127 && f.max_exponent() <= 127 && f.bias <= 127;
  const bool known = f.subnormals == Subnormals::yes || f.specials == Specials::nan_only;
  return stored && in_f32 && known;
}

constexpr DecodeConstants decode_constants(const Format& f, Storage storage, NanOutput nan) {
  DecodeConstants k{};
  k.kernel = decode_kernel_of(f, storage, nan);
  k.not_numbers = not_numbers_of(f, nan);
  k.storage_bits = storage.bits;
  k.shift = 23 - f.mantissa_bits;
  k.magnitude_mask = f.magnitude_mask();
  k.sign_shift = f.sign == Sign::one_bit ? 31 - f.sign_shift() : 0;
  k.sign = f.sign == Sign::one_bit ? 0x8000'0000 : 0;
  k.rebias = uint32_t(127 - f.bias) << 23;
  k.most = f.max_code() << k.shift;
  const bool keeps = f.specials == Specials::ieee && nan == NanOutput::payload;
  k.special_kept = keeps ? 0x007f'ffff : 0;
  k.special_bits = f.specials == Specials::ieee ? 0x7f80'0000 : 0x7fc0'0000;
  k.minus_zero = f.sign_mask();
  if (storage.bits == 4)
    for (uint32_t code = 0; code < 16; ++code)
      k.table[code] = nan == NanOutput::payload ? decode_bits(f, code) : decode(f, code);
  return k;
}

}  // namespace halfulp::simd

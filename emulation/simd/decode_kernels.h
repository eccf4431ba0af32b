// The decoding kernels for one instruction set. Included once for each by decode.cpp: no include guard.

#include <algorithm>
#include <cstring>

#include "emulation/simd/decode_job.h"
#include "emulation/simd/vectors.h"
#include "formats/packing.h"

HWY_BEFORE_NAMESPACE();
namespace halfulp::simd::HWY_NAMESPACE {

// Codes, one in each lane, to values.
template <DecodeKernel kernel, NotNumbers not_numbers>
struct Decoder {
  VU magnitude_mask, sign, rebias, first_normal = words(0x0080'0000), most, special_kept, special_bits, minus_zero;
  Count shift, sign_shift;

  explicit HWY_INLINE Decoder(const DecodeConstants& k)
      : magnitude_mask(words(k.magnitude_mask)),
        sign(words(k.sign)),
        rebias(words(k.rebias)),
        most(words(k.most)),
        special_kept(words(k.special_kept)),
        special_bits(words(k.special_bits)),
        minus_zero(words(k.minus_zero)),
        shift(k.shift),
        sign_shift(k.sign_shift) {}

  // A subnormal code, given the exponent of the smallest normal number and a leading bit, is that number too large.
  HWY_INLINE VU number(VU magnitude) const {
    const VU normal = hn::Add(magnitude, rebias);
    const auto below = greater(first_normal, kernel == DecodeKernel::subnormals ? magnitude : normal);
    if constexpr (kernel == DecodeKernel::subnormals) {
      const VU smallest = hn::Add(rebias, first_normal);
      const VF subnormal = hn::Sub(float_of(hn::Add(magnitude, smallest)), float_of(smallest));
      return hn::IfThenElse(below, bits_of(subnormal), normal);
    } else {
      // No subnormals, but FP32's own below 2^-126.
      return hn::IfThenElse(below, hn::ShiftRight<1>(hn::Or(magnitude, first_normal)), normal);
    }
  }

  HWY_INLINE VU with_not_numbers(VU value, VU magnitude, VU code) const {
    if constexpr (not_numbers == NotNumbers::above_most) {
      const VU special = hn::Or(hn::And(magnitude, special_kept), special_bits);
      return hn::IfThenElse(greater(magnitude, most), special, value);
    } else if constexpr (not_numbers == NotNumbers::inf_then_nan) {
      const VU or_inf = hn::IfThenElse(greater(magnitude, most), special_bits, value);
      return hn::IfThenElse(greater(magnitude, special_code()), words(0x7fc0'0000), or_inf);
    } else if constexpr (not_numbers == NotNumbers::minus_zero) {
      const VU of_code = hn::And(code, hn::Or(magnitude_mask, minus_zero));
      return hn::IfThenElse(hn::Eq(of_code, minus_zero), words(0x7fc0'0000), value);
    } else {
      return value;
    }
  }

  // The shifted magnitude of Inf: one code above the largest number.
  HWY_INLINE VU special_code() const { return hn::Add(most, shift_left(words(1), shift)); }

  HWY_INLINE VF value(VU code) const {
    const VU magnitude = shift_left(hn::And(code, magnitude_mask), shift);
    const VU bits = with_not_numbers(number(magnitude), magnitude, code);
    return float_of(hn::OrAnd(bits, shift_left(code, sign_shift), sign));
  }
};

// FP32's upper half.
template <NotNumbers not_numbers>
struct Decoder<DecodeKernel::shift, not_numbers> {
  explicit HWY_INLINE Decoder(const DecodeConstants&) {}
  HWY_INLINE VF value(VU code) const { return float_of(hn::ShiftLeft<16>(code)); }
};

template <class Code>
HWY_INLINE VU load_codes(const std::byte* codes) {
  const hn::Rebind<Code, Words> narrow;
  return hn::PromoteTo(kWords, hn::LoadU(narrow, reinterpret_cast<const Code*>(codes)));
}

enum class Multiplies { yes, no };

template <Multiplies multiplies>
HWY_INLINE VF times_factor(VF value, const DecodeJob& job, std::size_t i) {
  if constexpr (multiplies == Multiplies::no) return value;
  return hn::Mul(value, hn::Set(kFloats, job.factors[i >> job.block_log2]));
}

template <DecodeKernel kernel, NotNumbers not_numbers, class Code, Multiplies multiplies>
void decode_codes(const DecodeConstants& k, const DecodeJob& job) {
  const Decoder<kernel, not_numbers> decoder(k);
  std::size_t i = 0;
  for (; i + kLanes <= job.count; i += kLanes) {
    const VF value = decoder.value(load_codes<Code>(job.codes + i * sizeof(Code)));
    hn::StoreU(times_factor<multiplies>(value, job, i), kFloats, job.y + i);
  }
  if (i == job.count) return;
  alignas(64) std::byte codes[kLanes * sizeof(Code)] = {};
  alignas(64) float values[kLanes];
  std::memcpy(codes, job.codes + i * sizeof(Code), (job.count - i) * sizeof(Code));
  hn::Store(times_factor<multiplies>(decoder.value(load_codes<Code>(codes)), job, i), kFloats, values);
  std::copy_n(values, job.count - i, job.y + i);
}

// Nibbles of kLanes / 2 bytes, one in each lane.
HWY_INLINE VU load_nibbles(const std::byte* codes) {
  const hn::Rebind<uint8_t, Words> nibbles;
  const hn::Repartition<uint16_t, decltype(nibbles)> pairs;
  const hn::Rebind<uint8_t, decltype(pairs)> packed;
  const auto both = hn::PromoteTo(pairs, hn::LoadU(packed, reinterpret_cast<const uint8_t*>(codes)));
  const auto apart = hn::And(hn::Or(both, hn::ShiftLeft<4>(both)), hn::Set(pairs, uint16_t{0x0f0f}));
  return hn::PromoteTo(kWords, hn::BitCast(nibbles, apart));
}

// Up to 16 values: where a vector is shorter, the table is in parts of a vector each.
struct Table {
  static constexpr std::size_t kParts = 16 / kLanes;
  VF parts[kParts];

  explicit HWY_INLINE Table(const DecodeConstants& k) {
    for (std::size_t part = 0; part < kParts; ++part) parts[part] = hn::LoadU(kFloats, &k.table[part * kLanes]);
  }

  HWY_INLINE VF value(VU code) const {
    const VU lane = hn::And(code, words(kLanes - 1));
    VF value = hn::TableLookupLanes(parts[0], hn::IndicesFromVec(kFloats, lane));
    for (std::size_t part = 1; part < kParts; ++part) {
      const VF here = hn::TableLookupLanes(parts[part], hn::IndicesFromVec(kFloats, lane));
      const auto reaches = hn::RebindMask(kFloats, greater(code, words(uint32_t(part * kLanes - 1))));
      value = hn::IfThenElse(reaches, here, value);
    }
    return value;
  }
};

template <Multiplies multiplies>
void decode_nibbles(const DecodeConstants& k, const DecodeJob& job) {
  const Table table(k);
  std::size_t i = 0;
  for (; i + kLanes <= job.count; i += kLanes) {
    const VF value = table.value(load_nibbles(job.codes + i / 2));
    hn::StoreU(times_factor<multiplies>(value, job, i), kFloats, job.y + i);
  }
  for (; i < job.count; ++i) {
    const float value = k.table[load_code<4>(job.codes, i)];
    job.y[i] = multiplies == Multiplies::yes ? value * job.factors[i >> job.block_log2] : value;
  }
}

template <DecodeKernel kernel, NotNumbers not_numbers, Multiplies multiplies>
void decode_width(const DecodeConstants& k, const DecodeJob& job) {
  if (k.storage_bits == 8) return decode_codes<kernel, not_numbers, uint8_t, multiplies>(k, job);
  decode_codes<kernel, not_numbers, uint16_t, multiplies>(k, job);
}

template <Multiplies multiplies>
void decode_numbers(const DecodeConstants& k, const DecodeJob& job) {
  constexpr DecodeKernel kKernel = DecodeKernel::subnormals;
  switch (k.not_numbers) {
    case NotNumbers::none: return decode_width<kKernel, NotNumbers::none, multiplies>(k, job);
    case NotNumbers::above_most: return decode_width<kKernel, NotNumbers::above_most, multiplies>(k, job);
    case NotNumbers::inf_then_nan: return decode_width<kKernel, NotNumbers::inf_then_nan, multiplies>(k, job);
    case NotNumbers::minus_zero: return decode_width<kKernel, NotNumbers::minus_zero, multiplies>(k, job);
  }
}

template <Multiplies multiplies>
void decode_kernel(const DecodeConstants& k, const DecodeJob& job) {
  switch (k.kernel) {
    case DecodeKernel::subnormals: return decode_numbers<multiplies>(k, job);
    case DecodeKernel::binades: return decode_width<DecodeKernel::binades, NotNumbers::above_most, multiplies>(k, job);
    case DecodeKernel::shift: return decode_codes<DecodeKernel::shift, NotNumbers::none, uint16_t, multiplies>(k, job);
    case DecodeKernel::table: return decode_nibbles<multiplies>(k, job);
  }
}

inline void decode_array(const DecodeConstants& k, const DecodeJob& job) {
  if (job.factors == nullptr) return decode_kernel<Multiplies::no>(k, job);
  decode_kernel<Multiplies::yes>(k, job);
}

// y[i] = y[i] / factors[i >> block_log2]
inline void divide_array(const DecodeJob& job) {
  std::size_t i = 0;
  for (; i + kLanes <= job.count; i += kLanes) {
    const VF factor = hn::Set(kFloats, job.factors[i >> job.block_log2]);
    hn::StoreU(hn::Div(hn::LoadU(kFloats, job.y + i), factor), kFloats, job.y + i);
  }
  for (; i < job.count; ++i) job.y[i] = job.y[i] / job.factors[i >> job.block_log2];
}

}  // namespace halfulp::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#pragma once
// The functions of simd.h over single elements: what the kernels must equal, and what does the formats and storages
// that have no kernel.

#include <cstddef>
#include <cstdint>
#include <span>

#include "emulation/simd/simd.h"
#include "formats/codec.h"
#include "formats/packing.h"
#include "formats/ptx_cvt.h"
#include "lib/philox.h"

namespace halfulp::simd {

inline float scaled(const BlockFactors& factors, std::size_t i, float x) {
  if (factors.values.empty()) return x;
  const float factor = factors.values[i / factors.block];
  return factors.use == FactorUse::multiply ? x * factor : x / factor;
}

inline void store_at(Storage storage, std::byte* codes, std::size_t i, uint32_t code) {
  switch (storage.bits) {
    case 4: return store_code<4>(codes, i, code);
    case 8: return store_code<8>(codes, i, code);
    case 16: return store_code<16>(codes, i, code);
    default: return store_code<32>(codes, i, code);
  }
}

inline uint32_t load_at(Storage storage, const std::byte* codes, std::size_t i) {
  switch (storage.bits) {
    case 4: return load_code<4>(codes, i);
    case 8: return load_code<8>(codes, i);
    case 16: return load_code<16>(codes, i);
    default: return load_code<32>(codes, i);
  }
}

struct NoRandom {};

inline RandomBits random_bits_of(NoRandom, Storage, std::size_t) { return {}; }

inline RandomBits random_bits_of(PhiloxWords random, Storage, std::size_t i) {
  return {.word = random_word(random.seed, random.stream, random.first + i), .count = 32};
}

inline RandomBits random_bits_of(WordOfFour random, Storage storage, std::size_t i) {
  return random_bits_of_four(four_lanes(storage.bits), random.words[i / 4], int(i % 4));
}

template <class Random>
void encode_scalar(const Format& format, const Policy& policy, Storage storage, std::span<const float> x,
                   const BlockFactors& factors, Random random, std::span<std::byte> codes) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const uint32_t code = encode(format, policy, scaled(factors, i, x[i]), random_bits_of(random, storage, i));
    store_at(storage, codes.data(), i, code << storage.shift);
  }
}

inline void decode_scalar(const Format& format, Storage storage, std::span<const std::byte> codes,
                          const BlockFactors& factors, std::span<float> y) {
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = scaled(factors, i, decode(format, load_at(storage, codes.data(), i) >> storage.shift));
}

inline void to_f32_scalar(const Format& format, Storage storage, std::span<const std::byte> codes, std::span<float> y) {
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = decode_bits(format, load_at(storage, codes.data(), i) >> storage.shift);
}

inline uint32_t magnitude_bits(NanMagnitude nan, float x) {
  const uint32_t bits = bit_cast<uint32_t>(x) & 0x7fff'ffff;
  if (bits <= 0x7f80'0000) return bits;
  return nan == NanMagnitude::ignored ? 0 : 0x7fc0'0000;
}

// Magnitudes are ordered as their bits are, NaN above Inf.
inline float amax_scalar(std::span<const float> x, NanMagnitude nan, float start) {
  uint32_t most = magnitude_bits(nan, start);
  for (const float value : x) {
    const uint32_t bits = magnitude_bits(nan, value);
    most = bits > most ? bits : most;
  }
  return bit_cast<float>(most);
}

}  // namespace halfulp::simd

#pragma once
// Runs a kernel on every instruction set of this processor and compares bits with the scalar codec. Not a test.

#include <gtest/gtest.h>

#include <cstdint>
#include <ios>
#include <span>
#include <string>
#include <vector>

#include "emulation/simd/simd.h"
#include "formats/catalog.h"
#include "formats/codec.h"
#include "formats/packing.h"
#include "lib/bits.h"
#include "tests/oracle/boundary_inputs.h"

namespace halfulp {

// Calls fn() once for each instruction set, with failures saying which it is.
template <class Fn>
void on_every_target(Fn&& fn) {
  for (const std::string_view target : simd::targets()) {
    SCOPED_TRACE(std::string(target));
    const simd::ForcedTarget forced(target);
    fn();
  }
}

inline uint32_t code_at(std::span<const std::byte> bytes, int bits, std::size_t i) {
  switch (bits) {
    case 4: return load_code<4>(bytes.data(), i);
    case 8: return load_code<8>(bytes.data(), i);
    case 16: return load_code<16>(bytes.data(), i);
    default: return load_code<32>(bytes.data(), i);
  }
}

// The first element whose code is not the one expected, if any, is a failure.
inline void expect_codes(std::span<const uint32_t> expected, std::span<const std::byte> bytes, int bits,
                         std::span<const float> x) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const uint32_t got = code_at(bytes, bits, i);
    if (got == expected[i]) continue;
    ADD_FAILURE() << std::hex << "element 0x" << i << " is 0x" << bit_cast<uint32_t>(x[i]) << ": expected code 0x"
                  << expected[i] << ", got 0x" << got;
    return;
  }
}

inline void expect_bits(std::span<const float> expected, std::span<const float> got) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const uint32_t a = bit_cast<uint32_t>(expected[i]), b = bit_cast<uint32_t>(got[i]);
    if (a == b) continue;
    ADD_FAILURE() << std::hex << "element 0x" << i << ": expected 0x" << a << ", got 0x" << b;
    return;
  }
}

inline std::vector<uint32_t> scalar_codes(const Format& f, const Policy& policy, std::span<const float> x) {
  std::vector<uint32_t> codes;
  codes.reserve(x.size());
  for (const float value : x) codes.push_back(encode(f, policy, value));
  return codes;
}

inline std::vector<std::byte> room_for(std::size_t elements, int bits) {
  return std::vector<std::byte>((elements * std::size_t(bits) + 7) / 8, std::byte{0xa5});
}

// encode_blocks() without factors, on the instruction set that is chosen.
inline void expect_encodes_here(const Format& f, const Policy& policy, int bits, std::span<const float> x,
                                std::span<const uint32_t> expected) {
  std::vector<std::byte> codes = room_for(x.size(), bits);
  simd::encode_blocks(f, policy, {bits}, x, {}, codes);
  expect_codes(expected, codes, bits, x);
}

// On every instruction set.
inline void expect_encodes(const Format& f, const Policy& policy, int bits, std::span<const float> x) {
  const std::vector<uint32_t> expected = scalar_codes(f, policy, x);
  on_every_target([&] { expect_encodes_here(f, policy, bits, x, expected); });
}

// Zeros, the ends of FP32's ranges, Inf, and NaNs of each kind, of both signs.
inline std::vector<float> special_values() {
  std::vector<float> x;
  for (const uint32_t bits :
       {0u,           1u,           2u,           0x003f'ffffu, 0x0040'0000u, 0x0040'0001u, 0x0060'0000u,
        0x007f'ffffu, 0x0080'0000u, 0x0080'0001u, 0x3f80'0000u, 0x7f7f'ffffu, 0x7f80'0000u, 0x7f80'0001u,
        0x7f80'8000u, 0x7fa5'5a5au, 0x7fbf'ffffu, 0x7fc0'0000u, 0x7fc0'0001u, 0x7fff'ffffu})
    for (const uint32_t sign : {0u, 0x8000'0000u}) x.push_back(bit_cast<float>(bits | sign));
  return x;
}

// The format's values and midpoints with their neighbours, and the specials.
inline std::vector<float> boundary_values(const Format& f) {
  std::vector<float> x = special_values();
  oracle::visit_boundaries(f, [&](double value) {
    const auto narrow = float(value);
    if (double(narrow) == value) x.push_back(narrow);
  });
  return x;
}

// Every BF16 and every F16 as FP32, NaNs included.
inline std::vector<float> every_half() {
  std::vector<float> x;
  for (uint32_t code = 0; code < 0x1'0000; ++code) {
    x.push_back(bit_cast<float>(code << 16));
    x.push_back(decode_bits(format_named("f16"), code));
  }
  return x;
}

// The rows whose codes have at most 16 bits.
inline std::vector<FormatEntry> narrow_formats() {
  std::vector<FormatEntry> rows;
  for (const FormatEntry& entry : kFormats)
    if (entry.storage_bits <= 16) rows.push_back(entry);
  return rows;
}

inline std::string name_of(const testing::TestParamInfo<FormatEntry>& info) { return std::string(info.param.name); }

// Rows that no catalog has: a bias of its own, one mantissa bit, none, codes that leave bits of their storage free.
inline const std::vector<Format> kMadeUp{
    {Sign::one_bit, 4, 3, 11, Specials::nan_only, Subnormals::yes},
    {Sign::one_bit, 5, 1, 20, Specials::ieee, Subnormals::yes},
    {Sign::none, 3, 1, 3, Specials::finite_only, Subnormals::yes},
    {Sign::one_bit, 3, 3, -20, Specials::finite_only, Subnormals::yes},
    {Sign::none, 4, 4, 7, Specials::nan_only, Subnormals::no},
    {Sign::one_bit, 7, 8, 63, Specials::ieee, Subnormals::yes},
    {Sign::none, 6, 10, 31, Specials::ieee, Subnormals::yes},
    {Sign::one_bit, 8, 4, 127, Specials::ieee, Subnormals::yes},
    {Sign::one_bit, 4, 0, 7, Specials::nan_only, Subnormals::yes},
    {Sign::one_bit, 3, 0, 3, Specials::finite_only, Subnormals::yes},
};
inline int storage_of(const Format& f) { return f.bits() <= 4 ? 4 : f.bits() <= 8 ? 8 : 16; }

}  // namespace halfulp

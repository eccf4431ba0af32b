// The decoding kernels and the largest magnitudes against scalar loops.

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "tests/simd/compare.h"

namespace halfulp {
namespace {

// Every pattern that the storage holds, also those that are not codes.
std::vector<std::byte> every_pattern(int bits) {
  const std::size_t count = std::size_t{1} << bits;
  std::vector<std::byte> codes(packed_bytes(bits, count));
  for (std::size_t i = 0; i < count; ++i) {
    if (bits == 4) store_code<4>(codes.data(), i, uint32_t(i));
    if (bits == 8) store_code<8>(codes.data(), i, uint32_t(i));
    if (bits == 16) store_code<16>(codes.data(), i, uint32_t(i));
  }
  return codes;
}

void expect_decodes(const Format& f, int bits) {
  const std::vector<std::byte> codes = every_pattern(bits);
  std::vector<float> quiet, payload;
  for (uint32_t code = 0; code < uint32_t{1} << bits; ++code) {
    quiet.push_back(decode(f, code));
    payload.push_back(decode_bits(f, code));
  }
  on_every_target([&] {
    std::vector<float> y(quiet.size());
    simd::decode_blocks(f, {bits}, codes, {}, y);
    expect_bits(quiet, y);
    simd::to_f32(f, {bits}, codes, y);
    expect_bits(payload, y);
  });
}

class SimdDecode : public testing::TestWithParam<FormatEntry> {};

TEST_P(SimdDecode, EveryPattern) { expect_decodes(GetParam().format, GetParam().storage_bits); }

TEST_P(SimdDecode, BlocksWithFactors) {
  const FormatEntry& entry = GetParam();
  const std::vector<std::byte> codes = every_pattern(entry.storage_bits);
  const std::size_t count = std::size_t{1} << entry.storage_bits;
  for (const simd::FactorUse use : {simd::FactorUse::multiply, simd::FactorUse::divide})
    for (const std::size_t block : {8, 16, 64}) {
      std::vector<float> factors, expected;
      constexpr float kFactors[] = {3, 0.1f, 0x1p-126f, 0x1p-149f, 0x1p100f, 1.7f};
      for (std::size_t k = 0; k <= count / block; ++k) factors.push_back(kFactors[k % std::size(kFactors)]);
      for (std::size_t i = 0; i < count; ++i) {
        const float value = decode(entry.format, uint32_t(i)), factor = factors[i / block];
        expected.push_back(use == simd::FactorUse::multiply ? value * factor : value / factor);
      }
      on_every_target([&] {
        std::vector<float> y(count);
        simd::decode_blocks(entry.format, {entry.storage_bits}, codes, {factors, block, use}, y);
        expect_bits(expected, y);
      });
    }
}

INSTANTIATE_TEST_SUITE_P(Catalog, SimdDecode, testing::ValuesIn(narrow_formats()), name_of);

TEST(SimdDecodeFormats, MadeUpFormats) {
  for (const Format& f : kMadeUp) {
    SCOPED_TRACE(testing::Message() << "e" << f.exponent_bits << "m" << f.mantissa_bits << " bias " << f.bias);
    expect_decodes(f, storage_of(f));
  }
}

TEST(SimdDecodeFormats, F32PassesThrough) {
  const std::vector<float> x = special_values();
  std::vector<float> y(x.size());
  simd::to_f32(format_named("f32"), {32}, std::as_bytes(std::span(x)), y);
  expect_bits(x, y);
}

TEST(SimdDecodeArrays, EveryLengthAndAlignment) {
  for (const std::string_view name : {"e2m1", "e4m3", "bf16", "f16"}) {
    const FormatEntry& entry = kFormats[std::size_t(find_format(name))];
    std::vector<std::byte> codes(300);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = std::byte(i * 37);
    on_every_target([&] {
      for (std::size_t length = 0; length < 100; ++length)
        for (std::size_t first = 0; first < 3; ++first) {
          std::vector<float> y(length + 1, 1234.0f);
          const auto bytes = std::span<const std::byte>(codes).subspan(first);
          simd::to_f32(entry.format, {entry.storage_bits}, bytes, std::span(y).first(length));
          for (std::size_t i = 0; i < length; ++i)
            ASSERT_EQ(bit_cast<uint32_t>(y[i]),
                      bit_cast<uint32_t>(decode_bits(entry.format, code_at(bytes, entry.storage_bits, i))));
          EXPECT_EQ(y[length], 1234.0f) << "written past the end";
        }
    });
  }
}

float scalar_amax(std::span<const float> x, simd::NanMagnitude nan, float start) {
  float most = start;
  for (const float value : x) {
    const float m = std::fabs(value);
    if (nan == simd::NanMagnitude::propagates && (m != m || most != most)) {
      most = std::numeric_limits<float>::quiet_NaN();
    } else if (m > most) {
      most = m;
    }
  }
  return most;
}

std::vector<float> mixed_values(std::size_t count, uint32_t nan_in) {
  std::mt19937 generator(17);
  std::vector<float> x(count);
  for (float& value : x) {
    const auto bits = uint32_t(generator());
    const bool special = bits % nan_in == 0;
    value = bit_cast<float>(special ? bits | 0x7f80'0000 : bits & 0xbfff'ffff);
  }
  return x;
}

class SimdAmax : public testing::TestWithParam<simd::NanMagnitude> {};

TEST_P(SimdAmax, BlocksOfEverySize) {
  for (const uint32_t nan_in : {8u, 1000u}) {
    const std::vector<float> x = mixed_values(2003, nan_in);
    for (const std::size_t block : {1, 3, 8, 16, 32, 48, 64, 100, 128, 256, 3000}) {
      std::vector<float> expected;
      for (std::size_t k = 0; k < x.size(); k += block)
        expected.push_back(scalar_amax(std::span(x).subspan(k, std::min(block, x.size() - k)), GetParam(), 0));
      on_every_target([&] {
        std::vector<float> amax(expected.size());
        simd::block_amax(x, block, GetParam(), amax);
        expect_bits(expected, amax);
      });
    }
  }
}

TEST_P(SimdAmax, SpecialsAtEveryPlace) {
  on_every_target([&] {
    for (const float special : special_values())
      for (std::size_t place = 0; place < 64; ++place) {
        std::vector<float> x(64, -0x1p-140f), amax(1);
        x[place] = special;
        simd::block_amax(x, 64, GetParam(), amax);
        expect_bits(std::vector<float>{scalar_amax(x, GetParam(), 0)}, amax);
      }
  });
}

TEST_P(SimdAmax, WholeArraysOfEveryLength) {
  const std::vector<float> x = mixed_values(300, 40);
  on_every_target([&] {
    for (std::size_t length = 0; length <= x.size(); ++length) {
      const auto part = std::span(x).first(length);
      const std::vector<float> got{simd::amax(part, GetParam(), 0x1p-3f)};
      expect_bits(std::vector<float>{scalar_amax(part, GetParam(), 0x1p-3f)}, got);
    }
  });
}

std::string nan_name(const testing::TestParamInfo<simd::NanMagnitude>& tested) {
  return tested.param == simd::NanMagnitude::ignored ? "Ignored" : "Propagates";
}
INSTANTIATE_TEST_SUITE_P(Nan, SimdAmax, testing::Values(simd::NanMagnitude::ignored, simd::NanMagnitude::propagates),
                         nan_name);

}  // namespace
}  // namespace halfulp

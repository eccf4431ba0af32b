// The encoding kernels against the scalar codec, without random bits.

#include <gtest/gtest.h>

#include <random>

#include "tests/simd/compare.h"

namespace halfulp {
namespace {

constexpr Rounding kDeterministic[] = {Rounding::nearest_even, Rounding::nearest_away, Rounding::nearest_zero,
                                       Rounding::toward_zero,  Rounding::up,           Rounding::down,
                                       Rounding::to_odd};
constexpr Policy kSaturating{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate};

std::vector<Policy> every_policy(Rounding rounding) {
  std::vector<Policy> policies;
  for (const Overflow overflow : {Overflow::saturate, Overflow::to_special})
    for (const InfInput inf : {InfInput::overflow, InfInput::to_nan})
      for (std::size_t nan = 0; nan < kNanInputNames.size(); ++nan)
        for (std::size_t negative = 0; negative < kNegativeInputNames.size(); ++negative)
          for (const ZeroResult zero : {ZeroResult::keeps_sign, ZeroResult::positive})
            policies.push_back({rounding, overflow, inf, NanInput(nan), NegativeInput(negative), zero});
  return policies;
}

class SimdEncode : public testing::TestWithParam<FormatEntry> {
 protected:
  const Format& format() const { return GetParam().format; }
  int bits() const { return GetParam().storage_bits; }
};

TEST_P(SimdEncode, EveryHalfInEveryRounding) {
  const std::vector<float> x = every_half();
  for (const Rounding rounding : kDeterministic) {
    SCOPED_TRACE(kRoundings[std::size_t(rounding)].name);
    for (const Overflow overflow : {Overflow::saturate, Overflow::to_special})
      expect_encodes(format(), {.rounding = rounding, .overflow = overflow}, bits(), x);
  }
}

TEST_P(SimdEncode, BoundariesInEveryRounding) {
  const std::vector<float> x = boundary_values(format());
  for (const Rounding rounding : kDeterministic) {
    SCOPED_TRACE(kRoundings[std::size_t(rounding)].name);
    for (const Overflow overflow : {Overflow::saturate, Overflow::to_special})
      expect_encodes(format(), {.rounding = rounding, .overflow = overflow}, bits(), x);
  }
}

TEST_P(SimdEncode, SpecialsUnderEveryPolicy) {
  std::vector<float> x = special_values();
  for (const float value : {decode(format(), format().max_code()), decode(format(), 0), decode(format(), 1)})
    for (const float scale : {1.0f, 0.25f, 1.0625f, 1.5f, -1.0f, -0.25f, -1.0625f, -1.5f}) x.push_back(value * scale);
  on_every_target([&] {
    for (const Rounding rounding : kDeterministic)
      for (const Policy& policy : every_policy(rounding)) {
        SCOPED_TRACE(testing::Message() << kRoundings[std::size_t(rounding)].name << ' ' << int(policy.overflow) << ' '
                                        << int(policy.inf) << ' ' << int(policy.nan) << ' ' << int(policy.negative)
                                        << ' ' << int(policy.zero));
        expect_encodes_here(format(), policy, bits(), x, scalar_codes(format(), policy, x));
      }
  });
}

TEST_P(SimdEncode, RandomBitPatterns) {
  std::mt19937 generator(7);
  std::vector<float> x(1 << 22);
  for (float& value : x) value = bit_cast<float>(uint32_t(generator()));
  expect_encodes(format(), kSaturating, bits(), x);
}

INSTANTIATE_TEST_SUITE_P(Catalog, SimdEncode, testing::ValuesIn(narrow_formats()), name_of);

TEST(SimdEncodeFormats, MadeUpFormatsInEveryRounding) {
  for (const Format& f : kMadeUp) {
    SCOPED_TRACE(testing::Message() << "e" << f.exponent_bits << "m" << f.mantissa_bits << " bias " << f.bias);
    for (const Rounding rounding : kDeterministic)
      for (const Overflow overflow : {Overflow::saturate, Overflow::to_special})
        expect_encodes(f, {.rounding = rounding, .overflow = overflow}, storage_of(f), boundary_values(f));
  }
}

TEST(SimdEncodeFormats, WideStorage) {
  for (const std::string_view name : {"tf32", "f32"}) {
    const FormatEntry& entry = kFormats[std::size_t(find_format(name))];
    const std::vector<float> x = special_values();
    std::vector<std::byte> codes = room_for(x.size(), 32);
    simd::encode_blocks(entry.format, kSaturating, {32, entry.storage_shift}, x, {}, codes);
    std::vector<uint32_t> expected = scalar_codes(entry.format, kSaturating, x);
    for (uint32_t& code : expected) code <<= entry.storage_shift;
    expect_codes(expected, codes, 32, x);
  }
}

TEST(SimdEncodeArrays, EveryLengthAndAlignment) {
  const Format f = format_named("e4m3");
  std::vector<float> x(300);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(int(i) - 150) * 0.37f;
  const std::vector<uint32_t> expected = scalar_codes(f, kSaturating, x);
  on_every_target([&] {
    for (std::size_t length = 0; length <= 200; ++length)
      for (std::size_t first = 0; first < 4; ++first) {
        SCOPED_TRACE(testing::Message() << length << " elements from " << first);
        const std::span<const float> part = std::span(x).subspan(first, length);
        std::vector<std::byte> codes(first + length + 1, std::byte{0xa5});
        simd::encode_blocks(f, kSaturating, {8}, part, {}, std::span(codes).subspan(first, length));
        expect_codes(std::span(expected).subspan(first, length), std::span(codes).subspan(first), 8, part);
        EXPECT_EQ(codes.back(), std::byte{0xa5}) << "written past the end";
      }
  });
}

TEST(SimdEncodeArrays, OddLengthsOfNibblesEndWithZero) {
  const std::vector<float> x(77, 6.0f);
  on_every_target([&] {
    for (std::size_t length = 1; length <= x.size(); length += 2) {
      std::vector<std::byte> codes = room_for(length, 4);
      simd::encode_blocks(format_named("e2m1"), kSaturating, {4}, std::span(x).first(length), {}, codes);
      EXPECT_EQ(codes.back(), std::byte{0x07});
    }
  });
}

// Elements and factors of every kind, several kinds in one block.
struct Blocks {
  std::vector<float> x;
  std::vector<float> factors;

  Blocks(std::size_t block, std::size_t elements) : x(elements), factors((elements + block - 1) / block) {
    std::mt19937 generator(3);
    const std::vector<float> special = special_values();
    for (std::size_t i = 0; i < elements; ++i) {
      const auto bits = uint32_t(generator());
      x[i] = bits % 16 == 0 ? special[bits / 16 % special.size()] : bit_cast<float>((bits & 0x83ff'ffff) | 0x3c00'0000);
    }
    for (std::size_t k = 0; k < factors.size(); ++k) factors[k] = kFactors[generator() % std::size(kFactors)];
  }

  static constexpr float kFactors[] = {
      1,        0.5f,       3,  0.1f,    0x1p127f, 0x1p-126f, 0x1p-149f, 0x1.8p-130f, 0x1.fffffep127f,
      1 / 6.0f, 448 / 6.0f, -2, 0x1p-20f};
};

void expect_blocks(const FormatEntry& entry, std::size_t block, simd::FactorUse use, const Policy& policy) {
  const Blocks blocks(block, 5000);
  std::vector<float> scaled(blocks.x.size());
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    const float factor = blocks.factors[i / block];
    scaled[i] = use == simd::FactorUse::multiply ? blocks.x[i] * factor : blocks.x[i] / factor;
  }
  const std::vector<uint32_t> expected = scalar_codes(entry.format, policy, scaled);
  on_every_target([&] {
    std::vector<std::byte> codes = room_for(scaled.size(), entry.storage_bits);
    simd::encode_blocks(entry.format, policy, {entry.storage_bits}, blocks.x,
                        {.values = blocks.factors, .block = block, .use = use}, codes);
    expect_codes(expected, codes, entry.storage_bits, scaled);
  });
}

TEST_P(SimdEncode, BlocksWithFactors) {
  for (const std::size_t block : {8, 16, 32, 64, 128, 8192})
    for (const simd::FactorUse use : {simd::FactorUse::multiply, simd::FactorUse::divide}) {
      SCOPED_TRACE(testing::Message() << "blocks of " << block << (use == simd::FactorUse::divide ? ", divided" : ""));
      expect_blocks(GetParam(), block, use, kSaturating);
      expect_blocks(GetParam(), block, use, {.rounding = Rounding::up, .overflow = Overflow::saturate});
    }
}

TEST(SimdTargets, ThereAreSeveralOnX86AndTheNamesAreChecked) {
  EXPECT_FALSE(simd::targets().empty());
  EXPECT_THROW(simd::ForcedTarget("AVX-none"), std::invalid_argument);
}

}  // namespace
}  // namespace halfulp

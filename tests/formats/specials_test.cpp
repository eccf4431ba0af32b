// What encode answers where the standards leave the choice open: one expected table per policy.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "formats/catalog.h"
#include "formats/codec.h"

namespace halfulp {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr Policy kSaturating{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate};
constexpr Policy kSpecial{.rounding = Rounding::nearest_even, .overflow = Overflow::to_special};

// Quiet, quiet negative, signalling with the upper payload bit 21, signalling with payload 1.
constexpr uint32_t kNans[] = {0x7fc0'0000, 0xffc0'0000, 0x7fa0'0000, 0x7f80'0001};

struct NanRow {
  NanInput policy;
  std::string_view format;
  std::vector<uint32_t> codes;  // of kNans, in order
};

const std::vector<NanRow> kNanTable{
    {NanInput::all_ones, "e2m1", {0x7, 0x7, 0x7, 0x7}},
    {NanInput::all_ones, "e2m3", {0x1f, 0x1f, 0x1f, 0x1f}},
    {NanInput::all_ones, "e4m3", {0x7f, 0x7f, 0x7f, 0x7f}},
    {NanInput::all_ones, "e5m2", {0x7f, 0x7f, 0x7f, 0x7f}},
    {NanInput::all_ones, "e8m0", {0xff, 0xff, 0xff, 0xff}},
    {NanInput::all_ones, "ue4m3", {0x7f, 0x7f, 0x7f, 0x7f}},
    {NanInput::all_ones, "bf16", {0x7fff, 0x7fff, 0x7fff, 0x7fff}},
    {NanInput::all_ones, "tf32", {0x3ffff, 0x3ffff, 0x3ffff, 0x3ffff}},
    {NanInput::all_ones, "e4m3fnuz", {0x80, 0x80, 0x80, 0x80}},
    {NanInput::signed_all_ones, "e2m1", {0x7, 0xf, 0x7, 0x7}},
    {NanInput::signed_all_ones, "e4m3", {0x7f, 0xff, 0x7f, 0x7f}},
    {NanInput::signed_all_ones, "e5m2", {0x7f, 0xff, 0x7f, 0x7f}},
    {NanInput::signed_all_ones, "e8m0", {0xff, 0xff, 0xff, 0xff}},
    {NanInput::signed_all_ones, "bf16", {0x7fff, 0xffff, 0x7fff, 0x7fff}},
    {NanInput::signed_all_ones, "e5m2fnuz", {0x80, 0x80, 0x80, 0x80}},
    {NanInput::payload, "e2m1", {0x7, 0xf, 0x7, 0x7}},
    {NanInput::payload, "e4m3", {0x7f, 0xff, 0x7f, 0x7f}},
    {NanInput::payload, "e5m2", {0x7e, 0xfe, 0x7f, 0x7e}},
    {NanInput::payload, "bf16", {0x7fc0, 0xffc0, 0x7fe0, 0x7fc0}},
    {NanInput::payload, "f32", {0x7fc0'0000, 0xffc0'0000, 0x7fe0'0000, 0x7fc0'0001}},
    {NanInput::quiet, "e4m3", {0x7f, 0xff, 0x7f, 0x7f}},
    {NanInput::quiet, "e5m2", {0x7e, 0xfe, 0x7e, 0x7e}},
    {NanInput::quiet, "e8m0", {0xff, 0xff, 0xff, 0xff}},
    {NanInput::quiet, "bf16", {0x7fc0, 0xffc0, 0x7fc0, 0x7fc0}},
    {NanInput::quiet, "e4m3fnuz", {0x80, 0x80, 0x80, 0x80}},
    {NanInput::zero, "e2m1", {0x0, 0x8, 0x0, 0x0}},
    {NanInput::zero, "e3m2", {0x00, 0x20, 0x00, 0x00}},
    {NanInput::zero, "e5m2", {0x7e, 0xfe, 0x7f, 0x7e}},
    {NanInput::truncate, "bf16", {0x7fc0, 0xffc0, 0x7fa0, 0x7f80}},
    {NanInput::truncate, "tf32", {0x3fe00, 0x7fe00, 0x3fd00, 0x3fc00}},
    {NanInput::truncate_minus_ulp, "tf32", {0x3fdff, 0x7fdff, 0x3fcff, 0x3fbff}},
};

TEST(NanInput, EveryPolicyGivesItsTable) {
  for (const auto& [nan, name, codes] : kNanTable) {
    const Policy policy{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate, .nan = nan};
    for (size_t i = 0; i < codes.size(); ++i)
      EXPECT_EQ(encode(kFormats[size_t(find_format(name))].format, policy, bit_cast<float>(kNans[i])), codes[i])
          << name << ' ' << kNanInputNames[size_t(nan)] << std::hex << " 0x" << kNans[i];
  }
}

TEST(NanInput, EveryPolicyIsInTheTable) {
  for (size_t policy = 0; policy < kNanInputNames.size(); ++policy)
    EXPECT_TRUE(std::any_of(kNanTable.begin(), kNanTable.end(), [&](const NanRow& row) {
      return row.policy == NanInput(policy);
    })) << kNanInputNames[policy];
}

// The payload of a double is wider than that of a float; its upper bits are the ones kept.
TEST(NanInput, PayloadOfADoubleIsTakenFromItsUpperBits) {
  const Policy policy{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate, .nan = NanInput::payload};
  EXPECT_EQ(encode(format_named("e5m2"), policy, bit_cast<double>(uint64_t{0xfff8'0000'0000'0000})), 0xfeu);
  EXPECT_EQ(encode(format_named("bf16"), policy, bit_cast<double>(uint64_t{0x7ff5'5000'0000'0000})), 0x7feau);
}

TEST(NanInput, TheRoundingModeDoesNotMatter) {
  for (const auto& mode : kRoundings)
    for (const uint32_t nan : kNans)
      EXPECT_EQ(encode(format_named("bf16"), {mode.rounding, Overflow::to_special}, bit_cast<float>(nan), {~0u, 16}),
                0x7fffu)
          << mode.name;
}

struct OverflowRow {
  Rounding mode;
  uint32_t positive, negative;
};

// 1e30 in e5m2, whose Inf is 7c and largest finite value 7b: IEEE 754-2019 §7.4, where it names the mode.
TEST(OverflowRule, ToSpecialFollowsTheDirectionOfTheMode) {
  const std::vector<OverflowRow> table{
      {Rounding::nearest_even, 0x7c, 0xfc}, {Rounding::nearest_away, 0x7c, 0xfc}, {Rounding::nearest_zero, 0x7c, 0xfc},
      {Rounding::toward_zero, 0x7b, 0xfb},  {Rounding::up, 0x7c, 0xfb},           {Rounding::down, 0x7b, 0xfc},
      {Rounding::to_odd, 0x7b, 0xfb},       {Rounding::stochastic, 0x7c, 0xfc},
  };
  ASSERT_EQ(table.size(), kRoundings.size());
  for (const auto& [mode, positive, negative] : table) {
    const Policy policy{.rounding = mode, .overflow = Overflow::to_special};
    EXPECT_EQ(encode(format_named("e5m2"), policy, 1e30f), positive) << kRoundings[size_t(mode)].name;
    EXPECT_EQ(encode(format_named("e5m2"), policy, -1e30f), negative) << kRoundings[size_t(mode)].name;
  }
}

TEST(OverflowRule, SaturateStopsAtTheLargestFiniteValue) {
  for (const auto& mode : kRoundings) {
    const Policy policy{.rounding = mode.rounding, .overflow = Overflow::saturate};
    EXPECT_EQ(encode(format_named("e5m2"), policy, 1e30f, {~0u, 8}), 0x7bu) << mode.name;
    EXPECT_EQ(encode(format_named("e5m2"), policy, -1e30f, {~0u, 8}), 0xfbu) << mode.name;
  }
}

TEST(OverflowRule, ToSpecialIsNanWhereTheFormatHasNoInf) {
  EXPECT_EQ(encode(format_named("e4m3"), kSpecial, 1e30f), 0x7fu);
  EXPECT_EQ(encode(format_named("e4m3"), kSpecial, -1e30f), 0xffu);
  EXPECT_EQ(encode(format_named("e4m3fnuz"), kSpecial, -1e30f), 0x80u);
  EXPECT_EQ(encode(format_named("e8m0"), kSpecial, 0x1p200), 0xffu);
  EXPECT_EQ(encode(format_named("ue4m3"), kSpecial, 1e30f), 0x7fu);
}

TEST(OverflowRule, ToSpecialIsMaxWhereTheFormatHasNeither) {
  EXPECT_EQ(encode(format_named("e2m1"), kSpecial, 1e30f), 0x7u);
  EXPECT_EQ(encode(format_named("e2m1"), kSpecial, -1e30f), 0xfu);
}

// OFP8 v1.0 §5.3: whether a value overflows is decided after rounding. 464 and 61440 are the ties above the maxima.
TEST(OverflowRule, IsDecidedAfterRounding) {
  EXPECT_EQ(encode(format_named("e4m3"), kSpecial, 464.0f), 0x7eu);
  EXPECT_EQ(encode(format_named("e4m3"), kSpecial, std::nextafter(464.0f, kInf)), 0x7fu);
  EXPECT_EQ(encode(format_named("e5m2"), kSpecial, std::nextafter(61440.0f, 0.0f)), 0x7bu);
  EXPECT_EQ(encode(format_named("e5m2"), kSpecial, 61440.0f), 0x7cu);
}

// 2^386 = 2^-126 * 2^512: the exponent field of binary32, had it no upper end, would not fit in 32 bits.
TEST(OverflowRule, AHugeDoubleOverflowsEveryFormat) {
  for (const FormatEntry& entry : kFormats)
    for (const double x : {0x1p129, 0x1p386, 0x1p512, 0x1p898, 0x1p1023})
      EXPECT_EQ(encode(entry.format, kSaturating, x), entry.format.max_code()) << entry.name << " of " << x;
}

struct InfRow {
  std::string_view format;
  InfInput inf;
  Overflow overflow;
  uint32_t positive, negative;
};

TEST(InfInput, EveryPolicyGivesItsTable) {
  const std::vector<InfRow> table{
      {"e2m1", InfInput::overflow, Overflow::saturate, 0x7, 0xf},
      {"e2m1", InfInput::to_nan, Overflow::saturate, 0x7, 0xf},
      {"e4m3", InfInput::overflow, Overflow::saturate, 0x7e, 0xfe},
      {"e4m3", InfInput::overflow, Overflow::to_special, 0x7f, 0xff},
      {"e4m3", InfInput::to_nan, Overflow::saturate, 0x7f, 0xff},
      {"e5m2", InfInput::overflow, Overflow::saturate, 0x7b, 0xfb},
      {"e5m2", InfInput::overflow, Overflow::to_special, 0x7c, 0xfc},
      {"e5m2", InfInput::to_nan, Overflow::saturate, 0x7b, 0xfb},
      {"e8m0", InfInput::overflow, Overflow::saturate, 0xfe, 0xfe},
      {"e8m0", InfInput::overflow, Overflow::to_special, 0xff, 0xff},
      {"e8m0", InfInput::to_nan, Overflow::saturate, 0xff, 0xff},
      {"bf16", InfInput::overflow, Overflow::saturate, 0x7f7f, 0xff7f},
      {"bf16", InfInput::overflow, Overflow::to_special, 0x7f80, 0xff80},
      {"e5m2fnuz", InfInput::overflow, Overflow::saturate, 0x7f, 0xff},
      {"e5m2fnuz", InfInput::to_nan, Overflow::saturate, 0x80, 0x80},
  };
  for (const auto& row : table) {
    const Format& f = kFormats[size_t(find_format(row.format))].format;
    for (const auto& mode : kRoundings) {
      const Policy policy{.rounding = mode.rounding, .overflow = row.overflow, .inf = row.inf};
      EXPECT_EQ(encode(f, policy, kInf), row.positive) << row.format << ' ' << mode.name;
      EXPECT_EQ(encode(f, policy, -kInf), row.negative) << row.format << ' ' << mode.name;
    }
  }
}

struct NegativeRow {
  NegativeInput policy;
  std::string_view format;
  std::vector<uint32_t> codes;  // of -2, -1, -0, -Inf, -2^-140
};

TEST(NegativeInput, EveryPolicyGivesItsTable) {
  const std::vector<NegativeRow> table{
      {NegativeInput::magnitude, "e8m0", {128, 127, 0, 254, 0}},
      {NegativeInput::to_nan, "e8m0", {255, 255, 0, 255, 255}},
      {NegativeInput::to_zero, "e8m0", {0, 0, 0, 0, 0}},
      {NegativeInput::magnitude, "ue4m3", {0x40, 0x38, 0, 0x7e, 0}},
      {NegativeInput::to_nan, "ue4m3", {0x7f, 0x7f, 0, 0x7f, 0x7f}},
      {NegativeInput::to_zero, "ue4m3", {0, 0, 0, 0, 0}},
      {NegativeInput::to_nan, "e4m3", {0xc0, 0xb8, 0x80, 0xfe, 0x80}},
  };
  constexpr float kInputs[] = {-2.0f, -1.0f, -0.0f, -kInf, -0x1p-140f};
  for (const auto& [negative, name, codes] : table) {
    const Policy policy{.rounding = Rounding::toward_zero, .overflow = Overflow::saturate, .negative = negative};
    for (size_t i = 0; i < codes.size(); ++i)
      EXPECT_EQ(encode(kFormats[size_t(find_format(name))].format, policy, kInputs[i]), codes[i])
          << name << ' ' << kNegativeInputNames[size_t(negative)] << ' ' << kInputs[i];
  }
}

TEST(Zero, KeepsItsSignWhereTheFormatHasMinusZero) {
  for (const FormatEntry& entry : kFormats) {
    EXPECT_EQ(encode(entry.format, kSaturating, 0.0f), 0u) << entry.name;
    const uint32_t minus_zero = entry.format.has_negative_zero() ? entry.format.sign_mask() : 0;
    EXPECT_EQ(encode(entry.format, kSaturating, -0.0f), minus_zero) << entry.name;
    EXPECT_EQ(encode(entry.format, kSaturating, -0x1p-149), encode(entry.format, kSaturating, -0x1p-149f))
        << entry.name;
  }
}

TEST(Zero, ANegativeThatRoundsToZeroKeepsItsSignToo) {
  EXPECT_EQ(encode(format_named("e2m1"), kSaturating, -0.1f), 0x8u);
  EXPECT_EQ(encode(format_named("e4m3"), kSaturating, -0x1p-149f), 0x80u);
  EXPECT_EQ(encode(format_named("e4m3fnuz"), kSaturating, -0x1p-149f), 0x00u);
}

}  // namespace
}  // namespace halfulp

// decode against the tables that the standards print, typed in by hand.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "formats/catalog.h"
#include "formats/codec.h"

namespace halfulp {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct CodeValue {
  uint32_t code;
  float value;
};

void expect_values(const Format& f, const std::vector<CodeValue>& table) {
  for (const auto& [code, value] : table)
    EXPECT_EQ(bit_cast<uint32_t>(decode(f, code)), bit_cast<uint32_t>(value)) << std::hex << "code 0x" << code;
}

// The positive half of a table, and its mirror image.
void expect_magnitudes(const Format& f, const std::vector<float>& values) {
  ASSERT_EQ(values.size(), size_t{f.magnitude_mask()} + 1);
  for (uint32_t code = 0; code < values.size(); ++code)
    expect_values(f, {{code, values[code]}, {code | f.sign_mask(), -values[code]}});
}

void expect_nan(const Format& f, const std::vector<uint32_t>& codes) {
  for (const uint32_t code : codes) EXPECT_TRUE(std::isnan(decode(f, code))) << std::hex << "code 0x" << code;
}

TEST(Decode, E2m1HasTheValuesOfOcpMxSection533) {
  expect_magnitudes(format_named("e2m1"), {0, .5, 1, 1.5, 2, 3, 4, 6});
}

TEST(Decode, E2m3HasTheValuesOfOcpMxSection532) {
  expect_magnitudes(format_named("e2m3"), {0, .125,  .25,  .375,  .5,  .625,  .75,  .875,   //
                                           1, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875,  //
                                           2, 2.25,  2.5,  2.75,  3,   3.25,  3.5,  3.75,   //
                                           4, 4.5,   5,    5.5,   6,   6.5,   7,    7.5});
}

TEST(Decode, E3m2HasTheValuesOfOcpMxSection532) {
  expect_magnitudes(format_named("e3m2"), {0,   .0625, .125, .1875,  //
                                           .25, .3125, .375, .4375,  //
                                           .5,  .625,  .75,  .875,   //
                                           1,   1.25,  1.5,  1.75,   //
                                           2,   2.5,   3,    3.5,    //
                                           4,   5,     6,    7,      //
                                           8,   10,    12,   14,     //
                                           16,  20,    24,   28});
}

TEST(Decode, E4m3HasTheKeyCodesOfOfp8Section51) {
  const Format f = format_named("e4m3");
  expect_values(f, {{0b0'0000'000, 0.0f},
                    {0b1'0000'000, -0.0f},
                    {0b0'0000'001, 0x1p-9f},
                    {0b0'0000'111, 0x1.cp-7f},
                    {0b0'0001'000, 0x1p-6f},
                    {0b0'0111'000, 1.0f},
                    {0b0'1111'000, 256.0f},
                    {0b0'1111'110, 448.0f},
                    {0b1'1111'110, -448.0f}});
  expect_nan(f, {0b0'1111'111, 0b1'1111'111});
}

TEST(Decode, E5m2HasTheKeyCodesOfOfp8Section51) {
  const Format f = format_named("e5m2");
  expect_values(f, {{0b0'00000'00, 0.0f},
                    {0b1'00000'00, -0.0f},
                    {0b0'00000'01, 0x1p-16f},
                    {0b0'00000'11, 0x1.8p-15f},
                    {0b0'00001'00, 0x1p-14f},
                    {0b0'01111'00, 1.0f},
                    {0b0'11110'11, 57344.0f},
                    {0b0'11111'00, kInf},
                    {0b1'11111'00, -kInf}});
  expect_nan(f, {0b0'11111'01, 0b0'11111'10, 0b0'11111'11, 0b1'11111'01, 0b1'11111'10, 0b1'11111'11});
}

TEST(Decode, E8m0HasTheKeyCodesOfOcpMxSection541) {
  const Format f = format_named("e8m0");
  expect_values(f, {{0, 0x1p-127f}, {1, 0x1p-126f}, {126, 0.5f}, {127, 1.0f}, {134, 128.0f}, {254, 0x1p127f}});
  expect_nan(f, {255});
}

TEST(Decode, Ue4m3IgnoresBit7) {
  const Format f = format_named("ue4m3");
  expect_values(f, {{0x00, 0.0f}, {0x01, 0x1p-9f}, {0x38, 1.0f}, {0x7e, 448.0f}});
  expect_values(f, {{0x80, 0.0f}, {0x81, 0x1p-9f}, {0xb8, 1.0f}, {0xfe, 448.0f}});
  expect_nan(f, {0x7f, 0xff});
}

TEST(Decode, Bf16IsTheUpperHalfOfBinary32) {
  const Format f = format_named("bf16");
  expect_values(f, {{0x0001, 0x1p-133f},
                    {0x0080, 0x1p-126f},
                    {0x3f80, 1.0f},
                    {0xc049, -3.140625f},
                    {0x7f7f, 0x1.fep127f},
                    {0x7f80, kInf},
                    {0xff80, -kInf}});
  expect_nan(f, {0x7f81, 0x7fc0, 0x7fff, 0xffff});
}

TEST(Decode, F16IsBinary16) {
  const Format f = format_named("f16");
  expect_values(f, {{0x0001, 0x1p-24f},
                    {0x03ff, 0x1.ff8p-15f},
                    {0x0400, 0x1p-14f},
                    {0x3c00, 1.0f},
                    {0x7bff, 65504.0f},
                    {0x7c00, kInf},
                    {0xfc00, -kInf}});
  expect_nan(f, {0x7c01, 0x7e00, 0xffff});
}

TEST(Decode, Tf32IsNineteenBits) {
  const Format f = format_named("tf32");
  expect_values(f, {{0x1fc00, 1.0f}, {0x00001, 0x1p-136f}, {0x3fbff, 0x1.ffcp127f}, {0x3fc00, kInf}});
  expect_nan(f, {0x3fc01, 0x3ffff, 0x7ffff});
}

// Noune et al., arXiv:2206.02915: one NaN, no Inf, no negative zero, twice the range.
TEST(Decode, FnuzFormatsHaveOneNanWhereMinusZeroWouldBe) {
  expect_values(format_named("e4m3fnuz"),
                {{0x00, 0.0f}, {0x01, 0x1p-10f}, {0x40, 1.0f}, {0x7f, 240.0f}, {0xff, -240.0f}});
  expect_nan(format_named("e4m3fnuz"), {0x80});
  expect_values(format_named("e5m2fnuz"), {{0x01, 0x1p-17f}, {0x40, 1.0f}, {0x7f, 57344.0f}, {0xff, -57344.0f}});
  expect_nan(format_named("e5m2fnuz"), {0x80});
}

TEST(Decode, E3m4IsIeeeLike) {
  const Format f = format_named("e3m4");
  expect_values(f, {{0x01, 0x1p-6f}, {0x10, 0.25f}, {0x30, 1.0f}, {0x6f, 15.5f}, {0x70, kInf}, {0xf0, -kInf}});
  expect_nan(f, {0x71, 0x7f, 0xff});
}

TEST(Decode, EveryF32CodeSampledIsItself) {
  const Format f = format_named("f32");
  for (uint64_t code = 0; code < uint64_t{1} << 32; code += 65'521) {
    if (is_nan_code(f, uint32_t(code))) continue;
    ASSERT_EQ(bit_cast<uint32_t>(decode(f, uint32_t(code))), code);
  }
}

// A NaN comes out quiet, with its sign.
TEST(Decode, NanKeepsItsSignAndIsQuiet) {
  EXPECT_EQ(bit_cast<uint32_t>(decode(format_named("e4m3"), 0x7f)), 0x7fc0'0000u);
  EXPECT_EQ(bit_cast<uint32_t>(decode(format_named("e4m3"), 0xff)), 0xffc0'0000u);
  EXPECT_EQ(bit_cast<uint32_t>(decode(format_named("bf16"), 0x7f81)), 0x7fc0'0000u);
}

TEST(Decode, BitsAboveTheCodeAreIgnored) {
  EXPECT_EQ(decode(format_named("e2m1"), 0xf7), 6.0f);
  EXPECT_EQ(decode(format_named("e2m3"), 0xdf), 7.5f);
}

}  // namespace
}  // namespace halfulp

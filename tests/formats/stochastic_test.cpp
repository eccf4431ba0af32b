// Stochastic rounding with n random bits, over all 2^n words: the probability is known in closed form.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string_view>

#include "formats/catalog.h"
#include "formats/codec.h"
#include "tests/oracle/slow_round.h"

namespace halfulp {
namespace {

constexpr Policy kStochastic{.rounding = Rounding::stochastic, .overflow = Overflow::to_special};

// How many of the 2^n random words round x, which lies at or above the value of `below`, up.
uint64_t ups(const Format& f, double x, uint32_t below, int n) {
  uint64_t count = 0;
  for (uint64_t word = 0; word < uint64_t{1} << n; ++word) {
    const uint32_t code = encode(f, kStochastic, x, {.word = uint32_t(word), .count = n});
    EXPECT_TRUE(code == below || code == below + 1) << "x = " << x << " gave " << code;
    count += code != below;
  }
  return count;
}

class RandomBitCount : public testing::TestWithParam<int> {};

// For fractions k/37 of an ulp (none of them a binary fraction but 0) in every binade of small formats.
TEST_P(RandomBitCount, ProbabilityOfUpIsTheFractionCutToThatManyBits) {
  const int n = GetParam();
  for (const std::string_view name : {"e2m1", "e3m2", "e4m3", "e5m2"}) {
    const Format& f = kFormats[size_t(find_format(name))].format;
    for (uint32_t below = 0; below<f.max_code(); below += n> 8 ? 9 : 1) {
      const auto low = double(oracle::magnitude_of(f, below)), step = double(oracle::magnitude_of(f, below + 1)) - low;
      for (int k = 0; k<37; k += n> 8 ? 12 : 1) {
        const double x = low + step * k / 37, fraction = (x - low) / step;
        ASSERT_EQ(ups(f, x, below, n), uint64_t(std::floor(std::ldexp(fraction, n)))) << name << " x = " << x;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, RandomBitCount, testing::Values(2, 3, 8, 16), testing::PrintToStringParamName());

TEST(Stochastic, AnExactValueNeverMoves) {
  for (const FormatEntry& entry : kFormats) {
    const uint32_t codes = entry.format.bits() <= 8 ? entry.format.max_code() : 200;
    for (uint32_t code = 0; code <= codes; ++code)
      for (const int count : {1, 2, 8, 16, 32})
        ASSERT_EQ(encode(entry.format, kStochastic, decode(entry.format, code), {.word = ~0u, .count = count}), code)
            << entry.name;
  }
}

TEST(Stochastic, FractionBitsBelowTheRandomOnesAreCut) {
  // 1 + 255/256 of an ulp and a little: with 8 bits and all ones it goes up, with word 0 it stays.
  const Format f = format_named("e4m3");
  EXPECT_EQ(encode(f, kStochastic, 1 + 0x1p-3 * 0x1p-9, {.word = 0xff, .count = 8}), 0x38u);
  EXPECT_EQ(encode(f, kStochastic, 1 + 0x1p-3 * 0x1p-8, {.word = 0xff, .count = 8}), 0x39u);
  EXPECT_EQ(encode(f, kStochastic, 1 + 0x1p-3 * 0x1p-8, {.word = 0xfe, .count = 8}), 0x38u);
}

TEST(Stochastic, ReadsTheLowBitsOfTheWordOnly) {
  for (uint32_t word = 0; word < 256; ++word)
    ASSERT_EQ(encode(format_named("e2m1"), kStochastic, 2.7f, {.word = word | 0xabcd'ef00, .count = 8}),
              encode(format_named("e2m1"), kStochastic, 2.7f, {.word = word, .count = 8}));
}

TEST(Stochastic, ThirtyTwoBitsReachTheLowestFractionBit) {
  const Format f = format_named("e4m3");
  EXPECT_EQ(encode(f, kStochastic, 1 + 0x1p-3 * 0x1p-32, {.word = ~0u, .count = 32}), 0x39u);
  EXPECT_EQ(encode(f, kStochastic, 1 + 0x1p-3 * 0x1p-32, {.word = ~0u - 1, .count = 32}), 0x38u);
  EXPECT_EQ(encode(f, kStochastic, 1 + 0x1p-3 * 0x1p-33, {.word = ~0u, .count = 32}), 0x38u);
}

TEST(Stochastic, TheCarryEntersTheExponent) {
  EXPECT_EQ(encode(format_named("e4m3"), kStochastic, 0x1.fffffep0f, {.word = ~0u, .count = 32}), 0x40u);
  EXPECT_EQ(encode(format_named("e2m1"), kStochastic, 0x1.fffffep1f, {.word = 0xffff, .count = 16}), 0x6u);
  EXPECT_EQ(encode(format_named("e8m0"), kStochastic, 0x1.fffffep0f, {.word = 0xffff, .count = 16}), 128u);
}

TEST(Stochastic, AtTheTopTheUpperNeighbourIsTheOverflow) {
  const Format f = format_named("e4m3");
  EXPECT_EQ(encode(f, kStochastic, 449.0f, {.word = 0, .count = 16}), 0x7eu);
  EXPECT_EQ(encode(f, kStochastic, 449.0f, {.word = 0xffff, .count = 16}), 0x7fu);
  EXPECT_EQ(encode(f, kStochastic, 500.0f, {.word = 0, .count = 16}), 0x7fu);
  EXPECT_EQ(encode(f, {Rounding::stochastic, Overflow::saturate}, 449.0f, {.word = 0xffff, .count = 16}), 0x7eu);
}

TEST(Stochastic, ThePairOfSignsUsesOneThreshold) {
  for (uint32_t word = 0; word < 256; ++word)
    ASSERT_EQ(encode(format_named("e2m1"), kStochastic, -2.7f, {.word = word, .count = 8}),
              encode(format_named("e2m1"), kStochastic, 2.7f, {.word = word, .count = 8}) | 0x8u);
}

}  // namespace
}  // namespace halfulp

// The encoding kernels against the scalar codec, with random bits, and the random bits against lib/philox.h.

#include <gtest/gtest.h>

#include <random>

#include "formats/ptx_cvt.h"
#include "lib/philox.h"
#include "tests/simd/compare.h"

namespace halfulp {
namespace {

constexpr Policy kStochastic{.rounding = Rounding::stochastic, .overflow = Overflow::saturate};
constexpr Policy kOverflowing{.rounding = Rounding::stochastic, .overflow = Overflow::to_special};
constexpr Policy kNanPayload{
    .rounding = Rounding::stochastic, .overflow = Overflow::to_special, .nan = NanInput::payload};

TEST(SimdPhilox, AnyStartOfAnyStream) {
  on_every_target([] {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{0x0123'4567'89ab'cdef}, ~uint64_t{0}})
      for (const uint64_t stream : {uint64_t{0}, uint64_t{0xfedc'ba98'7654'3210}})
        for (const uint64_t first : {0ull, 1ull, 2ull, 3ull, 6ull, 0x3'ffff'ffe5ull, 0x1234'5678'9abc'def0ull}) {
          std::vector<uint32_t> words(2500);
          simd::philox_words({seed, stream, first}, words);
          for (std::size_t i = 0; i < words.size(); ++i)
            ASSERT_EQ(words[i], random_word(seed, stream, first + i)) << seed << ' ' << stream << ' ' << first + i;
        }
  });
}

TEST(SimdPhilox, EveryLength) {
  on_every_target([] {
    for (std::size_t length = 0; length < 140; ++length) {
      std::vector<uint32_t> words(length + 1, 0xa5a5'a5a5);
      simd::philox_words({1, 2, 3}, std::span(words).first(length));
      for (std::size_t i = 0; i < length; ++i) ASSERT_EQ(words[i], random_word(1, 2, 3 + i)) << length << ' ' << i;
      EXPECT_EQ(words[length], 0xa5a5'a5a5);
    }
  });
}

class SimdStochastic : public testing::TestWithParam<FormatEntry> {
 protected:
  const Format& format() const { return GetParam().format; }
  int bits() const { return GetParam().storage_bits; }
  std::vector<float> values() const {
    std::vector<float> x = boundary_values(format());
    std::mt19937 generator(11);
    for (int i = 0; i < 100'000; ++i) x.push_back(bit_cast<float>(uint32_t(generator())));
    for (int i = 0; i < 100'000; ++i) x.push_back(float(oracle::random_in_range(format(), ranges_)));
    return x;
  }
  mutable std::mt19937_64 ranges_{5};
};

// The fields as formats/ptx_cvt.h gives them to the instruction for this width.
uint32_t code_of_four(const Format& f, const Policy& policy, int bits, float x, uint32_t word, int lane) {
  PtxCvt op = ptx_cvt(kPtxCvts[0]);
  op.random = bits == 4 ? RandomField::pairs_interleaved : RandomField::pairs;
  return encode(f, policy, x, random_bits(op, word, lane));
}

void expect_words_of_four(const Format& f, const Policy& policy, int bits, std::span<const float> x) {
  std::mt19937 generator(13);
  std::vector<uint32_t> words((x.size() + 3) / 4);
  for (uint32_t& word : words) word = uint32_t(generator());
  std::vector<uint32_t> expected;
  for (std::size_t i = 0; i < x.size(); ++i)
    expected.push_back(code_of_four(f, policy, bits, x[i], words[i / 4], int(i % 4)));
  on_every_target([&] {
    std::vector<std::byte> codes = room_for(x.size(), bits);
    simd::encode_blocks(f, policy, {bits}, x, {}, simd::WordOfFour{words}, codes);
    expect_codes(expected, codes, bits, x);
  });
}

void expect_philox(const Format& f, const Policy& policy, int bits, std::span<const float> x) {
  const simd::PhiloxWords random{.seed = 21, .stream = 34, .first = 0x1'0000'0001};
  std::vector<uint32_t> expected;
  for (std::size_t i = 0; i < x.size(); ++i)
    expected.push_back(
        encode(f, policy, x[i], {.word = random_word(random.seed, random.stream, random.first + i), .count = 32}));
  on_every_target([&] {
    std::vector<std::byte> codes = room_for(x.size(), bits);
    simd::encode_blocks(f, policy, {bits}, x, {}, random, codes);
    expect_codes(expected, codes, bits, x);
  });
}

TEST_P(SimdStochastic, WordsOfFourSaturating) { expect_words_of_four(format(), kStochastic, bits(), values()); }
TEST_P(SimdStochastic, WordsOfFourOverflowing) { expect_words_of_four(format(), kOverflowing, bits(), values()); }
TEST_P(SimdStochastic, WordsOfFourNanPayload) { expect_words_of_four(format(), kNanPayload, bits(), values()); }
TEST_P(SimdStochastic, PhiloxSaturating) { expect_philox(format(), kStochastic, bits(), values()); }
TEST_P(SimdStochastic, PhiloxOverflowing) { expect_philox(format(), kOverflowing, bits(), values()); }
TEST_P(SimdStochastic, PhiloxNanPayload) { expect_philox(format(), kNanPayload, bits(), values()); }

// Subnormals whose fraction, to its 32nd bit, is one more than the complement of their word, or is the complement: the
// first rounds away and the second does not, and with fewer bits the two cannot be told apart.
TEST_P(SimdStochastic, LastRandomBitDecides) {
  constexpr int kSignificand = 24;
  std::vector<float> x;
  for (uint64_t i = 0; x.size() < 20'000; ++i) {
    const uint32_t complement = ~random_word(21, 34, 0x1'0000'0001 + i) + uint32_t(i & 1);
    const int lost = complement == 0 ? 0 : std::max(0, floor_log2(complement) + 1 - kSignificand);
    const double fraction = double(complement >> lost << lost);
    const int ulp = format().min_exponent() - format().mantissa_bits;
    x.push_back(float(std::ldexp(fraction, ulp - 32)));
  }
  expect_philox(format(), kStochastic, bits(), x);
}

INSTANTIATE_TEST_SUITE_P(Catalog, SimdStochastic, testing::ValuesIn(narrow_formats()), name_of);

TEST(SimdStochasticArrays, FactorsAndTails) {
  const FormatEntry& e4m3 = kFormats[std::size_t(format_id("e4m3"))];
  for (const std::size_t length : {1, 15, 63, 64, 65, 1023, 1024, 1025, 3001}) {
    std::vector<float> x(length), factors(length / 16 + 1), scaled(length);
    for (std::size_t k = 0; k < factors.size(); ++k) factors[k] = 1 + float(k) * 0.3f;
    for (std::size_t i = 0; i < length; ++i) {
      x[i] = float(int(i % 301) - 150) * 0.0123f;
      scaled[i] = x[i] / factors[i / 16];
    }
    const simd::PhiloxWords random{.seed = 1, .stream = 2, .first = length};
    std::vector<uint32_t> expected;
    for (std::size_t i = 0; i < length; ++i)
      expected.push_back(
          encode(e4m3.format, kStochastic, scaled[i], {.word = random_word(1, 2, length + i), .count = 32}));
    on_every_target([&] {
      std::vector<std::byte> codes = room_for(length, 8);
      simd::encode_blocks(e4m3.format, kStochastic, {8}, x,
                          {.values = factors, .block = 16, .use = simd::FactorUse::divide}, random, codes);
      expect_codes(expected, codes, 8, scaled);
    });
  }
}

TEST(SimdStochasticArrays, OtherRoundingsReadNoRandomBits) {
  const std::vector<float> x(100, 1.06f);
  const Policy policy{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate};
  const std::vector<uint32_t> expected = scalar_codes(format_named("e4m3"), policy, x);
  on_every_target([&] {
    std::vector<std::byte> codes = room_for(x.size(), 8);
    simd::encode_blocks(format_named("e4m3"), policy, {8}, x, {}, simd::PhiloxWords{1, 2, 3}, codes);
    expect_codes(expected, codes, 8, x);
  });
}

}  // namespace
}  // namespace halfulp

// That the random bits of stochastic rounding do not depend on each other across seeds, tensors and elements.
//
// The seed is Philox's key; the counter has the stream in its upper half, element / 4 in its lower one. Under one key
// Philox is a permutation of all counters, so no two blocks of (stream, element / 4) are drawn alike: streams cannot
// overlap. Another seed is another permutation, not another place in one sequence, so there is no shift by which the
// draws of one seed are those of another. A tensor's stream is the 64-bit hash of its name.
//
// The statistics see what a construction that is wrong in these points does: the generators at the end of the file must
// fail them.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/catalog.h"
#include "formats/codec.h"
#include "lib/philox.h"
#include "tests/emulation/reports.h"

namespace halfulp {
namespace {

using Words = std::array<uint32_t, 4>;

Words words_of(PhiloxBlock block) { return {block[0], block[1], block[2], block[3]}; }

TEST(Streams, SeedIsTheKeyAndStreamAndBlockAreTheHalvesOfTheCounter) {
  EXPECT_EQ(words_of(random_block(0x11111111'22222222, 0x33333333'44444444, 0x55555555'66666666)),
            words_of(philox4x32({0x22222222, 0x11111111}, {{0x66666666, 0x55555555, 0x44444444, 0x33333333}})));
}

// The x for which odd * x = 1 modulo 2^32, by Newton's iteration from 3 right bits.
uint32_t modular_inverse(uint32_t odd) {
  uint32_t x = odd;
  for (int i = 0; i < 4; ++i) x *= 2 - odd * x;
  return x;
}

// The counter of a block: each round undone, last key first. It exists because the multipliers are odd: the low half of
// a product tells its factor, and so the high half.
Words counter_of(PhiloxKey key, Words out) {
  for (int round = 9; round >= 0; --round) {
    const uint32_t low = key.low + uint32_t(round) * 0x9E3779B9, high = key.high + uint32_t(round) * 0xBB67AE85;
    const uint32_t c2 = out[1] * modular_inverse(0xCD9E8D57), c0 = out[3] * modular_inverse(0xD2511F53);
    const auto upper = [](uint32_t a, uint32_t b) { return uint32_t(uint64_t{a} * b >> 32); };
    out = {c0, out[0] ^ upper(0xCD9E8D57, c2) ^ low, c2, out[2] ^ upper(0xD2511F53, c0) ^ high};
  }
  return out;
}

TEST(Streams, OneSeedDrawsNoBlockTwiceBecauseItsCounterCanBeToldFromIt) {
  for (uint64_t i = 0; i < 10'000; ++i) {
    const PhiloxBlock random = random_block(1, 0, i);
    const PhiloxKey key{random[0], random[1]};
    const PhiloxBlock counter = random_block(2, 0, i);
    ASSERT_EQ(counter_of(key, words_of(philox4x32(key, counter))), words_of(counter));
  }
}

std::string tensor_name(uint64_t i) {
  constexpr std::array kParts{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                              "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj",    "input_layernorm"};
  return "model.layers." + std::to_string(i / 8) + "." + kParts[i % 8] + ".weight";
}

TEST(Streams, OfTheTensorsOfALargeModelAreTheirOwn) {
  std::vector<uint64_t> streams;
  for (uint64_t i = 0; i < 200'000; ++i) streams.push_back(stream_of(tensor_name(i)));
  std::ranges::sort(streams);
  EXPECT_EQ(std::ranges::adjacent_find(streams), streams.end());
}

// 64 of the 128 bits: among 2^20 blocks two would agree by chance once in 2^25 runs. Under different seeds only chance
// keeps blocks apart, but no more than chance brings them together.
TEST(Streams, OfManySeedsDrawNoBlockTwice) {
  std::vector<uint64_t> halves;
  for (uint64_t seed = 0; seed < 64; ++seed)
    for (uint64_t stream = 0; stream < 16; ++stream)
      for (uint64_t block = 0; block < 1024; ++block) {
        const PhiloxBlock words = random_block(seed, stream, block);
        halves.push_back(uint64_t{words[0]} << 32 | words[1]);
      }
  std::ranges::sort(halves);
  EXPECT_EQ(std::ranges::adjacent_find(halves), halves.end());
}

// The statistics. A family is a random word for each (member, element); its members are to be independent.
using Family = std::function<uint32_t(uint64_t member, uint64_t element)>;

// 2.3 lies 0.3 of the way from 2 to 3 of E2M1.
constexpr float kX = 2.3f;
constexpr double kUp = kX - 2.0;
constexpr double kVariance = kUp * (1 - kUp);

// Whether stochastic rounding goes up, less the probability that it does.
double decision(uint32_t word) {
  constexpr Policy kStochastic{.rounding = Rounding::stochastic, .overflow = Overflow::saturate};
  return (encode(format_named("e2m1"), kStochastic, kX, {.word = word, .count = 32}) == 0x5 ? 1 : 0) - kUp;
}

// Consecutive members [first, first + members), `elements` decisions each.
std::vector<std::vector<double>> decisions(const Family& family, uint64_t first, uint64_t members, uint64_t elements) {
  std::vector<std::vector<double>> all(members);
  for (uint64_t m = 0; m < members; ++m)
    for (uint64_t i = 0; i < elements; ++i) all[m].push_back(decision(family(first + m, i)));
  return all;
}

// Correlation of a[i + lag] with b[i] in units of its standard error.
double correlation(const std::vector<double>& a, const std::vector<double>& b, std::size_t lag) {
  double sum = 0;
  for (std::size_t i = 0; i + lag < a.size(); ++i) sum += a[i + lag] * b[i];
  return sum / (kVariance * std::sqrt(double(a.size() - lag)));
}

// The largest correlation, in standard errors, of any two of 24 consecutive members, one up to 4 elements behind the
// other. Independent ones stay below 6 but for one run in 10^5: 2,484 correlations, each beyond 6 with 2 * 10^-9.
constexpr double kLargestCorrelation = 6;
double largest_correlation(const Family& family) {
  const auto all = decisions(family, 0, 24, 4096);
  double largest = 0;
  for (const auto& a : all)
    for (const auto& b : all)
      for (std::size_t lag = &a < &b ? 0 : 1; lag <= 4 && &a != &b; ++lag)
        largest = std::max(largest, std::abs(correlation(a, b, lag)));
  return largest;
}

// The variance of the mean decision over 64 consecutive members of 64 elements, relative to that of 4096 independent
// decisions; estimated from 200 such means, so it is 1 with a standard error of sqrt(2 / 200) = 0.1.
constexpr double kLargestVariance = 1.5;
double relative_variance_of_mean(const Family& family) {
  constexpr uint64_t kMeans = 200, kMembers = 64, kElements = 64;
  double sum = 0;
  for (uint64_t r = 0; r < kMeans; ++r) {
    double mean = 0;
    for (const auto& member : decisions(family, r << 20, kMembers, kElements))
      for (const double d : member) mean += d / double(kMembers * kElements);
    sum += mean * mean;
  }
  return sum / kMeans / (kVariance / double(kMembers * kElements));
}

struct NamedFamily {
  const char* name;
  Family word;
};

std::string family_name(const testing::TestParamInfo<NamedFamily>& info) { return info.param.name; }

constexpr uint64_t kHigh = uint64_t{1} << 32;

class Independent : public testing::TestWithParam<NamedFamily> {};

TEST_P(Independent, MembersDoNotCorrelate) { EXPECT_LT(largest_correlation(GetParam().word), kLargestCorrelation); }

TEST_P(Independent, TheMeanOverMembersHasTheVarianceOfIndependentDecisions) {
  EXPECT_NEAR(relative_variance_of_mean(GetParam().word), 1, kLargestVariance - 1);
}

const NamedFamily kIndependent[] = {
    {"Seeds", [](uint64_t m, uint64_t i) { return random_word(m, 7, i); }},
    {"SeedsThatDifferInTheirUpperHalf", [](uint64_t m, uint64_t i) { return random_word(m * kHigh, 7, i); }},
    {"Streams", [](uint64_t m, uint64_t i) { return random_word(42, m, i); }},
    {"StreamsThatDifferInTheirUpperHalf", [](uint64_t m, uint64_t i) { return random_word(42, m * kHigh, i); }},
    {"Tensors", [](uint64_t m, uint64_t i) { return random_word(42, stream_of(tensor_name(m)), i); }},
    {"StretchesOfATensor", [](uint64_t m, uint64_t i) { return random_word(42, 7, m * 4096 + i); }},
    {"StretchesThatAre2To34ElementsApart",
     [](uint64_t m, uint64_t i) { return random_word(42, 7, m * 4 * kHigh + i); }},
};
INSTANTIATE_TEST_SUITE_P(Philox, Independent, testing::ValuesIn(kIndependent), family_name);

// Two steps of a training run with the next seed: launches with a weak generator drew nearly the same.
TEST(Report, F05_DecisionsOfTwoLaunchesDifferAsIndependentOnesDo) {
  ASSERT_EQ(reports::input("F05").at("launches"), 2);
  constexpr int kElements = 1 << 18;
  int differing = 0;
  for (uint64_t i = 0; i < kElements; ++i)
    differing += decision(random_word(1, 7, i)) != decision(random_word(2, 7, i));
  constexpr double kProbability = 2 * kUp * (1 - kUp);
  EXPECT_NEAR(double(differing) / kElements, kProbability,
              5 * std::sqrt(kProbability * (1 - kProbability) / kElements));
}

// SplitMix64 whose state starts at seed * golden: seed + 1 draws what seed draws, one element later.
uint32_t overlapping_word(uint64_t seed, uint64_t element) {
  uint64_t z = (seed + element + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return uint32_t((z ^ z >> 31) >> 32);
}

class Dependent : public testing::TestWithParam<NamedFamily> {};

TEST_P(Dependent, MembersAreSeenToCorrelate) { EXPECT_GT(largest_correlation(GetParam().word), kLargestCorrelation); }

TEST_P(Dependent, TheMeanOverMembersIsSeenToVaryTooMuch) {
  EXPECT_GT(relative_variance_of_mean(GetParam().word), kLargestVariance);
}

const NamedFamily kDependent[] = {
    {"SplitMixSeededWithAMultipleOfItsIncrement", overlapping_word},
    // The same seed and an offset one further, which counts blocks of four words.
    {"TheNextBlockForTheNextLaunch", [](uint64_t m, uint64_t i) { return random_word(42, 7, 4 * m + i); }},
    {"OnlyTheUpperHalfOfTheSeed", [](uint64_t m, uint64_t i) { return random_word(m >> 32, 7, i); }},
};
INSTANTIATE_TEST_SUITE_P(Mutants, Dependent, testing::ValuesIn(kDependent), family_name);

}  // namespace
}  // namespace halfulp

// check_streams(): the project's streams pass, and each way to seed a generator badly is named.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "emulation/analysis/streams.h"
#include "lib/philox.h"

namespace halfulp {
namespace {

constexpr int kThreads = 2;

std::vector<uint64_t> first_streams(std::size_t count) {
  std::vector<uint64_t> streams(count);
  std::iota(streams.begin(), streams.end(), 0);
  return streams;
}

StreamCheck check(const RandomWords& word, std::size_t count = 32) {
  return check_streams(first_streams(count), word, kThreads);
}

// SplitMix64's output function.
uint32_t mixed(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return uint32_t((z ^ z >> 31) >> 32);
}

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // SplitMix64's increment

uint32_t philox(uint64_t stream, uint64_t index) { return random_word(42, stream, index); }

TEST(CheckStreams, PassesStreamsOfOneSeed) {
  const StreamCheck result = check(philox, 256);
  EXPECT_TRUE(result.independent());
  EXPECT_EQ(result.pairs, 256u * 255 / 2);
  EXPECT_GT(result.worst_z, 4);  // one of 816,000 correlations is
}

TEST(CheckStreams, ComparesEachOfManyStreamsWithItsNeighboursInTheList) {
  const StreamCheck result = check(philox, 1024);
  EXPECT_TRUE(result.independent());
  EXPECT_EQ(result.pairs, 1024u * 256 - 256 * 257 / 2);
}

TEST(CheckStreams, PassesSeeds) {
  EXPECT_TRUE(check([](uint64_t seed, uint64_t index) { return random_word(seed, 7, index); }).independent());
}

TEST(CheckStreams, PassesSplitMixOfHashedSeeds) {
  const auto hashed = [](uint64_t seed, uint64_t index) {
    return mixed((uint64_t{mixed(seed)} << 32 | mixed(~seed)) + index * kGolden);
  };
  EXPECT_TRUE(check(hashed).independent());
}

TEST(CheckStreams, SaysAtWhichShiftSplitMixSeededWithMultiplesOfItsIncrementOverlaps) {
  const StreamCheck result = check([](uint64_t seed, uint64_t index) { return mixed((seed + index + 1) * kGolden); });
  EXPECT_FALSE(result.independent());
  ASSERT_TRUE(result.overlap);
  EXPECT_EQ(result.overlap->first, 0u);
  EXPECT_EQ(result.overlap->second, 1u);
  EXPECT_EQ(result.overlap->shift, 1);
}

TEST(CheckStreams, FindsTheFarthestOverlapOfTheWindow) {
  const auto far = [](uint64_t stream, uint64_t index) { return philox(0, stream * 1020 + index); };
  const StreamCheck result = check(far, 2);
  ASSERT_TRUE(result.overlap);
  EXPECT_EQ(result.overlap->shift, 1020);
}

TEST(CheckStreams, FindsNoOverlapWhereOneStreamEndsAndTheNextBegins) {
  EXPECT_TRUE(check([](uint64_t stream, uint64_t index) { return philox(0, stream * 1024 + index); }).independent());
}

TEST(CheckStreams, NamesTheStreamThatIsThereTwice) {
  const StreamCheck result = check_streams(std::vector<uint64_t>{5, 9, 5}, philox, kThreads);
  ASSERT_TRUE(result.overlap);
  EXPECT_EQ(result.overlap->first, 5u);
  EXPECT_EQ(result.overlap->second, 5u);
  EXPECT_EQ(result.overlap->shift, 0);
}

TEST(CheckStreams, FindsAPeriodOfOneStream) {
  const StreamCheck result = check([](uint64_t, uint64_t index) { return philox(0, index % 100); }, 1);
  ASSERT_TRUE(result.overlap);
  EXPECT_EQ(std::abs(result.overlap->shift), 100);
}

// Half of the words have the bit of the next stream's next word: a correlation of 1/2, 16 standard errors of 1024
// words, without an overlap.
class OneBit : public testing::TestWithParam<int> {};

TEST_P(OneBit, ThatFollowsAnotherStreamIsSeen) {
  const auto following = [](uint64_t stream, uint64_t index) {
    const uint32_t own = philox(stream, index), other = philox(stream + 1, index + 1);
    const bool follows = philox(1000 + stream, index) >> 31;
    return follows ? (own & ~(1u << GetParam())) | (other & 1u << GetParam()) : own;
  };
  const StreamCheck result = check(following);
  EXPECT_FALSE(result.overlap);
  EXPECT_GT(result.worst_z, result.limit);
}

INSTANTIATE_TEST_SUITE_P(Of, OneBit, testing::Values(31, 30, 15, 0), testing::PrintToStringParamName());

TEST(CheckStreams, DoesNotDependOnTheNumberOfThreads) {
  const auto streams = first_streams(64);
  EXPECT_EQ(summary(check_streams(streams, philox, 1)), summary(check_streams(streams, philox, 5)));
}

TEST(CheckStreams, PutsTheOverlapIntoJson) {
  const StreamCheck result{
      .pairs = 3, .worst_z = 32, .limit = 6, .overlap = StreamOverlap{.first = 1, .second = 2, .shift = -7}};
  EXPECT_EQ(summary(result), Json::parse(R"({"independent": false, "limit": 6.0, "pairs": 3, "worst_z": 32.0,
                            "overlap": {"first": 1, "second": 2, "shift": -7}})"));
}

}  // namespace
}  // namespace halfulp

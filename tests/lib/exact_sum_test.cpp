// Order and partition must not matter, and the one rounding must be right. MPFR is the oracle in
// exact_sum_oracle_test.cpp.

#include "lib/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace halfulp {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();

ExactSum sum_of(const std::vector<double>& values) {
  ExactSum sum;
  for (const double x : values) sum.add(x);
  return sum;
}

double value_of(const std::vector<double>& values) { return sum_of(values).value(); }

// Values of all magnitudes and both signs, subnormals among them.
std::vector<double> wild_values(size_t count, uint32_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<double> values;
  while (values.size() < count) {
    const double x = bit_cast<double>(generator());
    if (std::isfinite(x)) values.push_back(x);
  }
  return values;
}

struct Naive {
  double sum = 0;
  void add(double x) { sum += x; }
  bool operator==(const Naive& other) const = default;
};

template <class Sum>
bool same_for_permutations(std::vector<double> values) {
  const auto total = [&] {
    Sum sum;
    for (const double x : values) sum.add(x);
    return sum;
  };
  const Sum first = total();
  std::mt19937 generator(5);
  bool same = true;
  for (int round = 0; round < 20; ++round) {
    std::shuffle(values.begin(), values.end(), generator);
    same = same && total() == first;
  }
  return same;
}

TEST(ExactSum, IsTheSameForPermutations) { EXPECT_TRUE(same_for_permutations<ExactSum>(wild_values(1000, 1))); }

// The test above can fail: a sum of doubles does fail it.
TEST(ExactSum, PermutationTestCatchesNaiveSum) {
  std::vector<double> values;
  std::mt19937_64 generator(2);
  for (int i = 0; i < 1000; ++i) values.push_back(std::generate_canonical<double, 53>(generator));
  EXPECT_FALSE(same_for_permutations<Naive>(values));
}

// Limbs of a thousand addends are far from the one form that a sum has.
TEST(ExactSum, IsTheSumOfTheLimbsOfItsAddends) {
  const std::vector<double> values = wild_values(1000, 7);
  std::array<int64_t, ExactSum::kLimbs> limbs{};
  for (const double x : values) {
    const ExactAddend addend = exact_addend(x);
    for (std::size_t i = 0; i < 3; ++i) limbs[addend.first + i] += addend.limbs[i];
  }
  ExactSum sum = sum_of({1, -0x1p-1000});
  sum.add_limbs(limbs);
  ExactSum expected = sum_of(values);
  expected.add(1);
  expected.add(-0x1p-1000);
  EXPECT_EQ(sum, expected);
}

TEST(ExactSum, IsTheSameForPartitions) {
  const std::vector<double> values = wild_values(1000, 3);
  const ExactSum whole = sum_of(values);
  for (const size_t parts : {1u, 2u, 3u, 7u, 16u}) {
    std::vector<ExactSum> partial(parts);
    for (size_t i = 0; i < values.size(); ++i) partial[i * i % parts].add(values[i]);
    ExactSum merged;
    for (const ExactSum& part : partial) merged.merge(part);
    EXPECT_TRUE(merged == whole) << parts << " parts";
  }
}

TEST(ExactSum, DifferentSumsAreUnequal) { EXPECT_FALSE(sum_of({1.0, kTiny}) == sum_of({1.0})); }

TEST(ExactSum, EmptySumIsPlusZero) { EXPECT_EQ(bit_cast<uint64_t>(ExactSum().value()), 0u); }

TEST(ExactSum, SumOfNegativeZerosIsPlusZero) { EXPECT_EQ(bit_cast<uint64_t>(value_of({-0.0, -0.0})), 0u); }

TEST(ExactSum, OneAddendIsItself) {
  for (const double x : wild_values(1000, 4)) ASSERT_EQ(value_of({x}), x) << std::hexfloat << x;
}

TEST(ExactSum, AddsSubnormals) {
  EXPECT_EQ(value_of({kTiny, kTiny, kTiny}), 3 * kTiny);
  EXPECT_EQ(value_of({DBL_MIN, -kTiny}), DBL_MIN - kTiny);
  EXPECT_EQ(value_of({-kTiny}), -kTiny);
}

TEST(ExactSum, RunningSumMayPassTheLargestDouble) {
  EXPECT_EQ(value_of({DBL_MAX, DBL_MAX, DBL_MAX, 1.5, -DBL_MAX, -DBL_MAX, -DBL_MAX}), 1.5);
}

TEST(ExactSum, SumBeyondTheLargestDoubleIsInf) {
  EXPECT_EQ(value_of({DBL_MAX, DBL_MAX}), kInf);
  EXPECT_EQ(value_of({-DBL_MAX, -DBL_MAX}), -kInf);
}

// Half an ulp above DBL_MAX is where nearest-even goes to infinity (IEEE 754-2019 section 4.3.1).
TEST(ExactSum, OverflowsFromHalfAnUlpAboveTheLargest) {
  EXPECT_EQ(value_of({DBL_MAX, 0x1p970}), kInf);
  EXPECT_EQ(value_of({DBL_MAX, 0x1p970, -kTiny}), DBL_MAX);
}

TEST(ExactSum, TiesGoToEven) {
  EXPECT_EQ(value_of({1.0, 0x1p-53}), 1.0);
  EXPECT_EQ(value_of({1 + 0x1p-52, 0x1p-53}), 1 + 0x1p-51);
  EXPECT_EQ(value_of({-1.0, -0x1p-53}), -1.0);
}

TEST(ExactSum, TheSmallestExcessBreaksATie) {
  EXPECT_EQ(value_of({1.0, 0x1p-53, kTiny}), 1 + 0x1p-52);
  EXPECT_EQ(value_of({1 + 0x1p-52, 0x1p-53, -kTiny}), 1 + 0x1p-52);
  EXPECT_EQ(value_of({-1.0, -0x1p-53, -kTiny}), -1 - 0x1p-52);
}

TEST(ExactSum, RoundingMayCarryIntoTheNextBinade) { EXPECT_EQ(value_of({2 - 0x1p-52, 0x1p-53}), 2.0); }

TEST(ExactSum, CancelsOverTheWholeRange) { EXPECT_EQ(value_of({DBL_MAX, kTiny, 1.0, -DBL_MAX, -1.0}), kTiny); }

TEST(ExactSum, ZeroAfterCancellationEqualsEmpty) { EXPECT_TRUE(sum_of({1e300, -3.5, 3.5, -1e300}) == ExactSum()); }

TEST(ExactSum, InfinityWins) {
  EXPECT_EQ(value_of({1.0, kInf, -DBL_MAX}), kInf);
  EXPECT_EQ(value_of({-kInf, 1.0}), -kInf);
}

TEST(ExactSum, OppositeInfinitiesAreNan) { EXPECT_TRUE(std::isnan(value_of({kInf, 1.0, -kInf}))); }

TEST(ExactSum, NanWins) { EXPECT_TRUE(std::isnan(value_of({kNan, kInf}))); }

TEST(ExactSum, MergeKeepsSpecials) {
  for (const double special : {kInf, -kInf, kNan}) {
    ExactSum sum = sum_of({1.0});
    sum.merge(sum_of({special}));
    EXPECT_TRUE(sum == sum_of({special, 1.0})) << special;
    EXPECT_FALSE(sum == sum_of({1.0})) << special;
  }
}

// Doubling 62 times makes the addends of 2^62 largest doubles: all of the head room.
TEST(ExactSum, HoldsManyLargeAddends) {
  ExactSum up = sum_of({DBL_MAX});
  for (int i = 0; i < 62; ++i) up.merge(ExactSum(up));
  ExactSum down = sum_of({-DBL_MAX});
  for (int i = 0; i < 62; ++i) down.merge(ExactSum(down));
  EXPECT_EQ(up.value(), kInf);
  up.merge(down);
  EXPECT_TRUE(up == ExactSum());
}

}  // namespace
}  // namespace halfulp

// Sums whose order is part of a recipe, against the order in other words.

#include "emulation/blocks/block_sums.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "lib/random_values.h"

namespace halfulp {
namespace {

std::vector<float> losses(std::size_t count, uint64_t seed) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = float(uniform(seed, 0, i) * uniform(seed, 1, i));
  return x;
}

// Element i and element i + 8 first, such pairs in their order then.
TEST(TorchSum, OfSixteenAddsPairsEightApart) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const std::vector<float> x = losses(16, seed);
    float sum = x[0] + x[8];
    for (std::size_t i = 1; i < 8; ++i) sum += x[i] + x[i + 8];
    ASSERT_EQ(total_of_losses(LossTotal::torch, x.data(), x.size()), sum) << seed;
  }
}

// Rows of eight: every fourth row in turn, the four sums column by column, the columns last.
TEST(TorchSum, OfATileAddsEveryFourthRowOfEight) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const std::vector<float> x = losses(256, seed);
    float sum = 0;
    for (std::size_t column = 0; column < 8; ++column) {
      std::vector<float> rows(4);
      for (std::size_t row = 0; row < 32; ++row) rows[row % 4] += x[row * 8 + column];
      sum += rows[0] + rows[1] + rows[2] + rows[3];
    }
    ASSERT_EQ(total_of_losses(LossTotal::torch, x.data(), x.size()), sum) << seed;
  }
}

// One, and fifteen numbers that are lost beside it one by one.
TEST(LossTotal, DependsOnTheOrder) {
  std::vector<float> x(16, 0x1p-24f);
  x[0] = 1;
  EXPECT_EQ(total_of_losses(LossTotal::sequential, x.data(), 16), 1);
  EXPECT_EQ(total_of_losses(LossTotal::torch, x.data(), 16), 1 + 7 * 0x1p-23f);
  EXPECT_EQ(total_of_losses(LossTotal::largest, x.data(), 16), 1);
}

TEST(LossTotal, OfALossThatIsNaNIsNaN) {
  std::vector<float> x(16, 1);
  x[3] = std::numeric_limits<float>::quiet_NaN();
  for (const LossTotal total : {LossTotal::sequential, LossTotal::torch, LossTotal::largest}) {
    const float sum = total_of_losses(total, x.data(), 16);
    EXPECT_TRUE(sum != sum);
  }
}

// The sum of products of run `run` of eight elements and all that is added to it, `runs` runs remaining after that.
float tree(const std::vector<float>& p, const std::vector<float>& q, std::size_t run, std::size_t runs) {
  if (runs == p.size() / 8) {
    float sum = 0;
    for (std::size_t i = run * 8; i < run * 8 + 8; ++i) sum += p[i] * q[i];
    return sum;
  }
  return tree(p, q, run, 2 * runs) + tree(p, q, run + runs, 2 * runs);
}

TEST(CorrectionFactor, AddsRunsOfEightPairwise) {
  for (const std::size_t count : {16u, 128u, 512u}) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const std::vector<float> y = losses(count, seed), c = losses(count, seed + 1000);
      ASSERT_EQ(correction_factor(y.data(), c.data(), count), tree(y, y, 0, 1) / tree(y, c, 0, 1)) << count;
    }
  }
}

TEST(CorrectionFactor, OfCodesThatAreAllZeroIsOne) {
  const std::vector<float> y = losses(128, 1), c(128, 0);
  EXPECT_EQ(correction_factor(y.data(), c.data(), 128), 1);
}

}  // namespace
}  // namespace halfulp

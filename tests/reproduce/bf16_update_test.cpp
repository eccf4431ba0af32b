// A BF16 weight of 1 to which 0.001 is added a thousand times (arXiv:2010.06192): nearest even swallows every update,
// stochastic rounding and Kahan's summation do not. The figures are an independent program's.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "formats/catalog.h"
#include "formats/codec.h"
#include "lib/philox.h"
#include "tests/reproduce/quantizers.h"
#include "tests/reproduce/side_by_side.h"

namespace halfulp::reproduce {
namespace {

constexpr Format kBf16 = format_named("bf16");
constexpr float kUpdate = 0.001f;
constexpr int kUpdates = 1000;

float nearest(float x) {
  return decode(kBf16, encode(kBf16, {.rounding = Rounding::nearest_even, .overflow = Overflow::to_special}, x));
}

float stochastic(float x, uint32_t word) {
  constexpr Policy kStochastic{.rounding = Rounding::stochastic, .overflow = Overflow::to_special};
  return decode(kBf16, encode(kBf16, kStochastic, x, {.word = word, .count = 32}));
}

TEST(Bf16Update, IsLostByNearestEven) {
  float w = 1;
  for (int i = 0; i < kUpdates; ++i) w = nearest(w + kUpdate);
  expect_published({"1 + 1000 * 0.001, nearest even", 1.0000, 0}, double(w));
}

double stochastic_sum(uint64_t run) {
  float w = 1;
  for (uint64_t i = 0; i < kUpdates; ++i) w = stochastic(w + kUpdate, random_word(1, run, i));
  return double(w);
}

// The mean is 2, for any number of runs; the published one lies 0.0009 below, over runs that are not counted there.
TEST(Bf16Update, IsKeptOnAverageByStochasticRounding) {
  constexpr std::size_t kRuns = 4000;
  std::vector<double> sums(kRuns);
  for (std::size_t run = 0; run < kRuns; ++run) sums[run] = stochastic_sum(run);
  const Mean mean = mean_of(sums);
  const double sd = mean.se * std::sqrt(double(kRuns));
  expect_published({"1 + 1000 * 0.001, stochastic, mean of 4000", 1.9991, 4 * mean.se}, mean.value);
  expect_published({"1 + 1000 * 0.001, stochastic, standard deviation", .082, .0005 + 4 * sd / std::sqrt(2.0 * kRuns)},
                   sd);
  EXPECT_NEAR(mean.value, 2, 4 * mean.se);
}

TEST(Bf16Update, IsKeptByKahansSummation) {
  float w = 1, lost = 0;
  for (int i = 0; i < kUpdates; ++i) {
    const float update = nearest(kUpdate - lost), sum = nearest(w + update);
    lost = nearest(nearest(sum - w) - update);
    w = sum;
  }
  expect_published({"1 + 1000 * 0.001, Kahan", 2.0000, 0}, double(w));
}

}  // namespace
}  // namespace halfulp::reproduce

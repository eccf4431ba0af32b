// Whether the 95% intervals of measured bias are what they say: over 400 repetitions of a simulated run the true bias,
// known in closed form, must lie inside 380 times, give or take four standard deviations of a binomial count.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "emulation/analysis/error.h"
#include "emulation/analysis/product_draws.h"
#include "emulation/blocks/recipes.h"
#include "emulation/matmul/fp64_product.h"
#include "lib/threads.h"
#include "tests/reproduce/quantizers.h"
#include "tests/reproduce/side_by_side.h"

namespace halfulp::reproduce {
namespace {

constexpr std::size_t kRepetitions = 400;
constexpr double kInside = 0.95 * kRepetitions;
const double kTolerance = 4 * std::sqrt(kRepetitions * 0.05 * 0.95);

// How many of the repetitions put `truth` inside value +- 1.96 standard errors.
template <class Estimate>
std::size_t times_inside(double truth, const Estimate& estimate) {
  std::vector<char> inside(kRepetitions);
  parallel_for(kRepetitions, default_threads(), [&](std::size_t r) {
    const Mean got = estimate(r);
    inside[r] = std::fabs(got.value - truth) <= 1.959963984540054 * got.se;
  });
  return std::size_t(std::ranges::count(inside, 1));
}

void expect_covered(const std::string& what, std::size_t times) {
  report(what + ": the truth is inside " + std::to_string(times) + " of 400 intervals, expected 380 +- 17");
  EXPECT_NEAR(double(times), kInside, kTolerance) << what;
}

const Recipe& headroom() {
  static const Recipe kRecipe = with_fields(recipe_named("nvfp4/te"), stochastic_with_headroom());
  return kRecipe;
}

const Recipe& clipping() {
  static const Recipe kRecipe = with_fields(recipe_named("nvfp4/te"), {{"rounding", "stochastic"}});
  return kRecipe;
}

// One tensor, random words of a stream for each repetition: stochastic rounding that clips nothing has no bias.
Mean figure_of_tensor(const char* name, std::size_t repetition) {
  constexpr Matrix kShape{.rows = 64, .cols = 512};
  static const std::vector<float> kX = normals("tensor", kShape);
  ErrorSums sums(headroom(), ErrorDetail::summary);
  sums.add<float>(tensor_scale(headroom(), largest_magnitude(headroom(), 0, kX)), kShape, kX,
                  {.seed = 1, .stream = repetition});
  const Json figures = sums.figures();
  return {.value = figures.at(name), .se = figures.at("se").at(name)};
}

TEST(Intervals, OfTheMeanErrorOfATensorHoldTheTruth) {
  expect_covered("mean error", times_inside(0, [](std::size_t r) { return figure_of_tensor("mean_error", r); }));
}

TEST(Intervals, OfTheShrinkageOfATensorHoldTheTruth) {
  expect_covered("shrinkage", times_inside(0, [](std::size_t r) { return figure_of_tensor("shrinkage", r); }));
}

constexpr std::size_t kDraws[] = {8, 32, 64};
constexpr Matrix kOperand{.rows = 16, .cols = 128};

ProductExperiment experiment(const Recipe& recipe, std::size_t draws, std::size_t repetition) {
  return {.a = {.x = normals("a", kOperand), .shape = kOperand, .recipe = &recipe, .name = "a"},
          .b = {.x = normals("b", kOperand), .shape = kOperand, .recipe = &recipe, .name = "b"},
          .seed = repetition,
          .draws = draws};
}

Mean squared_bias(const Recipe& recipe, std::size_t draws, std::size_t repetition) {
  const Figure bias = draw_products(experiment(recipe, draws, repetition), {}, 1).statistics(1).squared_bias();
  return {.value = bias.value, .se = bias.se};
}

TEST(Intervals, OfASquaredBiasThatIsZeroHoldIt) {
  for (const std::size_t draws : kDraws)
    expect_covered("no squared bias, " + std::to_string(draws) + " draws",
                   times_inside(0, [&](std::size_t r) { return squared_bias(headroom(), draws, r); }));
}

TEST(Intervals, OfTheProjectionHoldTheTruth) {
  expect_covered("projection", times_inside(1, [](std::size_t r) {
                   const Figure f = draw_products(experiment(headroom(), 64, r), {}, 1).statistics(1).projection();
                   return Mean{.value = f.value, .se = f.se};
                 }));
}

// What stochastic rounding makes of an operand on average: the operand, but for elements beyond the block's largest
// value, which always come out as that.
std::vector<double> expectation(const ProductOperand& operand) {
  const std::vector<float> q = quantized(recipe_named("nvfp4/te"), operand.shape, operand.x);
  std::vector<double> mean(operand.x.begin(), operand.x.end());
  for (std::size_t first = 0; first < q.size(); first += 16) {
    const auto magnitude = [](float a, float b) { return std::fabs(a) < std::fabs(b); };
    const float largest = std::fabs(*std::max_element(&q[first], &q[first] + 16, magnitude));
    for (std::size_t i = first; i < first + 16; ++i)
      mean[i] = std::clamp(double(operand.x[i]), -double(largest), double(largest));
  }
  return mean;
}

double true_squared_bias(const ProductExperiment& e) {
  const std::size_t n = kOperand.rows;
  std::vector<double> expected(n * n), exact(n * n);
  multiply_fp64(n, n, kOperand.cols, expectation(e.a), expectation(e.b), expected);
  multiply_fp64(n, n, kOperand.cols, std::vector<double>(e.a.x.begin(), e.a.x.end()),
                std::vector<double>(e.b.x.begin(), e.b.x.end()), exact);
  double bias = 0, size = 0;
  for (std::size_t i = 0; i < n * n; ++i) bias += std::pow(expected[i] - exact[i], 2), size += exact[i] * exact[i];
  return bias / size;
}

TEST(Intervals, OfASquaredBiasThatIsNotZeroHoldIt) {
  const double truth = true_squared_bias(experiment(clipping(), 1, 0));
  EXPECT_GT(truth, 0);
  for (const std::size_t draws : kDraws)
    expect_covered("squared bias of " + std::to_string(truth) + ", " + std::to_string(draws) + " draws",
                   times_inside(truth, [&](std::size_t r) { return squared_bias(clipping(), draws, r); }));
}

}  // namespace
}  // namespace halfulp::reproduce

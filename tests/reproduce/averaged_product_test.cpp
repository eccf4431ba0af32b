// The mean of a product over many draws of its operands' rounding, C = A B^T of 64 x 64 sums of 512: what is biased
// stays, what is noise falls as 1 / draws (Quartet II, arXiv:2601.22813). The figures are an independent program's, for
// standard normal operands.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "emulation/analysis/product_draws.h"
#include "emulation/analysis/streams.h"
#include "emulation/blocks/hadamard.h"
#include "emulation/blocks/recipes.h"
#include "emulation/matmul/fp64_product.h"
#include "lib/philox.h"
#include "lib/threads.h"
#include "tests/reproduce/quantizers.h"
#include "tests/reproduce/side_by_side.h"

namespace halfulp::reproduce {
namespace {

constexpr Matrix kShape{.rows = 64, .cols = 512};
constexpr std::size_t kDraws = 1024;
constexpr uint64_t kSeed = 1;

// By which the published figures and these may differ. |C|^2 has a relative variance of 2/n (1/m + 1/k) + 2/(m k), so a
// standard deviation of 2.5% over operands; |error|^2 has as much; and there are two sets of operands. On top comes the
// spread over draws: a published figure may be of one group of them.
double tolerance(double value, double sd_over_draws) {
  constexpr double kOfOperands = 0.025 * 2;
  return 4 * std::hypot(kOfOperands * value, sd_over_draws);
}

struct PublishedRow {
  double at_1, at_16, at_256, at_1024, squared_bias;  // NaN: not published
};
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

void expect_row(const std::string& name, const Draws::Statistics& statistics, const PublishedRow& row) {
  for (const MeanError& mean : statistics.concentration()) {
    const double published = mean.draws == 1      ? row.at_1
                             : mean.draws == 16   ? row.at_16
                             : mean.draws == 256  ? row.at_256
                             : mean.draws == 1024 ? row.at_1024
                                                  : kNone;
    if (std::isnan(published)) continue;
    const double sd_over_draws = mean.se * std::sqrt(double(mean.groups));
    expect_published(
        {name + ": error of " + std::to_string(mean.draws), published, tolerance(published, sd_over_draws)},
        mean.error);
  }
  if (std::isnan(row.squared_bias)) return;
  const Figure bias = statistics.squared_bias();
  expect_published({name + ": squared bias", row.squared_bias, tolerance(row.squared_bias, std::sqrt(2.0) * bias.se)},
                   bias.value);
}

void expect_unbiased(const std::string& name, const Draws::Statistics& statistics) {
  const Figure bias = statistics.squared_bias(), slope = statistics.slope();
  expect_published({name + ": squared bias, within two errors", 0, 2 * bias.se}, bias.value);
  expect_published({name + ": slope", -1, 4 * slope.se}, slope.value);
}

ProductExperiment experiment(const Recipe& a, const Recipe& b, int hadamard_size = 0) {
  Rotation rotation;
  if (hadamard_size > 0)
    rotation = Hadamard{.size = hadamard_size,
                        .signs = HadamardSigns::seeded,
                        .vectors = SignVectors::per_group,
                        .result = HadamardResult::f32};
  return {.a = {.x = normals("a", kShape), .shape = kShape, .recipe = &a, .rotation = rotation, .name = "a"},
          .b = {.x = normals("b", kShape), .shape = kShape, .recipe = &b, .rotation = rotation, .name = "b"},
          .signs = hadamard_size > 0 ? SignsDrawn::each_draw : SignsDrawn::once,
          .seed = kSeed,
          .draws = kDraws};
}

Draws::Statistics statistics_of(const ProductExperiment& e) {
  return draw_products(e, {}, default_threads()).statistics(default_threads());
}

const Recipe& kNearest = recipe_named("nvfp4/te");

const Recipe& stochastic() {
  static const Recipe kRecipe = with_fields(kNearest, {{"rounding", "stochastic"}});
  return kRecipe;
}

const Recipe& headroom() {
  static const Recipe kRecipe = with_fields(kNearest, stochastic_with_headroom());
  return kRecipe;
}

TEST(AveragedProduct, StreamsOfTheDrawsAreIndependent) {
  const StreamCheck check = check_streams(
      streams_of(experiment(headroom(), headroom())),
      [](uint64_t stream, uint64_t i) { return random_word(kSeed, stream, i); }, default_threads());
  EXPECT_TRUE(check.independent()) << summary(check);
}

TEST(AveragedProduct, NearestEvenStaysWhereItIs) {
  const auto statistics = statistics_of(experiment(kNearest, kNearest));
  expect_row("nearest even", statistics, {1.85e-2, 1.85e-2, 1.85e-2, 1.85e-2, 1.85e-2});
  EXPECT_NEAR(statistics.slope().value, 0, 1e-9);
}

TEST(AveragedProduct, NearestEvenUnderFreshRotationsOf16) {
  expect_row("nearest even, rotated by 16", statistics_of(experiment(kNearest, kNearest, 16)),
             {1.87e-2, 1.25e-3, 1.73e-4, 1.18e-4, 9.9e-5});
}

// m is the shrinkage of one operand, published to four digits after the point.
TEST(AveragedProduct, NearestEvenUnderFreshRotationsOf128IsBiasedByItsShrinkageAlone) {
  constexpr double kM = .0046, kHalfUnit = .00005;
  const auto statistics = statistics_of(experiment(kNearest, kNearest, 128));
  expect_row("nearest even, rotated by 128", statistics, {1.89e-2, 1.31e-3, 1.54e-4, 1.02e-4, 8.4e-5});
  const Figure bias = statistics.squared_bias(), projection = statistics.projection();
  expect_published({"rotated by 128: squared bias as (2 m)^2", 4 * kM * kM, 8 * kM * kHalfUnit + 4 * bias.se},
                   bias.value);
  expect_published({"rotated by 128: 1 - projection as 2 m", 2 * kM, 2 * kHalfUnit + 4 * projection.se},
                   1 - projection.value);
}

TEST(AveragedProduct, StochasticWithoutHeadroomIsBiased) {
  expect_row("stochastic, amax to 6", statistics_of(experiment(stochastic(), stochastic())),
             {4.01e-2, 2.56e-3, 3.87e-4, 2.73e-4, 2.3e-4});
}

TEST(AveragedProduct, StochasticWithHeadroomIsNotBiased) {
  const auto statistics = statistics_of(experiment(headroom(), headroom()));
  expect_row("stochastic, headroom 17/16", statistics, {4.92e-2, 2.91e-3, 1.87e-4, 4.90e-5, 1e-6});
  expect_unbiased("stochastic, headroom 17/16", statistics);
}

TEST(AveragedProduct, StochasticWithHeadroomUnderFreshRotationsIsNotBiased) {
  const auto statistics = statistics_of(experiment(headroom(), headroom(), 16));
  expect_row("stochastic, headroom, rotated by 16", statistics, {5.18e-2, 3.18e-3, 1.98e-4, 4.74e-5, -3e-6});
  expect_unbiased("stochastic, headroom, rotated by 16", statistics);
}

TEST(AveragedProduct, StochasticOnOneOperandKeepsTheBiasOfTheOther) {
  expect_row("stochastic and nearest even", statistics_of(experiment(headroom(), kNearest)),
             {3.37e-2, 1.09e-2, 9.58e-3, 9.51e-3, 9.5e-3});
}

TEST(AveragedProduct, Mxfp4AtThreeQuartersIsNotBiased) {
  const Recipe& tseng = recipe_named("mxfp4/tseng");
  const auto statistics = statistics_of(experiment(tseng, tseng));
  expect_row("mxfp4, stochastic at 3/4", statistics, {6.05e-2, 3.62e-3, 2.24e-4, 5.78e-5, -1e-6});
  expect_unbiased("mxfp4, stochastic at 3/4", statistics);
}

TEST(AveragedProduct, Mxfp4ThatClipsIsBiased) {
  const Recipe clipping = with_fields(recipe_named("mxfp4/ocp"), {{"rounding", "stochastic"}});
  expect_row("mxfp4, stochastic, floor", statistics_of(experiment(clipping, clipping)),
             {5.36e-2, 6.37e-3, 3.58e-3, 3.44e-3, 3.4e-3});
}

std::vector<double> product(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<double> c(kShape.rows * kShape.rows);
  multiply_fp64(kShape.rows, kShape.rows, kShape.cols, std::vector<double>(a.begin(), a.end()),
                std::vector<double>(b.begin(), b.end()), c);
  return c;
}

// Statistics of draws that draw_products() does not make.
Draws::Statistics statistics_of(const std::vector<double>& exact,
                                const std::function<std::vector<double>(std::size_t draw)>& value) {
  Draws draws(exact, kDraws, kShape.rows);
  parallel_for(kDraws, default_threads(), [&](std::size_t draw) { draws.set(draw, value(draw)); });
  return draws.statistics(default_threads());
}

TEST(AveragedProduct, ChoosingBetweenFourAndSixAfterRoundingIsBiased) {
  const std::vector<float> a = normals("a", kShape), b = normals("b", kShape);
  const auto statistics = statistics_of(product(a, b), [&](std::size_t draw) {
    return product(stochastic_four_over_six(kShape, a, kSeed, 4 * draw, 4 * draw + 1),
                   stochastic_four_over_six(kShape, b, kSeed, 4 * draw + 2, 4 * draw + 3));
  });
  expect_row("stochastic four over six", statistics, {2.93e-2, 2.68e-3, 1.04e-3, 9.63e-4, 9.4e-4});
}

// A gradient of weights as arXiv:2509.25149 quantizes it: dy stochastically, x to nearest even, both rotated. Whether
// its error is bias depends on what is held fixed.
ProductExperiment gradient(SignsDrawn signs) {
  ProductExperiment e = experiment(headroom(), kNearest, 16);
  e.signs = signs;
  return e;
}

TEST(ConditionalBias, OfOneBatchUnderFreshSignsIsTheShrinkageOfX) {
  expect_row("one batch, fresh signs", statistics_of(gradient(SignsDrawn::each_draw)),
             {3.5e-2, 2.2e-3, kNone, 6.1e-5, kNone});
}

TEST(ConditionalBias, OfOneBatchUnderFixedSignsIsAPlateau) {
  expect_row("one batch, fixed signs", statistics_of(gradient(SignsDrawn::once)),
             {3.5e-2, 1.1e-2, kNone, 9.4e-3, kNone});
}

// Each draw's error is taken relative to its own product.
TEST(PopulationBias, OfFreshBatchesUnderFixedSignsIsNone) {
  ProductExperiment first = gradient(SignsDrawn::once);
  const std::vector<double> exact = product(first.a.x, first.b.x);
  const auto norm = [](const std::vector<double>& c) {
    double sum = 0;
    for (const double value : c) sum += value * value;
    return std::sqrt(sum);
  };
  const auto statistics = statistics_of(exact, [&](std::size_t draw) {
    ProductExperiment e = first;
    e.a.x = normals("dy " + std::to_string(draw), kShape), e.b.x = normals("x " + std::to_string(draw), kShape);
    const std::vector<double> right = product(e.a.x, e.b.x);
    std::vector<double> value = product(drawn_values(e.a, e, draw), drawn_values(e.b, e, draw));
    const double factor = norm(exact) / norm(right);
    for (std::size_t i = 0; i < value.size(); ++i) value[i] = exact[i] + (value[i] - right[i]) * factor;
    return value;
  });
  expect_row("fresh batches, fixed signs", statistics, {3.2e-2, 2.1e-3, kNone, 3.1e-5, kNone});
  const Figure bias = statistics.squared_bias();
  expect_published({"fresh batches, fixed signs: squared bias, within two errors", 0, 2 * bias.se}, bias.value);
}

}  // namespace
}  // namespace halfulp::reproduce

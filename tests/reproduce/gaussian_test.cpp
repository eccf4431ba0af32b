// Published figures of quantizers on a standard normal variable, measured again on 4,194,304 values.
// Sources: Quartet II (arXiv:2601.22813) has 9.0e-3, 7.6e-3, 12.4e-3 and 23.5e-3 for NVFP4 to nearest, with four over
// six, in tiles and rounded stochastically, and 9.0e-3 with shrinkage .0079 for amax to 6.07; Quartet
// (arXiv:2505.14669) has 2.77e-2 for MXFP4 at three quarters. The figures below are an independent program's, from the
// recipes' formulas.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/analysis/error.h"
#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipes.h"
#include "tests/reproduce/quantizers.h"
#include "tests/reproduce/side_by_side.h"

namespace halfulp::reproduce {
namespace {

constexpr Matrix kShape{.rows = 2048, .cols = 2048};
constexpr uint64_t kSeed = 1;

const std::vector<float>& gaussians() {
  static const std::vector<float> kValues = normals("gaussian", kShape);
  return kValues;
}

// A quantizer as a row of the catalog and what is different, and its published figures.
struct PublishedRow {
  std::string_view name;
  const Recipe* like;
  Fields fields;
  double rel_mse;
  double rate_bits;
  double sqnr_db;
  double shrinkage;
};

constexpr const Recipe& kTe = recipe_named("nvfp4/te");
constexpr const Recipe& k4over6 = recipe_named("nvfp4/te-4over6-mse-256");
constexpr std::string_view kStochastic = "stochastic";

const std::vector<PublishedRow> kPublished{
    {"nvfp4", &kTe, {}, 9.044e-3, 3.394, 20.44, .0046},
    {"nvfp4_4over6", &k4over6, {}, 7.573e-3, 3.522, 21.21, .0034},
    {"nvfp4_tiles", &recipe_named("nvfp4/te-2d"), {}, 1.246e-2, 3.163, 19.04, .0091},
    {"nvfp4_tiles_4over6", &recipe_named("nvfp4/fouroversix-mse-2d"), {}, 1.244e-2, 3.164, 19.05, .0090},
    {"nvfp4_to_6_07", &kTe, {{"d", "a * (S_enc * (0.93 * 17 / 16 / 6))"}}, 8.98e-3, 3.400, 20.47, .0078},
    {"nvfp4_to_6_45", &kTe, {{"d", "a * (S_enc * (0.93 / 6))"}}, 9.86e-3, 3.332, 20.06, .0255},
    {"nvfp4_stochastic_headroom", &kTe, stochastic_with_headroom(), 2.354e-2, 2.704, 16.28, .0001},
    {"nvfp4_stochastic", &kTe, {{"rounding", kStochastic}}, 1.886e-2, 2.864, 17.24, .0033},
    {"nvfp4_blocks_of_32", &kTe, {{"block", "1x32"}}, 1.032e-2, 3.299, 19.86, .0062},
    {"nvfp4_blocks_of_8", &kTe, {{"block", "1x8"}}, 7.30e-3, 3.549, 21.37, .0030},
    {"mxfp4_floor", &recipe_named("mxfp4/ocp"), {}, 1.325e-2, 3.119, 18.78, .0198},
    {"mxfp4_up", &recipe_named("mxfp4/round-up"), {}, 1.329e-2, 3.117, 18.76, .0100},
    {"mxfp4_three_quarters",
     &recipe_named("mxfp4/tseng"),
     {{"rounding", "nearest-even"}},
     1.389e-2,
     3.085,
     18.57,
     .0090},
    {"mxfp4_up_stochastic", &recipe_named("mxfp4/round-up"), {{"rounding", kStochastic}}, 2.706e-2, 2.604, 15.68, 0},
    {"mxfp4_three_quarters_stochastic", &recipe_named("mxfp4/tseng"), {}, 2.824e-2, 2.573, 15.49, -.0001},
    {"mxfp8_floor", &recipe_named("mxfp8/ocp"), {}, 8.66e-4, 5.087, 30.62, .0028},
    {"mxfp8_up", &recipe_named("mxfp8/te"), {}, 7.04e-4, 5.236, 31.53, .0007},
    {"mxfp8_e5m2_floor", &recipe_named("mxfp8/ocp-e5m2"), {}, 2.92e-3, 4.21, 25.35, .0048},
    {"mxfp8_e5m2_up", &recipe_named("mxfp8/te-e5m2"), {}, 2.79e-3, 4.24, 25.54, .0028},
    {"bf16", &recipe_named("bf16"), {}, 2.762e-6, 9.233, 55.59, 0},
    {"bf16_stochastic", &recipe_named("bf16"), {{"rounding", kStochastic}}, 5.525e-6, 8.733, 52.58, 0},
};

Json figures_of(const Recipe& recipe) {
  ErrorSums sums(recipe, ErrorDetail::summary);
  sums.add<float>(tensor_scale(recipe, largest_magnitude(recipe, 0, gaussians())), kShape, gaussians(),
                  {.seed = kSeed});
  return sums.figures();
}

class Gaussian : public testing::TestWithParam<PublishedRow> {};

// The standard error of rel_mse is 0.08%. 1% of it is 0.0072 bits and 0.043 dB; half a unit of the last digit published
// comes on top.
TEST_P(Gaussian, HasThePublishedFigures) {
  const PublishedRow& row = GetParam();
  const Json json = figures_of(with_fields(*row.like, row.fields));
  const double rel_mse = json.at("rel_mse"), shrinkage = json.at("shrinkage");
  const double se = json.at("se").at("shrinkage");
  char line[256];
  std::snprintf(line, sizeof line, "%-32.*s rel_mse %.4e (published %.4e), shrinkage %.6f +- %.6f (published %.4f)",
                int(row.name.size()), row.name.data(), rel_mse, row.rel_mse, shrinkage, se, row.shrinkage);
  report(line);
  EXPECT_NEAR(rel_mse / row.rel_mse, 1, 0.01);
  EXPECT_NEAR(json.at("rate_bits").get<double>(), row.rate_bits, 0.0072 + 0.005);
  EXPECT_NEAR(json.at("sqnr_db").get<double>(), row.sqnr_db, 0.043 + 0.005);
  EXPECT_NEAR(shrinkage, row.shrinkage, 3 * se + 0.5e-4);
}

INSTANTIATE_TEST_SUITE_P(Published, Gaussian, testing::ValuesIn(kPublished),
                         [](const auto& instance) { return std::string(instance.param.name); });

// The published row draws other bits for each of the two scales, so that the smaller error is the smaller of two
// independent ones. The catalog's recipes round both with the same bits, which gives 1.478e-2.
TEST(Gaussian, FourOverSixRoundedStochasticallyWithBitsForEachScaleHasThePublishedError) {
  const std::vector<float> q = stochastic_four_over_six(kShape, gaussians(), kSeed, 0, 1);
  double ee = 0, ex = 0, xx = 0;
  for (std::size_t i = 0; i < q.size(); ++i) {
    const double x = gaussians()[i], e = double(q[i]) - x;
    ee += e * e, ex += e * x, xx += x * x;
  }
  expect_published({"stochastic four over six, rel_mse", 1.433e-2, 1.433e-4}, ee / xx);
  // The standard error is that of the catalog's recipe.
  expect_published({"stochastic four over six, shrinkage", 0.0036, 3 * 7.6e-5 + 0.5e-4}, -ex / xx);
}

double clipped(const Recipe& recipe) { return figures_of(recipe).at("clipped").get<double>(); }

// Half a unit of the published share's last digit, and four standard errors of a share of so many independent elements.
void expect_share(const char* what, double share, double published, double half_unit) {
  expect_published({what, published, half_unit + 4 * std::sqrt(published / double(kShape.elements()))}, share);
}

TEST(Gaussian, FloorClipsThePublishedShareOfMxfp8) {
  expect_share("share that mxfp8/ocp clips", clipped(recipe_named("mxfp8/ocp")), 0.0085, 0.00005);
}

TEST(Gaussian, FloorClipsThePublishedShareOfMxfp4) {
  expect_share("share that mxfp4/ocp clips", clipped(recipe_named("mxfp4/ocp")), 0.0233, 0.00005);
}

TEST(Gaussian, RoundingUpClipsNothing) {
  expect_published({"share that mxfp8/te clips", 0, 0}, clipped(recipe_named("mxfp8/te")));
}

}  // namespace
}  // namespace halfulp::reproduce

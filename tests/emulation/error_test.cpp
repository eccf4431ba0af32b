// The figures of emulation/analysis/error.h against their definitions, computed plainly in long double from the values
// that dequantize() gives.

#include "emulation/analysis/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipe_fields.h"
#include "emulation/blocks/recipes.h"
#include "lib/random_values.h"
#include "tests/emulation/quantized.h"

namespace halfulp {
namespace {

using Real = long double;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr double kZ95 = 1.959963984540054;
// Squares and products of doubles are rounded once each and then summed exactly, so sums are good to an ulp of each
// addend, and the figures to a few.
constexpr double kRelative = 1e-14;

std::vector<float> normals(std::size_t count, uint64_t seed = 1) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = float(normal(seed, 0, i));
  return x;
}

// Rows of very different sizes, so that nothing is a mean of like blocks.
std::vector<float> uneven(std::size_t count) {
  std::vector<float> x = normals(count, 2);
  for (std::size_t i = 0; i < count; ++i) x[i] *= float(1 + i / 64 % 7);
  return x;
}

const Recipe& recipe_of(std::string_view name) { return kRecipes[std::size_t(find_recipe(name))]; }

// As many rows as a block has; where it has whole rows or far more than 16, rows of 32 or the block's short columns.
Matrix shape_of(const Recipe& recipe, std::size_t count) {
  const bool by_rows = recipe.block.cols == Extent::kWhole;
  const uint64_t rows = by_rows ? count / 32 : recipe.block.rows > 16 ? count / 2 : uint64_t(recipe.block.rows);
  return {.rows = rows, .cols = rows == 0 ? 0 : count / rows};
}

std::vector<float> there_and_back(const Recipe& recipe, std::span<const float> x) {
  return quantized(recipe, tensor_scale_of(recipe, x), shape_of(recipe, x.size()), x).values();
}

Json figures(std::string_view name, std::span<const float> x, ErrorDetail detail = ErrorDetail::summary) {
  const Recipe& recipe = recipe_of(name);
  ErrorSums sums(recipe, detail);
  sums.add(tensor_scale_of(recipe, x), shape_of(recipe, x.size()), x);
  return sums.figures();
}

double figure(const Json& json, const std::string& name) { return to_double(json.at(name)); }

// Sums of one cluster, or of all.
struct Sums {
  Real ee = 0, xx = 0, ex = 0, e = 0, n = 0;
  Sums& operator+=(const Sums& o) {
    ee += o.ee, xx += o.xx, ex += o.ex, e += o.e, n += o.n;
    return *this;
  }
};

// Where each element's cluster is: its block, or its run of 32.
std::size_t cluster_of(const Recipe& recipe, const Matrix& shape, std::size_t i) {
  if (!has_scale(recipe)) return i / 32;
  return i / shape.cols / uint64_t(recipe.block.rows) * scale_grid(recipe, shape).cols +
         i % shape.cols / block_cols(recipe, shape);
}

std::vector<Sums> clusters(std::string_view name, std::span<const float> x) {
  const Recipe& recipe = recipe_of(name);
  const Matrix shape = shape_of(recipe, x.size());
  const std::vector<float> q = there_and_back(recipe, x);
  std::vector<Sums> all(cluster_of(recipe, shape, x.size() - 1) + 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Real e = Real(q[i]) - x[i];
    all[cluster_of(recipe, shape, i)] += {.ee = e * e, .xx = Real(x[i]) * x[i], .ex = e * x[i], .e = e, .n = 1};
  }
  return all;
}

Sums total(const std::vector<Sums>& all) {
  Sums sum;
  for (const Sums& s : all) sum += s;
  return sum;
}

// A figure as a function of the sums, by name.
struct Definition {
  std::string_view name;
  std::function<Real(const Sums&)> of;
};

Real rel_mse(const Sums& s) { return s.ee / s.xx; }
Real shrinkage(const Sums& s) { return -s.ex / s.xx; }

const std::vector<Definition> kDefinitions{
    {"rel_mse", rel_mse},
    {"shrinkage", shrinkage},
    {"residual", [](const Sums& s) { return rel_mse(s) - shrinkage(s) * shrinkage(s); }},
    {"mean_error", [](const Sums& s) { return s.e / s.n; }},
    {"sqnr_db", [](const Sums& s) { return -10 * std::log10(rel_mse(s)); }},
    {"rate_bits", [](const Sums& s) { return -0.5L * std::log2(rel_mse(s)); }},
};

class Figure : public testing::TestWithParam<std::string_view> {};

TEST_P(Figure, IsItsDefinition) {
  const std::vector<float> x = uneven(1 << 13);
  const Sums sums = total(clusters(GetParam(), x));
  const Json json = figures(GetParam(), x);
  for (const Definition& definition : kDefinitions) {
    // A mean error is a difference of numbers far larger than itself.
    const double tolerance = definition.name == "mean_error" ? 1e-15 : kRelative;
    const double expected = double(definition.of(sums));
    EXPECT_NEAR(figure(json, std::string(definition.name)), expected, tolerance * std::fmax(1e-6, std::fabs(expected)))
        << definition.name;
  }
}

// The spread of a figure over clusters, by another way than the delta method: leave each cluster out in turn.
double jackknife_error(const Definition& definition, const std::vector<Sums>& all) {
  const Sums sums = total(all);
  std::vector<Real> without;
  Real mean = 0;
  for (const Sums& s : all) {
    without.push_back(definition.of({sums.ee - s.ee, sums.xx - s.xx, sums.ex - s.ex, sums.e - s.e, sums.n - s.n}));
    mean += without.back() / Real(all.size());
  }
  Real squares = 0;
  for (const Real w : without) squares += (w - mean) * (w - mean);
  const Real c = Real(all.size());
  return double(std::sqrt((c - 1) / c * squares));
}

// The two differ by terms of the order of 1 / clusters.
TEST_P(Figure, HasTheStandardErrorOfTheJackknife) {
  const std::vector<float> x = uneven(1 << 15);
  const std::vector<Sums> all = clusters(GetParam(), x);
  const Json json = figures(GetParam(), x);
  for (const Definition& definition : kDefinitions) {
    const double got = json.at("se").at(definition.name).get<double>();
    EXPECT_NEAR(got / jackknife_error(definition, all), 1, 5.0 / double(all.size())) << definition.name;
  }
}

std::vector<std::string_view> all_names() {
  std::vector<std::string_view> names;
  for (const Recipe& recipe : kRecipes) names.push_back(recipe.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, Figure, testing::ValuesIn(all_names()),
                         [](const auto& instance) { return test_name(instance.param); });

// The delta method by its formula in two passes: first the ratio, then the squares of each cluster's deviation from it.
Real two_pass_error(const std::vector<Sums>& all, Real Sums::*numerator, Real Sums::*denominator) {
  const Sums sums = total(all);
  const Real ratio = sums.*numerator / sums.*denominator;
  Real squares = 0;
  for (const Sums& s : all) {
    const Real deviation = s.*numerator - ratio * s.*denominator;
    squares += deviation * deviation;
  }
  const Real c = Real(all.size());
  return std::sqrt(c / (c - 1) * squares) / (sums.*denominator);
}

TEST(StandardError, OfRelMseIsTheDeltaMethods) {
  const std::vector<float> x = uneven(1 << 13);
  const double expected = double(two_pass_error(clusters("nvfp4/te", x), &Sums::ee, &Sums::xx));
  EXPECT_NEAR(figures("nvfp4/te", x).at("se").at("rel_mse").get<double>() / expected, 1, 1e-12);
}

TEST(StandardError, OfTheMeanErrorIsTheDeltaMethods) {
  const std::vector<float> x = uneven(1 << 13);
  const double expected = double(two_pass_error(clusters("mxfp8/te", x), &Sums::e, &Sums::n));
  EXPECT_NEAR(figures("mxfp8/te", x).at("se").at("mean_error").get<double>() / expected, 1, 1e-12);
}

// Resampling whole blocks: 1000 resamples know a standard error to 1/sqrt(2000) = 2.2%; 4 of those.
TEST(StandardError, OfRelMseIsTheBootstraps) {
  const std::vector<float> x = uneven(1 << 13);
  const std::vector<Sums> all = clusters("nvfp4/te", x);
  constexpr int kResamples = 1000;
  Real sum = 0, squares = 0;
  for (uint64_t resample = 0; resample < kResamples; ++resample) {
    Sums sums;
    for (std::size_t i = 0; i < all.size(); ++i) sums += all[random_word(7, resample, i) % all.size()];
    sum += rel_mse(sums);
    squares += rel_mse(sums) * rel_mse(sums);
  }
  const double bootstrap = double(std::sqrt(squares / kResamples - sum / kResamples * sum / kResamples));
  EXPECT_NEAR(figures("nvfp4/te", x).at("se").at("rel_mse").get<double>() / bootstrap, 1, 0.09);
}

// Blocks whose elements clip, by up to 12%: shrinkage is most of the error here, and of its uncertainty.
TEST(StandardError, OfTheResidualCountsTheShrinkages) {
  std::vector<float> x(1 << 15);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = float((uniform(3, 0, i) < 0.5 ? -1 : 1) * (384 + 127 * uniform(3, 1, i) * uniform(3, 2, i / 32)));
  const Definition& residual = kDefinitions[2];
  ASSERT_EQ(residual.name, "residual");
  const double got = figures("mxfp8/ocp", x).at("se").at("residual").get<double>();
  EXPECT_NEAR(got / jackknife_error(residual, clusters("mxfp8/ocp", x)), 1, 5e-3);
}

TEST(StandardError, OfOneClusterIsUnknown) {
  const Json json = figures("nvfp4/te", normals(16));
  for (const auto& [name, value] : json.at("se").items()) EXPECT_TRUE(std::isnan(to_double(value))) << name;
}

TEST(Error, ResidualAndShrinkageAddUpToRelMse) {
  const Json json = figures("nvfp4/te", uneven(1 << 13));
  const double m = figure(json, "shrinkage");
  EXPECT_NEAR(figure(json, "residual") + m * m, figure(json, "rel_mse"), 1e-16);
}

TEST(Error, LargestErrorIsOverAllElements) {
  const std::vector<float> x = uneven(1 << 13);
  const std::vector<float> q = there_and_back(recipe_named("nvfp4/te"), x);
  double expected = 0;
  for (std::size_t i = 0; i < x.size(); ++i) expected = std::fmax(expected, std::fabs(double(q[i]) - double(x[i])));
  EXPECT_EQ(figure(figures("nvfp4/te", x), "max_abs_error"), expected);
}

// 448 is the largest value of a block whose scale is 1; 449 and 511 are beyond.
TEST(Error, ClippedCountsWhatIsBeyondTheBlocksLargestValue) {
  std::vector<float> x(32, 1);
  x[0] = 511, x[1] = -449, x[2] = 448;
  EXPECT_EQ(figure(figures("mxfp8/ocp", x), "clipped"), 2.0 / 32);
}

TEST(Error, RoundingTheScaleUpClipsNothing) { EXPECT_EQ(figure(figures("mxfp8/te", normals(1 << 15)), "clipped"), 0); }

// 2^-11 is half the smallest step of a block whose scale is 1, and rounds to even, zero; zeros are no dead zone.
TEST(Error, DeadZoneCountsNonzeroElementsThatBecomeZero) {
  std::vector<float> x(32, 0);
  x[0] = 256, x[1] = 0x1p-10f, x[2] = -0x1p-12f, x[3] = 0x1p-9f, x[4] = -0.f;
  EXPECT_EQ(figure(figures("mxfp8/ocp", x), "dead_zone"), 2.0 / 32);
}

TEST(Error, ScaleRangeIsInValuesOfTheScaleFormat) {
  std::vector<float> x(64, 1);
  std::fill(x.begin() + 32, x.end(), 448.f);
  const Json json = figures("mxfp8/te", x);
  EXPECT_EQ(std::pair(figure(json, "scale_min"), figure(json, "scale_max")), std::pair(0x1p-8, 1.0));
}

TEST(Error, ElementwiseRecipesHaveNoScales) {
  const Json json = figures("bf16", normals(64));
  EXPECT_TRUE(json.at("scale_min").is_null() && json.at("scale_max").is_null() && !json.contains("crest"));
}

TEST(Error, ScaleSharesCountTheEndsOfTheFormat) {
  std::vector<float> x(4 * 32, 0);
  x[32] = kNaN, x[64] = 0x1p127f;
  const Json scales = figures("mxfp8/ocp", x).at("scales");
  EXPECT_EQ(figure(scales, "at_min"), 2.0 / 4);
  EXPECT_EQ(figure(scales, "nan"), 1.0 / 4);
}

// Blocks of 16 with k ones have the crest factor sqrt(16/k).
TEST(Error, CrestFactorIsTheLargestOverTheRootMeanSquare) {
  for (int k = 1; k <= 16; ++k) {
    std::vector<float> x(16, 0);
    std::fill_n(x.begin(), k, -3.f);
    const double expected = std::sqrt(16.0 / k);
    const double got = figure(figures("nvfp4/te", x).at("crest"), "p50");
    EXPECT_TRUE(got <= expected * (1 + 1e-7) && got > expected * (1 - 0x1p-10)) << k << ": " << got;
  }
}

TEST(Error, CrestQuantilesAreThoseOfTheSortedBlocks) {
  const std::vector<float> x = uneven(1 << 14);
  std::vector<double> crests;
  for (std::size_t b = 0; b < x.size(); b += 16) {
    double amax = 0, squares = 0;
    for (std::size_t i = b; i < b + 16; ++i) amax = std::fmax(amax, std::fabs(x[i])), squares += double(x[i]) * x[i];
    crests.push_back(amax / std::sqrt(squares / 16));
  }
  std::ranges::sort(crests);
  const Json json = figures("nvfp4/te", x).at("crest");
  for (const auto& [name, rank] :
       {std::pair{"p05", crests.size() / 20}, {"p50", crests.size() / 2}, {"max", crests.size() - 1}})
    EXPECT_NEAR(figure(json, name) / crests[rank], 1, 0x1p-10) << name;
}

// Codes 0x40 and 0xc0 of E4M3 in equal shares: one bit, and Miller-Madow's (2 - 1) / (2 * 64) nats.
TEST(Error, EntropyOfTwoEqualCodesIsABit) {
  std::vector<float> x(64, 1);
  for (std::size_t i = 0; i < x.size(); i += 2) x[i] = -1;
  const Json codes = figures("mxfp8/te", x).at("codes");
  EXPECT_NEAR(figure(codes, "entropy_bits"), 1 + 1 / (128 * std::numbers::ln2), 1e-15);
  EXPECT_EQ(codes.at("used"), 2);
}

// 2^32 counts would be 32 GiB.
TEST(Error, CodesOfWideFormatsAreNotCounted) {
  for (const std::string_view element : {"f32", "tf32"}) {
    Recipe wide = recipe_named("bf16");
    set_field(wide, "element", element);
    ErrorSums sums(wide, ErrorDetail::summary);
    const std::vector<float> x{1, 1 + 0x1p-20f};
    sums.add<float>({}, {.rows = 1, .cols = x.size()}, x);
    EXPECT_TRUE(sums.figures().at("codes").is_null()) << element;
    EXPECT_EQ(sums.figures().at("elements"), 2);
  }
}

TEST(Error, ShareAtTheLargestCodeCountsBothSigns) {
  std::vector<float> x(16, 1);
  x[0] = 6, x[1] = -6;
  EXPECT_EQ(figure(figures("nvfp4/te", x).at("codes"), "at_max"), 2.0 / 16);
}

// Wilson's interval ends where a share p differs from the observed one by z of its own standard deviations.
TEST(Error, IntervalOfAShareIsWilsons) {
  std::vector<float> x(32 * 8, 1);
  for (std::size_t i = 0; i < 5; ++i) x[i] = 511;
  const Json json = figures("mxfp8/ocp", x);
  const double n = double(x.size()), share = figure(json, "clipped");
  ASSERT_EQ(share, 5 / n);
  for (const Json& end : json.at("ci95").at("clipped")) {
    const double p = end.get<double>();
    EXPECT_NEAR(std::fabs(p - share), kZ95 * std::sqrt(p * (1 - p) / n), 1e-14);
  }
}

TEST(Error, IntervalOfAShareContainsIt) {
  const Json json = figures("mxfp8/ocp", uneven(1 << 13));
  EXPECT_LT(json.at("ci95").at("clipped").at(0).get<double>(), figure(json, "clipped"));
  EXPECT_GT(json.at("ci95").at("clipped").at(1).get<double>(), figure(json, "clipped"));
}

TEST(Error, MeanErrorBySignIsOverItsElements) {
  const std::vector<float> x = uneven(1 << 13);
  const std::vector<float> q = there_and_back(recipe_named("nvfp4/te"), x);
  Real error = 0;
  uint64_t count = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] < 0) error += Real(q[i]) - x[i], ++count;
  const Json negative = figures("nvfp4/te", x).at("by_sign").at("negative");
  EXPECT_EQ(negative.at("elements"), count);
  EXPECT_NEAR(figure(negative, "mean_error"), double(error / Real(count)), 1e-15);
}

TEST(Error, StrataDivideTheNonzeroElements) {
  std::vector<float> x = uneven(1 << 13);
  x[5] = 0, x[77] = -0.f;
  const Json json = figures("nvfp4/te", x, ErrorDetail::strata);
  for (const char* strata : {"by_sign", "by_binade", "by_eighth"}) {
    uint64_t elements = 0;
    for (const Json& stratum : json.at(strata)) elements += stratum.at("elements").get<uint64_t>();
    EXPECT_EQ(elements, x.size() - 2) << strata;
  }
}

// Thirds: 3 is in binade 1 and in the fifth eighth (from 0: 4) of it; 2^-140 is subnormal in FP32.
TEST(Error, StrataAreNamedByBinadeAndEighth) {
  const std::vector<float> x{3, -3, 0x1p-140f};
  const Json json = figures("bf16", x, ErrorDetail::strata);
  EXPECT_EQ(json.at("by_binade").at("1").at("elements"), 2);
  EXPECT_EQ(json.at("by_binade").at("-140").at("elements"), 1);
  EXPECT_EQ(json.at("by_eighth").at("4").at("elements"), 2);
}

TEST(Error, HistogramCountsEveryBlocksScale) {
  const Json json = figures("nvfp4/te", uneven(1 << 13), ErrorDetail::strata);
  uint64_t blocks = 0;
  for (const Json& n : json.at("scales").at("histogram")) blocks += n.get<uint64_t>();
  EXPECT_EQ(blocks, (1u << 13) / 16);
}

// What is left out of the sums leaves the others' figures as they were.
TEST(Error, ElementsThatAreNotFiniteAreCountedAndLeftOut) {
  std::vector<float> x = normals(64), same = x;
  x[3] = kNaN, x[40] = kInf, x[41] = -kInf;
  const Json json = figures("bf16", x);
  same[3] = same[40] = same[41] = 0;
  const Json without = figures("bf16", same);
  EXPECT_EQ(json.at("nonfinite_in"), 3);
  EXPECT_EQ(json.at("nonfinite_out"), 0);
  EXPECT_EQ(json.at("rel_mse"), without.at("rel_mse"));
}

TEST(Error, FiniteElementsThatOverflowAreCounted) {
  const Json json = figures("f16", std::vector<float>{65504, 65519, 65520, -1e30f});
  EXPECT_EQ(json.at("nonfinite_in"), 0);
  EXPECT_EQ(json.at("nonfinite_out"), 2);
  EXPECT_EQ(figure(json, "clipped"), 3.0 / 4);
}

TEST(Error, SharesAreOfTheFiniteElements) {
  EXPECT_EQ(figure(figures("f16", std::vector<float>{1, 65505, kNaN, kInf}), "clipped"), 1.0 / 2);
}

TEST(Error, ANaNBlockOfOcpLosesItsFiniteElements) {
  std::vector<float> x(64, 1);
  x[0] = kNaN;
  const Json json = figures("mxfp8/ocp", x);
  EXPECT_EQ(json.at("nonfinite_in"), 1);
  EXPECT_EQ(json.at("nonfinite_out"), 31);
  EXPECT_EQ(figure(json, "rel_mse"), 0);
}

// Nothing was measured, so nothing is claimed.
TEST(Error, OfNothingIsUnknown) {
  for (const Recipe& recipe : kRecipes) {
    const Json json = figures(recipe.name, {});
    EXPECT_EQ(json.at("elements"), 0);
    for (const char* name : {"rel_mse", "sqnr_db", "rate_bits", "shrinkage", "mean_error", "clipped", "dead_zone"})
      EXPECT_TRUE(std::isnan(figure(json, name))) << recipe.name << ' ' << name;
  }
}

// A publisher that divides by the tensor's scale makes NaN of zeros, which are left out.
TEST(Error, OfZerosIsNone) {
  for (const Recipe& recipe : kRecipes) {
    const Json json = figures(recipe.name, std::vector<float>(16 * 128, 0));
    if (json.at("nonfinite_out") == json.at("elements")) continue;
    for (const char* name : {"rel_mse", "shrinkage", "residual"}) EXPECT_EQ(figure(json, name), 0) << recipe.name;
    EXPECT_EQ(figure(json, "sqnr_db"), HUGE_VAL) << recipe.name;
    EXPECT_EQ(to_double(json.at("se").at("rel_mse")), 0) << recipe.name;
    EXPECT_EQ(figure(json, "mean_error"), 0) << recipe.name;
    EXPECT_EQ(figure(json, "dead_zone"), 0) << recipe.name;
  }
}

// Of 2^53 + 1 FP64 knows only 2^53, where bf16 has it too.
TEST(Error, OfIntegersBeyondFp64IsExact) {
  ErrorSums sums(recipe_named("bf16"), ErrorDetail::summary);
  const std::vector<int64_t> x{(int64_t{1} << 53) + 1, INT64_MAX};
  sums.add<int64_t>({}, {.rows = 1, .cols = x.size()}, x);
  EXPECT_EQ(figure(sums.figures(), "max_abs_error"), 1);
  EXPECT_EQ(figure(sums.figures(), "mean_error"), 0);
}

TEST(Error, OfValuesThatTheRecipeHoldsIsNoneWithInfiniteSqnr) {
  const Json json = figures("bf16", std::vector<float>{1, -2, 3});
  EXPECT_EQ(figure(json, "rel_mse"), 0);
  EXPECT_EQ(figure(json, "sqnr_db"), HUGE_VAL);
  EXPECT_FALSE(std::signbit(figure(json, "shrinkage"))) << "a zero prints as -0";
}

TEST(Error, ADoubleIsRoundedOnce) {
  // 1 + 2^-8 + 2^-40 is above the tie between two BF16 values; through FP32 it would be the tie.
  const std::vector<double> x{1 + 0x1p-8 + 0x1p-40};
  ErrorSums sums(recipe_named("bf16"), ErrorDetail::summary);
  sums.add<double>({}, {.rows = 1, .cols = x.size()}, x);
  EXPECT_EQ(figure(sums.figures(), "mean_error"), 1 + 0x1p-7 - x[0]);
}

TEST(Error, AnIntegerIsRoundedOnce) {
  // 2^24 + 2^16 + 1 is above a tie; as FP32 it would be the tie, 2^24 + 2^16.
  const std::vector<int64_t> x{(1 << 24) + (1 << 16) + 1};
  ErrorSums sums(recipe_named("bf16"), ErrorDetail::summary);
  sums.add<int64_t>({}, {.rows = 1, .cols = x.size()}, x);
  EXPECT_EQ(figure(sums.figures(), "mean_error"), double((1 << 24) + (1 << 17) - x[0]));
}

TEST(Error, UnsignedIntegersAreNotNegative) {
  const std::vector<uint64_t> x{~uint64_t{0}};
  ErrorSums sums(recipe_named("bf16"), ErrorDetail::summary);
  sums.add<uint64_t>({}, {.rows = 1, .cols = x.size()}, x);
  EXPECT_EQ(sums.figures().at("by_sign").at("positive").at("elements"), 1);
}

// The parts of a tensor, added up in any grouping and order, are the tensor.
TEST(Error, DoesNotDependOnHowTheWorkWasDivided) {
  const std::vector<float> x = uneven(1 << 13);
  const Recipe& recipe = recipe_named("nvfp4/te");
  const TensorScale scale = tensor_scale_of(recipe, x);
  std::vector<ErrorSums> parts;
  for (std::size_t begin = 0; begin < x.size(); begin += 1024) {
    parts.emplace_back(recipe, ErrorDetail::strata)
        .add<float>(scale, {.rows = 1, .cols = 1024}, std::span(x).subspan(begin, 1024));
  }
  ErrorSums backwards(recipe, ErrorDetail::strata), pairs(recipe, ErrorDetail::strata);
  for (std::size_t i = parts.size(); i-- > 0;) backwards.merge(parts[i]);
  for (std::size_t i = 0; i < parts.size(); i += 2) {
    ErrorSums pair = parts[i + 1];
    pair.merge(parts[i]);
    pairs.merge(pair);
  }
  const std::string whole = dump_json(figures("nvfp4/te", x, ErrorDetail::strata));
  EXPECT_EQ(dump_json(backwards.figures()), whole);
  EXPECT_EQ(dump_json(pairs.figures()), whole);
}

// A tile among others, with elements that are left out.
Cluster<float> tile_of(const std::vector<float>& x, const std::vector<float>& q) {
  return {.x = &x[3], .q = &q[3], .rows = 7, .cols = 9, .stride = 16};
}

std::vector<float> tile_values() {
  std::vector<float> x = uneven(7 * 16);
  x[5] = 0, x[20] = kNaN, x[37] = -0.f, x[70] = 0x1p-140f, x[71] = -0x1.8p-149f;
  return x;
}

// What threads of a GPU add up, each for one element, against a table.
TEST(Cluster, StrataThatBeginWithItsElementsAreAllOfIt) {
  const std::vector<float> x = tile_values();
  std::vector<float> q = there_and_back(recipe_named("bf16"), x);
  q[40] = kInf;
  const Cluster<float> tile = tile_of(x, q);
  std::map<std::pair<int, int>, std::pair<double, int>> got, expected;  // (kind, binade, eighth or sign): errors
  for (uint64_t row = 0; row < tile.rows; ++row) {
    for (uint64_t col = 0; col < tile.cols; ++col) {
      const double value = tile.x[row * 16 + col], e = double(tile.q[row * 16 + col]) - value;
      for (int kind = 0; kind < 3; ++kind) {
        const StratumSum sum = sum_of_begun_stratum(tile, StratumKind(kind), row, col);
        if (sum.of[StratumSum::count] > 0) {
          const bool is_new = got.try_emplace({kind, stratum_of(StratumKind(kind), value)}, sum.of[StratumSum::error],
                                              int(sum.of[StratumSum::count]))
                                  .second;
          EXPECT_TRUE(is_new) << row << ' ' << col;
        }
      }
      if (value == 0 || !std::isfinite(value) || !std::isfinite(e)) continue;
      int exponent = 0;
      const double mantissa = std::frexp(std::fabs(value), &exponent);
      const int strata[] = {value < 0, 2 + int((mantissa - 0.5) * 16), 10 + 1074 + exponent - 1};
      for (int kind = 0; kind < 3; ++kind) {
        auto& [error, count] = expected[{kind, strata[kind]}];
        error += e, ++count;
      }
    }
  }
  EXPECT_EQ(got, expected);
}

// Zeros of both signs are two scales, in whatever order they come.
TEST(Error, LeastAndGreatestScaleTellZerosApart) {
  for (const float x : {0.f, -0.f, 1.f, -1.f, kInf, -kInf, 0x1p-149f})
    EXPECT_EQ(bit_cast<uint32_t>(number_of_rank(rank_of(x))), bit_cast<uint32_t>(x));
  EXPECT_LT(rank_of(-kInf), rank_of(-1.f));
  EXPECT_LT(rank_of(-1.f), rank_of(-0.f));
  EXPECT_LT(rank_of(-0.f), rank_of(0.f));
  EXPECT_LT(rank_of(0.f), rank_of(kInf));
  EXPECT_GT(rank_of(-kInf), 0u);
}

// A device whose sums can be told from the CPU's: each element is clipped.
void tally_visibly(const ErrorPart& part, std::span<const float>, const Randomness&, ErrorTally& tally) {
  tally.elements += part.shape.elements();
  tally.clipped += part.shape.elements();
}

double share_clipped(const Recipe& recipe, std::size_t count) {
  ErrorSums sums(recipe, ErrorDetail::summary,
                 {.quantize = quantize<float>, .dequantize = dequantize, .tally_errors = tally_visibly});
  const std::vector<float> x(count, 1);
  sums.add<float>(tensor_scale(recipe, 1), {.rows = 1, .cols = x.size()}, x);
  return figure(sums.figures(), "clipped");
}

TEST(Error, IsTalliedByTheDevice) { EXPECT_EQ(share_clipped(recipe_named("mxfp8/te"), 32), 1); }

TEST(Error, OfClustersTooLargeForADeviceIsTalliedByTheCpu) {
  const Recipe& by_row = recipe_of("fp8/torchao-rowwise");
  EXPECT_EQ(share_clipped(by_row, kMaxDeviceCluster), 1);
  EXPECT_EQ(share_clipped(by_row, 2 * kMaxDeviceCluster), 0);
}

TEST(Error, OfDoublesIsTalliedByTheCpu) {
  ErrorSums sums(recipe_named("bf16"), ErrorDetail::summary,
                 {.quantize = nullptr, .dequantize = dequantize, .tally_errors = tally_visibly});
  sums.add<double>({}, {.rows = 1, .cols = 2}, std::vector<double>{1, 2});
  EXPECT_EQ(figure(sums.figures(), "clipped"), 0);
}

}  // namespace
}  // namespace halfulp

// Published figures of recipes on a standard normal variable, measured again on 4,194,304 values.
// Sources: Quartet II (arXiv 2601.22813) has 9.0e-3 and 3.394 bits for nvfp4/te; the other figures are an independent
// program's, from the recipes' formulas.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/analysis/error.h"
#include "emulation/blocks/quantize.h"
#include "lib/random_values.h"
#include "lib/threads.h"

namespace halfulp {
namespace {

constexpr std::size_t kElements = std::size_t{1} << 22;
constexpr std::size_t kChunk = std::size_t{1} << 16;
constexpr uint64_t kSeed = 1;

const std::vector<float>& normals() {
  static const std::vector<float> kValues = [] {
    std::vector<float> x(kElements);
    parallel_for(kElements / kChunk, default_threads(), [&](std::size_t chunk) {
      for (std::size_t i = chunk * kChunk; i < (chunk + 1) * kChunk; ++i)
        x[i] = float(normal(kSeed, stream_of("gaussian"), i));
    });
    return x;
  }();
  return kValues;
}

const Json& figures(std::string_view recipe) {
  static std::map<std::string_view, Json> known;
  const auto [place, is_new] = known.try_emplace(recipe);
  if (is_new) {
    const int id = find_recipe(recipe);
    ErrorSums sums(id, ErrorDetail::summary);
    sums.add<float>(tensor_scale_of(id, largest_magnitude(id, 0, normals())), normals());
    place->second = sums.figures();
  }
  return place->second;
}

double figure(std::string_view recipe, const char* name) { return figures(recipe).at(name).get<double>(); }
double error_of(std::string_view recipe, const char* name) { return figures(recipe).at("se").at(name).get<double>(); }

struct Published {
  std::string_view recipe;
  double rel_mse;
  double rate_bits;
  double sqnr_db;
  double shrinkage;
};

class Gaussian : public testing::TestWithParam<Published> {};

// The standard error is 0.08%; published figures have 3 or 4 digits.
TEST_P(Gaussian, RelMseIsThePublishedWithinOnePercent) {
  EXPECT_NEAR(figure(GetParam().recipe, "rel_mse") / GetParam().rel_mse, 1, 0.01);
}

// 1% of rel_mse is 0.0072 bits and 0.043 dB; half a unit of the last digit published comes on top.
TEST_P(Gaussian, RateIsThePublished) {
  EXPECT_NEAR(figure(GetParam().recipe, "rate_bits"), GetParam().rate_bits, 0.0072 + 0.005);
}

TEST_P(Gaussian, SqnrIsThePublished) {
  EXPECT_NEAR(figure(GetParam().recipe, "sqnr_db"), GetParam().sqnr_db, 0.043 + 0.005);
}

TEST_P(Gaussian, ShrinkageIsThePublishedWithinThreeStandardErrors) {
  const auto& [recipe, rel_mse, rate, sqnr, published] = GetParam();
  const double got = figure(recipe, "shrinkage"), se = error_of(recipe, "shrinkage");
  std::printf("%.*s: shrinkage %.6f, standard error %.6f; published %.4f\n", int(recipe.size()), recipe.data(), got, se,
              published);
  EXPECT_NEAR(got, published, 3 * se + 0.5e-4);
}

constexpr Published kPublished[] = {
    {"nvfp4/te", 9.044e-3, 3.394, 20.44, 0.0046},    {"mxfp8/ocp", 8.66e-4, 5.087, 30.62, 0.0028},
    {"mxfp8/te", 7.04e-4, 5.236, 31.53, 0.0007},     {"mxfp8/ocp-e5m2", 2.92e-3, 4.21, 25.35, 0.0048},
    {"mxfp8/te-e5m2", 2.79e-3, 4.24, 25.54, 0.0028}, {"bf16", 2.762e-6, 9.233, 55.59, 0},
};

INSTANTIATE_TEST_SUITE_P(Published, Gaussian, testing::ValuesIn(kPublished), [](const auto& instance) {
  std::string name(instance.param.recipe);
  for (char& c : name)
    if (c == '/' || c == '-') c = '_';
  return name;
});

// 0.85% published: half a unit of its last digit, and four standard errors of a share of so many independent elements.
TEST(Gaussian, FloorClipsThePublishedShare) {
  const double se = std::sqrt(0.0085 / double(kElements));
  EXPECT_NEAR(figure("mxfp8/ocp", "clipped"), 0.0085, 0.00005 + 4 * se);
}

TEST(Gaussian, RoundingUpClipsNothing) { EXPECT_EQ(figure("mxfp8/te", "clipped"), 0); }

}  // namespace
}  // namespace halfulp

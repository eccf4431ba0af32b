// The bias of tensors, and the four causes of their errors, against a definition that shares no code: the nearest of a
// list of values under a scale that is computed here.

#include "emulation/analysis/bias.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "emulation/blocks/recipe_fields.h"
#include "emulation/blocks/recipes.h"
#include "lib/random_values.h"

namespace halfulp {
namespace {

constexpr Matrix kShape{.rows = 64, .cols = 256};

const Recipe& named(std::string_view name) { return kRecipes[std::size_t(find_recipe(name))]; }

// Normal numbers whose size changes from row to row, with zeros, subnormals and one block of zeros.
std::vector<float> uneven(const Matrix& shape) {
  std::vector<float> x(shape.elements());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::ldexp(float(normal(1, 0, i)), -int(i / shape.cols % 8));
  for (std::size_t i = 0; i < x.size(); i += 37) x[i] = 0;
  for (std::size_t i = 5; i < x.size(); i += 101) x[i] = std::ldexp(x[i], -20);
  std::fill_n(x.begin() + 64, 32, 0.0f);
  return x;
}

// A recipe of blocks as this test knows it.
struct Known {
  std::string recipe;
  std::string format;
  std::size_t block;
  long double (*scale)(long double block_amax, long double tensor_amax);
};

// Positive values of a format, and as many again beyond the largest, as its grid goes on.
std::vector<long double> grid_of(const std::string& name) {
  const int mantissa = name == "e2m1" ? 1 : name == "e4m3" ? 3 : 2;
  const int least = name == "e2m1" ? 0 : name == "e4m3" ? -6 : -14;
  std::vector<long double> grid;
  for (int m = 0; m < 1 << mantissa; ++m) grid.push_back(std::ldexp((long double)(m), least - mantissa));
  for (int e = least; e < 24; ++e)
    for (int m = 0; m < 1 << mantissa; ++m)
      grid.push_back(std::ldexp((long double)((1 << mantissa) + m), e - mantissa));
  return grid;
}

// Ties go to the value of even number: significands of neighbours alternate.
long double nearest(const std::vector<long double>& grid, long double x) {
  const auto above = std::upper_bound(grid.begin(), grid.end(), x);
  const std::size_t low = std::size_t(above - grid.begin()) - 1;
  const long double below = x - grid[low], beyond = grid[low + 1] - x;
  if (below != beyond) return below < beyond ? grid[low] : grid[low + 1];
  return grid[low + low % 2];
}

long double e4m3(long double x) {
  static const std::vector<long double> kGrid = grid_of("e4m3");
  return std::min(nearest(kGrid, x), 448.0L);
}

const Known kKnown[] = {
    {"nvfp4/te", "e2m1", 16,
     [](long double a, long double tensor) { return e4m3(a / 6 * (2688 / tensor)) * tensor / 2688; }},
    {"mxfp8/ocp", "e4m3", 32,
     [](long double a, long double) { return a == 0 ? 0 : std::exp2(std::floor(std::log2(a)) - 8); }},
    {"mxfp8/te", "e4m3", 32,
     [](long double a, long double) { return a == 0 ? 0 : std::exp2(std::ceil(std::log2(a / 448))); }},
    {"mxfp4/ocp", "e2m1", 32,
     [](long double a, long double) { return a == 0 ? 0 : std::exp2(std::floor(std::log2(a)) - 2); }},
};

struct Sums {
  long double squared[4] = {}, crossed[4] = {}, values = 0;
};

// What one element adds: under the ideal scale, then under the recipe's, with its dead zone, with its clipping.
void add(const Known& known, const std::vector<long double>& grid, long double x, long double amax, long double scale,
         Sums& sums) {
  const long double max = known.format == "e2m1" ? 6 : 448, size = std::fabs(x);
  const auto error_under = [&](long double s) { return nearest(grid, size / s) * s - size; };
  const long double ideal = amax / max;
  long double e[4];
  e[0] = size == 0 || nearest(grid, size / ideal) == 0 ? 0 : error_under(ideal);
  const long double free = size == 0 ? 0 : error_under(scale);
  e[2] = free;
  e[1] = size > 0 && nearest(grid, size / scale) == 0 ? 0 : free;
  e[3] = size > max * scale ? max * scale - size : free;
  for (int stage = 0; stage < 4; ++stage) {
    sums.squared[stage] += e[stage] * e[stage];
    sums.crossed[stage] += -e[stage] * size;
  }
  sums.values += size * size;
}

Sums by_definition(const Known& known, const std::vector<float>& x) {
  const std::vector<long double> grid = grid_of(known.format);
  long double tensor = 0;
  for (const float value : x) tensor = std::max(tensor, std::fabs((long double)(value)));
  Sums sums;
  for (std::size_t first = 0; first < x.size(); first += known.block) {
    long double amax = 0;
    for (std::size_t i = first; i < first + known.block; ++i) amax = std::max(amax, std::fabs((long double)(x[i])));
    const long double scale = known.scale(amax, tensor);
    for (std::size_t i = first; i < first + known.block; ++i) add(known, grid, x[i], amax, scale, sums);
  }
  return sums;
}

Json figures_of(const Recipe& recipe, const std::vector<float>& x, const Matrix& shape = kShape) {
  BiasSums sums(recipe, ErrorDetail::summary);
  sums.add<float>({.tensor = tensor_scale(recipe, largest_magnitude(recipe, 0, x)),
                   .panel = {.first_row = 0, .first_col = 0, .shape = shape}},
                  x, {.seed = 1});
  return sums.figures();
}

class Causes : public testing::TestWithParam<Known> {};

// FP32 steps of the recipes move results by some 1e-7.
TEST_P(Causes, AreThoseOfTheDefinition) {
  const std::vector<float> x = uneven(kShape);
  const Json parts = figures_of(named(GetParam().recipe), x).at("decomposition");
  const Sums sums = by_definition(GetParam(), x);
  long double squared = 0, crossed = 0;
  for (int stage = 0; stage < 4; ++stage) {
    const std::string name(kStageNames[stage]);
    const double rel_mse = double((sums.squared[stage] - squared) / sums.values);
    const double shrinkage = double((sums.crossed[stage] - crossed) / sums.values);
    EXPECT_NEAR(parts.at("rel_mse").at(name).get<double>(), rel_mse, 1e-8) << name;
    EXPECT_NEAR(parts.at("shrinkage").at(name).get<double>(), shrinkage, 1e-7) << name;
    squared = sums.squared[stage], crossed = sums.crossed[stage];
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, Causes, testing::ValuesIn(kKnown), [](const auto& instance) {
  std::string name = instance.param.recipe;
  std::ranges::replace(name, '/', '_');
  return name;
});

class EveryRecipe : public testing::TestWithParam<std::size_t> {};

TEST_P(EveryRecipe, IsTheSumOfItsCauses) {
  const Recipe& recipe = kRecipes[GetParam()];
  const Json json = figures_of(recipe, uneven(kShape));
  for (const char* of : {"rel_mse", "shrinkage"}) {
    const Json& parts = json.at("decomposition").at(of);
    double sum = 0;
    for (const std::string_view stage : kStageNames) sum += parts.at(std::string(stage)).get<double>();
    EXPECT_NEAR(sum, parts.at("total").get<double>(), 1e-15) << of;
  }
  if (is_random(recipe)) return;
  EXPECT_NEAR(json.at("decomposition").at("rel_mse").at("total").get<double>(), json.at("rel_mse").get<double>(),
              1e-15);
  EXPECT_NEAR(json.at("bias").at("shrinkage").at("value").get<double>(), json.at("shrinkage").get<double>(), 1e-15);
  EXPECT_NEAR(json.at("bias").at("mean_error").at("value").get<double>(), json.at("mean_error").get<double>(), 1e-15);
  EXPECT_EQ(json.at("bias").at("shrinkage").at("se").get<double>() > 0, true);
}

INSTANTIATE_TEST_SUITE_P(Catalog, EveryRecipe, testing::Range(std::size_t{0}, kRecipes.size()),
                         [](const auto& instance) {
                           std::string name(kRecipes[instance.param].name);
                           for (char& c : name)
                             if (!std::isalnum(c)) c = '_';
                           return name;
                         });

Recipe stochastic(std::string_view name, RandomSource source) {
  Recipe recipe = named(name);
  set_field(recipe, "rounding", "stochastic");
  recipe.random = source;
  return recipe;
}

// Every word that four lanes can have, element by element, through the recipe's own functions.
TEST(ExpectedErrors, AreMeansOverAllRandomWords) {
  const Recipe recipe = stochastic("nvfp4/te", RandomSource::te);
  const std::vector<float> x = uneven({.rows = 1, .cols = 16});
  const float amax = largest_magnitude(recipe, 0, x);
  const TensorScale tensor = tensor_scale(recipe, amax * 3);
  const BlockScale scale = block_scale(recipe, tensor, block_statistics(recipe, x.data(), 1, 16, 16), recipe.unrounded);
  const StagedBlock block = staged_block(recipe, tensor, scale.code, amax);
  std::vector<StageErrors> errors(16);
  stage_errors<float>(block, x, x, errors);
  for (std::size_t i = 0; i < x.size(); ++i) {
    long double sum = 0, squares = 0;
    for (uint32_t word = 0; word < 1 << 16; ++word) {
      const uint32_t code = encode_element(recipe, tensor, scale, x[i], {.word = word, .count = 16});
      const long double e = (long double)(decode_element(recipe, tensor, scale.value, code)) - x[i];
      sum += e, squares += e * e;
    }
    EXPECT_NEAR(errors[i].total().mean, double(sum / 65536), 1e-15) << i;
    EXPECT_NEAR(errors[i].total().square, double(squares / 65536), 1e-15) << i;
  }
}

TEST(ExpectedErrors, AreMeansOverManyDraws) {
  for (const char* name : {"nvfp4/te", "mxfp8/te", "mxfp4/round-up", "bf16"}) {
    const Recipe recipe = stochastic(name, RandomSource::ideal);
    const Matrix shape{.rows = 4, .cols = 64};
    const std::vector<float> x = uneven(shape);
    const TensorScale tensor = tensor_scale(recipe, largest_magnitude(recipe, 0, x));
    constexpr int kDraws = 4096;
    double sum = 0, squares = 0;
    for (uint64_t draw = 0; draw < kDraws; ++draw) {
      ErrorSums sums(recipe, ErrorDetail::summary);
      sums.add<float>(tensor, shape, x, {.seed = 1, .stream = draw});
      const double shrinkage = sums.figures().at("shrinkage").get<double>();
      sum += shrinkage, squares += shrinkage * shrinkage;
    }
    const double mean = sum / kDraws, se = std::sqrt((squares / kDraws - mean * mean) / kDraws);
    EXPECT_NEAR(figures_of(recipe, x, shape).at("bias").at("shrinkage").at("value").get<double>(), mean, 4.5 * se)
        << name;
  }
}

TEST(ExpectedErrors, DoNotDependOnTheSeed) {
  const Recipe recipe = stochastic("nvfp4/te", RandomSource::ideal);
  const std::vector<float> x = uneven(kShape);
  const auto bias = [&](uint64_t seed) {
    BiasSums sums(recipe, ErrorDetail::strata);
    sums.add<float>({.tensor = tensor_scale(recipe, 4), .panel = {.first_row = 0, .first_col = 0, .shape = kShape}}, x,
                    {.seed = seed});
    const Json json = sums.figures();
    return dump_json({json.at("bias"), json.at("decomposition")});  // NaN is NaN
  };
  EXPECT_EQ(bias(1), bias(2));
}

TEST(BiasSums, LeaveOutWhatIsNotFinite) {
  std::vector<float> x = uneven(kShape), without = x;
  x[100] = std::numeric_limits<float>::infinity();
  x[500] = std::nanf("");
  const Recipe& recipe = named("bf16");
  const Json json = figures_of(recipe, x);
  EXPECT_EQ(json.at("nonfinite_in"), 2);
  EXPECT_TRUE(std::isfinite(json.at("decomposition").at("rel_mse").at("total").get<double>()));
}

TEST(BiasSums, FindNoErrorInZeros) {
  for (const char* name : {"nvfp4/te", "mxfp4/tseng", "bf16", "fp8/te"}) {
    const Json json = figures_of(named(name), std::vector<float>(kShape.elements()));
    EXPECT_EQ(json.at("decomposition").at("rel_mse").at("total"), 0) << name;
    EXPECT_EQ(json.at("bias").at("shrinkage").at("value"), 0) << name;
    EXPECT_EQ(json.at("bias").at("shrinkage").at("verdict"), "not detected") << name;
  }
}

// A block with Inf has a scale beyond all others, under which its finite elements come back as Inf or not at all.
TEST(BiasSums, AreFiniteWhateverIsInATensor) {
  std::vector<float> x = uneven(kShape);
  x[3] = std::numeric_limits<float>::infinity();
  for (std::size_t i = 256; i < 512; ++i) x[i] *= 1e38f;
  for (std::size_t i = 512; i < 768; ++i) x[i] *= 1e-40f;
  for (const char* name : {"mxfp4/tseng", "mxfp8/te", "bf16", "mxfp4/ocp"}) {
    const Json parts = figures_of(named(name), x).at("decomposition").at("rel_mse");
    for (const auto& [part, value] : parts.items())
      EXPECT_TRUE(std::isfinite(value.get<double>())) << name << " " << part;
  }
}

// However a tensor is divided and in whatever order its parts come.
TEST(BiasSums, DoNotDependOnTheDivision) {
  const Recipe& recipe = named("nvfp4/te");
  const std::vector<float> x = uneven(kShape);
  const TensorScale tensor = tensor_scale(recipe, largest_magnitude(recipe, 0, x));
  BiasSums whole(recipe, ErrorDetail::strata), parts(recipe, ErrorDetail::strata);
  whole.add<float>({.tensor = tensor, .panel = {.first_row = 0, .first_col = 0, .shape = kShape}}, x, {});
  for (uint64_t row = kShape.rows; row-- > 0;) {
    BiasSums part(recipe, ErrorDetail::strata);
    part.add<float>({.tensor = tensor, .panel = {.first_row = row, .first_col = 0, .shape = {1, kShape.cols}}},
                    std::span(x).subspan(row * kShape.cols, kShape.cols), {});
    parts.merge(part);
  }
  EXPECT_EQ(dump_json(whole.figures()), dump_json(parts.figures()));
}

TEST(BiasSums, ShowTheWorstBlocksFirst) {
  std::vector<float> x = uneven(kShape);
  for (std::size_t i = 0; i < 16; ++i) x[10 * 256 + 48 + i] *= 100;
  const Json blocks = figures_of(named("nvfp4/te"), x).at("worst_blocks");
  EXPECT_EQ(blocks.at(0).at("row"), 10);
  EXPECT_EQ(blocks.at(0).at("col"), 48);
  for (const Json& block : blocks) {
    double squared = 0;
    for (std::size_t i = 0; i < 16; ++i) {
      const double e = block.at("q").at(i).get<double>() - block.at("x").at(i).get<double>();
      squared += e * e;
    }
    EXPECT_NEAR(block.at("squared_error").get<double>(), squared, 1e-12 * squared);
  }
}

}  // namespace
}  // namespace halfulp

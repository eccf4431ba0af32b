// Errors added up on a GPU against the CPU's, byte for byte of all figures, over the catalog, shapes and padding.

#include "cuda/error_sums.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cuda/cvt_check.h"
#include "emulation/analysis/error.h"
#include "emulation/blocks/recipe_fields.h"
#include "emulation/blocks/recipes.h"
#include "tests/emulation/hard_inputs.h"
#include "tests/emulation/quantized.h"

namespace halfulp {
namespace {

// Parts of this kind never reach these: a recipe whose errors the GPU does not add up fails its test.
constexpr RecipeFunctions kOnGpu{.quantize = nullptr, .dequantize = nullptr, .tally_errors = tally_errors_on_gpu};

struct Input {
  Matrix shape;
  std::vector<float> x;
  std::optional<Matrix> counted{};
};

// Runs of 128 special blocks, of any bits and of normal numbers.
Input input_of(const Matrix& shape) {
  const std::vector<float> special = special_blocks(), wild = any_bits(shape.elements(), 5),
                           normals = uneven_normals(shape.elements(), 6);
  std::vector<float> x(shape.elements());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t kind = i / 1024 % 4;
    x[i] = kind == 0 ? special[i % special.size()] : kind == 1 ? wild[i] : normals[i];
  }
  return {.shape = shape, .x = x};
}

std::string figures(const Recipe& recipe, ErrorDetail detail, const Input& input, const RecipeFunctions& with) {
  ErrorSums sums(recipe, detail, with);
  sums.add<float>(tensor_scale(recipe, 1000), input.shape, input.x, {.seed = 7, .stream = 9}, input.counted);
  return dump_json(sums.figures());
}

void expect_equal(const Recipe& recipe, ErrorDetail detail, const Input& input) {
  EXPECT_EQ(figures(recipe, detail, input, kOnGpu), figures(recipe, detail, input, kCpuRecipes))
      << recipe.name << " of " << input.shape.rows << " x " << input.shape.cols;
}

class GpuErrors : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  }
};

class GpuErrorsOfRecipe : public GpuErrors, public testing::WithParamInterface<std::tuple<std::size_t, ErrorDetail>> {
 protected:
  const Recipe& recipe() const { return kRecipes[std::get<0>(GetParam())]; }
  ErrorDetail detail() const { return std::get<1>(GetParam()); }
  bool takes(const Matrix& shape) const {
    return refusal(recipe(), shape).empty() && cluster_size(recipe(), shape) <= kMaxDeviceCluster;
  }
};

TEST_P(GpuErrorsOfRecipe, AreTheCpus) {
  const Matrix shape{.rows = 128, .cols = 512};
  ASSERT_TRUE(takes(shape));
  expect_equal(recipe(), detail(), input_of(shape));
}

TEST_P(GpuErrorsOfRecipe, AreTheCpusWithTails) {
  for (const uint64_t cols : {1, 2, 6, 17, 33, 100, 128, 250, 256})
    if (const Matrix shape{.rows = 128, .cols = cols}; takes(shape)) expect_equal(recipe(), detail(), input_of(shape));
}

TEST_P(GpuErrorsOfRecipe, LeavePaddingOut) {
  Input input = input_of({.rows = 256, .cols = 256});
  for (const Matrix counted : {Matrix{.rows = 131, .cols = 199}, {.rows = 1, .cols = 1}, {.rows = 0, .cols = 256}}) {
    input.counted = counted;
    expect_equal(recipe(), detail(), input);
  }
}

std::string recipe_test_name(const testing::TestParamInfo<std::tuple<std::size_t, ErrorDetail>>& instance) {
  const auto [id, detail] = instance.param;
  return test_name(kRecipes[id].name) + (detail == ErrorDetail::strata ? "_strata" : "");
}

INSTANTIATE_TEST_SUITE_P(Catalog, GpuErrorsOfRecipe,
                         testing::Combine(testing::Range<std::size_t>(0, kRecipes.size()),
                                          testing::Values(ErrorDetail::summary, ErrorDetail::strata)),
                         recipe_test_name);

TEST_F(GpuErrors, AreTheCpusForRecipesOfAUser) {
  Recipe recipe = recipe_named("mxfp8/te");
  set_field(recipe, "block", "3x8");
  expect_equal(recipe, ErrorDetail::strata, input_of({.rows = 30, .cols = 64}));
  recipe = recipe_named("bf16");
  set_field(recipe, "element", "tf32");
  expect_equal(recipe, ErrorDetail::strata, input_of({.rows = 30, .cols = 64}));
}

// Each is one thread's.
TEST_F(GpuErrors, AreTheCpusForTheLargestClusters) {
  const Matrix rows{.rows = 2, .cols = kMaxDeviceCluster};
  expect_equal(recipe_named("fp8/torchao-rowwise"), ErrorDetail::strata, input_of(rows));
}

TEST_F(GpuErrors, OfNothingAreNone) {
  expect_equal(recipe_named("nvfp4/te"), ErrorDetail::summary, input_of({.rows = 0, .cols = 16}));
  expect_equal(recipe_named("bf16"), ErrorDetail::summary, input_of({.rows = 0, .cols = 16}));
}

TEST_F(GpuErrors, AreAddedToWhatIsThere) {
  const Input input = input_of({.rows = 16, .cols = 256});
  const Recipe& recipe = kRecipes[std::size_t(find_recipe("nvfp4/te"))];
  ErrorSums twice(recipe, ErrorDetail::strata, kOnGpu), expected(recipe, ErrorDetail::strata);
  for (ErrorSums* sums : {&twice, &expected})
    for (int i = 0; i < 2; ++i) sums->add<float>(tensor_scale(recipe, 1000), input.shape, input.x);
  EXPECT_EQ(dump_json(twice.figures()), dump_json(expected.figures()));
}

}  // namespace
}  // namespace halfulp

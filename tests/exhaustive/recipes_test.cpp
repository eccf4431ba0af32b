// quantize() against its definition on every row of the catalog: 2^24 blocks, or 2^28 elements where that is less,
// about a minute a recipe on two processors. HALFULP_EXHAUSTIVE_STRIDE=17 in the environment takes a 17 * 8th of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipes.h"
#include "lib/threads.h"
#include "tests/emulation/hard_inputs.h"
#include "tests/emulation/quantized.h"
#include "tests/exhaustive/sweep.h"

namespace halfulp {
namespace {

constexpr std::size_t kPartElements = 1 << 16, kParts = (std::size_t{1} << 28) / kPartElements;

std::size_t stride() {
  const std::size_t given = exhaustive_stride();
  return given == 1 ? 1 : 8 * given;
}

// Whether the bytes of one part are those of the definition. Every eighth part has any bits, Inf and NaN among them,
// under the scale of an ordinary tensor.
bool is_by_definition(const Recipe& recipe, std::size_t part) {
  const bool wild = part % 8 == 7;
  const std::vector<float> x = wild ? any_bits(kPartElements, part) : uneven_normals(kPartElements, part);
  const TensorScale tensor = wild ? tensor_scale(recipe, 6) : tensor_scale_of(recipe, x);
  const Matrix shape{.rows = 128, .cols = kPartElements / 128};
  const Randomness random{.seed = part};
  const Quantized got = quantized(recipe, tensor, shape, x, random);
  Quantized expected = got;
  quantize_elementwise(recipe, tensor, shape, x, random, expected.codes, expected.scales);
  return got.codes == expected.codes && got.scales == expected.scales;
}

class ExhaustiveRecipe : public testing::TestWithParam<std::size_t> {};

TEST_P(ExhaustiveRecipe, QuantizesByDefinition) {
  const Recipe& recipe = kRecipes[GetParam()];
  const std::size_t parts = kParts / stride();
  std::atomic<std::size_t> wrong = 0;
  parallel_for(parts, default_threads(), [&](std::size_t i) { wrong += !is_by_definition(recipe, i * stride()); });
  std::cout << recipe.name << ": " << parts * kPartElements << " elements compared\n";
  EXPECT_EQ(wrong, 0u) << "parts of " << parts;
}

INSTANTIATE_TEST_SUITE_P(Catalog, ExhaustiveRecipe, testing::Range<std::size_t>(0, kRecipes.size()),
                         [](const auto& instance) { return test_name(kRecipes[instance.param].name); });

}  // namespace
}  // namespace halfulp

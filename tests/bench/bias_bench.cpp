// How many elements a second the bias of a tensor takes on one thread, beside its error alone: "bias" quantizes too,
// and takes every error apart. Which figures are right is the tests' business.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "emulation/analysis/bias.h"
#include "emulation/blocks/recipe_fields.h"
#include "emulation/blocks/recipes.h"
#include "lib/random_values.h"

namespace halfulp {
namespace {

constexpr Matrix kShape{.rows = 256, .cols = 4096};

const std::vector<float>& normals() {
  static const std::vector<float> kValues = [] {
    std::vector<float> x(kShape.elements());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(normal(1, 0, i));
    return x;
  }();
  return kValues;
}

Recipe recipe_of(const std::string& name, bool stochastic) {
  Recipe recipe = kRecipes[std::size_t(find_recipe(name))];
  if (stochastic) set_field(recipe, "rounding", "stochastic");
  return recipe;
}

void error(benchmark::State& state, const Recipe& recipe) {
  const TensorScale tensor = tensor_scale(recipe, largest_magnitude(recipe, 0, normals()));
  for (auto _ : state) {
    ErrorSums sums(recipe, ErrorDetail::summary);
    sums.add<float>(tensor, kShape, normals(), {.seed = 1});
    benchmark::DoNotOptimize(sums);
  }
  state.SetItemsProcessed(state.iterations() * int64_t(kShape.elements()));
}

void bias(benchmark::State& state, const Recipe& recipe) {
  const TensorScale tensor = tensor_scale(recipe, largest_magnitude(recipe, 0, normals()));
  for (auto _ : state) {
    BiasSums sums(recipe, ErrorDetail::summary);
    sums.add<float>({.tensor = tensor, .panel = {.first_row = 0, .first_col = 0, .shape = kShape}}, normals(),
                    {.seed = 1});
    benchmark::DoNotOptimize(sums);
  }
  state.SetItemsProcessed(state.iterations() * int64_t(kShape.elements()));
}

void add(const std::string& name, bool stochastic) {
  const Recipe recipe = recipe_of(name, stochastic);
  const std::string title = name + (stochastic ? ",stochastic" : "");
  benchmark::RegisterBenchmark(("error/" + title).c_str(), [recipe](benchmark::State& s) { error(s, recipe); });
  benchmark::RegisterBenchmark(("bias/" + title).c_str(), [recipe](benchmark::State& s) { bias(s, recipe); });
}

}  // namespace
}  // namespace halfulp

int main(int argc, char** argv) {
  for (const char* name : {"nvfp4/te", "mxfp8/te", "mxfp4/ocp", "bf16"})
    for (const bool stochastic : {false, true}) halfulp::add(name, stochastic);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

#pragma once
// The recipes that have a kernel of their own: a row here is all that one takes. Every other recipe, a user's too, runs
// by definition.

#include <array>
#include <string_view>

#include "emulation/blocks/recipes.h"

namespace halfulp {
namespace detail {

consteval Recipe stochastic(std::string_view name, RandomSource random) {
  Recipe recipe = recipe_named(name);
  recipe.policy.rounding = Rounding::stochastic;
  recipe.random = random;
  return recipe;
}

}  // namespace detail

// clang-format off
inline constexpr auto kKernelRecipes = std::to_array<Recipe>({
    recipe_named("bf16"),
    recipe_named("fp8/te"),
    recipe_named("fp8/te-e5m2"),
    recipe_named("fp8/deepseek-1x128"),
    recipe_named("fp8/deepseek-128x128"),
    recipe_named("fp8/deepseek-1x128-ue8m0"),
    recipe_named("fp8/deepseek-128x128-ue8m0"),
    recipe_named("mxfp8/ocp"),
    recipe_named("mxfp8/te"),
    recipe_named("mxfp8/te-e5m2"),
    recipe_named("mxfp4/ocp"),
    recipe_named("nvfp4/te"),
    recipe_named("nvfp4/te-2d"),
    recipe_named("nvfp4/modelopt"),
    detail::stochastic("mxfp8/te", RandomSource::ideal),
    detail::stochastic("nvfp4/te", RandomSource::ideal),
    detail::stochastic("nvfp4/te", RandomSource::te),
});
// clang-format on

// Whether two recipes give the same bytes by the same fields; name, summary and source aside.
constexpr bool same_function(const Recipe& a, const Recipe& b) {
  return a.element == b.element && a.policy == b.policy && a.block == b.block && a.scale == b.scale &&
         a.scale_policy == b.scale_policy && a.amax_nan == b.amax_nan && a.random == b.random && a.encode == b.encode &&
         a.decode == b.decode && a.unrounded == b.unrounded && a.factor == b.factor && a.scaled == b.scaled &&
         !has_choice(a) && !has_choice(b) && !has_correction(a) && !has_correction(b);
}

// Position of the recipe's kernel; -1 if it has none.
constexpr int find_kernel(const Recipe& recipe) {
  for (std::size_t i = 0; i < kKernelRecipes.size(); ++i)
    if (same_function(kKernelRecipes[i], recipe)) return int(i);
  return -1;
}

}  // namespace halfulp

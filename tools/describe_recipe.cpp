// What `halfulp formats` says about recipes.

#include "emulation/blocks/recipe.h"
#include "tools/catalogs.h"
#include "tools/policy_text.h"
#include "tools/recipe_text.h"

namespace halfulp {
namespace {

std::string_view rule_text(ScaleRule rule) {
  switch (rule) {
    case ScaleRule::none: return "none: every element is converted by itself";
    case ScaleRule::mx_floor: return "a power of two, from the exponent of the block's largest magnitude, rounded down";
    case ScaleRule::mx_round_up: return "a power of two, rounded up, so that the block's largest magnitude fits";
    case ScaleRule::nvfp4_encode: return "E4M3, from the block's largest magnitude and the tensor's scale";
  }
  return "";
}

std::string_view outer_text(OuterScale outer) {
  switch (outer) {
    case OuterScale::none: return "none";
    case OuterScale::encode: return "one FP32 scale of the tensor";
  }
  return "";
}

std::string scale_text(const Recipe& recipe) { return has_scale(recipe) ? std::string(recipe.scale) : "none"; }

// Bits that one element takes, with its share of the block's scale.
double bits_per_element(const Recipe& recipe) {
  const double element = element_of(recipe).format.bits();
  return has_scale(recipe) ? element + double(scale_of(recipe).storage_bits) / recipe.block : element;
}

Facts list_row(const Recipe& recipe) {
  return {{"name", recipe.name},
          {"element", recipe.element},
          {"block", recipe.block},
          {"scale", scale_text(recipe)},
          {"outer_scale", outer_text(recipe.outer)},
          {"bits_per_element", bits_per_element(recipe)},
          {"source", recipe.source}};
}

std::vector<Facts> list_recipes() {
  std::vector<Facts> rows;
  for (const Recipe& recipe : kRecipes) rows.push_back(list_row(recipe));
  return rows;
}

std::string block_text(const Recipe& recipe) {
  if (!has_scale(recipe)) return "1: an element by itself";
  return fmt::format("{} elements of a row, along the last dimension", recipe.block);
}

Facts recipe_facts(const Recipe& recipe) {
  return {{"name", recipe.name},
          {"summary", recipe.summary},
          {"source", recipe.source},
          {"element", recipe.element},
          {"conversion", policy_text(recipe.policy)},
          {"inf", recipe.policy.inf == InfInput::overflow ? "overflows like a finite value"
                                                          : "becomes NaN where there is no Inf"},
          {"nan", kNanInputTexts[std::size_t(recipe.policy.nan)]},
          {"block", recipe.block, block_text(recipe)},
          {"scale", scale_text(recipe)},
          {"scale_rule", rule_text(recipe.scale_rule)},
          {"outer_scale", outer_text(recipe.outer)},
          {"nan_in_a_block", recipe.amax_nan == AmaxNan::ignored ? "is ignored by the largest magnitude"
                                                                 : "makes the largest magnitude, and the scale, NaN"},
          {"bits_per_element", bits_per_element(recipe)}};
}

std::vector<Facts> step_rows(const std::vector<RecipeStep>& steps) {
  std::vector<Facts> rows;
  for (const RecipeStep& step : steps) rows.push_back({{"step", step.symbol}, {"formula", step.formula}});
  return rows;
}

Description describe(std::string_view name) {
  const Recipe& recipe = kRecipes[std::size_t(find_recipe(name))];
  std::vector<RecipeStep> steps = tensor_steps(recipe);
  for (const RecipeStep& step : block_steps(recipe)) steps.push_back(step);
  for (const RecipeStep& step : element_steps(recipe)) steps.push_back(step);
  return {.title = fmt::format("{}, a recipe", recipe.name),
          .facts = recipe_facts(recipe),
          .sections = {{"steps",
                        "Steps; every operation is one in FP32, rounded to nearest even, subnormals kept. x is an "
                        "element, c the value of its code, q what it stands for",
                        step_rows(steps)}}};
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Recipe& recipe : kRecipes) all.emplace_back(recipe.name);
  return all;
}

}  // namespace

Catalog recipe_catalog() {
  return {.name = "recipes",
          .singular = "recipe",
          .title = "Recipes",
          .names = names,
          .list = list_recipes,
          .describe = describe};
}

}  // namespace halfulp

// What `halfulp formats` says about recipes.

#include "emulation/blocks/recipe_fields.h"
#include "emulation/blocks/recipes.h"
#include "tools/catalogs.h"
#include "tools/policy_text.h"
#include "tools/recipe_option.h"
#include "tools/recipe_text.h"

namespace halfulp {
namespace {

std::string scale_text(const Recipe& recipe) { return has_scale(recipe) ? std::string(recipe.scale.name()) : "none"; }

std::string_view outer_text(const Recipe& recipe) { return has_outer_scale(recipe) ? "FP32, of the tensor" : "none"; }

// Bits that one element takes, with its share of the block's scale; of a whole row that share is none.
double bits_per_element(const Recipe& recipe) {
  const double element = recipe.element.format().bits();
  const int elements = recipe.block.rows * recipe.block.cols;
  return has_scale(recipe) && elements > 0 ? element + double(recipe.scale.entry().storage_bits) / elements : element;
}

Facts list_row(const Recipe& recipe) {
  return {{"name", recipe.name},
          {"element", recipe.element.name()},
          {"block", extent_text(recipe.block)},
          {"scale", scale_text(recipe)},
          {"outer_scale", outer_text(recipe)},
          {"bits_per_element", bits_per_element(recipe)},
          {"source", recipe.source}};
}

std::vector<Facts> list_recipes() {
  std::vector<Facts> rows;
  for (const Recipe& recipe : kRecipes) rows.push_back(list_row(recipe));
  return rows;
}

std::string block_text(const Recipe& recipe) {
  if (!has_scale(recipe)) return "1 x 1: an element by itself";
  return fmt::format("{} elements share a scale; columns lie along --axis, by default the last dimension",
                     extent_text(recipe.block));
}

Facts recipe_facts(const Recipe& recipe) {
  Facts facts{
      {"name", recipe.name},
      {"summary", recipe.summary},
      {"source", recipe.source},
      {"element", recipe.element.name()},
      {"conversion", policy_text(recipe.policy)},
      {"inf",
       recipe.policy.inf == InfInput::overflow ? "overflows like a finite value" : "becomes NaN where there is no Inf"},
      {"nan", kNanInputTexts[std::size_t(recipe.policy.nan)]},
      {"zero", recipe.policy.zero == ZeroResult::keeps_sign ? "keeps its sign" : "is never negative"},
      {"block", extent_text(recipe.block), block_text(recipe)},
      {"scale", scale_text(recipe)},
      {"outer_scale", outer_text(recipe)},
      {"edge", recipe.edge == Edge::refused ? "tensors are whole blocks" : "the last block may be a part of one"},
      {"bits_per_element", bits_per_element(recipe)}};
  if (is_random(recipe))
    facts.emplace_back("random", recipe.random == RandomSource::ideal
                                     ? "32 bits for each element, from (seed, tensor, element)"
                                     : "16 bits for each element, a word for four, as cvt.rs takes them");
  return facts;
}

std::vector<Facts> step_rows(const std::vector<RecipeStep>& steps) {
  std::vector<Facts> rows;
  for (const RecipeStep& step : steps) rows.push_back({{"step", step.symbol}, {"formula", step.formula}});
  return rows;
}

std::vector<Facts> field_rows(const Recipe& recipe) {
  std::vector<Facts> rows;
  for (const RecipeField& field : recipe_fields())
    if (const std::string text = field.text(recipe); !text.empty() && field.applies(recipe))
      rows.push_back({{"field", field.name}, {"text", text}, {"meaning", field.meaning}});
  return rows;
}

Description describe(std::string_view name) {
  const Recipe& recipe = recipe_of(name);
  std::vector<RecipeStep> steps = tensor_steps(recipe);
  for (const RecipeStep& step : block_steps(recipe)) steps.push_back(step);
  for (const RecipeStep& step : element_steps(recipe)) steps.push_back(step);
  return {.title = fmt::format("{}, a recipe", recipe.name),
          .facts = recipe_facts(recipe),
          .sections = {{"steps",
                        "Steps; every operation is one in FP32, rounded to nearest even, subnormals kept. x is an "
                        "element, c the value of its code, q what it stands for",
                        step_rows(steps)},
                       {"fields", "Fields, as NAME+FIELD=TEXT or a TOML file states them", field_rows(recipe)}}};
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

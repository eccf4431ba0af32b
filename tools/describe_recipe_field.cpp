// What `halfulp formats` says about the fields with which a user states a recipe.

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>

#include "emulation/blocks/recipe_fields.h"
#include "emulation/blocks/recipes.h"
#include "tools/catalogs.h"
#include "tools/recipe_option.h"

namespace halfulp {
namespace {

std::string shown(const std::string& text) { return text.empty() ? "-" : text; }

Facts list_row(const RecipeField& field) {
  const std::string text = field.text(default_recipe());
  return {{"name", field.name}, {"meaning", field.meaning}, {"default", text, shown(text)}, {"takes", field.takes}};
}

std::vector<Facts> list_fields() {
  std::vector<Facts> rows;
  for (const RecipeField& field : recipe_fields()) rows.push_back(list_row(field));
  return rows;
}

std::vector<Facts> choice_rows(const RecipeField& field) {
  std::vector<Facts> rows;
  for (const FieldChoice& choice : field.choices)
    rows.push_back({{"choice", choice.name}, {"meaning", choice.meaning}});
  return rows;
}

std::vector<Facts> symbol_rows(const RecipeField& field) {
  std::vector<Facts> rows;
  for (const Symbol symbol : field.symbols) {
    const SymbolEntry& entry = kSymbols[std::size_t(symbol)];
    rows.push_back({{"symbol", entry.name}, {"meaning", entry.meaning}});
  }
  return rows;
}

// A text that recipes have, and which: all of them for a program, the first of them for a person.
Facts use_row(const std::string& text, const std::vector<std::string_view>& recipes) {
  constexpr std::size_t kShown = 3;
  std::string shown = fmt::format("{}", fmt::join(std::span(recipes).first(std::min(kShown, recipes.size())), ", "));
  if (recipes.size() > kShown) shown += fmt::format(" and {} more", recipes.size() - kShown);
  return {{"text", text}, {"recipes", fmt::format("{}", fmt::join(recipes, ", ")), shown}};
}

// The texts that the catalog's recipes have.
std::vector<Facts> use_rows(const RecipeField& field) {
  std::vector<std::string> texts;  // in the order of the catalog
  std::map<std::string, std::vector<std::string_view>> uses;
  for (const Recipe& recipe : kRecipes) {
    const std::string text = field.text(recipe);
    if (text.empty() || !field.applies(recipe)) continue;
    if (!uses.contains(text)) texts.push_back(text);
    uses[text].push_back(recipe.name);
  }
  std::vector<Facts> rows;
  for (const std::string& text : texts) rows.push_back(use_row(text, uses[text]));
  return rows;
}

Description describe(std::string_view name) {
  const RecipeField& field = *std::ranges::find(recipe_fields(), name, &RecipeField::name);
  return {.title = fmt::format("{}, a field of recipes", field.name),
          .facts = list_row(field),
          .sections = {{"choices", "Choices", choice_rows(field)},
                       {"symbols", "Symbols that the formula may name", symbol_rows(field)},
                       {"uses", "Recipes that have it", use_rows(field)}}};
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const RecipeField& field : recipe_fields()) all.emplace_back(field.name);
  return all;
}

}  // namespace

Catalog recipe_field_catalog() {
  return {.name = "recipe-fields",
          .singular = "recipe-field",
          .title =
              "Fields of recipes, as NAME+FIELD=TEXT or a TOML file states them; defaults are of a file without a base",
          .names = names,
          .list = list_fields,
          .describe = describe};
}

}  // namespace halfulp

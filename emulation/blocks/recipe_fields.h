#pragma once
// The fields of a recipe by name, as text: what a user states a recipe with, and what two recipes differ in.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/blocks/recipe.h"

namespace halfulp {

struct RecipeField {
  std::string_view name;
  std::string_view meaning;
  std::vector<std::string_view> choices;  // empty where any text that parses is good
  std::string (*text)(const Recipe&);
  // Throws std::invalid_argument, saying what was expected. Text that the recipe points to is kept.
  void (*set)(Recipe&, std::string_view);
  // Whether the field says anything about this recipe.
  bool (*applies)(const Recipe&) = [](const Recipe&) { return true; };
};

std::span<const RecipeField> recipe_fields();

// Sets a field by name. Throws std::invalid_argument, also where there is no such field.
void set_field(Recipe& recipe, std::string_view name, std::string_view text);

// Why a recipe cannot be used, or empty: fields that contradict each other, formulas that name what is not known yet.
std::string contradiction(const Recipe& recipe);

// A copy of `text` that lives as long as the program.
std::string_view kept(std::string_view text);

}  // namespace halfulp

#pragma once
// The fields of a recipe by name, as text: what a user states a recipe with, and what two recipes differ in.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/blocks/recipe.h"

namespace halfulp {

// A word that a field takes.
struct FieldChoice {
  std::string_view name;
  std::string_view meaning;
};

struct RecipeField {
  std::string_view name;
  std::string_view meaning;
  std::string takes;                 // what text is good, in words
  std::vector<FieldChoice> choices;  // empty where any text that parses is good
  std::vector<Symbol> symbols;       // of a formula: those that have values where it is evaluated
  std::string (*text)(const Recipe&);
  // Throws std::invalid_argument, saying what was expected. Text that the recipe points to is kept.
  void (*set)(Recipe&, std::string_view);
  // Whether the field says anything about this recipe.
  bool (*applies)(const Recipe&) = [](const Recipe&) { return true; };
};

std::span<const RecipeField> recipe_fields();

// Sets a field by name. Throws std::invalid_argument, also where there is no such field.
void set_field(Recipe& recipe, std::string_view name, std::string_view text);

// Why a recipe cannot be used, or empty: fields that are missing or contradict each other, formulas that name what is
// not known yet.
std::string contradiction(const Recipe& recipe);

// A copy of `text` that lives as long as the program.
std::string_view kept(std::string_view text);

}  // namespace halfulp

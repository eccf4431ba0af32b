#pragma once
// Recipes as a user names or states them.

#include <string>
#include <string_view>
#include <vector>

#include "emulation/blocks/recipe.h"
#include "lib/cli.h"

namespace halfulp {

// NAME, NAME+FIELD=TEXT+..., or a TOML file; the recipe lives as long as the program. Throws UsageError for what is no
// recipe, InputError for a file that states none.
const Recipe& recipe_of(std::string_view text);

// --recipe: one or several, separated by commas outside parentheses.
std::vector<const Recipe*> recipes_of(const Arguments& arguments);

// The catalog has the recipe under its name.
bool is_named(const Recipe& recipe);

// What a TOML file without a base changes.
const Recipe& default_recipe();

// Every field in TOML, and the recipe of such a text. `where` is for the error's message.
std::string recipe_toml(const Recipe& recipe);
const Recipe& recipe_of_toml(std::string_view toml, const std::string& where);

}  // namespace halfulp

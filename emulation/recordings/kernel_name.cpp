#include "emulation/recordings/kernel_name.h"

#include "emulation/blocks/recipe_fields.h"
#include "emulation/blocks/recipes.h"

namespace halfulp {

std::string stated_name(const Recipe& recipe) {
  std::string name(recipe.name);
  const int id = find_recipe(recipe.name);
  if (id < 0) return name;
  for (const RecipeField& field : recipe_fields())
    if (const std::string text = field.text(recipe); text != field.text(kRecipes[std::size_t(id)]))
      name += "+" + std::string(field.name) + "=" + text;
  return name;
}

}  // namespace halfulp

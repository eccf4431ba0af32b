#pragma once
// The name of a recipe that has a kernel, as a user states it. Not what a recipe is: emulation/blocks/recipe.h.

#include <string>

#include "emulation/blocks/recipe.h"

namespace halfulp {

// NAME, or NAME+FIELD=TEXT+... for a row of the catalog that was changed.
std::string stated_name(const Recipe& recipe);

}  // namespace halfulp

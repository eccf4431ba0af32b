#pragma once
// A recipe in words and formulas, with the constants that its arithmetic uses.

#include <string>
#include <vector>

#include "emulation/blocks/recipe.h"

namespace halfulp {

// What a step gives a value to.
enum class Quantity {
  tensor_amax,
  tensor_encode,
  tensor_decode,
  block_amax,
  unrounded_scale,
  scale,
  multiplier,
  code,   // of an element
  value,  // of an element
};

// One step: SYMBOL = FORMULA. Every operation is one FP32 operation, rounded to nearest even; fl(x) is the FP32 value
// nearest to x.
struct RecipeStep {
  Quantity quantity;
  std::string symbol;
  std::string formula;
};

// A: largest |x| of the tensor, S_enc, S_dec; a: of the block, d: its scale before and s after rounding, m: multiplier
// of the elements; per element x: c its code's value, q what it stands for. Those that the recipe has, in order.
std::vector<RecipeStep> tensor_steps(const Recipe& recipe);
std::vector<RecipeStep> block_steps(const Recipe& recipe);
std::vector<RecipeStep> element_steps(const Recipe& recipe);

// "to nearest even, saturating"
std::string policy_text(const Policy& policy);

}  // namespace halfulp

#pragma once
// A recipe in words and formulas.

#include <string>
#include <string_view>
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
  alternative_scale,
  scale,
  factor,
  correction,
  corrected_scale,
  scaled,  // of an element
  code,    // of an element
  value,   // of an element
};

// One step: SYMBOL = FORMULA. Every operation is one FP32 operation, rounded to nearest even.
struct RecipeStep {
  Quantity quantity;
  std::string symbol;
  std::string formula;
};

// A: largest |x| of the tensor, S_enc, S_dec its scales; a: of the block, d: its scale before and s after rounding, m:
// factor of the elements; per element x: y what is converted, c its code's value, q what it stands for. Those that the
// recipe has, in order.
std::vector<RecipeStep> tensor_steps(const Recipe& recipe);
std::vector<RecipeStep> block_steps(const Recipe& recipe);
std::vector<RecipeStep> element_steps(const Recipe& recipe);

// "to nearest even, saturating"
std::string policy_text(const Policy& policy);

// "sum of"
std::string_view loss_total_text(LossTotal total);

// "1 x 16"
std::string extent_text(const Extent& block);

}  // namespace halfulp

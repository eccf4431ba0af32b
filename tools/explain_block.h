#pragma once
// One block on its way through a recipe, step by step. Prints nothing.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/json.h"
#include "lib/table.h"
#include "tools/facts.h"

namespace halfulp {

struct BlockExplanation {
  int recipe_id;
  std::vector<Facts> steps;     // of the tensor and the block: symbol, formula, value
  std::vector<Facts> elements;  // position, x, scaled, code, decoded, error, note
  Facts summary;                // rel_mse and its kin
};

// Requires whole blocks: x.size() is the recipe's block, or anything where it has none. `amax` is the tensor's largest
// magnitude, by default the block's.
BlockExplanation explain_block(std::span<const float> x, int recipe_id, std::optional<float> amax);

std::string to_text(const BlockExplanation& explanation, Color color);
Json to_json(const BlockExplanation& explanation);

}  // namespace halfulp

#pragma once
// One block on its way through a recipe, step by step. Prints nothing.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulation/blocks/quantize.h"
#include "lib/json.h"
#include "lib/table.h"
#include "tools/facts.h"

namespace halfulp {

struct BlockExplanation {
  const Recipe* recipe;
  std::vector<Facts> steps;       // of the tensor and the block: symbol, formula, value
  std::vector<Facts> candidates;  // of a choice between two scales: each, its loss, and which was taken
  std::vector<Facts> elements;    // position, x, scaled, code, decoded, error, note
  Facts summary;                  // rel_mse and its kin
};

// Requires whole blocks, or a group of them that a recipe corrects together: the first is shown. Any number of elements
// where there are none. `amax` is the tensor's largest magnitude, by default that of x. The recipe must outlive the
// explanation.
BlockExplanation explain_block(const Recipe& recipe, std::span<const float> x, std::optional<float> amax,
                               const Randomness& random);

std::string to_text(const BlockExplanation& explanation, Color color);
Json to_json(const BlockExplanation& explanation);

}  // namespace halfulp

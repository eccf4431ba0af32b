#pragma once
// Where two recipes part: the fields that differ, and a block on which their results do.

#include <string>
#include <vector>

#include "emulation/blocks/recipe.h"
#include "lib/json.h"
#include "lib/table.h"
#include "tools/facts.h"

namespace halfulp {

struct RecipeDiff {
  const Recipe* first;
  const Recipe* second;
  std::vector<Facts> fields;
  std::string example;          // which block is shown, or that none was found
  Facts scales;                 // of the example; empty where there is none
  std::vector<Facts> elements;  // that differ
};

// Blocks are tried in a fixed order, ordinary numbers first, so the answer is always the same.
RecipeDiff diff_recipes(const Recipe& first, const Recipe& second);

std::string to_text(const RecipeDiff& diff, Color color);
Json to_json(const RecipeDiff& diff);

}  // namespace halfulp

#pragma once
// One number on its way into a format: its neighbours, and what every rounding and policy makes of it. Prints nothing.

#include <optional>
#include <string>
#include <vector>

#include "lib/json.h"
#include "lib/table.h"
#include "tools/facts.h"
#include "tools/source_number.h"

namespace halfulp {

// What stochastic rounding does over all random words.
struct StochasticOdds {
  int random_bits;
  uint64_t away_words;  // of 2^random_bits
};

struct ValueExplanation {
  SourceNumber input;
  int format_id;
  std::vector<std::string> remarks = {};  // sentences, in order
  std::string picture = {};               // number line; empty where there is none
  std::vector<Facts> neighbours = {};
  std::optional<double> ulp = {};
  std::vector<Facts> policies = {};                     // what the choices of formats/policy.h give, where one applies
  std::vector<Facts> saturating = {}, to_special = {};  // answers of each rounding, by what overflow does
  std::optional<StochasticOdds> odds = {};
  std::vector<Facts> intervals = {};  // of the reals that nearest-even sends to its answer
};

ValueExplanation explain_value(const SourceNumber& input, int format_id, int random_bits);

std::string to_text(const ValueExplanation& explanation, Color color);
Json to_json(const ValueExplanation& explanation);

}  // namespace halfulp

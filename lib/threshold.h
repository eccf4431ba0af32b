#pragma once
// Conditions on results that fail a run: --fail-on 'sqnr_db<20'.

#include <string>
#include <string_view>

#include "lib/json.h"

namespace halfulp {

enum class Comparison { less, less_equal, greater, greater_equal };

struct Threshold {
  std::string metric;
  Comparison comparison;
  double limit;
};

// "<metric><operator><number>" with < <= > >= as operators; otherwise a UsageError.
Threshold parse_threshold(std::string_view text);

// Whether the metric, a key of the object `metrics`, meets the condition for failing. NaN and null always do. A key
// that is absent or no number is a UsageError.
bool fails(const Threshold& threshold, const Json& metrics);

}  // namespace halfulp

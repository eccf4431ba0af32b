#pragma once
// A capture: tensors of a training run by their names, PHASE/ROLE/LAYER or PHASE/ROLE/LAYER/STEP.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "emulation/training/training_policy.h"

namespace halfulp {

struct CapturedName {
  RolePlace place;
  std::string layer;  // any text without a slash
  std::optional<uint64_t> step;
};

// Throws std::invalid_argument, saying what is wrong.
CapturedName parse_captured_name(std::string_view name);

// The number of a layer: the first part between dots that is one, 7 of "blocks.7.fc1" and of "7"; none where none is.
std::optional<int> layer_number(std::string_view layer);

}  // namespace halfulp

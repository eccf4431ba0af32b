#pragma once
// A PTX conversion by the name that a user gave.

#include <string_view>

namespace halfulp {

// Position in kPtxCvts. An unknown name is a UsageError with a suggestion.
int instruction_named(std::string_view name);

}  // namespace halfulp

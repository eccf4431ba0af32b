#pragma once
// Policies in TOML: those that come with the program, by name, and a user's own files.

#include <string>
#include <string_view>
#include <vector>

#include "emulation/training/training_policy.h"

namespace halfulp {

// A preset's name, or a file. Throws UsageError for a name that there is not, InputError for a file that states none,
// with its line. What the policy leads to is checked too: contradictions().
TrainingPolicy policy_of(const std::string& name_or_file);

// The policy of such a text; `where` is for the error's message.
TrainingPolicy policy_of_toml(std::string_view toml, const std::string& where);

// The presets' names and texts, by name.
struct PolicyPreset {
  std::string_view name, toml;
};
const std::vector<PolicyPreset>& policy_presets();

}  // namespace halfulp

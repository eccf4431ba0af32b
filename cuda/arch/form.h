#pragma once
// The two forms of a conversion in device code, and which of them the present GPU runs. Not the forms themselves.

#include <string>
#include <vector>

namespace halfulp::arch {

enum class Form { native, software };

struct LoadedForms {
  std::string target;       // "sm_90a"
  std::vector<Form> forms;  // by catalog position
};

// Asks the code that the driver loaded for the present GPU what it was compiled for. Throws EnvironmentError where
// there is no GPU that runs this build's code.
LoadedForms loaded_forms();

}  // namespace halfulp::arch

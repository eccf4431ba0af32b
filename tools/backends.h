#pragma once
// The devices that this build computes on, beside the CPU. A build has one of tools/backends_*.cpp.

#include <span>

#include "emulation/backend.h"
#include "lib/cli.h"

namespace halfulp {

std::span<const Backend* const> backends();

// --device, or what it is where it is not given. No backend: the CPU.
struct ChosenDevice {
  const Backend* backend;
  int index;
};
// Throws UsageError for no device's name, EnvironmentError where the build lacks its backend.
ChosenDevice chosen_device(const Arguments& arguments, std::string_view otherwise);

}  // namespace halfulp

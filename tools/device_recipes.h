#pragma once
// The device that a verb computes recipes on.

#include <string>
#include <type_traits>
#include <vector>

#include "emulation/backend.h"
#include "lib/cli.h"
#include "lib/dtype.h"
#include "lib/error.h"
#include "tools/inputs.h"

namespace halfulp {

struct DeviceRecipes {
  RecipeFunctions functions = kCpuRecipes;
  int threads = 1;        // that feed it
  bool takes_all = true;  // every dtype that a recipe takes; else F32, F16 and BF16
};

// Of --device: the CPU, or a GPU, of which a line on stderr says what it is and how it computes each recipe. Throws
// EnvironmentError where there is no such device.
DeviceRecipes device_recipes(const Arguments& arguments, const std::vector<const Recipe*>& recipes);

// Throws InputError where the device does not take the tensor's elements, which are read as Source: nothing is computed
// elsewhere than it was asked for.
template <class Source>
void check_source(const DeviceRecipes& device, const Tensor& tensor) {
  if (device.takes_all || std::is_same_v<Source, float>) return;
  throw InputError(where(tensor),
                   std::string(row(tensor.dtype).name) +
                       " elements are computed on the CPU only; use --device cpu, or leave the tensor out");
}

}  // namespace halfulp

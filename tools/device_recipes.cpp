#include "tools/device_recipes.h"

#include <fmt/format.h>

#include "lib/notice.h"
#include "tools/backends.h"
#include "tools/options.h"

namespace halfulp {

DeviceRecipes device_recipes(const Arguments& arguments, const std::vector<const Recipe*>& recipes) {
  const ChosenDevice device = chosen_device(arguments, "cpu");
  if (device.backend == nullptr) return {.threads = threads_of(arguments)};
  const DeviceInfo info = device.backend->open(device.index);
  if (device.backend->recipe_form == nullptr)
    throw EnvironmentError(fmt::format("--device {}: {} computes no recipes", arguments.string("--device"), info.name));
  for (const Recipe* recipe : recipes)
    notice(fmt::format("{}:{} ({}, {}): {} {}", device.backend->name, device.index, info.name, info.target,
                       recipe->name, device.backend->recipe_form(*recipe)));
  return {.functions = device.backend->recipes, .threads = 1, .takes_all = false};
}

}  // namespace halfulp

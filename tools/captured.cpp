#include "tools/captured.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "lib/error.h"
#include "lib/philox.h"
#include "tools/inputs.h"
#include "tools/policy_file.h"
#include "tools/recipe_option.h"

namespace halfulp {
namespace {

// Of a capture under --recipe: every operand of a linear product by that recipe.
TrainingPolicy policy_of_recipe(const Arguments& arguments) {
  const std::vector<const Recipe*> recipes = recipes_of(arguments);
  if (recipes.size() != 1) throw UsageError("--recipe: a capture takes one recipe, or --policy");
  TrainingPolicy policy;
  policy.name = recipes.front()->name;
  for (std::size_t phase = 0; phase < kPhases.size(); ++phase)
    for (std::size_t role = 0; role < kRoles.size(); ++role)
      policy.rules[{.phase = Phase(phase), .role = int(role)}] = {.quantizer = policy.name, .recipe = recipes.front()};
  return policy;
}

TrainingPolicy policy_option(const Arguments& arguments) {
  if (!arguments.has("--policy")) return policy_of_recipe(arguments);
  if (arguments.has("--recipe")) throw UsageError("--policy and --recipe: one or the other");
  return policy_of(arguments.string("--policy"));
}

// By phase, role, layer and step; layers in the order of their numbers.
auto order_of(const Captured& c) {
  return std::tuple(c.name.place, layer_number(c.name.layer).value_or(-1), c.name.layer, c.name.step.value_or(0));
}

std::vector<Captured> open_tensors(const Arguments& arguments) {
  std::vector<Captured> capture;
  for (Tensor& tensor : open_inputs(arguments, arguments.positionals("SUBJECT"))) {
    try {
      const CapturedName name = parse_captured_name(tensor.name);
      capture.push_back({.tensor = std::move(tensor), .name = name, .rule = {}});
    } catch (const std::invalid_argument& error) {
      throw InputError(where(tensor), error.what());
    }
  }
  std::ranges::sort(capture, {}, order_of);
  return capture;
}

void apply(const TrainingPolicy& policy, int layers, std::vector<Captured>& capture) {
  const bool needs_numbers = policy.high.first > 0 || policy.high.last > 0;
  for (Captured& c : capture) {
    const std::optional<int> layer = layer_number(c.name.layer);
    if (needs_numbers && !layer)
      throw InputError(where(c.tensor),
                       "names a layer without a number, and the policy treats first and last layers "
                       "differently");
    c.rule = rule_of(policy, c.name.place, layer.value_or(0), layers);
  }
}

}  // namespace

Capture open_capture(const Arguments& arguments) {
  Capture capture{.policy = policy_option(arguments), .tensors = open_tensors(arguments), .layers = 0};
  for (const Captured& c : capture.tensors)
    capture.layers = std::max(capture.layers, layer_number(c.name.layer).value_or(-1) + 1);
  apply(capture.policy, capture.layers, capture.tensors);
  return capture;
}

Rotation rotation_of(const RoleRule& rule, const CapturedName& name, uint64_t seed) {
  if (!rule.rotation) return std::nullopt;
  Hadamard h{.size = rule.rotation->size, .signs = rule.rotation->signs, .seed = seed ^ stream_of(rule.rotation->id)};
  if (rule.rotation->of == SignsOf::layer) h.seed ^= stream_of(name.layer);
  if (rule.rotation->of == SignsOf::step) h.seed ^= stream_of(fmt::format("{}#{}", name.layer, name.step.value_or(0)));
  return h;
}

}  // namespace halfulp

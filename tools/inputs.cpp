#include "tools/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "emulation/blocks/quantize.h"
#include "emulation/panels.h"
#include "lib/error.h"
#include "lib/glob.h"
#include "lib/philox.h"
#include "tools/source_number.h"

namespace halfulp {
namespace {

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return glob_match(pattern, name); });
}

OpenOptions open_options(const Arguments& arguments) {
  OpenOptions options;
  if (arguments.has("--dtype")) options.npy_dtype = dtype_from_option("--dtype", arguments.string("--dtype"));
  return options;
}

}  // namespace

std::vector<Tensor> open_inputs(const Arguments& arguments, const std::vector<std::string>& specs) {
  const OpenOptions options = open_options(arguments);
  const std::vector<std::string> include = arguments.list("--include"), exclude = arguments.list("--exclude");

  std::vector<Tensor> tensors;
  std::size_t seen = 0;
  for (const std::string& spec : specs) {
    for (Tensor& tensor : open_tensor_spec(spec, options)) {
      ++seen;
      const bool wanted = (include.empty() || matches_any(include, tensor.name)) && !matches_any(exclude, tensor.name);
      if (wanted) tensors.push_back(std::move(tensor));
    }
  }
  if (tensors.empty() && seen > 0)
    throw UsageError("--include and --exclude leave none of the " + std::to_string(seen) + " tensors");
  if (tensors.empty()) throw InputError({.file = specs.front()}, "has no tensors");
  return tensors;
}

Tensor open_input(const Arguments& arguments, const std::string& spec) {
  std::vector<Tensor> tensors = open_tensor_spec(spec, open_options(arguments));
  const Where place{.file = spec, .tensor = {}, .byte = {}};
  if (tensors.empty()) throw InputError(place, "has no tensors");
  if (tensors.size() > 1) {
    throw InputError(
        place, "has " + std::to_string(tensors.size()) + " tensors; name one, such as " + spec + ":" + tensors[0].name);
  }
  return std::move(tensors[0]);
}

Where where(const Tensor& tensor) { return {.file = tensor.file, .tensor = tensor.name, .byte = std::nullopt}; }

float given_amax(const Arguments& arguments) {
  const SourceNumber amax = read_source_number(arguments.string("--amax"), SourceType::f32);
  if (!(amax.value >= 0)) throw UsageError("--amax: a largest magnitude is 0 or more");
  const double written = arguments.number("--amax");
  if (std::isinf(amax.value) != std::isinf(written) || (amax.value == 0) != (written == 0))
    throw UsageError("--amax: " + amax.text + " is beyond the range of FP32");
  return float(amax.value);
}

void check_amax(const Arguments& arguments, const std::vector<const Recipe*>& recipes) {
  if (!arguments.has("--amax")) return;
  given_amax(arguments);
  if (std::ranges::none_of(recipes, [](const Recipe* recipe) { return has_outer_scale(*recipe); }))
    throw UsageError("--amax sets the scale of a tensor, and none of these recipes has one");
}

float amax_of(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor, int threads, Progress& progress) {
  if (!has_outer_scale(recipe)) return 0;
  if (arguments.has("--amax")) return given_amax(arguments);
  float amax = 0;
  std::mutex merging;
  for_each_panel<float>(recipe, tensor, view_along(recipe, tensor.shape, -1), threads,
                        [&](const Panel&, std::span<const float> x) {
                          const float panel = largest_magnitude(recipe, 0, x);
                          const std::lock_guard lock(merging);
                          amax = largest_magnitude(recipe, amax, {&panel, 1});
                          progress.advance(x.size());
                        });
  return amax;
}

int passes(const Arguments& arguments, const Recipe& recipe) {
  return has_outer_scale(recipe) && !arguments.has("--amax") ? 2 : 1;
}

int axis_of(const Arguments& arguments, std::span<const uint64_t> shape) {
  const int rank = int(std::max<std::size_t>(shape.size(), 1));
  const int64_t axis = arguments.integer("--axis", -100, 100);
  if (axis < -rank || axis >= rank)
    throw UsageError(fmt::format("--axis: a tensor of shape {} has no dimension {}", shape_text(shape), axis));
  return int(axis < 0 ? axis : axis - rank);
}

std::string refusal(const Recipe& recipe, const Tensor& tensor, int axis) {
  if (std::string reason = refusal(recipe, tensor.dtype); !reason.empty()) return reason;
  const MatrixView view = view_along(recipe, tensor.shape, axis);
  if (!has_scale(recipe)) return "";
  if (axis != -1 && recipe.block.rows > 1 && tensor.shape.size() != 2)
    return fmt::format("blocks of {} rows along another axis than the last are for matrices, not shape {}",
                       recipe.block.rows, shape_text(tensor.shape));
  if (axis != -1 && recipe.element.entry().storage_bits == 4 && tensor.shape.back() % 2 != 0)
    return fmt::format("the last dimension of shape {} is odd, and two codes share a byte", shape_text(tensor.shape));
  const std::string reason = refusal(recipe, view.shape());
  return reason.empty() ? "" : fmt::format("shape {}: {}", shape_text(tensor.shape), reason);
}

void check_randomness(const Arguments& arguments, const std::vector<const Recipe*>& recipes) {
  const auto random = std::ranges::find_if(recipes, [](const Recipe* recipe) { return is_random(*recipe); });
  if (random == recipes.end() && arguments.has("--seed"))
    throw UsageError("--seed is for recipes that round stochastically, and none of these does");
  if (random != recipes.end() && !arguments.has("--seed"))
    throw UsageError(fmt::format("--seed is needed: recipe {} rounds stochastically", (*random)->name));
}

Randomness randomness_of(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor, std::size_t number) {
  if (!is_random(recipe)) return {};
  // Transformer Engine's generator advances by 1024 blocks of words for each tensor.
  constexpr uint64_t kTeOffset = 1024;
  const bool te = recipe.random == RandomSource::te;
  return {.seed = arguments.unsigned_integer("--seed", 0, ~uint64_t{0}),
          .stream = te ? kTeOffset * number : stream_of(tensor.name),
          .scale_stream = stream_of(tensor.name + ".scales")};
}

}  // namespace halfulp

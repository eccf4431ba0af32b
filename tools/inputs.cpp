#include "tools/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "emulation/blocks/quantize.h"
#include "emulation/panels.h"
#include "lib/error.h"
#include "lib/glob.h"
#include "lib/parse_number.h"
#include "lib/philox.h"
#include "lib/utf8.h"
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
    throw UsageError("--amax: " + shortened(amax.text) + " is beyond the range of FP32");
  return float(amax.value);
}

void check_amax(const Arguments& arguments, const std::vector<const Recipe*>& recipes) {
  if (!arguments.has("--amax")) return;
  given_amax(arguments);
  if (std::ranges::none_of(recipes, [](const Recipe* recipe) { return has_outer_scale(*recipe); }))
    throw UsageError("--amax sets the scale of a tensor, and none of these recipes has one");
}

float amax_of(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor, const Reading& reading,
              int threads, Progress& progress) {
  if (!has_outer_scale(recipe)) return 0;
  if (arguments.has("--amax")) return given_amax(arguments);
  float amax = 0;
  std::mutex merging;
  for_each_panel<float>(recipe, tensor, reading.layout, reading.rotation, threads,
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

namespace {

int rank_of(const Tensor& tensor) { return int(std::max<std::size_t>(tensor.shape.size(), 1)); }

// --axis from the end. Requires that the tensor has it.
int axis_of(const Arguments& arguments, const Tensor& tensor) {
  const int axis = int(arguments.integer("--axis", -100, 100));
  return axis < 0 ? axis : axis - rank_of(tensor);
}

std::string axis_refusal(const Arguments& arguments, const Tensor& tensor) {
  const int64_t axis = arguments.integer("--axis", -100, 100);
  if (axis >= -rank_of(tensor) && axis < rank_of(tensor)) return "";
  return fmt::format("shape {} has no dimension {}, which --axis names", shape_text(tensor.shape), axis);
}

}  // namespace

Rotation rotation_of(const Arguments& arguments) {
  if (!arguments.has("--hadamard")) {
    if (arguments.has("--signs")) throw UsageError("--signs are those of --hadamard");
    return std::nullopt;
  }
  const std::string size = arguments.choice("--hadamard", {"2", "4", "8", "16", "32", "64", "128"});
  Hadamard h{.size = int(parse_integer(size).value())};
  h.signs = h.size == kTeHadamardSize ? HadamardSigns::te : HadamardSigns::none;
  if (arguments.has("--signs")) {
    std::vector<std::string> names;
    for (const HadamardSignsEntry& row : kHadamardSigns) names.emplace_back(row.name);
    const std::string name = arguments.choice("--signs", names);
    for (const HadamardSignsEntry& row : kHadamardSigns)
      if (row.name == name) h.signs = row.signs;
  }
  if (h.signs == HadamardSigns::seeded) {
    if (!arguments.has("--seed")) throw UsageError("--signs seeded: --seed is needed");
    h.seed = arguments.unsigned_integer("--seed", 0, ~uint64_t{0});
  }
  try {
    check_hadamard(h, uint64_t(h.size));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("--hadamard, --signs: {}", error.what()));
  }
  return h;
}

namespace {

Padding padding_of(const Arguments& arguments) { return arguments.flag("--pad") ? Padding::zeros : Padding::none; }

Reading reading_with(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor, Padding padding) {
  // A verb without --transpose stores no codes: blocks may lie as suits them, even across half bytes.
  const bool transposed = arguments.lists("--transpose") ? arguments.flag("--transpose") : has_scale(recipe);
  const CodeOrder order = transposed ? CodeOrder::axis_last : CodeOrder::as_tensor;
  const Rotation rotation = rotation_of(arguments);
  const int axis = axis_of(arguments, tensor);
  return {.layout = tensor_layout(recipe, tensor.shape, axis, padding, order, rotation), .rotation = rotation};
}

}  // namespace

Reading reading_of(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor) {
  return reading_with(arguments, recipe, tensor, padding_of(arguments));
}

std::string refusal(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor) {
  if (std::string reason = refusal(recipe, tensor.dtype); !reason.empty()) return reason;
  if (std::string reason = axis_refusal(arguments, tensor); !reason.empty()) return reason;
  return refusal(recipe, tensor, reading_of(arguments, recipe, tensor),
                 reading_with(arguments, recipe, tensor, Padding::zeros));
}

std::string refusal(const Recipe& recipe, const Tensor& tensor, const Reading& reading, const Reading& padded) {
  const std::string reason = refusal(recipe, tensor, reading);
  return reason.empty() || !refusal(recipe, tensor, padded).empty() ? reason : reason + " (--pad adds zeros)";
}

std::string refusal(const Recipe& recipe, const Tensor& tensor, const Reading& reading) {
  if (std::string reason = refusal(recipe, tensor.dtype); !reason.empty()) return reason;
  if (reading.rotation && element_kind(tensor.dtype) != ElementKind::narrow_float)
    return fmt::format("{} elements are not rotated", row(tensor.dtype).name);
  return refusal(recipe, tensor.shape, reading);
}

std::string refusal(const Recipe& recipe, const std::vector<uint64_t>& shape, const Reading& reading) {
  const TensorLayout& layout = reading.layout;
  const Matrix rows = layout.padded.shape();
  if (reading.rotation && rows.cols % uint64_t(reading.rotation->size) != 0)
    return fmt::format("shape {}: rows of {} are not whole groups of --hadamard {}", shape_text(shape), rows.cols,
                       reading.rotation->size);
  if (layout.padded.inner > 1 && recipe.block.rows > 1 && shape.size() != 2)
    return fmt::format("blocks of {} rows along another axis than the last are for matrices, not shape {}",
                       recipe.block.rows, shape_text(shape));
  if (const std::string reason = refusal(recipe, rows); !reason.empty())
    return fmt::format("shape {}: {}", shape_text(shape), reason);
  if (recipe.element.entry().storage_bits == 4 && !layout.code_shape.empty() && layout.code_shape.back() % 2 != 0)
    return fmt::format("the last dimension of shape {} is odd, and two codes share a byte",
                       shape_text(layout.code_shape));
  return "";
}

void check_seed(const Arguments& arguments, const std::vector<const Recipe*>& recipes) {
  const auto random = std::ranges::find_if(recipes, [](const Recipe* recipe) { return is_random(*recipe); });
  const bool signs = arguments.lists("--signs") && arguments.has("--signs") && arguments.string("--signs") == "seeded";
  if (random == recipes.end() && !signs && arguments.has("--seed"))
    throw UsageError("--seed is for recipes that round stochastically and for seeded signs, and there are none");
  const bool words = arguments.lists("--random") && arguments.has("--random");
  if (random != recipes.end() && !words && !arguments.has("--seed"))
    throw UsageError(fmt::format("--seed is needed: recipe {} rounds stochastically", (*random)->name));
}

Randomness randomness_of(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor, std::size_t number) {
  if (!is_random(recipe)) return {};
  // Transformer Engine's generator advances by 1024 blocks of words for each tensor.
  constexpr uint64_t kTeOffset = 1024;
  const bool te = recipe.random == RandomSource::te;
  return {.seed = arguments.has("--seed") ? arguments.unsigned_integer("--seed", 0, ~uint64_t{0}) : 0,
          .stream = te ? kTeOffset * number : stream_of(tensor.name),
          .scale_stream = stream_of(tensor.name + ".scales")};
}

}  // namespace halfulp

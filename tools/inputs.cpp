#include "tools/inputs.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "emulation/blocks/quantize.h"
#include "emulation/chunks.h"
#include "lib/error.h"
#include "lib/glob.h"
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

void check_amax(const Arguments& arguments, const std::vector<int>& recipe_ids) {
  if (!arguments.has("--amax")) return;
  given_amax(arguments);
  if (std::ranges::none_of(recipe_ids, [](int id) { return has_outer_scale(kRecipes[std::size_t(id)]); }))
    throw UsageError("--amax sets the scale of a tensor, and none of these recipes has one");
}

float amax_of(const Arguments& arguments, int recipe_id, const Tensor& tensor, int threads, Progress& progress) {
  if (!has_outer_scale(kRecipes[std::size_t(recipe_id)])) return 0;
  if (arguments.has("--amax")) return given_amax(arguments);
  float amax = 0;
  std::mutex merging;
  for_each_chunk<float>(tensor, threads, [&](uint64_t, std::span<const float> x) {
    const float chunk = largest_magnitude(recipe_id, 0, x);
    const std::lock_guard lock(merging);
    amax = largest_magnitude(recipe_id, amax, {&chunk, 1});
    progress.advance(x.size());
  });
  return amax;
}

int passes(const Arguments& arguments, int recipe_id) {
  return has_outer_scale(kRecipes[std::size_t(recipe_id)]) && !arguments.has("--amax") ? 2 : 1;
}

}  // namespace halfulp

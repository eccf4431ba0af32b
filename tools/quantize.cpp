// halfulp quantize: tensors to codes and scales.

#include "emulation/blocks/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>

#include "emulation/panels.h"
#include "lib/error.h"
#include "lib/json.h"
#include "lib/notice.h"
#include "lib/philox.h"
#include "tools/inputs.h"
#include "tools/options.h"
#include "tools/placement.h"
#include "tools/quantized.h"
#include "tools/recipe_option.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr std::string_view kNotes =
    R"(For a tensor T the output holds
  T.codes         the codes, in row order. Two E2M1 codes share a byte, the even element in the low nibble: such
                  codes are U8 and half as many along the last dimension. Others have their own dtype.
  T.scales        one scale per block, row-major, neither swizzled nor padded
  T.global_scale  FP32, the decode factor: x is about code * scale * global_scale      } recipes with a
  T.amax          FP32, the magnitude that it came from                                } tensor scale
Metadata: recipe, axis, rounding, seed, and T.shape and T.dtype of the source; recipe_definition states a recipe that is
not of the catalog. For a .npy input T is the file's stem. Codes have the tensor's own layout, whatever the axis that
blocks lie along; along it a tensor must be whole blocks, unless the recipe says otherwise. Tiles are of the matrix whose
rows are all dimensions but that axis. A recipe that rounds stochastically needs --seed: each element's random bits are a
function of seed, tensor name and position. NaN and Inf become what the recipe makes of them
('halfulp formats RECIPE' says what), and are counted on stderr.)";

void check_inputs(const Arguments& arguments, const Recipe& recipe, const std::vector<Tensor>& tensors) {
  std::set<std::string> names;
  std::set<uint64_t> streams;
  for (const Tensor& tensor : tensors) {
    const std::string reason = refusal(recipe, tensor, axis_of(arguments, tensor.shape));
    const char* hint = tensors.size() > 1 ? " (--include and --exclude choose tensors)" : "";
    if (!reason.empty()) throw InputError(where(tensor), reason + hint);
    if (!names.insert(tensor.name).second)
      throw InputError(where(tensor),
                       "another input has a tensor of this name, and both would be called so in the output");
    for (const std::string& stream : {tensor.name, tensor.name + ".scales"})
      if (is_random(recipe) && !streams.insert(stream_of(stream)).second)
        throw InputError(where(tensor), "the hash of its name is another's, so both would have the same random bits");
  }
}

SafetensorsMetadata metadata_of(const Arguments& arguments, const Recipe& recipe, const std::vector<Tensor>& tensors) {
  SafetensorsMetadata metadata{{kFormatKey, kFormatVersion},
                               {kRecipeKey, std::string(recipe.name)},
                               {kAxisKey, arguments.string("--axis")},
                               {kRoundingKey, std::string(kRoundings[std::size_t(recipe.policy.rounding)].name)}};
  if (!is_named(recipe)) metadata[kDefinitionKey] = recipe_toml(recipe);
  if (is_random(recipe)) metadata[kSeedKey] = arguments.string("--seed");
  for (const Tensor& tensor : tensors) {
    const std::string prefix = tensor.name + ".";
    metadata[prefix + kShapeKey] = Json(tensor.shape).dump();
    metadata[prefix + kDtypeKey] = row(tensor.dtype).name;
  }
  if (tensors.size() == 1) metadata[kShapeKey] = Json(tensors.front().shape).dump();
  return metadata;
}

std::span<const std::byte> bytes_of(const float& value) { return std::as_bytes(std::span(&value, 1)); }

// One tensor on its way into the writer's tensors from `codes` on.
struct Work {
  const Arguments& arguments;
  const Recipe& recipe;
  const Tensor& tensor;
  TensorScale scale;
  Randomness random;
  std::size_t codes;
  SafetensorsWriter& writer;
};

// Writes a panel's codes and scales.
template <class Source>
void quantize_panel(const Work& work, const MatrixView& view, const Panel& panel, std::span<const Source> x) {
  const Recipe& recipe = work.recipe;
  std::vector<std::byte> codes(code_bytes(recipe, panel.shape)), scales(scale_bytes(recipe, panel.shape));
  const Randomness random = panel_randomness(work.random, recipe, view, panel);
  quantize(recipe, work.scale, panel.shape, x, random, codes, scales);
  const auto sink = [&](std::size_t part) {
    return [&work, part](uint64_t offset, std::span<const std::byte> bytes) { work.writer.write(part, offset, bytes); };
  };
  place(view, panel, recipe.element.entry().storage_bits, codes, sink(work.codes));
  if (has_scale(recipe))
    place(scale_view(recipe, view), scale_panel(recipe, view, panel), recipe.scale.entry().storage_bits, scales,
          sink(work.codes + 1));
}

// Returns how many elements were not finite.
uint64_t quantize_tensor(const Work& work, Progress& progress) {
  const MatrixView view = view_along(work.recipe, work.tensor.shape, axis_of(work.arguments, work.tensor.shape));
  std::atomic<uint64_t> nonfinite = 0;
  with_element_type(work.tensor.dtype, [&]<class Source>() {
    for_each_panel<Source>(
        work.recipe, work.tensor, view, threads_of(work.arguments), [&](const Panel& panel, std::span<const Source> x) {
          quantize_panel(work, view, panel, x);
          nonfinite += uint64_t(std::ranges::count_if(x, [](Source value) { return !std::isfinite(double(value)); }));
          progress.advance(x.size());
        });
  });
  if (has_outer_scale(work.recipe)) {
    const std::size_t scale = work.codes + (has_scale(work.recipe) ? 2 : 1);
    work.writer.write(scale, 0, bytes_of(work.scale.decode));
    work.writer.write(scale + 1, 0, bytes_of(work.scale.amax));
  }
  return nonfinite;
}

// The output's tensors, and where each input's begin.
struct Parts {
  std::vector<TensorSpec> specs;
  std::vector<std::size_t> first;
};

Parts parts_of(const Arguments& arguments, const Recipe& recipe, const std::vector<Tensor>& tensors) {
  Parts all;
  for (const Tensor& tensor : tensors) {
    const QuantizedParts parts = quantized_parts(recipe, tensor.name, tensor.shape, axis_of(arguments, tensor.shape));
    all.first.push_back(all.specs.size());
    all.specs.push_back(parts.codes);
    all.specs.insert(all.specs.end(), parts.scales.begin(), parts.scales.end());
    all.specs.insert(all.specs.end(), parts.tensor_scale.begin(), parts.tensor_scale.end());
  }
  return all;
}

std::vector<uint64_t> quantize_all(const Arguments& arguments, const Recipe& recipe, const std::vector<Tensor>& tensors,
                                   const Parts& parts, SafetensorsWriter& writer) {
  uint64_t work = 0;
  for (const Tensor& tensor : tensors) work += tensor.elements() * uint64_t(passes(arguments, recipe));
  Progress progress("quantize", work, ProgressUnit::elements, progress_of(arguments));
  std::vector<uint64_t> nonfinite;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const float amax = amax_of(arguments, recipe, tensors[i], threads_of(arguments), progress);
    nonfinite.push_back(quantize_tensor({.arguments = arguments,
                                         .recipe = recipe,
                                         .tensor = tensors[i],
                                         .scale = tensor_scale(recipe, amax),
                                         .random = randomness_of(arguments, recipe, tensors[i], i),
                                         .codes = parts.first[i],
                                         .writer = writer},
                                        progress));
  }
  return nonfinite;
}

ExitCode run(const Arguments& arguments) {
  check_device(arguments);
  const std::vector<const Recipe*> recipes = recipes_of(arguments);
  if (recipes.size() != 1) throw UsageError("--recipe: quantize takes one recipe");
  check_amax(arguments, recipes);
  const Recipe& recipe = *recipes.front();
  const std::vector<Tensor> tensors = open_inputs(arguments, arguments.positionals("FILE"));
  check_inputs(arguments, recipe, tensors);
  const Parts parts = parts_of(arguments, recipe, tensors);
  check_randomness(arguments, recipes);
  SafetensorsWriter writer(arguments.string("--output"), parts.specs, metadata_of(arguments, recipe, tensors));
  const std::vector<uint64_t> nonfinite = quantize_all(arguments, recipe, tensors, parts, writer);
  writer.commit();
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (nonfinite[i] > 0)
      notice(fmt::format("{}: tensor '{}' has {} elements that are NaN or Inf", tensors[i].file, tensors[i].name,
                         nonfinite[i]));
  return ExitCode::good;
}

}  // namespace

Verb quantize_verb() {
  return {
      .name = "quantize",
      .summary = "tensors to codes and scales",
      .examples = {{"halfulp quantize weights.npy -r nvfp4/te -o weights.nvfp4.safetensors", "an array"},
                   {"halfulp quantize model/ -r mxfp8/te --include '*.weight' -o q.safetensors", "tensors of a model"}},
      .positionals = {{.name = "FILE",
                       .help = ".npy, .safetensors, .safetensors.index.json or a directory; FILE:TENSOR for one tensor",
                       .count = Positional::Count::at_least_one}},
      .options = {"--recipe", "--axis", "--amax", "--seed", "--include", "--exclude", "--dtype", "--output",
                  "--threads", "--device", "--progress"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp

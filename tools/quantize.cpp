// halfulp quantize: tensors to codes and scales.

#include "emulation/blocks/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>

#include "emulation/chunks.h"
#include "lib/error.h"
#include "lib/json.h"
#include "lib/notice.h"
#include "tools/inputs.h"
#include "tools/options.h"
#include "tools/quantized.h"
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
Metadata: recipe, axis, rounding, and T.shape and T.dtype of the source. For a .npy input T is the file's stem.
Blocks lie along the last dimension, which must be whole blocks. NaN and Inf become what the recipe makes of them
('halfulp formats RECIPE' says what), and are counted on stderr.)";

void check_inputs(const Recipe& recipe, const std::vector<Tensor>& tensors) {
  std::set<std::string> names;
  for (const Tensor& tensor : tensors) {
    const std::string reason = refusal(recipe, tensor.dtype, tensor.shape);
    const char* hint = tensors.size() > 1 ? " (--include and --exclude choose tensors)" : "";
    if (!reason.empty()) throw InputError(where(tensor), reason + hint);
    if (!names.insert(tensor.name).second)
      throw InputError(where(tensor),
                       "another input has a tensor of this name, and both would be called so in the output");
  }
}

SafetensorsMetadata metadata_of(const Recipe& recipe, const std::vector<Tensor>& tensors) {
  SafetensorsMetadata metadata{{kFormatKey, kFormatVersion},
                               {kRecipeKey, std::string(recipe.name)},
                               {kAxisKey, "-1"},
                               {kRoundingKey, std::string(kRoundings[std::size_t(recipe.policy.rounding)].name)}};
  for (const Tensor& tensor : tensors) {
    const std::string prefix = tensor.name + ".";
    metadata[prefix + kShapeKey] = Json(tensor.shape).dump();
    metadata[prefix + kDtypeKey] = row(tensor.dtype).name;
  }
  if (tensors.size() == 1) metadata[kShapeKey] = Json(tensors.front().shape).dump();
  return metadata;
}

std::span<const std::byte> bytes_of(const float& value) { return std::as_bytes(std::span(&value, 1)); }

// Quantizes one tensor into the writer's tensors from `codes` on. Returns how many elements were not finite.
uint64_t quantize_tensor(const Arguments& arguments, int recipe_id, const Tensor& tensor, std::size_t codes,
                         SafetensorsWriter& writer, Progress& progress) {
  const Recipe& recipe = kRecipes[std::size_t(recipe_id)];
  const int threads = threads_of(arguments);
  const TensorScale scale = tensor_scale_of(recipe_id, amax_of(arguments, recipe_id, tensor, threads, progress));
  std::atomic<uint64_t> nonfinite = 0;
  with_element_type(tensor.dtype, [&]<class Source>() {
    for_each_chunk<Source>(tensor, threads, [&](uint64_t first, std::span<const Source> x) {
      std::vector<std::byte> code(code_bytes(recipe, x.size())), scales(scale_bytes(recipe, x.size()));
      quantize(recipe_id, scale, x, code, scales);
      writer.write(codes, code_bytes(recipe, first), code);
      if (has_scale(recipe)) writer.write(codes + 1, scale_bytes(recipe, first), scales);
      nonfinite += uint64_t(std::ranges::count_if(x, [](Source value) { return !std::isfinite(double(value)); }));
      progress.advance(x.size());
    });
  });
  if (has_outer_scale(recipe)) {
    writer.write(codes + 2, 0, bytes_of(scale.decode));
    writer.write(codes + 3, 0, bytes_of(scale.amax));
  }
  return nonfinite;
}

ExitCode run(const Arguments& arguments) {
  check_device(arguments);
  const std::vector<int> recipes = recipes_of(arguments);
  if (recipes.size() != 1) throw UsageError("--recipe: quantize takes one recipe");
  check_amax(arguments, recipes);
  const Recipe& recipe = kRecipes[std::size_t(recipes.front())];
  const std::string output = arguments.string("--output");
  const std::vector<Tensor> tensors = open_inputs(arguments, arguments.positionals("FILE"));
  check_inputs(recipe, tensors);

  std::vector<TensorSpec> specs;
  std::vector<std::size_t> first;  // of each tensor's parts among the specs
  uint64_t work = 0;
  for (const Tensor& tensor : tensors) {
    const QuantizedParts parts = quantized_parts(recipe, tensor.name, tensor.shape);
    first.push_back(specs.size());
    specs.push_back(parts.codes);
    specs.insert(specs.end(), parts.scales.begin(), parts.scales.end());
    specs.insert(specs.end(), parts.tensor_scale.begin(), parts.tensor_scale.end());
    work += tensor.elements() * uint64_t(passes(arguments, recipes.front()));
  }
  SafetensorsWriter writer(output, specs, metadata_of(recipe, tensors));
  std::vector<uint64_t> nonfinite;
  {
    Progress progress("quantize", work, ProgressUnit::elements, progress_of(arguments));
    for (std::size_t i = 0; i < tensors.size(); ++i)
      nonfinite.push_back(quantize_tensor(arguments, recipes.front(), tensors[i], first[i], writer, progress));
  }
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
      .options = {"--recipe", "--amax", "--include", "--exclude", "--dtype", "--output", "--threads", "--device",
                  "--progress"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp

// halfulp quantize: tensors to codes and scales.

#include "emulation/blocks/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <set>

#include "emulation/blocks/layout.h"
#include "emulation/panels.h"
#include "lib/error.h"
#include "lib/json.h"
#include "lib/notice.h"
#include "lib/philox.h"
#include "tools/device_recipes.h"
#include "tools/inputs.h"
#include "tools/options.h"
#include "tools/placement.h"
#include "tools/quantized.h"
#include "tools/recipe_option.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr std::string_view kNotes =
    R"(For a tensor T the output, a safetensors file, holds
  T.codes         the codes, in the tensor's own order, or with --axis last under --transpose. Two E2M1 codes share a
                  byte, the even element in the low nibble unless --nibbles says otherwise: such codes are U8 and half
                  as many along the last dimension. Others have their own dtype.
  T.scales        one scale per block, row-major and not padded, or as --scale-layout says: linear and padded-4x128 are
                  of the grid as the tensor lies; padded-128x4 and swizzled-128x4 of the grid whose columns are blocks
                  along --axis, transposed where that is not the last dimension, as Transformer Engine does
  T.global_scale  FP32, the decode factor: x is about code * scale * global_scale      } recipes with a
  T.amax          FP32, the magnitude that it came from                                } tensor scale
Metadata: recipe, axis, rounding, T.shape and T.dtype of the source, and what was asked for of seed, padding,
code_order, nibbles, scale_layout, scale_order and hadamard; recipe_definition states a recipe that is not of the catalog. For a .npy
input T is the file's stem.
Along --axis a tensor must be whole blocks, unless the recipe says otherwise or --pad adds zeros. Tiles are of the matrix
whose rows are all dimensions but that axis. --hadamard rotates first, and dequantize rotates back. A recipe that
rounds stochastically needs --seed: each element's random bits are a function of seed, tensor name and position; with
random=te it takes --random instead, a word for four elements. NaN and Inf become what the recipe makes of them ('halfulp
formats RECIPE' says what), and are counted on stderr.)";

// What is asked for, of every tensor.
struct Job {
  const Arguments& arguments;
  const DeviceRecipes& device;
  const Recipe& recipe;
  ScaleLayout scales;
  Nibbles nibbles;
};

Nibbles nibbles_of(const Arguments& arguments, const Recipe& recipe) {
  std::vector<std::string> names;
  for (const NibbleOrderEntry& row : kNibbleOrders) names.emplace_back(row.name);
  const std::string name = arguments.choice("--nibbles", names);
  for (const NibbleOrderEntry& row : kNibbleOrders) {
    if (row.name != name) continue;
    if (row.order == NibbleOrder::even_low) break;
    if (recipe.element.entry().storage_bits != 4)
      throw UsageError(fmt::format("--nibbles: the codes of {} are no nibbles", recipe.name));
    if (recipe.edge == Edge::partial || recipe.block.cols == Extent::kWhole)
      throw UsageError(fmt::format("--nibbles {}: recipe {} may have blocks that are not whole", name, recipe.name));
    return {.order = row.order, .block = uint64_t(recipe.block.cols)};
  }
  return {.order = NibbleOrder::even_low};
}

ScaleLayout scale_layout_of(const Arguments& arguments, const Recipe& recipe) {
  const std::string name = arguments.string("--scale-layout");
  const int id = find_scale_layout(name);
  if (id < 0) {
    std::vector<std::string> names;
    for (const ScaleLayout& row : kScaleLayouts) names.emplace_back(row.name);
    throw UsageError(
        fmt::format("--scale-layout: no layout is called '{}'{} ('halfulp formats scale-layouts' lists them)", name,
                    did_you_mean(name, names)));
  }
  const ScaleLayout layout = kScaleLayouts[std::size_t(id)];
  if (!is_linear(layout) && (!has_scale(recipe) || recipe.scale.entry().storage_bits != 8))
    throw UsageError(fmt::format("--scale-layout {}: recipe {} has no scales of one byte", name, recipe.name));
  return layout;
}

// A file needs a type for what is stored in more than a byte.
void check_formats(const Recipe& recipe) {
  for (const FormatName& format : {recipe.element, recipe.scale})
    if (!format.empty() && format.entry().storage_bits > 8 && format.entry().dtype.empty())
      throw UsageError(fmt::format("{} codes have no type in a safetensors file, so recipe {} cannot be stored",
                                   format.name(), recipe.name));
}

void check_inputs(const Job& job, const std::vector<Tensor>& tensors) {
  std::set<std::string> names;
  std::set<uint64_t> streams;
  for (const Tensor& tensor : tensors) {
    const std::string reason = refusal(job.arguments, job.recipe, tensor);
    const char* hint = tensors.size() > 1 ? "; --include and --exclude choose tensors" : "";
    if (!reason.empty()) throw InputError(where(tensor), reason + hint);
    if (job.nibbles.order != NibbleOrder::even_low &&
        reading_of(job.arguments, job.recipe, tensor).layout.codes.inner > 1)
      throw UsageError("--nibbles: along another axis than the last a byte has elements of two rows; add --transpose");
    if (!names.insert(tensor.name).second)
      throw InputError(where(tensor),
                       "another input has a tensor of this name, and both would be called so in the output");
    for (const std::string& stream : {tensor.name, tensor.name + ".scales"})
      if (is_random(job.recipe) && !streams.insert(stream_of(stream)).second)
        throw InputError(
            where(tensor),
            "its random bits would be another's: two streams, named T and T.scales for a tensor T, are the same");
  }
}

void add_layout(SafetensorsMetadata& metadata, const Job& job) {
  const Arguments& arguments = job.arguments;
  if (arguments.flag("--pad")) metadata[kPaddingKey] = "zeros";
  if (arguments.flag("--transpose")) metadata[kOrderKey] = kAxisLast;
  if (!is_linear(job.scales)) metadata[kScaleLayoutKey] = job.scales.name;
  if (job.scales.axes == ScaleAxes::axis_last) metadata[kScaleOrderKey] = kAxisLast;
  if (job.nibbles.order != NibbleOrder::even_low) metadata[kNibblesKey] = arguments.string("--nibbles");
  if (const Rotation rotation = rotation_of(arguments)) metadata[kHadamardKey] = rotation_text(*rotation);
}

SafetensorsMetadata metadata_of(const Job& job, const std::vector<Tensor>& tensors) {
  const Recipe& recipe = job.recipe;
  SafetensorsMetadata metadata{{kFormatKey, kFormatVersion},
                               {kRecipeKey, std::string(recipe.name)},
                               {kAxisKey, job.arguments.string("--axis")},
                               {kRoundingKey, std::string(kRoundings[std::size_t(recipe.policy.rounding)].name)}};
  if (!is_named(recipe)) metadata[kDefinitionKey] = recipe_toml(recipe);
  if (job.arguments.has("--seed")) metadata[kSeedKey] = job.arguments.string("--seed");
  add_layout(metadata, job);
  for (const Tensor& tensor : tensors) {
    const std::string prefix = tensor.name + ".";
    metadata[prefix + kShapeKey] = Json(tensor.shape).dump();
    metadata[prefix + kDtypeKey] = row(tensor.dtype).name;
  }
  if (tensors.size() == 1) metadata[kShapeKey] = Json(tensors.front().shape).dump();
  return metadata;
}

std::span<const std::byte> bytes_of(const float& value) { return std::as_bytes(std::span(&value, 1)); }

// The words of --random, one for four elements of the only tensor; none without the option.
std::vector<uint32_t> given_words(const Job& job, const std::vector<Tensor>& tensors) {
  if (!job.arguments.has("--random")) return {};
  if (job.recipe.random != RandomSource::te || !is_stochastic(job.recipe.policy.rounding))
    throw UsageError(
        fmt::format("--random: recipe {} does not take words; +rounding=stochastic+random=te does", job.recipe.name));
  if (tensors.size() != 1) throw UsageError("--random: the words are one tensor's, and there are several");
  const Tensor file = open_input(job.arguments, job.arguments.string("--random"));
  if (file.dtype != Dtype::u32 && file.dtype != Dtype::i32)
    throw InputError(where(file), fmt::format("random words are U32 or I32, not {}", row(file.dtype).name));
  const uint64_t needed = reading_of(job.arguments, job.recipe, tensors.front()).layout.padded.shape().elements() / 4;
  if (file.elements() != needed)
    throw InputError(where(file),
                     fmt::format("has {} words; the tensor takes {}, one for four elements", file.elements(), needed));
  std::vector<uint32_t> words(needed);
  std::memcpy(words.data(), file.bytes.data(), needed * sizeof(uint32_t));
  return words;
}

// One tensor on its way into the writer's tensors from `codes` on.
struct Work {
  const Job& job;
  const Tensor& tensor;
  Reading reading;
  TensorScale scale;
  Randomness random;
  std::size_t codes;
  SafetensorsWriter& writer;
  std::vector<std::byte> row_major_scales = {};  // before it is laid out otherwise

  Sink sink(std::size_t part) {
    return [this, part](uint64_t offset, std::span<const std::byte> bytes) { writer.write(part, offset, bytes); };
  }
  Sink scale_sink() {
    if (is_linear(job.scales)) return sink(codes + 1);
    return [this](uint64_t offset, std::span<const std::byte> bytes) {
      std::ranges::copy(bytes, row_major_scales.begin() + std::ptrdiff_t(offset));
    };
  }
};

// Writes a panel's codes and scales.
template <class Source>
void quantize_panel(Work& work, const Panel& panel, std::span<const Source> x) {
  const Recipe& recipe = work.job.recipe;
  const TensorLayout& layout = work.reading.layout;
  std::vector<std::byte> codes(code_bytes(recipe, panel.shape)), scales(scale_bytes(recipe, panel.shape));
  const Randomness random = panel_randomness(work.random, recipe, layout.padded.shape(), panel);
  quantize(work.job.device.functions, recipe, work.scale, panel.shape, x, random, codes, scales);
  if (work.job.nibbles.order != NibbleOrder::even_low) {
    const std::vector<std::byte> even_low = codes;
    reorder_nibbles({.order = NibbleOrder::even_low}, even_low, work.job.nibbles, codes);
  }
  place(layout.codes, panel, recipe.element.entry().storage_bits, codes, work.sink(work.codes));
  if (has_scale(recipe))
    place(scale_view(recipe, layout.codes, work.job.scales.axes), scale_panel(recipe, layout.codes, panel),
          recipe.scale.entry().storage_bits, scales, work.scale_sink());
}

void write_scales(Work& work) {
  const Recipe& recipe = work.job.recipe;
  if (!is_linear(work.job.scales)) {
    const Grid grid = scale_matrix(recipe, work.reading.layout, work.job.scales.axes),
               stored = padded_grid(work.job.scales, grid);
    std::vector<std::byte> bytes(stored.rows * stored.cols);
    store_scales(work.job.scales, grid, work.row_major_scales, bytes);
    work.writer.write(work.codes + 1, 0, bytes);
  }
  if (has_outer_scale(recipe)) {
    const std::size_t scale = work.codes + (has_scale(recipe) ? 2 : 1);
    work.writer.write(scale, 0, bytes_of(work.scale.decode));
    work.writer.write(scale + 1, 0, bytes_of(work.scale.amax));
  }
}

// Returns how many elements were not finite.
uint64_t quantize_tensor(Work& work, Progress& progress) {
  const Recipe& recipe = work.job.recipe;
  if (!is_linear(work.job.scales))
    work.row_major_scales.resize(scale_bytes(recipe, work.reading.layout.padded.shape()));
  std::atomic<uint64_t> nonfinite = 0;
  with_element_type(work.tensor.dtype, [&]<class Source>() {
    check_source<Source>(work.job.device, work.tensor);
    for_each_panel<Source>(
        recipe, work.tensor, work.reading.layout, work.reading.rotation, work.job.device.threads,
        [&](const Panel& panel, std::span<const Source> x) {
          quantize_panel(work, panel, x);
          nonfinite += uint64_t(std::ranges::count_if(x, [](Source value) { return !std::isfinite(double(value)); }));
          progress.advance(x.size());
        });
  });
  write_scales(work);
  return nonfinite;
}

// The output's tensors, and where each input's begin.
struct Parts {
  std::vector<TensorSpec> specs;
  std::vector<std::size_t> first;
};

Parts parts_of(const Job& job, const std::vector<Tensor>& tensors) {
  Parts all;
  for (const Tensor& tensor : tensors) {
    const TensorLayout layout = reading_of(job.arguments, job.recipe, tensor).layout;
    const QuantizedParts parts = quantized_parts(job.recipe, tensor.name, layout, job.scales);
    all.first.push_back(all.specs.size());
    all.specs.push_back(parts.codes);
    all.specs.insert(all.specs.end(), parts.scales.begin(), parts.scales.end());
    all.specs.insert(all.specs.end(), parts.tensor_scale.begin(), parts.tensor_scale.end());
  }
  return all;
}

std::vector<uint64_t> quantize_all(const Job& job, const std::vector<Tensor>& tensors, const Parts& parts,
                                   SafetensorsWriter& writer) {
  uint64_t total = 0;
  for (const Tensor& tensor : tensors)
    total += reading_of(job.arguments, job.recipe, tensor).layout.padded.shape().elements() *
             uint64_t(passes(job.arguments, job.recipe));
  const std::vector<uint32_t> words = given_words(job, tensors);
  Progress progress("quantize", total, ProgressUnit::elements, progress_of(job.arguments));
  std::vector<uint64_t> nonfinite;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Reading reading = reading_of(job.arguments, job.recipe, tensors[i]);
    const float amax = amax_of(job.arguments, job.recipe, tensors[i], reading, threads_of(job.arguments), progress);
    Work work{.job = job,
              .tensor = tensors[i],
              .reading = reading,
              .scale = tensor_scale(job.recipe, amax),
              .random = randomness_of(job.arguments, job.recipe, tensors[i], i),
              .codes = parts.first[i],
              .writer = writer};
    if (!words.empty()) work.random.words = words;
    nonfinite.push_back(quantize_tensor(work, progress));
  }
  return nonfinite;
}

ExitCode run(const Arguments& arguments) {
  const std::vector<const Recipe*> recipes = recipes_of(arguments);
  if (recipes.size() != 1) throw UsageError("--recipe: quantize takes one recipe");
  check_amax(arguments, recipes);
  check_seed(arguments, recipes);
  if (arguments.path("--output").extension() == ".npy")
    throw UsageError("--output: quantize writes .safetensors files, not .npy");
  const Recipe& recipe = *recipes.front();
  check_formats(recipe);
  const DeviceRecipes device = device_recipes(arguments, recipes);
  const Job job{.arguments = arguments,
                .device = device,
                .recipe = recipe,
                .scales = scale_layout_of(arguments, recipe),
                .nibbles = nibbles_of(arguments, recipe)};
  const std::vector<Tensor> tensors = open_inputs(arguments, arguments.positionals("FILE"));
  check_inputs(job, tensors);
  const Parts parts = parts_of(job, tensors);
  SafetensorsWriter writer(arguments.string("--output"), parts.specs, metadata_of(job, tensors));
  const std::vector<uint64_t> nonfinite = quantize_all(job, tensors, parts, writer);
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
                   {"halfulp quantize model/ -r mxfp8/te --include '*.weight' -o q.safetensors", "tensors of a model"},
                   {"halfulp quantize w.npy -r nvfp4/te --axis 0 --transpose --hadamard 16 -o c.safetensors",
                    "Transformer Engine's rotated columnwise copy"},
                   {"halfulp quantize g.npy -r mxfp4/round-up+rounding=stochastic --seed 1 -o g.safetensors",
                    "stochastically, with a recipe of one's own"}},
      .positionals = {{.name = "FILE",
                       .help = ".npy, .safetensors, .safetensors.index.json or a directory; FILE:TENSOR for one tensor",
                       .count = Positional::Count::at_least_one}},
      .options = {"--recipe", "--axis", "--pad", "--transpose", "--hadamard", "--signs", "--amax", "--seed", "--random",
                  "--scale-layout", "--nibbles", "--include", "--exclude", "--dtype", "--output", "--threads",
                  "--device", "--progress"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp

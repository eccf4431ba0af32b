// halfulp dequantize: codes and scales back to values.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "emulation/blocks/layout.h"
#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipes.h"
#include "emulation/panels.h"
#include "formats/packing.h"
#include "lib/error.h"
#include "lib/json.h"
#include "lib/mapped_file.h"
#include "lib/npy.h"
#include "lib/parse_number.h"
#include "tools/inputs.h"
#include "tools/options.h"
#include "tools/placement.h"
#include "tools/quantized.h"
#include "tools/recipe_option.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr std::string_view kNotes =
    R"(Reads what 'halfulp quantize' writes and gives each tensor back under its own name, as FP32, with the roundings of
the publisher's own dequantization. A tensor that was rotated first (--hadamard) is rotated back, rounding once, to FP32;
--keep-rotated leaves it as it was quantized, with its padding, and says so in the metadata. The output is a .npy file
if its name ends so (one tensor only), else safetensors.)";

enum class Rotated { back, kept };

// A quantized tensor of the input.
struct Source {
  std::string file;
  std::string name;
  std::vector<uint64_t> shape;
  const Recipe* recipe;
  TensorLayout layout;
  Rotation rotation;  // to be undone
  Nibbles nibbles;
  TensorScale scale;
  Tensor codes;
  ScaleAxes scale_axes;
  std::vector<std::byte> scales;  // row-major and not padded
};

// The metadata of a file that open_tensors() could open; none where it is of another kind than safetensors.
SafetensorsMetadata metadata_of(const std::string& path) {
  const MappedFile file(path);
  try {
    return parse_safetensors_header(file.bytes(), path).metadata;
  } catch (const InputError&) {
    return {};
  }
}

class QuantizedFile {
 public:
  QuantizedFile(const std::string& path, Rotated rotated) : path_(path), rotated_(rotated) {
    for (Tensor& tensor : open_tensors(path)) {
      const std::string name = tensor.name;
      tensors_.emplace(name, std::move(tensor));
    }
    metadata_ = metadata_of(path);
    if (value(kFormatKey) != kFormatVersion)
      fail("", fmt::format("was not written by 'halfulp quantize': its metadata has no {} = {}", kFormatKey,
                           kFormatVersion));
  }

  // The tensors that have codes, in the order of their names.
  std::vector<Source> sources() const {
    std::vector<Source> found;
    constexpr std::string_view kSuffix = ".codes";
    for (const auto& [name, tensor] : tensors_)
      if (name.ends_with(kSuffix)) found.push_back(source(name.substr(0, name.size() - kSuffix.size())));
    if (found.empty()) fail("", "has no tensor called T.codes");
    return found;
  }

  // What a file of values says of them.
  SafetensorsMetadata metadata_of_values() const {
    SafetensorsMetadata metadata{{kRecipeKey, value(kRecipeKey)}};
    if (rotated_ == Rotated::back) return metadata;
    for (const char* key : {kHadamardKey, kSeedKey, kAxisKey})
      if (metadata_.contains(kHadamardKey) && metadata_.contains(key)) metadata[key] = value(key);
    return metadata;
  }

 private:
  Source source(const std::string& name) const {
    const Recipe& r = recipe(name);
    Source s{.file = path_,
             .name = name,
             .shape = shape(name),
             .recipe = &r,
             .layout = {},
             .rotation = rotation(),
             .nibbles = nibbles(r),
             .scale = {},
             .codes = {},
             .scale_axes = {},
             .scales = {}};
    const int along = axis(name, s.shape);
    const Padding padding = option(kPaddingKey, "zeros", Padding::none, Padding::zeros);
    s.layout = tensor_layout(r, s.shape, along, padding,
                             option(kOrderKey, kAxisLast, CodeOrder::as_tensor, CodeOrder::axis_last), s.rotation);
    if (s.rotation && rotated_ == Rotated::kept) {  // with its padding: a part could not be rotated back
      s.shape = tensor_layout(r, s.shape, along, padding, CodeOrder::as_tensor, s.rotation).code_shape;
      s.layout.source = s.layout.padded;
      s.rotation.reset();
    }
    const std::string reason = refusal(r, s.shape, {.layout = s.layout, .rotation = s.rotation});
    if (!reason.empty()) fail(name, reason);
    if (s.nibbles.order != NibbleOrder::even_low && s.layout.codes.inner > 1)
      fail(name, fmt::format("metadata '{}' is for codes whose last dimension is that of the blocks", kNibblesKey));
    const ScaleLayout scales = scale_layout();
    const QuantizedParts parts = quantized_parts(r, name, s.layout, scales);
    s.codes = part(parts.codes);
    s.scale_axes = scales.axes;
    if (has_scale(r)) s.scales = row_major_scales(r, s.layout, scales, part(parts.scales.front()));
    if (has_outer_scale(r)) s.scale = scale(r, name, parts);
    return s;
  }

  // As `quantize` did it, but for the result's format.
  Rotation rotation() const {
    if (!metadata_.contains(kHadamardKey)) return std::nullopt;
    for (const HadamardSignsEntry& row : kHadamardSigns)
      for (int size = 2; size <= kMaxHadamardSize; size *= 2) {
        const Hadamard h{.size = size, .signs = row.signs, .seed = seed(), .result = HadamardResult::f32};
        if (rotation_text(h) != value(kHadamardKey)) continue;
        if (row.signs == HadamardSigns::te && size != kTeHadamardSize) break;
        if (row.signs == HadamardSigns::seeded && !metadata_.contains(kSeedKey))
          fail("", "has seeded signs and no seed");
        return h;
      }
    fail("", fmt::format("metadata '{}' is '{}', which is no size and signs", kHadamardKey, value(kHadamardKey)));
  }

  uint64_t seed() const {
    if (!metadata_.contains(kSeedKey)) return 0;
    const std::optional<uint64_t> seed = parse_unsigned(value(kSeedKey));
    if (!seed) fail("", fmt::format("metadata '{}' is '{}', which is no seed", kSeedKey, value(kSeedKey)));
    return *seed;
  }

  // The second choice where the key has this value, the first where the key is missing.
  template <class Choice>
  Choice option(const char* key, std::string_view text, Choice first, Choice second) const {
    if (!metadata_.contains(key)) return first;
    if (value(key) != text) fail("", fmt::format("metadata '{}' is '{}'; only '{}' is known", key, value(key), text));
    return second;
  }

  ScaleLayout scale_layout() const {
    const int id = metadata_.contains(kScaleLayoutKey) ? find_scale_layout(value(kScaleLayoutKey)) : 0;
    if (id < 0)
      fail("", fmt::format("metadata '{}' is '{}', which is no layout", kScaleLayoutKey, value(kScaleLayoutKey)));
    ScaleLayout layout = kScaleLayouts[std::size_t(id)];
    layout.axes = option(kScaleOrderKey, kAxisLast, ScaleAxes::as_tensor, ScaleAxes::axis_last);
    return layout;
  }

  Nibbles nibbles(const Recipe& r) const {
    if (!metadata_.contains(kNibblesKey)) return {.order = NibbleOrder::even_low};
    if (r.element.entry().storage_bits != 4 || r.block.cols == Extent::kWhole)
      fail("", fmt::format("metadata '{}' is for codes of 4 bits in blocks, not recipe {}", kNibblesKey, r.name));
    for (const NibbleOrderEntry& row : kNibbleOrders)
      if (row.name == value(kNibblesKey)) return {.order = row.order, .block = uint64_t(r.block.cols)};
    fail("", fmt::format("metadata '{}' is '{}', which is no order", kNibblesKey, value(kNibblesKey)));
  }

  std::vector<std::byte> row_major_scales(const Recipe& r, const TensorLayout& layout, const ScaleLayout& scales,
                                          const Tensor& stored) const {
    std::vector<std::byte> grid(scale_bytes(r, layout.padded.shape()));
    if (is_linear(scales)) {
      std::ranges::copy(stored.bytes, grid.begin());
    } else {
      load_scales(scales, scale_matrix(r, layout, scales.axes), stored.bytes, grid);
    }
    if (r.scale.entry().storage_bits == 8) check_scales(r, stored, grid);
    return grid;
  }

  const Recipe& recipe(const std::string& name) const {
    if (metadata_.contains(kDefinitionKey))
      return recipe_of_toml(value(kDefinitionKey), fmt::format("{}: {}", path_, kDefinitionKey));
    const int id = find_recipe(value(kRecipeKey));
    if (id < 0)
      fail(name, fmt::format("was quantized with recipe '{}', which this version does not know", value(kRecipeKey)));
    return kRecipes[std::size_t(id)];
  }

  int axis(const std::string& name, std::span<const uint64_t> shape) const {
    const std::string text = metadata_.contains(kAxisKey) ? value(kAxisKey) : "-1";
    const int rank = int(std::max<std::size_t>(shape.size(), 1));
    int number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < -rank || number >= rank)
      fail(name, fmt::format("its blocks lie along axis '{}', which shape {} does not have", text, shape_text(shape)));
    return number < 0 ? number : number - rank;
  }

  // Everything follows from the tensor's largest magnitude; the decode factor says whether it is the right one.
  TensorScale scale(const Recipe& r, const std::string& name, const QuantizedParts& parts) const {
    const float decode = load_unaligned<float>(part(parts.tensor_scale[0]).bytes.data());
    const TensorScale scale = tensor_scale(r, load_unaligned<float>(part(parts.tensor_scale[1]).bytes.data()));
    const bool same = scale.decode == decode || (std::isnan(scale.decode) && std::isnan(decode));
    if (!same)
      fail(name + ".global_scale", fmt::format("is {}, but recipe {} makes {} of {}.amax = {}", decode, r.name,
                                               scale.decode, name, scale.amax));
    return scale;
  }

  std::vector<uint64_t> shape(const std::string& name) const {
    const std::string text = value(name + "." + kShapeKey);
    const Json json = Json::parse(text, nullptr, false);
    const bool good =
        json.is_array() && std::ranges::all_of(json, [](const Json& n) { return n.is_number_unsigned(); });
    if (!good) fail(name, fmt::format("metadata '{}.{}' is '{}', not a shape", name, kShapeKey, text));
    return json.get<std::vector<uint64_t>>();
  }

  const Tensor& part(const TensorSpec& spec) const {
    const auto found = tensors_.find(spec.name);
    if (found == tensors_.end()) fail(spec.name, "is missing; a tensor of this recipe needs it");
    const Tensor& tensor = found->second;
    if (tensor.dtype != spec.dtype || tensor.shape != spec.shape)
      fail(spec.name, fmt::format("is {} {}, expected {} {}", row(tensor.dtype).name, shape_text(tensor.shape),
                                  row(spec.dtype).name, shape_text(spec.shape)));
    return tensor;
  }

  // A byte that the scale format does not fill (bit 7 of UE4M3) is a fault of the file, not a scale. Padding may hold
  // anything.
  void check_scales(const Recipe& recipe, const Tensor& stored, std::span<const std::byte> grid) const {
    const uint32_t unused = 0xff & ~recipe.scale.format().code_mask();
    const bool as_stored = std::ranges::equal(stored.bytes, grid);
    for (std::size_t i = 0; i < grid.size(); ++i) {
      if (!(uint32_t(grid[i]) & unused)) continue;
      const std::optional<uint64_t> byte = as_stored ? std::optional<uint64_t>(i) : std::nullopt;
      throw InputError({.file = path_, .tensor = stored.name, .byte = byte},
                       fmt::format("of the tensor is 0x{:02x}, which is no {} code: bits of 0x{:02x} are set",
                                   uint32_t(grid[i]), recipe.scale.name(), unused));
    }
  }

  std::string value(const std::string& key) const {
    const auto found = metadata_.find(key);
    return found == metadata_.end() ? "" : found->second;
  }

  [[noreturn]] void fail(const std::string& tensor, const std::string& message) const {
    throw InputError({.file = path_, .tensor = tensor}, message);
  }

  std::string path_;
  Rotated rotated_;
  SafetensorsMetadata metadata_;
  std::map<std::string, Tensor> tensors_;
};

void dequantize_tensor(const Source& source, int threads, const Sink& sink, Progress& progress) {
  const Recipe& recipe = *source.recipe;
  const TensorLayout& layout = source.layout;
  const Panels panels(recipe, layout.padded, source.rotation ? uint64_t(source.rotation->size) : 1);
  const int bits = recipe.element.entry().storage_bits;
  parallel_for(panels.count(), threads, [&](std::size_t number) {
    const Panel panel = panels[number];
    std::vector<float> y(panel.shape.elements());
    std::vector<std::byte> codes = gather(layout.codes, panel, bits, source.codes.bytes), scales;
    if (source.nibbles.order != NibbleOrder::even_low) {
      const std::vector<std::byte> stored = codes;
      reorder_nibbles(source.nibbles, stored, {.order = NibbleOrder::even_low}, codes);
    }
    if (has_scale(recipe))
      scales = gather(scale_view(recipe, layout.codes, source.scale_axes), scale_panel(recipe, layout.codes, panel),
                      recipe.scale.entry().storage_bits, source.scales);
    dequantize(recipe, source.scale, panel.shape, codes, scales, y);
    if (source.rotation) inverse_hadamard(*source.rotation, panel.shape.cols, y, y);
    place_values(layout, panel, y, sink);
    if (layout.padded.inner == 1) {
      const uint64_t first = panel.first_row * layout.codes.along + panel.first_col;
      source.codes.release(packed_bytes(bits, first), packed_bytes(bits, first + y.size()));
    }
    progress.advance(y.size());
  });
}

ExitCode run(const Arguments& arguments) {
  check_device(arguments);
  const std::string output = arguments.string("--output");
  const Rotated rotated = arguments.flag("--keep-rotated") ? Rotated::kept : Rotated::back;
  const QuantizedFile file(arguments.positional("FILE"), rotated);
  const std::vector<Source> sources = file.sources();
  uint64_t work = 0;
  std::vector<TensorSpec> specs;
  for (const Source& source : sources) {
    work += source.layout.padded.shape().elements();
    specs.push_back({source.name, Dtype::f32, source.shape});
  }
  Progress progress("dequantize", work, ProgressUnit::elements, progress_of(arguments));
  if (output.ends_with(".npy")) {
    if (sources.size() > 1)
      throw UsageError(
          fmt::format("--output: {} has {} tensors, and a .npy file holds one", sources.front().file, sources.size()));
    NpyWriter writer(output, Dtype::f32, specs.front().shape);
    dequantize_tensor(
        sources.front(), threads_of(arguments),
        [&](uint64_t offset, std::span<const std::byte> bytes) { writer.write_at(offset, bytes); }, progress);
    writer.commit();
    return ExitCode::good;
  }
  SafetensorsWriter writer(output, specs, file.metadata_of_values());
  for (std::size_t i = 0; i < sources.size(); ++i)
    dequantize_tensor(
        sources[i], threads_of(arguments),
        [&](uint64_t offset, std::span<const std::byte> bytes) { writer.write(i, offset, bytes); }, progress);
  writer.commit();
  return ExitCode::good;
}

}  // namespace

Verb dequantize_verb() {
  return {
      .name = "dequantize",
      .summary = "codes and scales back to values",
      .examples = {{"halfulp dequantize weights.nvfp4.safetensors -o weights.back.npy", "as FP32"},
                   {"halfulp dequantize c.safetensors --keep-rotated -o rotated.npy", "before the rotation is undone"}},
      .positionals = {{.name = "FILE", .help = "a file that 'halfulp quantize' wrote"}},
      .options = {"--keep-rotated", "--output", "--threads", "--device", "--progress"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp

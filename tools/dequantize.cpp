// halfulp dequantize: codes and scales back to values.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipes.h"
#include "emulation/panels.h"
#include "formats/packing.h"
#include "lib/error.h"
#include "lib/json.h"
#include "lib/mapped_file.h"
#include "lib/npy.h"
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
the publisher's own dequantization. The output is a .npy file if its name ends so (one tensor only), else safetensors.)";

// A quantized tensor of the input.
struct Source {
  std::string file;
  std::string name;
  std::vector<uint64_t> shape;
  int axis;  // from the end
  const Recipe* recipe;
  TensorScale scale;
  Tensor codes;
  std::optional<Tensor> scales;
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
  explicit QuantizedFile(const std::string& path) : path_(path) {
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

 private:
  Source source(const std::string& name) const {
    Source s{.file = path_,
             .name = name,
             .shape = shape(name),
             .axis = -1,
             .recipe = &recipe(name),
             .scale = {},
             .codes = {},
             .scales = {}};
    s.axis = axis(name, s.shape);
    const Recipe& r = *s.recipe;
    const std::string reason = has_scale(r) ? refusal(r, view_along(r, s.shape, s.axis).shape()) : "";
    if (!reason.empty()) fail(name, fmt::format("shape {}: {}", shape_text(s.shape), reason));
    const QuantizedParts parts = quantized_parts(r, name, s.shape, s.axis);
    s.codes = part(parts.codes);
    if (has_scale(r)) {
      s.scales = part(parts.scales.front());
      check_scales(r, *s.scales);
    }
    if (has_outer_scale(r)) s.scale = scale(r, name, parts);
    return s;
  }

  const Recipe& recipe(const std::string& name) const {
    if (metadata_.contains(kDefinitionKey)) return recipe_of_toml(value(kDefinitionKey), path_);
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

  // A byte that the scale format does not fill (bit 7 of UE4M3) is a fault of the file, not a scale.
  void check_scales(const Recipe& recipe, const Tensor& scales) const {
    const uint32_t unused = 0xff & ~recipe.scale.entry().format.code_mask();
    for (std::size_t i = 0; i < scales.bytes.size(); ++i)
      if (uint32_t(scales.bytes[i]) & unused)
        throw InputError({.file = path_, .tensor = scales.name, .byte = i},
                         fmt::format("of the tensor is 0x{:02x}, which is no {} code: bits of 0x{:02x} are set",
                                     uint32_t(scales.bytes[i]), recipe.scale.name(), unused));
  }

  std::string value(const std::string& key) const {
    const auto found = metadata_.find(key);
    return found == metadata_.end() ? "" : found->second;
  }

  [[noreturn]] void fail(const std::string& tensor, const std::string& message) const {
    throw InputError({.file = path_, .tensor = tensor}, message);
  }

  std::string path_;
  SafetensorsMetadata metadata_;
  std::map<std::string, Tensor> tensors_;
};

void dequantize_tensor(const Source& source, int threads, const Sink& sink, Progress& progress) {
  const Recipe& recipe = *source.recipe;
  const MatrixView view = view_along(recipe, source.shape, source.axis);
  const Panels panels(recipe, view.shape());
  const int bits = recipe.element.entry().storage_bits;
  parallel_for(panels.count(), threads, [&](std::size_t number) {
    const Panel panel = panels[number];
    std::vector<float> y(panel.shape.elements());
    std::vector<std::byte> scales;
    if (source.scales)
      scales = gather(scale_view(recipe, view), scale_panel(recipe, view, panel), recipe.scale.entry().storage_bits,
                      source.scales->bytes);
    dequantize(recipe, source.scale, panel.shape, gather(view, panel, bits, source.codes.bytes), scales, y);
    place(view, panel, 32, std::as_bytes(std::span<const float>(y)), sink);
    if (view.inner == 1) {
      const uint64_t first = panel.first_row * view.along + panel.first_col;
      source.codes.release(packed_bytes(bits, first), packed_bytes(bits, first + y.size()));
    }
    progress.advance(y.size());
  });
}

ExitCode run(const Arguments& arguments) {
  check_device(arguments);
  const std::string output = arguments.string("--output");
  const std::vector<Source> sources = QuantizedFile(arguments.positional("FILE")).sources();
  uint64_t work = 0;
  std::vector<TensorSpec> specs;
  for (const Source& source : sources) {
    work += *element_count(source.shape);
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
  SafetensorsWriter writer(output, specs, {{kRecipeKey, std::string(sources.front().recipe->name)}});
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
      .examples = {{"halfulp dequantize weights.nvfp4.safetensors -o weights.back.npy", "as FP32"}},
      .positionals = {{.name = "FILE", .help = "a file that 'halfulp quantize' wrote"}},
      .options = {"--output", "--threads", "--device", "--progress"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp

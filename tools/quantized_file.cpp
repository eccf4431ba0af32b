#include "tools/quantized_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>

#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipes.h"
#include "lib/error.h"
#include "lib/json.h"
#include "lib/mapped_file.h"
#include "lib/parse_number.h"
#include "tools/inputs.h"
#include "tools/recipe_option.h"

namespace halfulp {
namespace {

// The metadata of a file that open_tensors() could open; none where it is of another kind than safetensors.
SafetensorsMetadata metadata_of(const std::string& path) {
  const MappedFile file(path);
  try {
    return parse_safetensors_header(file.bytes(), path).metadata;
  } catch (const InputError&) {
    return {};
  }
}

}  // namespace

bool is_quantized_file(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return false;
  const SafetensorsMetadata metadata = metadata_of(path);
  const auto format = metadata.find(kFormatKey);
  return format != metadata.end() && format->second == kFormatVersion;
}

QuantizedFile::QuantizedFile(const std::string& path, Rotated rotated) : path_(path), rotated_(rotated) {
  for (Tensor& tensor : open_tensors(path)) {
    const std::string name = tensor.name;
    tensors_.emplace(name, std::move(tensor));
  }
  metadata_ = metadata_of(path);
  if (value(kFormatKey) != kFormatVersion)
    fail("",
         fmt::format("was not written by 'halfulp quantize': its metadata has no {} = {}", kFormatKey, kFormatVersion));
}

std::vector<QuantizedTensor> QuantizedFile::tensors() const {
  std::vector<QuantizedTensor> found;
  constexpr std::string_view kSuffix = ".codes";
  for (const auto& [name, stored] : tensors_)
    if (name.ends_with(kSuffix)) found.push_back(tensor(name.substr(0, name.size() - kSuffix.size())));
  if (found.empty()) fail("", "has no tensor called T.codes");
  return found;
}

SafetensorsMetadata QuantizedFile::metadata_of_values() const {
  SafetensorsMetadata metadata{{kRecipeKey, value(kRecipeKey)}};
  if (rotated_ == Rotated::back) return metadata;
  for (const char* key : {kHadamardKey, kSeedKey, kAxisKey})
    if (metadata_.contains(kHadamardKey) && metadata_.contains(key)) metadata[key] = value(key);
  return metadata;
}

QuantizedTensor QuantizedFile::tensor(const std::string& name) const {
  const Recipe& r = recipe(name);
  QuantizedTensor s{.file = path_,
                    .name = name,
                    .shape = shape(name),
                    .recipe = &r,
                    .layout = {},
                    .rotation = rotation(),
                    .kept_rotation = {},
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
    s.kept_rotation = value(kHadamardKey) + " " + value(kSeedKey);
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
Rotation QuantizedFile::rotation() const {
  if (!metadata_.contains(kHadamardKey)) return std::nullopt;
  for (const HadamardSignsEntry& row : kHadamardSigns)
    for (int size = 2; size <= kMaxHadamardSize; size *= 2) {
      const Hadamard h{.size = size, .signs = row.signs, .seed = seed(), .result = HadamardResult::f32};
      if (rotation_text(h) != value(kHadamardKey)) continue;
      if (row.signs == HadamardSigns::te && size != kTeHadamardSize) break;
      if (row.signs == HadamardSigns::seeded && !metadata_.contains(kSeedKey)) fail("", "has seeded signs and no seed");
      return h;
    }
  fail("", fmt::format("metadata '{}' is '{}', which is no size and signs", kHadamardKey, value(kHadamardKey)));
}

uint64_t QuantizedFile::seed() const {
  if (!metadata_.contains(kSeedKey)) return 0;
  const std::optional<uint64_t> seed = parse_unsigned(value(kSeedKey));
  if (!seed) fail("", fmt::format("metadata '{}' is '{}', which is no seed", kSeedKey, value(kSeedKey)));
  return *seed;
}

// The second choice where the key has this value, the first where the key is missing.
template <class Choice>
Choice QuantizedFile::option(const char* key, std::string_view text, Choice first, Choice second) const {
  if (!metadata_.contains(key)) return first;
  if (value(key) != text) fail("", fmt::format("metadata '{}' is '{}'; only '{}' is known", key, value(key), text));
  return second;
}

ScaleLayout QuantizedFile::scale_layout() const {
  const int id = metadata_.contains(kScaleLayoutKey) ? find_scale_layout(value(kScaleLayoutKey)) : 0;
  if (id < 0)
    fail("", fmt::format("metadata '{}' is '{}', which is no layout", kScaleLayoutKey, value(kScaleLayoutKey)));
  ScaleLayout layout = kScaleLayouts[std::size_t(id)];
  layout.axes = option(kScaleOrderKey, kAxisLast, ScaleAxes::as_tensor, ScaleAxes::axis_last);
  return layout;
}

Nibbles QuantizedFile::nibbles(const Recipe& r) const {
  if (!metadata_.contains(kNibblesKey)) return {.order = NibbleOrder::even_low};
  if (r.element.entry().storage_bits != 4 || r.block.cols == Extent::kWhole)
    fail("", fmt::format("metadata '{}' is for codes of 4 bits in blocks, not recipe {}", kNibblesKey, r.name));
  for (const NibbleOrderEntry& row : kNibbleOrders)
    if (row.name == value(kNibblesKey)) return {.order = row.order, .block = uint64_t(r.block.cols)};
  fail("", fmt::format("metadata '{}' is '{}', which is no order", kNibblesKey, value(kNibblesKey)));
}

std::vector<std::byte> QuantizedFile::row_major_scales(const Recipe& r, const TensorLayout& layout,
                                                       const ScaleLayout& scales, const Tensor& stored) const {
  std::vector<std::byte> grid(scale_bytes(r, layout.padded.shape()));
  if (is_linear(scales)) {
    std::ranges::copy(stored.bytes, grid.begin());
  } else {
    load_scales(scales, scale_matrix(r, layout, scales.axes), stored.bytes, grid);
  }
  if (r.scale.entry().storage_bits == 8) check_scales(r, stored, grid);
  return grid;
}

const Recipe& QuantizedFile::recipe(const std::string& name) const {
  if (metadata_.contains(kDefinitionKey))
    return recipe_of_toml(value(kDefinitionKey), fmt::format("{}: {}", path_, kDefinitionKey));
  const int id = find_recipe(value(kRecipeKey));
  if (id < 0)
    fail(name, fmt::format("was quantized with recipe '{}', which this version does not know", value(kRecipeKey)));
  return kRecipes[std::size_t(id)];
}

int QuantizedFile::axis(const std::string& name, std::span<const uint64_t> shape) const {
  const std::string text = metadata_.contains(kAxisKey) ? value(kAxisKey) : "-1";
  const int rank = int(std::max<std::size_t>(shape.size(), 1));
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < -rank || number >= rank)
    fail(name, fmt::format("its blocks lie along axis '{}', which shape {} does not have", text, shape_text(shape)));
  return number < 0 ? number : number - rank;
}

// Everything follows from the tensor's largest magnitude; the decode factor says whether it is the right one.
TensorScale QuantizedFile::scale(const Recipe& r, const std::string& name, const QuantizedParts& parts) const {
  const float decode = load_unaligned<float>(part(parts.tensor_scale[0]).bytes.data());
  const TensorScale scale = tensor_scale(r, load_unaligned<float>(part(parts.tensor_scale[1]).bytes.data()));
  const bool same = scale.decode == decode || (std::isnan(scale.decode) && std::isnan(decode));
  if (!same)
    fail(name + ".global_scale",
         fmt::format("is {}, but recipe {} makes {} of {}.amax = {}", decode, r.name, scale.decode, name, scale.amax));
  return scale;
}

std::vector<uint64_t> QuantizedFile::shape(const std::string& name) const {
  const std::string text = value(name + "." + kShapeKey);
  const Json json = Json::parse(text, nullptr, false);
  const bool good = json.is_array() && std::ranges::all_of(json, [](const Json& n) { return n.is_number_unsigned(); });
  if (!good) fail(name, fmt::format("metadata '{}.{}' is '{}', not a shape", name, kShapeKey, text));
  return json.get<std::vector<uint64_t>>();
}

const Tensor& QuantizedFile::part(const TensorSpec& spec) const {
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
void QuantizedFile::check_scales(const Recipe& recipe, const Tensor& stored, std::span<const std::byte> grid) const {
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

std::string QuantizedFile::value(const std::string& key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? "" : found->second;
}

void QuantizedFile::fail(const std::string& tensor, const std::string& message) const {
  throw InputError({.file = path_, .tensor = tensor}, message);
}

}  // namespace halfulp

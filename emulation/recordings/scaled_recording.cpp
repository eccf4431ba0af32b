#include "emulation/recordings/scaled_recording.h"

#include <cstring>
#include <map>
#include <utility>

#include "formats/catalog.h"
#include "lib/error.h"
#include "lib/mapped_file.h"
#include "lib/safetensors.h"

namespace halfulp {
namespace {

constexpr std::string_view kKey = "halfulp.recording", kKind = "scaled/1";

// How a tensor of codes is stored: a byte each, or the format's own words.
struct Stored {
  Dtype dtype;
  int bytes, shift;
};
Stored stored(std::string_view format) {
  const FormatEntry& entry = kFormats[std::size_t(find_format(format))];
  if (entry.storage_bits <= 8) return {Dtype::u8, 1, 0};
  if (entry.storage_bits == 16) return {Dtype::u16, 2, 0};
  return {format == "f32" ? Dtype::f32 : Dtype::u32, 4, entry.storage_shift};
}

struct Part {
  std::string name;
  std::string_view format;
  int rows, cols;
  std::vector<uint32_t> ScaledTiles::*codes;
};
std::vector<Part> parts_of(const ScaledInstruction& is) {
  std::vector<Part> parts = {{"a", is.a, is.m, is.k, &ScaledTiles::a},
                             {"b", is.b, is.n, is.k, &ScaledTiles::b},
                             {"c", "f32", is.m, is.n, &ScaledTiles::c},
                             {"d", "f32", is.m, is.n, &ScaledTiles::d}};
  if (is.row_scales == 0) return parts;
  parts.push_back({"sfa", is.scale, is.m, is.row_scales, &ScaledTiles::a_scales});
  parts.push_back({"sfb", is.scale, is.n, is.row_scales, &ScaledTiles::b_scales});
  return parts;
}

std::vector<std::byte> bytes_of(const std::vector<uint32_t>& codes, const Stored& as) {
  std::vector<std::byte> bytes(codes.size() * std::size_t(as.bytes));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const uint32_t word = codes[i] << as.shift;
    std::memcpy(bytes.data() + i * std::size_t(as.bytes), &word, std::size_t(as.bytes));
  }
  return bytes;
}

std::vector<uint32_t> codes_of(std::span<const std::byte> bytes, const Stored& as) {
  std::vector<uint32_t> codes(bytes.size() / std::size_t(as.bytes));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    std::memcpy(&codes[i], bytes.data() + i * std::size_t(as.bytes), std::size_t(as.bytes));
    codes[i] >>= as.shift;
  }
  return codes;
}

SafetensorsMetadata metadata_of(const ScaledRecording& recording) {
  const ScaledInstruction& is = kScaledInstructions[std::size_t(recording.id)];
  SafetensorsMetadata metadata = {
      {std::string(kKey), std::string(kKind)},
      {"instruction", ptx_of(is)},
      {"a_format", std::string(is.a)},
      {"b_format", std::string(is.b)},
      {"c_format", "f32"},
      {"d_format", "f32"},
      {"device", recording.device.name},
      {"target", recording.device.target},
      {"driver", recording.device.driver},
      {"cuda", recording.device.cuda},
      {"layout", "a, sfa [tile][M][...]; b, sfb [tile][N][...]; c, d [tile][M][N]; raw bits, FP6 and FP4 in a byte"}};
  if (is.row_scales > 0) metadata.emplace("scale_format", is.scale);
  std::string modes;
  for (const std::string_view mode : kMatrixModeNames) modes += (modes.empty() ? "" : ",") + std::string(mode);
  metadata.emplace("modes", modes);
  return metadata;
}

std::string value(const std::string& path, const SafetensorsHeader& header, const std::string& key) {
  const auto found = header.metadata.find(key);
  if (found == header.metadata.end()) throw InputError({.file = path}, "the metadata has no '" + key + "'");
  return found->second;
}

std::span<const std::byte> tensor(const std::string& path, std::span<const std::byte> file,
                                  const SafetensorsHeader& header, const std::string& name, Dtype dtype,
                                  const std::vector<uint64_t>& shape) {
  for (const SafetensorsEntry& entry : header.tensors) {
    if (entry.name != name) continue;
    if (entry.dtype == dtype && entry.shape == shape) return file.subspan(entry.begin, entry.end - entry.begin);
    throw InputError({.file = path, .tensor = name}, "is not of the instruction's type and shape");
  }
  throw InputError({.file = path, .tensor = name}, "is missing");
}

uint64_t tiles_in(const std::string& path, const SafetensorsHeader& header) {
  for (const SafetensorsEntry& entry : header.tensors)
    if (entry.name == "mode" && entry.shape.size() == 1) return entry.shape[0];
  throw InputError({.file = path, .tensor = "mode"}, "is missing, or no list");
}

}  // namespace

ScaledRecording record_scaled_instruction(const Backend& backend, const DeviceInfo& device, int id, uint64_t count) {
  ScaledRecording recording{.id = id, .device = device, .tile_modes = {}, .tiles = {}};
  const ScaledInstruction& is = kScaledInstructions[std::size_t(id)];
  for (std::size_t mode = 0; mode < kMatrixModeNames.size(); ++mode) {
    ScaledTiles tiles = scaled_inputs(is, MatrixMode(mode), 0, count);
    backend.multiply_scaled_tiles(id, tiles);
    for (const Part& part : parts_of(is)) {
      std::vector<uint32_t>& all = recording.tiles.*part.codes;
      all.insert(all.end(), (tiles.*part.codes).begin(), (tiles.*part.codes).end());
    }
    recording.tile_modes.insert(recording.tile_modes.end(), count, MatrixMode(mode));
  }
  return recording;
}

void write_scaled_recording(const std::string& path, const ScaledRecording& recording) {
  const uint64_t tiles = recording.tile_modes.size();
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorSpec> specs;
  for (const Part& part : parts_of(kScaledInstructions[std::size_t(recording.id)])) {
    bytes.push_back(bytes_of(recording.tiles.*part.codes, stored(part.format)));
    specs.push_back({part.name, stored(part.format).dtype, {tiles, uint64_t(part.rows), uint64_t(part.cols)}});
  }
  bytes.push_back({});
  for (const MatrixMode mode : recording.tile_modes) bytes.back().push_back(std::byte(mode));
  specs.push_back({"mode", Dtype::u8, {tiles}});
  std::vector<TensorData> data;
  for (std::size_t i = 0; i < specs.size(); ++i) data.push_back({specs[i], bytes[i]});
  write_safetensors(path, data, metadata_of(recording));
}

bool is_scaled_recording(const std::string& path) {
  const MappedFile file(path);
  const SafetensorsHeader header = parse_safetensors_header(file.bytes(), path);
  const auto found = header.metadata.find(std::string(kKey));
  return found != header.metadata.end() && found->second == kKind;
}

ScaledRecording read_scaled_recording(const std::string& path) {
  const MappedFile file(path);
  const SafetensorsHeader header = parse_safetensors_header(file.bytes(), path);
  const std::string ptx = value(path, header, "instruction"), a = value(path, header, "a_format"),
                    b = value(path, header, "b_format");
  ScaledRecording recording{.id = find_scaled_instruction(ptx, a, b), .device = {}, .tile_modes = {}, .tiles = {}};
  if (recording.id < 0) throw InputError({.file = path}, "no such instruction: " + ptx + " of " + a + " and " + b);
  recording.device.name = value(path, header, "device"), recording.device.target = value(path, header, "target");
  recording.device.driver = value(path, header, "driver"), recording.device.cuda = value(path, header, "cuda");
  const uint64_t tiles = tiles_in(path, header);
  for (const Part& part : parts_of(kScaledInstructions[std::size_t(recording.id)])) {
    const std::vector<uint64_t> shape = {tiles, uint64_t(part.rows), uint64_t(part.cols)};
    const Stored as = stored(part.format);
    recording.tiles.*part.codes = codes_of(tensor(path, file.bytes(), header, part.name, as.dtype, shape), as);
  }
  for (const std::byte mode : tensor(path, file.bytes(), header, "mode", Dtype::u8, {tiles})) {
    if (std::size_t(mode) >= kMatrixModeNames.size())
      throw InputError({.file = path, .tensor = "mode"}, "no such mode");
    recording.tile_modes.push_back(MatrixMode(mode));
  }
  return recording;
}

std::vector<std::size_t> differing_outputs(const ScaledRecording& recording, const Accumulator& row) {
  const ScaledInstruction& is = kScaledInstructions[std::size_t(recording.id)];
  std::vector<std::size_t> differing;
  for (std::size_t i = 0; i < recording.tiles.d.size(); ++i)
    if (scaled_output(is, row, recording.tiles, i) != recording.tiles.d[i]) differing.push_back(i);
  return differing;
}

}  // namespace halfulp

#include "emulation/recordings/matrix_recording.h"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

#include "emulation/recordings/probes.h"
#include "formats/catalog.h"
#include "lib/cli.h"
#include "lib/error.h"
#include "lib/mapped_file.h"
#include "lib/safetensors.h"

namespace halfulp {
namespace {

constexpr std::string_view kKey = "halfulp.recording", kVersion = "1";

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
std::vector<Part> parts_of(const MatrixForm& is) {
  std::vector<Part> parts = {{"a", is.a, is.m, is.k, &ScaledTiles::a},
                             {"b", is.b, is.n, is.k, &ScaledTiles::b},
                             {"c", is.d, is.m, is.n, &ScaledTiles::c},
                             {"d", is.d, is.m, is.n, &ScaledTiles::d}};
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

SafetensorsMetadata metadata_of(const MatrixRecording& recording) {
  const MatrixForm is = matrix_form(recording.form);
  SafetensorsMetadata metadata = {
      {std::string(kKey), std::string(kVersion)},
      {"instruction", ptx_of_form(recording.form)},
      {"a_format", std::string(is.a)},
      {"b_format", std::string(is.b)},
      {"c_format", std::string(is.d)},
      {"d_format", std::string(is.d)},
      {"device", recording.device.name},
      {"target", recording.device.target},
      {"driver", recording.device.driver},
      {"cuda", recording.device.cuda},
      {"layout", "a, sfa [tile][M][...]; b, sfb [tile][N][...]; c, d [tile][M][N]; raw bits, FP6 and FP4 in a byte"}};
  if (is.row_scales > 0) metadata.emplace("scale_format", is.scale);
  std::string kinds;
  for (const std::string& kind : recording.kinds) kinds += (kinds.empty() ? "" : ",") + kind;
  metadata.emplace("input_classes", kinds);
  return metadata;
}

std::string value(const std::string& path, const SafetensorsHeader& header, const std::string& key) {
  const auto found = header.metadata.find(key);
  if (found == header.metadata.end()) throw InputError({.file = path}, "the metadata has no '" + key + "'");
  return found->second;
}

// "U8 [320, 16, 32]"
std::string type_text(Dtype dtype, const std::vector<uint64_t>& shape) {
  std::string text;
  for (const uint64_t extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return std::string(row(dtype).name) + " [" + text + "]";
}

std::span<const std::byte> tensor(const std::string& path, std::span<const std::byte> file,
                                  const SafetensorsHeader& header, const std::string& name, Dtype dtype,
                                  const std::vector<uint64_t>& shape) {
  for (const SafetensorsEntry& entry : header.tensors) {
    if (entry.name != name) continue;
    if (entry.dtype == dtype && entry.shape == shape) return file.subspan(entry.begin, entry.end - entry.begin);
    throw InputError(
        {.file = path, .tensor = name, .byte = entry.begin},
        "is " + type_text(entry.dtype, entry.shape) + ", and the instruction's is " + type_text(dtype, shape));
  }
  throw InputError({.file = path, .tensor = name}, "is missing");
}

// With the nearest of those that are known.
std::string unknown_instruction(const std::string& ptx, const std::string& a, const std::string& b) {
  std::vector<std::string> names;
  for (int form = 0; form < kMatrixForms; ++form) names.push_back(ptx_of_form(form));
  return "no such instruction: " + ptx + " of " + a + " and " + b + did_you_mean(ptx, names);
}

// Of older files the target is only a number.
std::string target_of(const std::string& path, const SafetensorsHeader& header) {
  return header.metadata.contains("sm") ? "sm_" + value(path, header, "sm") : value(path, header, "target");
}

std::vector<std::string> kinds_of(const std::string& path, const SafetensorsHeader& header) {
  std::vector<std::string> kinds;
  std::istringstream list(value(path, header, "input_classes"));
  for (std::string kind; std::getline(list, kind, ',');) kinds.push_back(kind);
  return kinds;
}

uint64_t tiles_in(const std::string& path, const SafetensorsHeader& header) {
  for (const SafetensorsEntry& entry : header.tensors)
    if (entry.name == "input_class" && entry.shape.size() == 1) return entry.shape[0];
  throw InputError({.file = path, .tensor = "input_class"}, "is missing, or no list");
}

void read_kinds(const std::string& path, std::span<const std::byte> file, const SafetensorsHeader& header,
                uint64_t tiles, MatrixRecording& recording) {
  recording.kinds = kinds_of(path, header);
  const std::span<const std::byte> kinds = tensor(path, file, header, "input_class", Dtype::u8, {tiles});
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (std::size_t(kinds[i]) >= recording.kinds.size())
      throw InputError({.file = path, .tensor = "input_class", .byte = uint64_t(&kinds[i] - file.data())},
                       "is class " + std::to_string(int(kinds[i])) + ", and the metadata names " +
                           std::to_string(recording.kinds.size()));
    recording.tile_kinds.push_back(std::size_t(kinds[i]));
  }
}

// What the device's code makes of tiles of one mode.
ScaledTiles answered(const Backend& backend, int form, MatrixMode mode, uint64_t count) {
  if (form < kPlainForms) {
    MatrixAnswers plain = backend.multiply_tiles(form, {mode, 0, count});
    return {.a = std::move(plain.a),
            .b = std::move(plain.b),
            .a_scales = {},
            .b_scales = {},
            .c = std::move(plain.c),
            .d = std::move(plain.d)};
  }
  ScaledTiles tiles = scaled_inputs(matrix_form(form), mode, 0, count);
  backend.multiply_scaled_tiles(form - kPlainForms, tiles);
  return tiles;
}

// And of probes, a tile each, in all its rows and columns.
ScaledTiles answered(const Backend& backend, int form, const std::vector<MatrixProbe>& probes) {
  const MatrixForm is = matrix_form(form);
  ScaledTiles tiles;
  const auto repeat = [](std::vector<uint32_t>& to, const std::vector<uint32_t>& row, int times) {
    for (int i = 0; i < times; ++i) to.insert(to.end(), row.begin(), row.end());
  };
  for (const MatrixProbe& probe : probes) {
    repeat(tiles.a, probe.a, is.m), repeat(tiles.b, probe.b, is.n);
    repeat(tiles.a_scales, probe.a_scales, is.m), repeat(tiles.b_scales, probe.b_scales, is.n);
    tiles.c.insert(tiles.c.end(), std::size_t(is.m * is.n), probe.c);
  }
  if (form < kPlainForms) {
    tiles.d = backend.multiply_operands(form, {.a = tiles.a, .b = tiles.b, .c = tiles.c, .d = {}});
  } else {
    backend.multiply_scaled_tiles(form - kPlainForms, tiles);
  }
  return tiles;
}

void append(const ScaledTiles& tiles, const std::string& kind, std::size_t count, MatrixRecording& recording) {
  for (const Part& part : parts_of(matrix_form(recording.form))) {
    std::vector<uint32_t>& all = recording.tiles.*part.codes;
    all.insert(all.end(), (tiles.*part.codes).begin(), (tiles.*part.codes).end());
  }
  recording.kinds.push_back(kind);
  recording.tile_kinds.insert(recording.tile_kinds.end(), count, recording.kinds.size() - 1);
}

}  // namespace

MatrixRecording record_matrix_instruction(const Backend& backend, const DeviceInfo& device, int form, uint64_t count) {
  MatrixRecording recording{.form = form, .device = device, .kinds = {}, .tile_kinds = {}, .tiles = {}};
  for (std::size_t mode = 0; mode < kMatrixModeNames.size(); ++mode)
    append(answered(backend, form, MatrixMode(mode), count), std::string(kMatrixModeNames[mode]), count, recording);
  const std::vector<MatrixProbe> probes = probes_of(matrix_form(form));
  if (!probes.empty()) append(answered(backend, form, probes), "probes", probes.size(), recording);
  return recording;
}

void write_matrix_recording(const std::string& path, const MatrixRecording& recording) {
  const uint64_t tiles = recording.tile_kinds.size();
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorSpec> specs;
  for (const Part& part : parts_of(matrix_form(recording.form))) {
    bytes.push_back(bytes_of(recording.tiles.*part.codes, stored(part.format)));
    specs.push_back({part.name, stored(part.format).dtype, {tiles, uint64_t(part.rows), uint64_t(part.cols)}});
  }
  bytes.push_back({});
  for (const std::size_t kind : recording.tile_kinds) bytes.back().push_back(std::byte(kind));
  specs.push_back({"input_class", Dtype::u8, {tiles}});
  std::vector<TensorData> data;
  for (std::size_t i = 0; i < specs.size(); ++i) data.push_back({specs[i], bytes[i]});
  write_safetensors(path, data, metadata_of(recording));
}

bool is_matrix_recording(const std::string& path) {
  const MappedFile file(path);
  return parse_safetensors_header(file.bytes(), path).metadata.contains(std::string(kKey));
}

MatrixRecording read_matrix_recording(const std::string& path) {
  const MappedFile file(path);
  const SafetensorsHeader header = parse_safetensors_header(file.bytes(), path);
  if (value(path, header, std::string(kKey)) != kVersion)
    throw InputError({.file = path}, "is a recording of version " + value(path, header, std::string(kKey)) +
                                         "; this program reads " + std::string(kVersion));
  const std::string ptx = value(path, header, "instruction"), a = value(path, header, "a_format"),
                    b = value(path, header, "b_format");
  MatrixRecording recording{
      .form = find_matrix_form(ptx, a, b), .device = {}, .kinds = {}, .tile_kinds = {}, .tiles = {}};
  if (recording.form < 0) throw InputError({.file = path}, unknown_instruction(ptx, a, b));
  recording.device.name = value(path, header, "device"), recording.device.target = target_of(path, header);
  recording.device.driver = value(path, header, "driver"), recording.device.cuda = value(path, header, "cuda");
  const uint64_t tiles = tiles_in(path, header);
  for (const Part& part : parts_of(matrix_form(recording.form))) {
    const std::vector<uint64_t> shape = {tiles, uint64_t(part.rows), uint64_t(part.cols)};
    const Stored as = stored(part.format);
    recording.tiles.*part.codes = codes_of(tensor(path, file.bytes(), header, part.name, as.dtype, shape), as);
  }
  read_kinds(path, file.bytes(), header, tiles, recording);
  return recording;
}

int accumulator_of(const MatrixRecording& recording, const std::string& path) {
  int capability = 0;
  for (const char c : recording.device.target.substr(std::min<std::size_t>(3, recording.device.target.size())))
    if (c >= '0' && c <= '9') capability = 10 * capability + (c - '0');
  const int id = accumulator_of_form(recording.form, capability);
  if (id < 0)
    throw InputError({.file = path}, "no accumulator is known for " + ptx_of_form(recording.form) + " on " +
                                         recording.device.target + "; --accumulator names one");
  return id;
}

std::vector<std::size_t> differing_outputs(const MatrixRecording& recording, const Accumulator& row) {
  const MatrixForm is = matrix_form(recording.form);
  std::vector<std::size_t> differing;
  for (std::size_t i = 0; i < recording.tiles.d.size(); ++i)
    if (scaled_output(is, row, recording.tiles, i) != recording.tiles.d[i]) differing.push_back(i);
  return differing;
}

}  // namespace halfulp

#include "tools/matrix_recordings.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "emulation/matmul/slices.h"
#include "formats/catalog.h"
#include "lib/error.h"
#include "lib/threads.h"

namespace halfulp {
namespace {

constexpr std::size_t kMostShown = 8;

// "tcgen05.mma.cta_group::1.kind::f16" of f16 and f16: "tcgen05_mma_cta_group_1_kind_f16_f16_f16". Other names have
// their formats in them.
std::string file_name(int form) {
  std::string name = ptx_of_form(form);
  const MatrixForm is = matrix_form(form);
  if (name.starts_with("tcgen05")) name += "." + std::string(is.a) + "." + std::string(is.b);
  name.erase(std::unique(name.begin(), name.end(), [](char x, char y) { return x == ':' && y == ':'; }), name.end());
  std::ranges::replace_if(
      name, [](char c) { return c == '.' || c == ':'; }, '_');
  return name + ".safetensors";
}

// Why a row is no instruction's accumulator on these operands; empty where it is one.
std::string refusal_of(const Accumulator& row, const MatrixRecording& recording) {
  const MatrixForm is = matrix_form(recording.form);
  const auto format = [](std::string_view name) { return kFormats[std::size_t(find_format(name))].format; };
  const auto operand = [&](std::string_view name, const std::vector<uint32_t>& codes,
                           const std::vector<uint32_t>& scales) {
    GemmOperand x{.format = format(name), .codes = codes};
    if (is.row_scales == 0) return x;
    x.scale_format = format(is.scale), x.scales = scales, x.scaled = std::size_t(is.k / is.row_scales);
    return x;
  };
  if (keeps_all_bits(row) || adds_in_f32(row)) return "adds up a whole product, and these are single instructions";
  if (row.sum.format != format(is.d)) return "has sums of another format than " + std::string(is.d);
  return refusal({.row = row,
                  .m = std::size_t(is.m),
                  .n = std::size_t(is.n),
                  .k = std::size_t(is.k),
                  .a = operand(is.a, recording.tiles.a, recording.tiles.a_scales),
                  .b = operand(is.b, recording.tiles.b, recording.tiles.b_scales)});
}

MatrixFile compared(const std::string& path, MatrixRecording recording, const Accumulator* named) {
  if (named != nullptr)
    if (const std::string why = refusal_of(*named, recording); !why.empty())
      throw InputError({.file = path}, fmt::format("--accumulator {} {}", named->name, why));
  const Accumulator* const row =
      named != nullptr ? named : &kAccumulators[std::size_t(accumulator_of(recording, path))];
  std::vector<std::size_t> differing = differing_outputs(recording, *row);
  return {.path = path, .recording = std::move(recording), .accumulator = row, .differing = std::move(differing)};
}

bool has_form(const DeviceInfo& device, int form) {
  const std::vector<bool>& native = form < kPlainForms ? device.native_matrices : device.native_scaled;
  const auto id = std::size_t(form < kPlainForms ? form : form - kPlainForms);
  return id < native.size() && native[id];
}

}  // namespace

MatrixFile replay_matrix(const std::string& path, const Accumulator* named) {
  return compared(path, read_matrix_recording(path), named);
}

std::vector<MatrixFile> record_matrices_of(const Backend& backend, const DeviceInfo& device, const std::string& folder,
                                           uint64_t tiles) {
  std::vector<MatrixFile> files;
  for (int form = 0; form < kMatrixForms; ++form) {
    if (!has_form(device, form)) continue;
    throw_if_interrupted();
    std::filesystem::create_directories(folder);
    const std::string path = (std::filesystem::path(folder) / file_name(form)).string();
    MatrixRecording recording = record_matrix_instruction(backend, device, form, tiles);
    write_matrix_recording(path, recording);
    files.push_back(compared(path, std::move(recording), nullptr));
  }
  return files;
}

Facts row_of(const MatrixFile& file) {
  const MatrixForm is = matrix_form(file.recording.form);
  const uint64_t outputs = file.recording.tiles.d.size(), mismatches = file.differing.size();
  return {{"file", file.path},
          {"instruction", ptx_of_form(file.recording.form)},
          {"a", is.a},
          {"b", is.b},
          {"device", file.recording.device.name},
          {"accumulator", file.accumulator->name},
          {"outputs", outputs, fmt::format("{}", outputs)},
          {"mismatches", mismatches, fmt::format("{}", mismatches)}};
}

std::vector<Facts> differing_rows(const MatrixFile& file) {
  const MatrixForm is = matrix_form(file.recording.form);
  const Format format = kFormats[std::size_t(find_format(is.d))].format;
  const auto n = std::size_t(is.n), of_tile = std::size_t(is.m) * n;
  std::vector<Facts> rows;
  for (const std::size_t at : std::span(file.differing).first(std::min(kMostShown, file.differing.size()))) {
    const uint32_t got = file.recording.tiles.d[at];
    const uint32_t model = scaled_output(is, *file.accumulator, file.recording.tiles, at);
    const auto text = [&](uint32_t code) {
      return fmt::format("0x{:0{}x} ({})", code, format.bits() / 4, shortest_decimal(decode(format, code)));
    };
    rows.push_back({{"tile", int(at / of_tile)},
                    {"input", file.recording.kinds[file.recording.tile_kinds[at / of_tile]]},
                    {"row", int(at % of_tile / n)},
                    {"col", int(at % n)},
                    {"recorded", got, text(got)},
                    {"model", model, text(model)}});
  }
  return rows;
}

}  // namespace halfulp

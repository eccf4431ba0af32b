#include "tools/scaled_recordings.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lib/threads.h"

namespace halfulp {
namespace {

constexpr std::size_t kMostShown = 8;

const ScaledInstruction& instruction_of(const ScaledFile& file) {
  return kScaledInstructions[std::size_t(file.recording.id)];
}

const Accumulator& row_of_accumulator(const ScaledInstruction& is) {
  return kAccumulators[std::size_t(find_accumulator(is.accumulator))];
}

// "tcgen05.mma.cta_group::1.kind::f16" of f16 and f16: "tcgen05_kind_f16_f16_f16".
std::string file_name(const ScaledInstruction& is) {
  std::string name = (is.unit == ScaledUnit::tcgen05 ? "tcgen05." : "mma.") + std::string(is.kind) + "." +
                     std::string(is.a) + "." + std::string(is.b);
  name.erase(std::unique(name.begin(), name.end(), [](char x, char y) { return x == ':' && y == ':'; }), name.end());
  std::ranges::replace_if(
      name, [](char c) { return c == '.' || c == ':'; }, '_');
  return name + ".safetensors";
}

ScaledFile compared(const std::string& path, ScaledRecording recording) {
  const ScaledInstruction& is = kScaledInstructions[std::size_t(recording.id)];
  std::vector<std::size_t> differing = differing_outputs(recording, row_of_accumulator(is));
  return {.path = path, .recording = std::move(recording), .differing = std::move(differing)};
}

}  // namespace

ScaledFile replay_scaled(const std::string& path) { return compared(path, read_scaled_recording(path)); }

std::vector<ScaledFile> record_scaled(const Backend& backend, const DeviceInfo& device, const std::string& folder,
                                      uint64_t tiles) {
  std::vector<ScaledFile> files;
  for (std::size_t id = 0; id < device.native_scaled.size(); ++id) {
    if (!device.native_scaled[id]) continue;
    throw_if_interrupted();
    std::filesystem::create_directories(folder);
    const std::string path = (std::filesystem::path(folder) / file_name(kScaledInstructions[id])).string();
    ScaledRecording recording = record_scaled_instruction(backend, device, int(id), tiles);
    write_scaled_recording(path, recording);
    files.push_back(compared(path, std::move(recording)));
  }
  return files;
}

Facts row_of(const ScaledFile& file) {
  const ScaledInstruction& is = instruction_of(file);
  const uint64_t outputs = file.recording.tiles.d.size(), mismatches = file.differing.size();
  return {{"file", file.path},
          {"instruction", ptx_of(is)},
          {"a", is.a},
          {"b", is.b},
          {"device", file.recording.device.name},
          {"accumulator", is.accumulator},
          {"outputs", outputs, fmt::format("{}", outputs)},
          {"mismatches", mismatches, fmt::format("{}", mismatches)}};
}

std::vector<Facts> differing_rows(const ScaledFile& file) {
  const ScaledInstruction& is = instruction_of(file);
  const auto n = std::size_t(is.n), of_tile = std::size_t(is.m) * n;
  std::vector<Facts> rows;
  for (const std::size_t at : std::span(file.differing).first(std::min(kMostShown, file.differing.size()))) {
    const uint32_t got = file.recording.tiles.d[at];
    const uint32_t model = scaled_output(is, row_of_accumulator(is), file.recording.tiles, at);
    rows.push_back({{"tile", int(at / of_tile)},
                    {"mode", kMatrixModeNames[std::size_t(file.recording.tile_modes[at / of_tile])]},
                    {"row", int(at % of_tile / n)},
                    {"col", int(at % n)},
                    {"recorded", got, fmt::format("0x{:08x}", got)},
                    {"model", model, fmt::format("0x{:08x}", model)}});
  }
  return rows;
}

}  // namespace halfulp

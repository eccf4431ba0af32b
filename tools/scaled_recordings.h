#pragma once
// Recordings of Blackwell's matrix instructions for the verbs: a file for each instruction and pair of formats.

#include <string>
#include <vector>

#include "emulation/recordings/scaled_recording.h"
#include "tools/facts.h"

namespace halfulp {

// A file, and how it compares with its instruction's accumulator.
struct ScaledFile {
  std::string path;
  ScaledRecording recording;
  std::vector<std::size_t> differing;  // outputs
};

// Reads a file and compares.
ScaledFile replay_scaled(const std::string& path);

// Records what the device has of kScaledInstructions into files of a folder, `tiles` tiles in each mode.
std::vector<ScaledFile> record_scaled(const Backend& backend, const DeviceInfo& device, const std::string& folder,
                                      uint64_t tiles);

Facts row_of(const ScaledFile& file);

// The first outputs that differ, in tile, row and column, and what the model has.
std::vector<Facts> differing_rows(const ScaledFile& file);

}  // namespace halfulp

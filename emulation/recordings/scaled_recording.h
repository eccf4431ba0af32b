#pragma once
// Recordings of Blackwell's matrix instructions: a safetensors file of tiles, operands and answers as raw bits. Knows
// no GPU; what tiles are and what a model makes of them is in scaled_tiles.h.

#include <string>
#include <vector>

#include "emulation/backend.h"
#include "emulation/matmul/scaled_tiles.h"

namespace halfulp {

struct ScaledRecording {
  int id;                              // in kScaledInstructions
  DeviceInfo device;                   // its names alone
  std::vector<MatrixMode> tile_modes;  // of each tile
  ScaledTiles tiles;
};

// Tiles 0 to count - 1 of every mode, answered by a device that has the instruction.
ScaledRecording record_scaled_instruction(const Backend& backend, const DeviceInfo& device, int id, uint64_t count);

// Tensors a, b, c and d, sfa and sfb where there are scales, and mode; in the metadata the instruction, its formats and
// the device.
void write_scaled_recording(const std::string& path, const ScaledRecording& recording);

// Whether a file says that it is one, for a caller that has others too.
bool is_scaled_recording(const std::string& path);

// Throws InputError where the file is no such recording.
ScaledRecording read_scaled_recording(const std::string& path);

// Elements of d that a row makes otherwise, which need not be the instruction's own.
std::vector<std::size_t> differing_outputs(const ScaledRecording& recording, const Accumulator& row);

}  // namespace halfulp

#pragma once
// Recordings of matrix instructions: a safetensors file of tiles, operands and answers as raw bits. Knows no GPU; what
// tiles are and what a model makes of them is in scaled_tiles.h.

#include <string>
#include <vector>

#include "emulation/backend.h"
#include "emulation/matmul/scaled_tiles.h"

namespace halfulp {

struct MatrixRecording {
  int form;                             // matrix_form.h
  DeviceInfo device;                    // its names alone
  std::vector<std::string> kinds;       // of inputs: kMatrixModeNames, or those of the file
  std::vector<std::size_t> tile_kinds;  // of each tile
  ScaledTiles tiles;
};

// Tiles 0 to count - 1 of every mode and the probes, answered by a device that has the instruction.
MatrixRecording record_matrix_instruction(const Backend& backend, const DeviceInfo& device, int form, uint64_t count);

// Tensors a, b, c and d, sfa and sfb where there are scales, and input_class; in the metadata the instruction, its
// formats, the classes' names and the device.
void write_matrix_recording(const std::string& path, const MatrixRecording& recording);

// Whether a file says that it is one, for a caller that has others too.
bool is_matrix_recording(const std::string& path);

// Throws InputError where the file is no such recording.
MatrixRecording read_matrix_recording(const std::string& path);

// Position in kAccumulators of what adds the instruction up on the device. Throws InputError, of `path`, where none is
// known.
int accumulator_of(const MatrixRecording& recording, const std::string& path);

// Elements of d that a row makes otherwise, which need not be the instruction's own.
std::vector<std::size_t> differing_outputs(const MatrixRecording& recording, const Accumulator& row);

}  // namespace halfulp

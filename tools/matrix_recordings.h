#pragma once
// Recordings of matrix instructions for the verbs: a file for each instruction and pair of formats.

#include <string>
#include <vector>

#include "emulation/recordings/matrix_recording.h"
#include "tools/facts.h"

namespace halfulp {

// A file, and how it compares with an accumulator.
struct MatrixFile {
  std::string path;
  MatrixRecording recording;
  const Accumulator* accumulator;
  std::vector<std::size_t> differing;  // outputs
};

// Reads a file and compares: with the instruction's own accumulator, or the one that is named.
MatrixFile replay_matrix(const std::string& path, const Accumulator* named);

// Records what the device has of matrix_form.h into files of a folder, `tiles` tiles in each mode.
std::vector<MatrixFile> record_matrices_of(const Backend& backend, const DeviceInfo& device, const std::string& folder,
                                           uint64_t tiles);

Facts row_of(const MatrixFile& file);

// The first outputs that differ: tile, class of its inputs, row and column, and what the model has, as bits and
// numbers.
std::vector<Facts> differing_rows(const MatrixFile& file);

}  // namespace halfulp

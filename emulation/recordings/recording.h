#pragma once
// A recording: what a GPU's conversion instructions answered and what its kernels made of a matrix, to be compared with
// the models anywhere. Knows no model and no GPU. The file is JSON, schema halfulp.recording/1, and states the
// definitions of its inputs and checksums.

#include <cstdint>
#include <string>
#include <vector>

#include "emulation/backend.h"
#include "emulation/recordings/kernel_inputs.h"
#include "lib/json.h"

namespace halfulp {

// Answers that are kept as they are: to inputs k * stride mod count_inputs() for k = 0, 1, ..., so that low and high
// bits vary alike (2^32 divided by the golden ratio).
inline constexpr uint32_t kSampleStride = 0x9e37'79b1;
inline constexpr uint32_t kSamples = 64;

struct RecordedAnswer {
  uint32_t input;  // its number
  uint32_t answer;

  friend bool operator==(const RecordedAnswer&, const RecordedAnswer&) = default;
};

struct RecordedSweep {
  CvtInputs inputs;
  std::vector<uint32_t> chunks;           // numbers, ascending
  std::vector<uint64_t> checksums;        // of those chunks
  std::vector<RecordedAnswer> sample;     // of any chunks
  uint64_t mismatches = 0;                // with the models of the build that recorded
  std::vector<RecordedAnswer> differing;  // some of them, in the order of the inputs
};

struct RecordedInstruction {
  int ptx_cvt_id;
  std::vector<RecordedSweep> sweeps;
};

// 16 elements of a row, and what a kernel made of them.
inline constexpr uint64_t kRunElements = 16;
struct RecordedRun {
  uint32_t run;  // the first element is 16 * run
  std::vector<uint32_t> codes;
  uint32_t scale;  // of their block; 0 where there is none

  friend bool operator==(const RecordedRun&, const RecordedRun&) = default;
};

// What the kernel of a recipe made of the matrix of kernel_inputs.h.
struct RecordedKernel {
  std::string recipe;  // as stated_name() has it
  Dtype dtype;
  KernelForms forms;
  std::vector<KernelChunk> chunks;     // checksums of the first chunks
  uint64_t mismatches = 0;             // runs that the CPU of the build that recorded makes otherwise
  std::vector<RecordedRun> differing;  // some of them
};

struct Recording {
  std::string device, compute, target, driver, cuda;  // as in DeviceInfo
  std::string halfulp;                                // version of the program that recorded
  std::vector<RecordedInstruction> instructions;      // in catalog order
  std::vector<RecordedKernel> kernels;                // by recipe and dtype
  std::vector<std::string> ignored;                   // members of the file that nothing here reads
};

// Reads a recording, or one of the older files of tests/golden/h200, which have the checksums of equal inputs only.
// Throws InputError with the file and the entry.
Recording read_recording(const std::string& path);

// The text of the file.
std::string recording_text(const Recording& recording);

}  // namespace halfulp

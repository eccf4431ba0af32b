#pragma once
// Asks a device's conversion instructions for a recording. Writes no file.

#include <functional>
#include <span>

#include "emulation/recordings/recording.h"

namespace halfulp {

enum class Recorded { skip, again };  // what to do with instructions that the recording has already

struct RecordJob {
  std::vector<int> ptx_cvt_ids;  // native on the device
  uint32_t most_chunks = 256;    // of each sweep, spread evenly
  Recorded recorded = Recorded::skip;
};

// A recording of the device without instructions.
Recording begin_recording(const DeviceInfo& device, std::string_view version);

// The instructions of a job that are still to be recorded: one that has fewer chunks than the job asks for is.
std::vector<int> missing_instructions(const Recording& recording, const RecordJob& job);

// How many inputs the instructions of a job have.
uint64_t inputs_of(std::span<const int> ptx_cvt_ids, uint32_t most_chunks);

// Adds one instruction, or replaces it. `advance` is told of inputs as they are answered. The recording is whole
// before and after, so it can be written in between; where this throws it is as before.
void record_instruction(const Backend& backend, int ptx_cvt_id, uint32_t most_chunks, Recording& recording,
                        const std::function<void(uint64_t)>& advance);

// Of `all` chunks the last of each of `most` equal parts; all of them if there are no more. The last one of 256 has the
// negative NaNs of f32, number 127 the positive ones, number 63 what lies from 0.5 to 2.
std::vector<uint32_t> spread_chunks(uint32_t all, uint32_t most);

}  // namespace halfulp

#pragma once
// Compares a recording with the models. Prints nothing.

#include <functional>
#include <vector>

#include "emulation/recordings/recording.h"

namespace halfulp {

struct ReplayOptions {
  uint32_t most_chunks;  // of each sweep, spread over those recorded
  int threads = 1;
};

struct DifferingAnswer {
  uint32_t input;  // its number
  uint32_t recorded;
  uint32_t model;
};

struct SweepReplay {
  int ptx_cvt_id;
  CvtInputs inputs;
  uint64_t inputs_in_all;                   // of the instruction, recorded or not
  uint64_t inputs_recorded;                 // by checksum
  uint64_t inputs_compared = 0;             // by checksum
  std::vector<uint32_t> chunks = {};        // compared
  std::vector<uint32_t> wrong_chunks = {};  // of those, where the model's checksum is another
  uint64_t answers_compared = 0;            // one by one
  std::vector<DifferingAnswer> wrong_answers = {};

  bool agrees() const { return wrong_chunks.empty() && wrong_answers.empty(); }
};

// What will be compared: chunks that differed where the recording was made are among them.
std::vector<SweepReplay> plan_replay(const Recording& recording, uint32_t most_chunks);
uint64_t inputs_of(const std::vector<SweepReplay>& plan);

// One for each sweep, in the order of the recording. `advance` is told of inputs as they are compared, by any thread.
std::vector<SweepReplay> replay(const Recording& recording, const ReplayOptions& options,
                                const std::function<void(uint64_t)>& advance);

}  // namespace halfulp

#pragma once
// What a replay found, as people and programs read it. Compares nothing itself.

#include <string>
#include <vector>

#include "emulation/recordings/kernels.h"
#include "emulation/recordings/replay.h"
#include "tools/facts.h"

namespace halfulp {

// One recording, compared.
struct ReplayedFile {
  std::string path;
  Recording recording;
  std::vector<SweepReplay> sweeps;    // by instruction, in catalog order
  std::vector<KernelReplay> kernels;  // as they are recorded

  bool agrees() const;
};

// One row for each instruction.
std::vector<Facts> instruction_rows(const ReplayedFile& file);

// Whose recording, the table, what differs bit by bit, and how much was compared.
std::string to_text(const ReplayedFile& file, Color color);

Json to_json(const ReplayedFile& file);

}  // namespace halfulp

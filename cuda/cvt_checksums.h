#pragma once
// What the GPU's conversion instructions answer over every input, as checksums that can be recorded on one machine and
// compared on another (tests/golden/README.md defines them). No model takes part.

#include <cstdint>
#include <vector>

#include "formats/ptx_cvt.h"

namespace halfulp {

inline constexpr uint64_t kMostChecksumInputs = uint64_t{1} << 24;

// Of one lane: one for each 2^24 consecutive inputs, one in all where the source has fewer bits. Empty where the GPU's
// code has no native form, and of stochastic rounding, whose answers depend on more than the input.
std::vector<uint64_t> instruction_checksums(int ptx_cvt_id);

}  // namespace halfulp

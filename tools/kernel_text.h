#pragma once
// Kernels of a recording as people and programs read them. Compares nothing itself.

#include <string>
#include <vector>

#include "emulation/recordings/kernels.h"
#include "lib/table.h"
#include "tools/facts.h"

namespace halfulp {

// The recipe that a recording names. Throws InputError where that is none.
const Recipe& recipe_of_recording(const std::string& path, const std::string& name);

// What is to be compared of a recording, whose kernels the result refers to.
std::vector<KernelReplay> kernels_to_replay(const std::string& path, const Recording& recording);

// "native", "software", or nothing where there is no such conversion.
std::string form_text(std::optional<bool> native);

// One row for each recipe, over its dtypes; `wrong` says how many of something differ in each kernel, and is called so.
std::vector<Facts> kernel_rows(std::span<const RecordedKernel> kernels, std::string_view wrong_key,
                               std::span<const uint64_t> wrong);

// The elements, and scales, of runs that differ, bit by bit.
std::vector<Facts> run_rows(const Recipe& recipe, Dtype dtype, std::span<const DifferingRun> runs);

// "nvfp4/te of BF16", what differs in it and the first of those runs.
std::string runs_text(const RecordedKernel& kernel, const Recipe& recipe, std::span<const DifferingRun> runs,
                      Color color);

}  // namespace halfulp

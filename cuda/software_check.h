#pragma once
// The short software forms of cuda/arch/nearest.cuh against the model, over every FP32 number, on the GPU.

#include <cstdint>
#include <optional>
#include <vector>

namespace halfulp {

struct SoftwareMismatch {
  uint32_t bits;  // of the FP32 number
  uint32_t got;
  uint32_t model;
};

struct SoftwareComparison {
  uint64_t compared = 0;
  uint64_t mismatches = 0;
  std::vector<SoftwareMismatch> shown;  // some of them
};

enum class SoftwareForm {
  nearest_code,  // of every number
  line_nibbles,  // of every number but NaN, times 1, in each of eight places
};

// Nothing where the format has no such form.
std::optional<SoftwareComparison> compare_software(int format_id, SoftwareForm form);

// nearest_code() of E2M1 against the model that rounds ties away: does the comparison see differences?
SoftwareComparison compare_with_ties_away();

}  // namespace halfulp

#pragma once
// The short software forms of cuda/arch/ against the model, over every FP32 number, on the GPU.

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

// The stochastic ones are compared under several words a number. Where every element has its own, two of the words are
// the last that leaves the number's magnitude and the first that raises it.
enum class SoftwareForm {
  nearest_code,         // of every number
  line_nibbles,         // of every number but NaN, times 1, in each of eight places
  stochastic_register,  // likewise, in each place of a register
  stochastic_nibbles,   // likewise, a word shared by four
  exponent_up,          // of every magnitude
  exponent_nearest,     // likewise
};
inline constexpr int kSoftwareForms = 6;

// Nothing where the format has no such form.
std::optional<SoftwareComparison> compare_software(int format_id, SoftwareForm form);

// nearest_code() of E2M1 against the model that rounds ties away: does the comparison see differences?
SoftwareComparison compare_with_ties_away();

}  // namespace halfulp

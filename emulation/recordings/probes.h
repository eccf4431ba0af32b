#pragma once
// Directed inputs of matrix instructions: each tells accumulators apart that random ones rarely do. They are in the
// program, and in probes.tsv and probes_blockscaled.tsv with the answers of each architecture's model; the last two
// columns of probes.tsv are what an H200 answered by wgmma and by mma.sync. Those of block-scaled products have the
// answers of rival hypotheses; no hardware has answered them here.

#include <cstdint>
#include <string>
#include <vector>

#include "emulation/matmul/matrix_form.h"

namespace halfulp {

// Codes of a row of A, a column of B and their scales.
struct MatrixProbe {
  std::string name;
  std::vector<uint32_t> a, b, a_scales, b_scales;
  uint32_t c;
};

// Those that an instruction can be asked.
std::vector<MatrixProbe> probes_of(const MatrixForm& form);

}  // namespace halfulp

#pragma once
// Which matrix instructions of Blackwell the code that runs on the present GPU holds, and which are replaced by models.

#include <string>

#include "cuda/arch/form.h"

namespace halfulp::arch {

struct MatrixForms {
  std::string target;     // "sm_90a"
  Form mma_block_scaled;  // cuda/arch/mma_block_scaled.cuh
  Form tcgen05;
};

// Throws EnvironmentError where there is no GPU that runs this build's code.
MatrixForms loaded_matrix_forms();

}  // namespace halfulp::arch

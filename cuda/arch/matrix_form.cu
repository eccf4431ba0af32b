#include "cuda/arch/matrix_form.h"

#include "cuda/arch/mma_block_scaled.cuh"
#include "cuda/arch/tcgen05.cuh"
#include "cuda/check.h"

namespace halfulp::arch {
namespace {

struct Report {
  Target target;
  bool mma_block_scaled, tcgen05;
};

// Each target's code holds its own.
__constant__ const Report kReport{kTarget, has_scaled_mma(), has_tcgen05()};

Form form(bool is_native) { return is_native ? Form::native : Form::software; }

}  // namespace

MatrixForms loaded_matrix_forms() {
  Report report;
  check(cudaMemcpyFromSymbol(&report, kReport, sizeof report));
  return {"sm_" + std::string(report.target.name()), form(report.mma_block_scaled), form(report.tcgen05)};
}

}  // namespace halfulp::arch

#include "cuda/arch/form.h"

#include <utility>

#include "cuda/arch/cvt.cuh"
#include "cuda/check.h"

namespace halfulp::arch {
namespace {

struct Report {
  Target target;
  Form forms[kPtxCvts.size()];
};

template <std::size_t... id>
constexpr Report report_of(std::index_sequence<id...>) {
  return {kTarget, {(detail::kIsNative<int(id)> ? Form::native : Form::software)...}};
}

// Each target's code holds its own.
__constant__ const Report kReport = report_of(std::make_index_sequence<kPtxCvts.size()>{});

}  // namespace

LoadedForms loaded_forms() {
  Report report;
  check(cudaMemcpyFromSymbol(&report, kReport, sizeof report));
  return {"sm_" + std::string(report.target.name()), {report.forms, report.forms + kPtxCvts.size()}};
}

}  // namespace halfulp::arch

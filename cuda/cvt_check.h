#pragma once
// The conversions of the catalog run on the GPU over whole domains, to compare the instruction with its model and both
// with the CPU. Not a fast conversion.

#include <cstdint>
#include <vector>

#include "cuda/cvt_inputs.h"

namespace halfulp {

// Whether this machine has a GPU that this build's code runs on.
bool has_gpu();

// The destination registers of the inputs 0, stride, 2 * stride, ...: `count` of them, by arch::convert, that is by the
// form that the GPU's code has. Requires (count - 1) * stride < count_inputs().
std::vector<uint32_t> convert_on_gpu(int ptx_cvt_id, CvtInputs inputs, uint32_t stride, uint32_t count);

struct CvtMismatch {
  uint32_t input;  // its number
  uint32_t native;
  uint32_t model;
};

struct CvtComparison {
  uint64_t compared = 0;  // 0 where the GPU's code has no native form
  uint64_t mismatches = 0;
  std::vector<CvtMismatch> shown;  // some of them
};

// The instruction against its model, over all inputs of a kind, both on the GPU.
CvtComparison compare_forms(int ptx_cvt_id, CvtInputs inputs);

// cvt.rn.bf16.f32, which every GPU has, against the model of cvt.rn.relu.bf16.f32: does the comparison see differences?
CvtComparison compare_with_wrong_model();

}  // namespace halfulp

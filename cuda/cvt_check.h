#pragma once
// The conversions of the catalog run on the GPU over whole domains, to compare the instruction with its model, both
// with the CPU, and with what was recorded. Not a fast conversion.

#include <cstdint>
#include <span>
#include <vector>

#include "emulation/backend.h"
#include "formats/cvt_inputs.h"

namespace halfulp {

// Whether this machine has a GPU that this build's code runs on.
bool has_gpu();

// The answers to `count` inputs, the first, that plus stride, ... (mod 2^32), by arch::convert, that is by the form
// that the GPU's code has. The upper bits of a number that is no input are not looked at.
std::vector<uint32_t> convert_on_gpu(int ptx_cvt_id, CvtInputs inputs, CvtRange range);

// What the instruction answers in chunks of the inputs, and how often its model, on the GPU too, answers otherwise.
// Empty where the GPU's code has no native form.
std::vector<CvtChunk> sweep_on_gpu(int ptx_cvt_id, CvtInputs inputs, std::span<const uint32_t> chunks);

// The same of all inputs `equal` of cvt.rn.bf16.f32, which every GPU has, with the model of cvt.rn.relu.bf16.f32: does
// the comparison see differences?
std::vector<CvtChunk> sweep_with_wrong_model();

}  // namespace halfulp

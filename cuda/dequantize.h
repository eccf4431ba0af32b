#pragma once
// Codes and scales in the memory of a GPU back to values: the bits of dequantize(), by kernels.

#include <cstddef>

#include "cuda/quantize.h"

namespace halfulp {

// As GpuQuantizeJob, the other way.
struct GpuDequantizeJob {
  Matrix shape;
  TensorScale tensor{};
  const std::byte* codes;
  const std::byte* scales;  // null where the recipe has none
  float* y;
};

// As of quantize_on_gpu().
bool has_compiled_kernel(const Recipe& recipe, const GpuDequantizeJob& job);
void dequantize_on_gpu(const Recipe& recipe, const GpuDequantizeJob& job, Kernel kernel);

}  // namespace halfulp

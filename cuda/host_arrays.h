#pragma once
// Recipes over arrays of the host, on the present GPU: copies there and back. By the compiled kernel where it takes the
// matrix, else by definition.

#include <cstddef>
#include <span>
#include <string>

#include "cuda/dequantize.h"
#include "cuda/quantize.h"
#include "emulation/backend.h"

namespace halfulp {

// The compiled kernel where it takes the job, else the definition.
Kernel kernel_for(const Recipe& recipe, const GpuQuantizeJob& job);
Kernel kernel_for(const Recipe& recipe, const GpuDequantizeJob& job);

void quantize_host_arrays(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape,
                          std::span<const float> x, const Randomness& random, std::span<std::byte> codes,
                          std::span<std::byte> scales);
void dequantize_host_arrays(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape,
                            std::span<const std::byte> codes, std::span<const std::byte> scales, std::span<float> y);

// "compiled kernel, conversion to e2m1 in software", or "by definition" where no kernel is compiled.
std::string recipe_form_on_gpu(const Recipe& recipe);

// How the recipe's compiled kernel converts. Requires that it has one.
KernelForms kernel_forms_on_gpu(const Recipe& recipe);

// What that kernel makes of a matrix. Requires that it takes it.
void run_kernel_on_gpu(const Recipe& recipe, const KernelMatrix& x, std::span<std::byte> codes,
                       std::span<std::byte> scales);

}  // namespace halfulp

#pragma once
// Recipes over matrices in the memory of a GPU: the bytes of quantize(), by kernels.

#include <cstddef>
#include <string>

#include "emulation/blocks/quantize.h"
#include "lib/dtype.h"

namespace halfulp {

// What computes a recipe. `compiled` is a kernel for one recipe, whole blocks and whole vectors; `definition` takes
// every recipe, shape and tail, one block a thread, and is slow.
enum class Kernel { compiled, definition };

// A matrix of F32, F16 or BF16 and what becomes of it, all in the memory of the present GPU; codes and scales have
// code_bytes() and scale_bytes(). As quantize() requires it, refusal() must be empty.
struct GpuQuantizeJob {
  Matrix shape;
  Dtype dtype;
  const void* x;
  TensorScale tensor{};
  Randomness random{};  // its words, if any, in the memory of the host
  std::byte* codes;
  std::byte* scales;  // null where the recipe has none
};

// Whether the job can be computed by a compiled kernel: the recipe has one, rows are whole blocks, pointers lie on 16
// bytes, and a part of a stochastic tensor begins at a multiple of 4.
bool has_compiled_kernel(const Recipe& recipe, const GpuQuantizeJob& job);

// Starts the job on the default stream. Throws std::logic_error where the kernel asked for cannot take it, and
// EnvironmentError for what the GPU refuses.
void quantize_on_gpu(const Recipe& recipe, const GpuQuantizeJob& job, Kernel kernel);

}  // namespace halfulp

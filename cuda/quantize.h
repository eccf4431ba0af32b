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

// Starts the job on the default stream. Throws EnvironmentError for a pointer that does not lie as the kernel needs it
// and for what the GPU refuses, and std::logic_error where the kernel asked for cannot take the job otherwise.
void quantize_on_gpu(const Recipe& recipe, const GpuQuantizeJob& job, Kernel kernel);

// Where the codes of columns go, and their scales likewise: as the matrix lies (Transformer Engine's MXFP8), or as its
// transpose (its NVFP4).
enum class ColumnLayout { in_place, transposed };

// Beside the blocks of the rows those of the columns, in one pass: the bytes of two jobs, the second on the transpose.
struct GpuColumns {
  ColumnLayout layout;
  TensorScale tensor{};
  std::byte* codes;
  std::byte* scales;
};

// Whether there is a kernel for both: the recipe has a compiled one without random bits, its blocks are one row of 16
// or 32 under a scale of 8 bits, and the matrix is whole tiles of 4 blocks by 128 elements. In place codes are of 8
// bits.
bool has_both_kernel(const Recipe& recipe, const GpuQuantizeJob& rows, const GpuColumns& columns);

// As quantize_on_gpu().
void quantize_both_on_gpu(const Recipe& recipe, const GpuQuantizeJob& rows, const GpuColumns& columns);

}  // namespace halfulp

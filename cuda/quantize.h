#pragma once
// Recipes over matrices in the memory of a GPU: the bytes of quantize(), by kernels.

#include <cstddef>
#include <optional>
#include <string>

#include "emulation/blocks/hadamard.h"
#include "emulation/blocks/layout.h"
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
  ScaleOrder scale_order =
      ScaleOrder::row_major;  // in tiles: scales of 8 bits, room for the padding, which is left as it is
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

// The columns of a matrix: the bytes of a job on its transpose, which `random` counts too. Transformer Engine rotates
// them where they are of gradients or activations.
struct GpuColumns {
  ColumnLayout layout;
  TensorScale tensor{};
  Randomness random{};
  std::optional<Hadamard> rotation{};
  std::byte* codes;
  std::byte* scales;
  ScaleOrder scale_order = ScaleOrder::row_major;  // tiles are of the transpose, whatever the layout
};

// Whether there is a kernel for columns, and rows in the same pass: the recipe has a compiled one, its blocks are one
// row of 16 or 32 under a scale of 8 bits, and so many divide the matrix either way, which is below 2^25. In place
// codes are of 8 bits. A rotation is of blocks of 16, with one vector of signs, to BF16.
bool has_both_kernel(const Recipe& recipe, const GpuQuantizeJob& rows, const GpuColumns& columns);

// As quantize_on_gpu(). Where `rows` has no codes only columns are made.
void quantize_both_on_gpu(const Recipe& recipe, const GpuQuantizeJob& rows, const GpuColumns& columns);

// Raises *amax, in the memory of the GPU, to the largest magnitude of the columns of `rows` after a rotation, which is
// what Transformer Engine scales them by; AmaxNan as raise_largest_magnitude() takes it.
void raise_rotated_magnitude(AmaxNan nan, const GpuQuantizeJob& rows, const Hadamard& rotation, float* amax);

}  // namespace halfulp

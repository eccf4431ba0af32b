#pragma once
// A @ B^T of operands with scales of blocks, by Blackwell's matrix instructions on halfulp's own packed codes. Where
// the GPU has none, by their models in the same kernels; the result says which. Not the fast emulation: that is gemm.h.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cuda/arch/form.h"
#include "emulation/blocks/layout.h"
#include "emulation/matmul/accumulator.h"

namespace halfulp {

enum class BlockScaledKind {
  nvfp4,  // E2M1, UE4M3 of 16
  mxfp4,  // E2M1, E8M0 of 32
  mxfp8,  // E4M3 or E5M2, E8M0 of 32
};

enum class BlockScaledPath {
  mma_sync,  // sm_120, sm_121
  tcgen05,   // sm_100, sm_103, sm_110
};

// `halfulp quantize` writes codes and scales so.
struct BlockScaledOperand {
  std::string_view format;
  std::span<const uint8_t> codes;   // [rows, k]; two of E2M1 to a byte, the first in its low bits
  std::span<const uint8_t> scales;  // [rows, k / block], or in tiles of 128 x 4 with padding (layout.h)
  ScaleOrder order = ScaleOrder::row_major;
};

enum class GemmOutput { f32, bf16 };

// d = alpha * sum, or with c fma(alpha, sum, beta * c); FP32, then rounded to nearest even where d is BF16.
struct BlockScaledJob {
  BlockScaledKind kind;
  std::size_t m, n, k;  // k: a multiple of the block's
  BlockScaledOperand a, b;
  float alpha = 1, beta = 0;
  std::span<const float> c{};  // [m, n]; none: no beta * c
  GemmOutput output = GemmOutput::f32;
};

// The row that sums are those of: dot_product() over all of K.
Accumulator accumulator_of(BlockScaledKind kind, BlockScaledPath path);

// How a product was made.
struct BlockScaledRun {
  BlockScaledPath path;
  arch::Form form;     // of the path's instruction
  std::string target;  // "sm_120a"
};

// The path whose instruction the present GPU has; mma_sync where it has none.
BlockScaledPath block_scaled_path();

// Why a job cannot be done, by its formats and sizes; empty where it can.
std::string refusal(const BlockScaledJob& job);

// d is [m, n] of the job's output. Requires that refusal() is empty: std::logic_error. The job's spans and `d` are
// memory of the host in the first, and of the present GPU, on 8 bytes, in the second, which starts on the default
// stream.
BlockScaledRun gemm_block_scaled(const BlockScaledJob& job, BlockScaledPath path, std::span<std::byte> d);
BlockScaledRun gemm_block_scaled_on_gpu(const BlockScaledJob& job, BlockScaledPath path, std::span<std::byte> d);

}  // namespace halfulp

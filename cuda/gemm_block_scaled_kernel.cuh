#pragma once
// Two kernels for products with scales of blocks: by mma.sync, and by tcgen05. Both take a row of an operand 128 bytes
// at a time, four instructions' worth, into shared memory while they multiply the ones before.

#include <cuda_pipeline.h>

#include <cstdint>
#include <utility>

#include "cuda/arch/cvt.cuh"
#include "cuda/arch/mma_block_scaled.cuh"
#include "cuda/arch/tcgen05.cuh"
#include "emulation/blocks/layout.h"
#include "formats/ptx_cvt.h"

namespace halfulp::gpu {

constexpr int kTileRowBytes = 128, kInstructionBytes = 32, kTileSteps = kTileRowBytes / kInstructionBytes;
constexpr int kPieceBytes = 8;  // rows are a multiple of this
constexpr int kBlockScaledThreads = 128;
constexpr int kToBf16 = find_ptx_cvt("cvt.rn.bf16x2.f32");

struct BlockScaledRows {
  const uint8_t* codes;
  const uint8_t* scales;
  int rows;
  int scale_cols;
  ScaleOrder order;
  uint32_t number;  // of the format, in tcgen05's descriptors
};

struct BlockScaledKernelJob {
  BlockScaledRows a, b;
  int row_bytes;
  int steps;  // instructions
  float alpha, beta;
  const float* c;
  float* f32;  // either of d's two kinds is null
  uint16_t* bf16;
  uint32_t* model;  // of Tensor Memory, of each CTA, where there is none
};

// Eight bytes of a row into shared memory, zeros beyond the operand's end.
__device__ inline void load_piece(const BlockScaledRows& x, int row_bytes, int row, int byte, uint8_t* to) {
  const bool is = row < x.rows && byte < row_bytes;
  const uint8_t* from = is ? x.codes + int64_t(row) * row_bytes + byte : x.codes;
  __pipeline_memcpy_async(to, from, kPieceBytes, is ? 0 : kPieceBytes);
}

// Four scales of a row's blocks, the first in the low byte; beyond the grid's end 0.
__device__ inline uint32_t scale_word(const BlockScaledRows& x, int row, int word) {
  uint32_t packed = 0;
#pragma unroll 1
  for (int i = 0; i < 4; ++i) {
    const int col = word * 4 + i;
    if (row >= x.rows || col >= x.scale_cols) break;
    const uint64_t at = x.order == ScaleOrder::tiles
                            ? swizzled_offset(uint64_t(x.scale_cols), uint64_t(row), uint64_t(col))
                            : uint64_t(row) * uint64_t(x.scale_cols) + uint64_t(col);
    packed |= uint32_t{x.scales[at]} << i * 8;
  }
  return packed;
}

__device__ inline void store_output(const BlockScaledKernelJob& job, int row, int col, uint32_t sum) {
  if (row >= job.a.rows || col >= job.b.rows) return;
  const int64_t at = int64_t(row) * job.b.rows + col;
  const float x = __uint_as_float(sum);
  const float d = job.c == nullptr ? job.alpha * x : fmaf(job.alpha, x, job.beta * job.c[at]);
  if (job.f32 != nullptr) {
    job.f32[at] = d;
  } else {
    const uint32_t two[2] = {__float_as_uint(d), 0};
    job.bf16[at] = uint16_t(arch::convert<kToBf16>(two));
  }
}

// By mma.sync: a CTA of four warps makes 64 x 64 outputs, a warp 32 x 32 of them.

constexpr int kMmaTile = 64, kWarpTile = 32, kWarpRows = kWarpTile / 16, kWarpCols = kWarpTile / 8;
constexpr int kPaddedRowBytes = kTileRowBytes + 16;  // so that eight rows' words lie in all banks

struct MmaOperandTile {
  alignas(16) uint8_t codes[kMmaTile][kPaddedRowBytes];
  uint32_t scales[4][kMmaTile];  // as many words of a row as an instruction has scales of it
};
struct MmaTile {
  MmaOperandTile a, b;
};

template <int words>
__device__ void load_tile(const BlockScaledRows& x, int row_bytes, int first_row, int tile, MmaOperandTile& to) {
  constexpr int pieces = kTileRowBytes / kPieceBytes;
// Left rolled: it is copying that takes time, and unrolled it is most of the kernel's code.
#pragma unroll 1
  for (int i = int(threadIdx.x); i < kMmaTile * pieces; i += kBlockScaledThreads) {
    const int row = i / pieces, byte = i % pieces * kPieceBytes;
    load_piece(x, row_bytes, first_row + row, tile * kTileRowBytes + byte, &to.codes[row][byte]);
  }
// Left rolled: it is copying that takes time, and unrolled it is most of the kernel's code.
#pragma unroll 1
  for (int i = int(threadIdx.x); i < kMmaTile * words; i += kBlockScaledThreads)
    to.scales[i / kMmaTile][i % kMmaTile] = scale_word(x, first_row + i % kMmaTile, tile * words + i / kMmaTile);
}

struct WarpSums {
  uint32_t at[kWarpRows][kWarpCols][4];
};

template <arch::ScaledMma mma, int a_format, int b_format>
struct MmaMultiplier {
  static constexpr int row_scales = arch::kScaledMmas[std::size_t(mma)].row_scales;

  // The step's scales are bytes of a word of their own, or of one that steps share. Lane t of a quad has those of rows
  // in the half t % 2 of the 16 rows t / 2, and of the eight columns t.
  template <int step>
  __device__ static void multiply(const MmaTile& tile, int first_row, int first_col, WarpSums& sums) {
    constexpr int word = step * row_scales / 4;
    const int lane = int(threadIdx.x % 32), group = lane / 4, t = lane % 4;
    const uint32_t a_scales = tile.a.scales[word][first_row + t * 8 + group];
    const uint32_t b_scales = tile.b.scales[word][first_col + t * 8 + group];
    const auto code_word = [&](const MmaOperandTile& x, int row, int half) {
      return *reinterpret_cast<const uint32_t*>(&x.codes[row][step * kInstructionBytes + half * 16 + t * 4]);
    };
    const auto multiply_one = [&]<int i, int j>() {
      const int row = first_row + i * 16 + group, col = first_col + j * 8 + group;
      const arch::ScaledMmaRegisters x{.a = {code_word(tile.a, row, 0), code_word(tile.a, row + 8, 0),
                                             code_word(tile.a, row, 1), code_word(tile.a, row + 8, 1)},
                                       .b = {code_word(tile.b, col, 0), code_word(tile.b, col, 1)},
                                       .a_scales = a_scales,
                                       .b_scales = b_scales};
      constexpr int byte = step * row_scales % 4;
      arch::mma_sync<mma, a_format, b_format, byte, i, byte, j>(x, sums.at[i][j]);
    };
    const auto multiply_all = [&]<int... ij>(std::integer_sequence<int, ij...>) {
      (multiply_one.template operator()<ij / kWarpCols, ij % kWarpCols>(), ...);
    };
    multiply_all(std::make_integer_sequence<int, kWarpRows * kWarpCols>());
  }

  __device__ static void multiply_tile(const MmaTile& tile, int steps, int first_row, int first_col, WarpSums& sums) {
    multiply<0>(tile, first_row, first_col, sums);
    if (steps > 1) multiply<1>(tile, first_row, first_col, sums);
    if (steps > 2) multiply<2>(tile, first_row, first_col, sums);
    if (steps > 3) multiply<3>(tile, first_row, first_col, sums);
  }
};

__device__ inline void store_sums(const BlockScaledKernelJob& job, int first_row, int first_col, const WarpSums& sums) {
  const int lane = int(threadIdx.x % 32);
#pragma unroll
  for (int i = 0; i < kWarpRows; ++i)
#pragma unroll
    for (int j = 0; j < kWarpCols; ++j)
#pragma unroll
      for (int r = 0; r < 4; ++r)
        store_output(job, first_row + i * 16 + r / 2 * 8 + lane / 4, first_col + j * 8 + lane % 4 * 2 + r % 2,
                     sums.at[i][j][r]);
}

template <arch::ScaledMma mma, int a_format, int b_format>
__global__ void __launch_bounds__(kBlockScaledThreads, 2)
    multiply_by_mma_sync(const __grid_constant__ BlockScaledKernelJob job) {
  using Multiplier = MmaMultiplier<mma, a_format, b_format>;
  __shared__ MmaTile tiles[2];
  const int m = int(blockIdx.y) * kMmaTile, n = int(blockIdx.x) * kMmaTile, warp = int(threadIdx.x / 32);
  const int row = warp / 2 * kWarpTile, col = warp % 2 * kWarpTile, last = (job.steps + kTileSteps - 1) / kTileSteps;
  const auto load = [&](int tile) {
    load_tile<Multiplier::row_scales>(job.a, job.row_bytes, m, tile, tiles[tile % 2].a);
    load_tile<Multiplier::row_scales>(job.b, job.row_bytes, n, tile, tiles[tile % 2].b);
    __pipeline_commit();
  };
  WarpSums sums{};
  if (last > 0) load(0);
  for (int tile = 0; tile < last; ++tile) {
    __pipeline_wait_prior(0);
    __syncthreads();  // all have loaded this tile, and none still reads the other buffer
    if (tile + 1 < last) load(tile + 1);
    Multiplier::multiply_tile(tiles[tile % 2], job.steps - tile * kTileSteps, row, col, sums);
  }
  store_sums(job, m + row, n + col, sums);
}

// By tcgen05: a CTA makes 128 x 128 outputs at a time.

constexpr int kTensorTile = 128, kTensorStages = 2, kTensorMemoryColumns = 256;
constexpr uint32_t kStageScaleColumns = 32;  // 4 columns for 128 rows' words, of two operands, at most 4 times

// In the order that descriptors without swizzling can describe: chunks of 16 bytes of all rows, one after the other.
struct TensorOperandTile {
  uint8_t codes[kTileRowBytes / 16][kTensorTile][16];
  uint32_t scales[4][kTensorTile];  // a tile of 128 x 4 each (layout.h)

  __device__ uint64_t codes_of_step(int step) const {
    return arch::descriptor_of({.start = arch::shared_address(codes[step * kInstructionBytes / 16]),
                                .leading = sizeof codes[0],
                                .stride = 8 * 16});
  }
  __device__ uint64_t scales_of_word(int word) const {
    return arch::descriptor_of(
        {.start = arch::shared_address(scales[word]), .leading = sizeof scales[0], .stride = 8 * 16});
  }
};
struct TensorStage {
  TensorOperandTile a, b;
};

template <int words>
__device__ void load_tile(const BlockScaledRows& x, int row_bytes, int first_row, int tile, TensorOperandTile& to) {
  constexpr int neighbours = 4;  // pieces of a row by threads side by side: 32 bytes, a sector
// Left rolled: it is copying that takes time, and unrolled it is most of the kernel's code.
#pragma unroll 1
  for (int i = int(threadIdx.x); i < kTensorTile * kTileRowBytes / kPieceBytes; i += kBlockScaledThreads) {
    const int row = i / neighbours % kTensorTile, piece = i % neighbours + i / neighbours / kTensorTile * neighbours;
    load_piece(x, row_bytes, first_row + row, tile * kTileRowBytes + piece * kPieceBytes,
               &to.codes[piece / 2][row][piece % 2 * kPieceBytes]);
  }
  const int row = int(threadIdx.x);
  for (int word = 0; word < words; ++word)
    to.scales[word][row % 32 * 4 + row / 32] = scale_word(x, first_row + row, tile * words + word);
}

// Multiplies what a stage holds into column 0 and on.
template <arch::Tcgen05Kind kind>
__device__ void multiply_stage(const BlockScaledKernelJob& job, const arch::TensorMemory& memory,
                               const TensorStage& stage, uint32_t scale_column, int steps, bool is_first) {
  constexpr int row_scales = arch::detail::kTcgen05Kind<kind>.row_scales;
  const uint32_t a_scales = scale_column, b_scales = scale_column + kStageScaleColumns / 2;
  for (int word = 0; word < row_scales; ++word) {
    arch::copy_scales(memory, a_scales + uint32_t(word) * 4, stage.a.scales_of_word(word));
    arch::copy_scales(memory, b_scales + uint32_t(word) * 4, stage.b.scales_of_word(word));
  }
  for (int step = 0; step < min(steps, kTileSteps); ++step) {
    const uint32_t word = uint32_t(step * row_scales / 4), byte = uint32_t(step * row_scales % 4);
    const arch::Tcgen05Instruction is{.a_format = job.a.number,
                                      .b_format = job.b.number,
                                      .m = kTensorTile,
                                      .n = kTensorTile,
                                      .a_scale_byte = byte,
                                      .b_scale_byte = byte};
    arch::tcgen05_mma<kind>(memory,
                            {.a = stage.a.codes_of_step(step),
                             .b = stage.b.codes_of_step(step),
                             .instruction = arch::descriptor_of(kind, is),
                             .d = 0,
                             .a_scales = a_scales + word * 4,
                             .b_scales = b_scales + word * 4},
                            is_first && step == 0 ? arch::InputD::zero : arch::InputD::d);
  }
}

struct TensorShared {
  alignas(1024) TensorStage stages[kTensorStages];
  arch::CommitBarrier done[kTensorStages];
  uint32_t slot;
};

__device__ inline void store_tile(const BlockScaledKernelJob& job, const arch::TensorMemory& memory, int m, int n) {
  for (int col = 0; col < kTensorTile; col += arch::kTensorColumns) {
    uint32_t sums[arch::kTensorColumns]{};
    if (job.steps > 0) arch::load_columns(memory, uint32_t(col), sums);
    for (int i = 0; i < arch::kTensorColumns; ++i) store_output(job, m + int(threadIdx.x), n + col + i, sums[i]);
  }
}

// Tiles of K are numbered through all of a CTA's outputs: tile t uses stage t % 2, whose barrier's phase t / 2
// completes when the tile is multiplied.
template <arch::Tcgen05Kind kind>
__global__ void __launch_bounds__(kBlockScaledThreads, 2)
    multiply_by_tcgen05(const __grid_constant__ BlockScaledKernelJob job) {
  constexpr int row_scales = arch::detail::kTcgen05Kind<kind>.row_scales;
  extern __shared__ __align__(1024) uint8_t dynamic[];
  auto& shared = *reinterpret_cast<TensorShared*>(dynamic);
  for (arch::CommitBarrier& barrier : shared.done) arch::initialize(barrier);
  const arch::TensorMemory memory = arch::allocate_tensor_memory<kTensorMemoryColumns>(
      &shared.slot, job.model + int64_t(blockIdx.x) * kTensorMemoryColumns * arch::kTensorLanes);
  const int across = (job.b.rows + kTensorTile - 1) / kTensorTile;
  const int outputs = across * ((job.a.rows + kTensorTile - 1) / kTensorTile);
  const int last = (job.steps + kTileSteps - 1) / kTileSteps;
  const auto wait = [&](int t) { arch::wait(shared.done[t % kTensorStages], uint32_t(t / kTensorStages % 2)); };
  int done = 0;  // tiles of K before this output's
  for (int output = int(blockIdx.x); output < outputs; output += int(gridDim.x), done += last) {
    const int m = output / across * kTensorTile, n = output % across * kTensorTile;
    const auto load = [&](int tile) {
      const int t = done + tile;
      if (t >= kTensorStages) wait(t - kTensorStages);
      load_tile<row_scales>(job.a, job.row_bytes, m, tile, shared.stages[t % kTensorStages].a);
      load_tile<row_scales>(job.b, job.row_bytes, n, tile, shared.stages[t % kTensorStages].b);
      __pipeline_commit();
    };
    if (last > 0) load(0);
    for (int tile = 0; tile < last; ++tile) {
      const int t = done + tile, stage = t % kTensorStages;
      __pipeline_wait_prior(0);
      arch::publish_shared_memory();
      multiply_stage<kind>(job, memory, shared.stages[stage],
                           uint32_t(kTensorTile) + uint32_t(stage) * kStageScaleColumns, job.steps - tile * kTileSteps,
                           tile == 0);
      arch::commit(shared.done[stage]);
      if (tile + 1 < last) load(tile + 1);
    }
    if (last > 0) wait(done + last - 1);
    store_tile(job, memory, m, n);
  }
  arch::free_tensor_memory<kTensorMemoryColumns>(memory);
}

}  // namespace halfulp::gpu

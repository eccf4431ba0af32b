#pragma once
// Columns of a matrix quantized to codes of 8 bits that lie as their elements do, and its rows in the same pass, by
// blocks of 32: a warp has a tile of 32 rows in shared memory, a thread reads four of its columns twice, for their
// largest magnitudes and for their codes. What it stores at once fills whole lines of 128 bytes, which the L2 cache
// counts.

#include <cuda_pipeline_primitives.h>

#include "cuda/both_kernel.cuh"

namespace halfulp::gpu {

template <int recipe, class Source>
struct alignas(16) WideTile {
  static constexpr int block = kRow<recipe>.block.cols, bits = Conversion<recipe, Part::element>::bits;
  static_assert(block == 32 && bits == 8);
  static constexpr int rows = block, cols = 128, pairs = cols / 64;  // of a thread
  static constexpr int run = 16, runs = cols / run, sharing = block / run;
  static constexpr int pair_words = 8 / Source::kOf16Bytes;
  static constexpr int of_row = cols / 2 * pair_words + 4;       // words; rows 16 bytes apart in the banks
  static constexpr int warps = Source::kOf16Bytes == 4 ? 4 : 8;  // of a CTA, beside each other
  static constexpr int ctas = Source::kIsBf16 ? 3 : 2;           // of a multiprocessor, which its registers allow
  uint32_t elements[rows][of_row];
};

// The scales of the rows of a CTA's tiles, four bytes of each tile: 16 bytes are stored at once.
template <class Tile>
struct RowScales {
  static constexpr int vectors = Tile::warps / 4;  // of a row
  uint4 of_row[Tile::rows][vectors];
};

// Fetches a tile, 16 bytes a thread.
template <class Source, class Tile>
__device__ void fetch_tile(const KernelJob& job, const TilePlace& is, Tile& tile) {
  constexpr int kVectors = Tile::cols / Source::kOf16Bytes, kRows = kVectors < 32 ? 32 / kVectors : 1;
  const uint64_t stride = job.cols / Source::kOf16Bytes;
#pragma unroll
  for (int vector = is.lane % kVectors; vector < kVectors; vector += 32) {
    const int first_row = is.lane / kVectors;
    const uint4* from =
        static_cast<const uint4*>(job.x) + (is.row + first_row) * stride + is.col / Source::kOf16Bytes + vector;
    uint32_t* to = &tile.elements[first_row][4 * vector];
    const bool inside = vector * Source::kOf16Bytes < is.cols;
#pragma unroll
    for (int row = 0; row < Tile::rows; row += kRows, from += kRows * stride, to += kRows * Tile::of_row)
      if (inside) __pipeline_memcpy_async(to, from, 16);
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
}

// The pairs of a thread's columns in a row of its tile.
template <class Source, class Tile>
__device__ void take_pairs(const uint32_t* of_row, Pair<Source> (&pairs)[Tile::pairs]) {
#pragma unroll
  for (int i = 0; i < Tile::pairs; ++i) pairs[i] = Pair<Source>::at(of_row, uint64_t(2 * i));
}

// Scales of a thread's four columns, a byte each.
template <int recipe, class Tile>
__device__ void store_scales_in_place(const BothJob& job, const TilePlace& is, uint32_t scales) {
  const uint64_t block = is.row / Tile::block;
  if (!job.columns.swizzled) {
    std::byte* const to = job.columns.scales + block * job.rows.cols + is.col + uint64_t(4 * is.lane);
    *reinterpret_cast<uint32_t*>(to) = scales;
    return;
  }
  const TileScales all = scales_of_tile<recipe>(job.columns, is.col, block);
#pragma unroll
  for (int k = 0; k < 4; ++k) *all.at(uint32_t(4 * is.lane + k), 0) = std::byte(scales >> 8 * k);
}

template <int recipe, class Source, class Tile>
__device__ void quantize_columns_in_place(const BothJob& job, const TilePlace& is, const Tile& tile) {
  constexpr int kColumns = 2 * Tile::pairs;
  const uint64_t cols = job.rows.cols;
  const uint32_t* const slot = &tile.elements[0][is.lane * Tile::pairs * Tile::pair_words];
  float largest[kColumns], factors[kColumns];
#pragma unroll
  for (int i = 0; i < Tile::pairs; ++i) {
    Pair<Source> pairs[Tile::rows];
#pragma unroll
    for (int row = 0; row < Tile::rows; ++row)
      pairs[row] = Pair<Source>::at(slot + row * Tile::of_row, uint64_t(2 * i));
    float two[2];
    largest_magnitudes(pairs, two);
    largest[2 * i] = two[0], largest[2 * i + 1] = two[1];
  }
  uint32_t scales = 0;
#pragma unroll
  for (int k = 0; k < kColumns; ++k) {
    const auto at = [&](int row) { return Pair<Source>::at(slot + row * Tile::of_row, uint64_t(k & ~1))[k % 2]; };
    const BlockScale scale = scale_of_run<recipe, 0, Tile::rows>(job.columns, largest[k], at).scale;
    factors[k] = scale.factor;
    scales |= scale.code << 8 * k;
  }
  std::byte* to = job.columns.codes + is.row * cols + is.col + uint64_t(kColumns * is.lane);
#pragma unroll
  for (int row = 0; row < Tile::rows; ++row, to += cols) {
    Pair<Source> pairs[Tile::pairs];
    take_pairs<Source, Tile>(slot + row * Tile::of_row, pairs);
    float y[kColumns];
#pragma unroll
    for (int k = 0; k < kColumns; ++k)
      y[k] = scaled_in_block<recipe>(job.columns.tensor, factors[k], pairs[k / 2][k % 2]);
    *reinterpret_cast<uint32_t*>(to) = Conversion<recipe, Part::element>::full(y);
  }
  store_scales_in_place<recipe, Tile>(job, is, scales);
}

// Whether the scales of a CTA's rows are stored at once: where they are 16 bytes in a row of them.
template <class Tile>
__device__ bool gathers_scales(const KernelJob& rows, uint64_t col) {
  constexpr uint64_t kCols = Tile::warps * Tile::cols;
  return rows.codes != nullptr && !rows.swizzled && col + kCols <= rows.cols && rows.cols % kCols == 0;
}

// Stores them.
template <class Tile>
__device__ void store_row_scales(const KernelJob& rows, uint64_t row, uint64_t col, const RowScales<Tile>& scales) {
  constexpr int kVectors = RowScales<Tile>::vectors;
  const int of = threadIdx.x / kVectors, vector = threadIdx.x % kVectors;
  if (of >= Tile::rows) return;
  std::byte* const to = rows.scales + (row + of) * (rows.cols / Tile::block) + col / Tile::block;
  reinterpret_cast<uint4*>(to)[vector] = scales.of_row[of][vector];
}

template <int recipe, class Source, class Tile>
__device__ void quantize_in_place(const BothJob& job, uint64_t row, uint64_t col, Tile& tile,
                                  RowScales<Tile>& row_scales) {
  const int warp = threadIdx.x / 32;
  const TilePlace is = place_of_tile<Tile>(job.rows, row, col + warp * Tile::cols);
  fetch_tile<Source>(job.rows, is, tile);
  if (job.rows.codes != nullptr) {
    const TileScales scales = gathers_scales<Tile>(job.rows, col)
                                  ? TileScales{reinterpret_cast<std::byte*>(&row_scales) + 4 * warp, 4 * Tile::warps}
                                  : scales_of_tile<recipe>(job.rows, is.row, is.col / Tile::block);
    quantize_rows_of<recipe, Source>(job.rows, is, 0, scales, tile);
  }
  if (4 * is.lane < is.cols) quantize_columns_in_place<recipe, Source>(job, is, tile);
}

template <int recipe, class Source>
__global__ void __launch_bounds__(32 * WideTile<recipe, Source>::warps) quantize_in_place_kernel(BothJob job) {
  using Is = WideTile<recipe, Source>;
  extern __shared__ uint4 memory[];
  __shared__ RowScales<Is> row_scales;
  for (uint64_t row = blockIdx.y * Is::rows; row < job.rows.rows; row += gridDim.y * Is::rows) {
    const uint64_t col = uint64_t(blockIdx.x) * Is::warps * Is::cols;
    if (col + threadIdx.x / 32 * Is::cols < job.rows.cols)
      quantize_in_place<recipe, Source>(job, row, col, reinterpret_cast<Is*>(memory)[threadIdx.x / 32], row_scales);
    __syncthreads();
    if (gathers_scales<Is>(job.rows, col)) store_row_scales<Is>(job.rows, row, col, row_scales);
    if (row + gridDim.y * Is::rows >= job.rows.rows) return;
    __syncthreads();
  }
}

}  // namespace halfulp::gpu

#pragma once
// Rows and columns of a matrix quantized in one pass: a CTA reads a tile once, for the blocks of its rows and, by way
// of shared memory, for those of its columns. For recipes whose blocks are one row of 16 or 32, without random bits.

#include "cuda/quantize_kernel.cuh"

namespace halfulp::gpu {

struct BothJob {
  KernelJob rows;
  TensorScale column_tensor;
  std::byte* column_codes;
  std::byte* column_scales;
};

// A tile is four blocks high and 128 elements wide, so that the codes of its columns are whole sectors of 32 bytes.
template <int recipe, class Source>
struct Tile {
  static constexpr int block = kRow<recipe>.block.cols, bits = Conversion<recipe, Part::element>::bits;
  static constexpr int rows = 4 * block, cols = 128, threads = 256;
  static constexpr int of_word = Source::kOf16Bytes / 4, words = cols / of_word;
  static constexpr int runs = cols / block;             // of a row
  static constexpr int code_words = block * bits / 32;  // of a block
  uint32_t elements[rows][words];
  uint32_t codes[4 * code_words][cols];
  uint8_t scales[4][cols];
};

template <int n>
__device__ float largest_magnitude_of(const float (&x)[n]) {
  float largest = 0;
#pragma unroll
  for (int i = 0; i < n; ++i) largest = arch::larger_magnitude(largest, x[i]);
  return largest;
}

// The largest magnitude of a block of one thread, given the one in which NaN wins.
template <int recipe, int n>
__device__ Largest largest_of(const float (&x)[n], float nan_wins) {
  constexpr AmaxNan nan = Shares<recipe>::amax_nan;
  if (nan_wins == nan_wins) return {nan_wins, true};
  if constexpr (nan == AmaxNan::propagates) return {detail::quiet_nan(), false};
  float largest = 0;
  bool has_number = false;
#pragma unroll
  for (int i = 0; i < n; ++i) {
    largest = fmaxf(largest, fabsf(x[i]));
    has_number = has_number || x[i] == x[i];
  }
  const bool is_nan = nan == AmaxNan::propagates_from_all && !has_number;
  return {is_nan ? detail::quiet_nan() : largest, false};
}

// One block of a thread to its scale's code and its codes; at(i) is x[i].
template <int recipe, int n, int words, class At>
__device__ uint32_t quantize_block(const KernelJob& job, const TensorScale& tensor, float nan_wins, const float (&x)[n],
                                   uint32_t (&codes)[words], At at) {
  const Largest largest = largest_of<recipe>(x, nan_wins);
  const BlockScale scale = scale_of_block<recipe>(tensor, largest.amax);
  encode<recipe>(job, Place{}, scale.factor, largest.all_numbers, x, codes, at);
  return scale.code;
}

template <int recipe, class Source>
__device__ void quantize_rows_of(const KernelJob& job, uint64_t first_row, uint64_t first_col,
                                 Tile<recipe, Source>& tile) {
  using Is = Tile<recipe, Source>;
#pragma unroll 1
  for (int i = threadIdx.x; i < Is::rows * Is::runs; i += Is::threads) {
    const int row = i / Is::runs, col = i % Is::runs * Is::block;
    const uint64_t element = (first_row + row) * job.cols + first_col + col;
    const Run<Source, Is::block> run(job.x, element);
#pragma unroll
    for (int k = 0; k < run.kWords; k += 4)
      *reinterpret_cast<uint4*>(&tile.elements[row][col / Is::of_word + k]) =
          make_uint4(run.words[k], run.words[k + 1], run.words[k + 2], run.words[k + 3]);
    uint32_t codes[Is::code_words];
    const uint32_t scale = quantize_block<recipe>(job, job.tensor, run.largest_magnitude(), run.x, codes, [&](int k) {
      return gpu::element<Source>(job.x, element + uint64_t(k));
    });
    store(job.codes + element * Is::bits / 8, codes);
    store_scale<recipe>(job.scales, element / Is::block, scale);
  }
}

// Codes and scales of the tile's columns, into the tile: a thread takes a word of columns and the rows of a block.
template <int recipe, class Source>
__device__ void quantize_columns_of(const BothJob& job, Tile<recipe, Source>& tile) {
  using Is = Tile<recipe, Source>;
#pragma unroll 1
  for (int i = threadIdx.x; i < 4 * Is::words; i += Is::threads) {
    const int word = i % Is::words, block = i / Is::words;
#pragma unroll
    for (int k = 0; k < Is::of_word; ++k) {
      const auto at = [&](int row) { return Source::number(tile.elements[block * Is::block + row][word], k); };
      float x[Is::block];
#pragma unroll
      for (int row = 0; row < Is::block; ++row) x[row] = at(row);
      uint32_t codes[Is::code_words];
      const int col = word * Is::of_word + k;
      tile.scales[block][col] =
          uint8_t(quantize_block<recipe>(job.rows, job.column_tensor, largest_magnitude_of(x), x, codes, at));
#pragma unroll
      for (int c = 0; c < Is::code_words; ++c) tile.codes[block * Is::code_words + c][col] = codes[c];
    }
  }
}

// Column after column: 4 blocks of codes and 4 scales of each.
template <int recipe, class Source>
__device__ void store_transposed(const BothJob& job, uint64_t first_row, uint64_t first_col,
                                 const Tile<recipe, Source>& tile) {
  using Is = Tile<recipe, Source>;
  constexpr int kVectors = Is::code_words;  // of 16 bytes, of a column
#pragma unroll 1
  for (int i = threadIdx.x; i < Is::cols * kVectors; i += Is::threads) {
    const int col = i / kVectors, vector = i % kVectors;
    const uint32_t* codes = &tile.codes[4 * vector][col];
    const uint64_t element = (first_col + col) * job.rows.rows + first_row;
    reinterpret_cast<uint4*>(job.column_codes + element * Is::bits / 8)[vector] =
        make_uint4(codes[0], codes[Is::cols], codes[2 * Is::cols], codes[3 * Is::cols]);
    if (vector == 0)
      *reinterpret_cast<uchar4*>(job.column_scales + element / Is::block) =
          make_uchar4(tile.scales[0][col], tile.scales[1][col], tile.scales[2][col], tile.scales[3][col]);
  }
}

// Row after row: a thread turns 4 columns of 4 rows around.
template <int recipe, class Source>
__device__ void store_in_place(const BothJob& job, uint64_t first_row, uint64_t first_col,
                               const Tile<recipe, Source>& tile) {
  using Is = Tile<recipe, Source>;
  static_assert(Is::bits == 8);
  const uint64_t cols = job.rows.cols;
#pragma unroll 1
  for (int i = threadIdx.x; i < Is::rows / 4 * Is::cols / 4; i += Is::threads) {
    const int rows = i / (Is::cols / 4), col = i % (Is::cols / 4) * 4;
    const uint4 columns = *reinterpret_cast<const uint4*>(&tile.codes[rows][col]);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const auto byte = [&](uint32_t word, int to) { return (word >> 8 * k & 0xff) << 8 * to; };
      const uint64_t element = (first_row + 4 * rows + k) * cols + first_col + col;
      reinterpret_cast<uint32_t*>(job.column_codes)[element / 4] =
          byte(columns.x, 0) | byte(columns.y, 1) | byte(columns.z, 2) | byte(columns.w, 3);
    }
  }
  for (int i = threadIdx.x; i < 4 * Is::cols; i += Is::threads)
    job.column_scales[(first_row / Is::block + i / Is::cols) * cols + first_col + i % Is::cols] =
        std::byte(tile.scales[i / Is::cols][i % Is::cols]);
}

template <int recipe, class Source, ColumnLayout layout>
__global__ void __launch_bounds__(256, 3) quantize_both_kernel(BothJob job) {
  using Is = Tile<recipe, Source>;
  extern __shared__ uint4 memory[];
  Is& tile = *reinterpret_cast<Is*>(memory);
  const uint64_t first_col = uint64_t(blockIdx.x) * Is::cols;
  for (uint64_t row = blockIdx.y; row < job.rows.rows / Is::rows; row += gridDim.y) {
    __syncthreads();  // the last tile is stored
    quantize_rows_of<recipe, Source>(job.rows, row * Is::rows, first_col, tile);
    __syncthreads();
    quantize_columns_of<recipe, Source>(job, tile);
    __syncthreads();
    if constexpr (layout == ColumnLayout::transposed) {
      store_transposed<recipe, Source>(job, row * Is::rows, first_col, tile);
    } else {
      store_in_place<recipe, Source>(job, row * Is::rows, first_col, tile);
    }
  }
}

}  // namespace halfulp::gpu

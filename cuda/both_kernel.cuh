#pragma once
// Columns of a matrix quantized to the codes of its transpose, and its rows in the same pass: a warp reads a tile once,
// a thread two columns of it. They are in its registers; by way of shared memory the warp turns the tile to its rows,
// and the columns' codes to the transpose. For recipes whose blocks are one row of 16 or 32 under a scale of 8 bits.

#include "cuda/amax.cuh"
#include "cuda/hadamard.cuh"
#include "cuda/quantize_kernel.cuh"

namespace halfulp::gpu {

struct BothJob {
  KernelJob rows;     // without codes none are made
  KernelJob columns;  // of the transpose
  uint32_t signs;     // of the rotation: bit i is set where row i of a block changes its sign
};

enum class ColumnValues { plain, rotated };

// CTAs of a multiprocessor, which its registers allow.
template <class Source, ColumnValues values, int block>
constexpr int ctas_of_multiprocessor() {
  if (block == 32) return 3;
  if (Source::kOf16Bytes == 4) return 4;
  return values == ColumnValues::rotated || !Source::kIsBf16 ? 5 : 7;
}

// What a warp takes at once: blocks of all its columns, of which a thread has two. In its rows a thread has runs of 16,
// and two threads share a block of 32. A tile is as high as a sector of 32 bytes has codes of 4 bits.
template <int recipe, class Source>
struct alignas(16) Tile {
  static constexpr int block = kRow<recipe>.block.cols, bits = Conversion<recipe, Part::element>::bits;
  static constexpr int rows = 64, cols = 64, steps = rows / block;
  static constexpr int run = 16, runs = cols / run, sharing = block / run;
  static constexpr int pair_words = 8 / Source::kOf16Bytes;
  static constexpr int of_row = cols / 2 * pair_words + 4;  // words; rows 16 bytes apart in the banks
  static constexpr int of_column = rows * bits / 32 + 2;    // likewise
  static constexpr int warps = 4;                           // of a CTA, below each other
  uint32_t elements[block][of_row];
  uint2 codes[cols][of_column / 2];
};

// Where a tile lies in the matrix, how much of it is inside, and what this thread does in it.
struct TilePlace {
  uint64_t row, col;  // of its first element
  int rows, cols;
  int lane;
  __device__ int own_col() const { return 2 * lane; }  // and the next
  __device__ bool is_inside() const { return own_col() < cols; }
};

// Distances within a tile fit 32 bits: that from one row to the next is below kMaxTileCols.
inline constexpr uint64_t kMaxTileCols = uint64_t{1} << 25;

// The first scale of a tile, and how far from it those of its other blocks lie. A tile begins at a multiple of 32 rows
// of them and does not cross a column of their own tiles.
struct TileScales {
  std::byte* first;
  uint32_t stride;  // 0: in tiles
  __device__ std::byte* at(uint32_t row, uint32_t col) const {
    return first + ((stride == 0 ? row % 32 * 16 + row / 32 * 4 : row * stride) + col);
  }
  // From a row to the one so many below, with no multiple of 32 between.
  template <uint32_t rows>
  __device__ uint32_t step() const {
    return rows * (stride == 0 ? 16 : stride);
  }
};

template <int recipe>
__device__ TileScales scales_of_tile(const KernelJob& job, uint64_t row, uint64_t block_col) {
  const uint64_t scales = job.cols / kRow<recipe>.block.cols;
  if (job.swizzled) return {job.scales + swizzled_offset(scales, row, block_col), 0};
  return {job.scales + row * scales + block_col, uint32_t(scales)};
}

// The larger number over two threads of a block whose lanes differ in bit `apart`; 0: the block is one thread's.
template <int apart, class Larger>
__device__ float over_threads(float mine, Larger larger) {
  if constexpr (apart == 0) return mine;
  const unsigned lane = threadIdx.x % 32, both = 1u << lane | 1u << (lane ^ apart);
  return larger(mine, __shfl_xor_sync(both, mine, apart));
}

// The largest magnitude of a block, given the one in which NaN wins; at(i) is element i of this thread's n. Where one
// is NaN they are read one by one: this is rare, and shall cost the others neither registers nor instructions.
template <int recipe, int apart, int n, class At>
__device__ Largest largest_of(float nan_wins, At at) {
  constexpr AmaxNan nan = Shares<recipe>::amax_nan;
  if (nan_wins == nan_wins) return {nan_wins, true};
  if constexpr (nan == AmaxNan::propagates) return {detail::quiet_nan(), false};
  const auto larger = [](float a, float b) { return fmaxf(a, b); };
  float largest = 0, has_number = 0;
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    const float x = at(i);
    largest = fmaxf(largest, fabsf(x));
    if (x == x) has_number = 1;
  }
  const bool is_nan = nan == AmaxNan::propagates_from_all && over_threads<apart>(has_number, larger) == 0;
  return {is_nan ? detail::quiet_nan() : over_threads<apart>(largest, larger), false};
}

// Where a run lies whose first element is number `element`.
template <int recipe>
__device__ Place place_of_run(uint64_t element) {
  const uint64_t block = element / uint64_t(kRow<recipe>.block.cols);
  return {.element = element, .block = block, .random_block = block, .inside = true};
}

// The scale of a thread's run, given the run's largest magnitude, and what is known of its products.
struct RunScale {
  BlockScale scale;
  Products products;
};
template <int recipe, int apart, int n, class At>
__device__ RunScale scale_of_run(const KernelJob& job, float largest_of_run, At at) {
  const float nan_wins = over_threads<apart>(largest_of_run, arch::larger_magnitude);
  const Largest largest = largest_of<recipe, apart, n>(nan_wins, at);
  const BlockScale scale = scale_of_block<recipe>(job.tensor, largest.amax);
  return {scale, products_of<recipe>(largest, scale.factor)};
}

// Rows of one step of the tile, a block of 16 or 32 of them from `first_row` of the tile on; the warp takes 8 at once.
template <int recipe, class Source, class Tile>
__device__ void quantize_rows_of(const KernelJob& job, const TilePlace& is, int first_row, const TileScales& scales,
                                 const Tile& tile) {
  constexpr int kApart = Tile::sharing - 1, kCodeWords = Tile::run * Tile::bits / 32, kRows = 32 / Tile::runs;
  const int run_of_row = is.lane % Tile::runs, col = run_of_row * Tile::run;
  if (col >= is.cols) return;
  int row = is.lane / Tile::runs;
  uint64_t first = (is.row + first_row + row) * job.cols + is.col + col;
  std::byte* to = job.codes + first * Tile::bits / 8;
  std::byte* scale_to = scales.at(uint32_t(first_row + row), uint32_t(run_of_row / Tile::sharing));
  const uint32_t to_next_scale = scales.step<kRows>();
#pragma unroll 1
  for (; row < Tile::block; row += kRows) {
    const uint32_t* elements = &tile.elements[row][col / 2 * Tile::pair_words];
    const Run<Source, Tile::run> run(elements, 0);
    uint32_t codes[kCodeWords];
    const auto at = [&](int k) { return element<Source>(elements, uint64_t(k)); };
    const RunScale of_run = scale_of_run<recipe, kApart, Tile::run>(job, run.largest_magnitude(), at);
    encode<recipe>(job, place_of_run<recipe>(first), of_run.scale.factor, of_run.products, run.x, codes, at);
    store(to, codes);
    if (run_of_row % Tile::sharing == 0) *scale_to = std::byte(of_run.scale.code);
    first += kRows * job.cols;
    to += kRows * job.cols * Tile::bits / 8;
    scale_to += to_next_scale;
  }
}

// The largest magnitudes of a thread's two columns, NaN where one is.
template <class Source, int n>
__device__ void largest_magnitudes(const Pair<Source> (&pairs)[n], float (&largest)[2]) {
  if constexpr (Source::kIsBf16) {
    uint32_t words[n];
#pragma unroll
    for (int i = 0; i < n; ++i) words[i] = pairs[i].words[0];
    const uint32_t both = fold<n>(words, [](uint32_t a, uint32_t b) { return arch::larger_bf16_magnitudes(a, b); });
    largest[0] = bit_cast<float>((both & 0x7fff) << 16);
    largest[1] = bit_cast<float>(both & 0x7fff'0000);
  } else {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      float x[n];
#pragma unroll
      for (int i = 0; i < n; ++i) x[i] = pairs[i][k];
      largest[k] = fold<n>(x, [](float a, float b) { return arch::larger_magnitude(a, b); });
    }
  }
}

// A thread's columns of one step of the tile, from its row `row` on, to codes in the tile. The thread's pairs also lie
// at `slot`, for the rare blocks whose elements are read one by one.
template <int recipe, class Source, class Tile, int n>
__device__ void quantize_columns(const KernelJob& job, const TilePlace& is, int row, const Pair<Source> (&pairs)[n],
                                 const uint32_t* slot, Tile& tile, uint32_t (&scales)[2]) {
  constexpr int kWords = n * Tile::bits / 32;
  float largest[2];
  largest_magnitudes(pairs, largest);
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    float x[n];
#pragma unroll
    for (int i = 0; i < n; ++i) x[i] = pairs[i][k];
    const auto at = [&](int i) { return Pair<Source>::at(slot + i * Tile::of_row, 0)[k]; };
    const Place place = place_of_run<recipe>((is.col + is.own_col() + k) * job.cols + is.row + row);
    const RunScale of_run = scale_of_run<recipe, 0, n>(job, largest[k], at);
    uint32_t codes[kWords];
    encode<recipe>(job, place, of_run.scale.factor, of_run.products, x, codes, at);
#pragma unroll
    for (int i = 0; i < kWords; i += 2)
      tile.codes[is.own_col() + k][row * Tile::bits / 64 + i / 2] = make_uint2(codes[i], codes[i + 1]);
    scales[k] |= of_run.scale.code << row / Tile::block * 8;
  }
}

// The columns after the Hadamard transform, whose results, of BF16, take their pairs' place in the tile.
template <int recipe, class Source, class Tile, int n>
__device__ void rotate_and_quantize_columns(const BothJob& job, const TilePlace& is, int row,
                                            const Pair<Source> (&pairs)[n], uint32_t* slot, Tile& tile,
                                            uint32_t (&scales)[2]) {
  Pair<Bf16> rotated[n];
  rotate_columns(job.signs, pairs, rotated);
#pragma unroll
  for (int i = 0; i < n; ++i) slot[i * Tile::of_row] = rotated[i].words[0];
  quantize_columns<recipe>(job.columns, is, row, rotated, slot, tile, scales);
}

// The staged codes, column after column, 16 bytes a thread; the last of a lower tile by 8 bytes.
template <class Tile>
__device__ void store_staged(const BothJob& job, const TilePlace& is, const Tile& tile) {
  constexpr int kVectors = Tile::rows * Tile::bits / 128, kRowsOf16 = 128 / Tile::bits;
  const uint64_t rows = job.columns.cols;
  const bool aligned = rows % kRowsOf16 == 0;
  const int vector = is.lane % kVectors;
  std::byte* to = job.columns.codes + ((is.col + is.lane / kVectors) * rows + is.row) * Tile::bits / 8 + 16 * vector;
#pragma unroll 1
  for (int col = is.lane / kVectors; col < is.cols; col += 32 / kVectors, to += 32 / kVectors * rows * Tile::bits / 8) {
    const uint2* codes = &tile.codes[col][2 * vector];
    if (aligned && kRowsOf16 * vector < is.rows) {
      *reinterpret_cast<uint4*>(to) = make_uint4(codes[0].x, codes[0].y, codes[1].x, codes[1].y);
    } else {
      for (int k = 0; k < 2; ++k)
        if (kRowsOf16 * vector + kRowsOf16 / 2 * k < is.rows) reinterpret_cast<uint2*>(to)[k] = codes[k];
    }
  }
}

// A byte a block, of up to four blocks of each of the thread's columns.
template <int recipe, class Tile>
__device__ void store_column_scales(const KernelJob& columns, const TilePlace& is, const uint32_t (&scales)[2]) {
  const TileScales all = scales_of_tile<recipe>(columns, is.col, is.row / Tile::block);
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    std::byte* const to = all.at(uint32_t(is.own_col() + k), 0);
    if (Tile::steps == 4 && is.rows == Tile::rows && reinterpret_cast<std::uintptr_t>(to) % 4 == 0) {
      *reinterpret_cast<uint32_t*>(to) = scales[k];
    } else {
#pragma unroll
      for (int step = 0; step < Tile::steps; ++step)
        if (step * Tile::block < is.rows) to[step] = std::byte(scales[k] >> 8 * step);
    }
  }
}

template <class Source, int n>
__device__ void load_pairs(const void* x, uint64_t first, uint64_t cols, bool inside, Pair<Source> (&pairs)[n]) {
  const uint64_t stride = inside ? cols * Pair<Source>::kWords * 2 : 0;
  const std::byte* from = static_cast<const std::byte*>(x) + (inside ? first * Pair<Source>::kWords * 2 : 0);
#pragma unroll
  for (int i = 0; i < n; ++i, from += stride) pairs[i] = Pair<Source>::at(from, 0);
}

template <int recipe, class Source, ColumnValues values, class Tile>
__device__ void quantize_tile(const BothJob& job, const TilePlace& is, Tile& tile) {
  uint32_t* const slot = &tile.elements[0][is.lane * Tile::pair_words];
  const TileScales row_scales = scales_of_tile<recipe>(job.rows, is.row, is.col / Tile::block);
  uint32_t column_scales[2] = {0, 0};  // a byte for each step
  const auto quantize_own_columns = [&](int row, const auto& pairs) {
    if (!is.is_inside()) return;
    if constexpr (values == ColumnValues::rotated) {
      rotate_and_quantize_columns<recipe>(job, is, row, pairs, slot, tile, column_scales);
    } else {
      quantize_columns<recipe>(job.columns, is, row, pairs, slot, tile, column_scales);
    }
  };
#pragma unroll 1
  for (int row = 0; row < is.rows; row += Tile::block) {
    Pair<Source> pairs[Tile::block];
    load_pairs(job.rows.x, (is.row + row) * job.rows.cols + is.col + is.own_col(), job.rows.cols, is.is_inside(),
               pairs);
    __syncwarp();  // the last step's rows are read
#pragma unroll
    for (int i = 0; i < Tile::block; ++i)
#pragma unroll
      for (int word = 0; word < Tile::pair_words; ++word) slot[i * Tile::of_row + word] = pairs[i].words[word];
    if constexpr (values == ColumnValues::plain) quantize_own_columns(row, pairs);
    __syncwarp();
    if (job.rows.codes != nullptr) quantize_rows_of<recipe, Source>(job.rows, is, row, row_scales, tile);
    if constexpr (values == ColumnValues::rotated) {
      __syncwarp();  // they take the rows' place
      quantize_own_columns(row, pairs);
    }
  }
  __syncwarp();
  if (is.is_inside()) store_column_scales<recipe, Tile>(job.columns, is, column_scales);
  store_staged(job, is, tile);
  __syncwarp();
}

// This thread's place in a tile that begins there; beyond the last row it has none.
template <class Tile>
__device__ TilePlace place_of_tile(const KernelJob& job, uint64_t row, uint64_t col) {
  const uint64_t rows = row < job.rows ? job.rows - row : 0;
  return {.row = row,
          .col = col,
          .rows = int(min(rows, uint64_t(Tile::rows))),
          .cols = int(min(job.cols - col, uint64_t(Tile::cols))),
          .lane = int(threadIdx.x % 32)};
}

// A CTA takes four tiles below each other.
template <int recipe, class Source, ColumnValues values>
__global__ void __launch_bounds__(128, (ctas_of_multiprocessor<Source, values, kRow<recipe>.block.cols>()))
    quantize_both_kernel(BothJob job) {
  using Is = Tile<recipe, Source>;
  extern __shared__ uint4 memory[];
  Is* const tiles = reinterpret_cast<Is*>(memory);
  const int warp = threadIdx.x / 32;
  const uint64_t together = Is::rows * Is::warps, col = uint64_t(blockIdx.x) * Is::cols;
  for (uint64_t first = blockIdx.y * together; first < job.rows.rows; first += gridDim.y * together) {
    const TilePlace is = place_of_tile<Is>(job.rows, first + warp * Is::rows, col);
    if (is.rows > 0) quantize_tile<recipe, Source, values>(job, is, tiles[warp]);
  }
}

// The largest magnitude of rotated columns: a thread takes two columns of 16 rows, and others below them.
template <class Source, bool nan_wins>
__global__ void __launch_bounds__(128) largest_rotated(KernelJob job, uint32_t signs, float* amax) {
  const uint64_t col = 2 * (uint64_t(blockIdx.x) * blockDim.x + threadIdx.x);
  float largest = 0;
  for (uint64_t row = blockIdx.y * kRotated; row < job.rows && col < job.cols; row += gridDim.y * kRotated) {
    Pair<Source> pairs[kRotated];
#pragma unroll
    for (int i = 0; i < kRotated; ++i) pairs[i] = Pair<Source>::at(job.x, (row + i) * job.cols + col);
    Pair<Bf16> rotated[kRotated];
    rotate_columns(signs, pairs, rotated);
#pragma unroll
    for (int i = 0; i < kRotated; ++i)
      largest = larger<nan_wins>(larger<nan_wins>(largest, rotated[i][0]), rotated[i][1]);
  }
  raise<nan_wins>(largest, amax);
}

}  // namespace halfulp::gpu

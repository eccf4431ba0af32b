#include "cuda/scaled_matrix.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "cuda/arch/matrix_form.h"
#include "cuda/arch/mma_block_scaled.cuh"
#include "cuda/arch/tcgen05.cuh"
#include "cuda/check.h"
#include "cuda/memory.h"

namespace halfulp {
namespace {

constexpr int kMostColumns = 16, kTensorMemoryColumns = 32, kScaleColumn = 16;
constexpr unsigned kMostCtas = 1024;

constexpr int kRowWords = 8;  // 32 bytes, of every instruction

// Rows of A and B as registers or shared memory take them, in words; a word of scales to a row.
struct ScaledTilesJob {
  int m, n, row_scales, tiles;
  uint32_t a_number, b_number;  // of the formats, in tcgen05's descriptors
  const uint32_t *a, *b, *a_scales, *b_scales, *c;
  uint32_t* d;
  uint32_t* model;  // of Tensor Memory, of each CTA, where there is none
};

// mma.sync: a warp has a tile, and its scales in the lowest bytes of the first lanes of each quad.

template <int id>
struct MmaOf {
  static constexpr ScaledInstruction is = kScaledInstructions[id];
  static constexpr arch::ScaledMma mma = arch::find_scaled_mma(is.kind);
  static constexpr int a = find_format(is.a), b = find_format(is.b);
};

template <int id>
__global__ void __launch_bounds__(32) run_mma_sync(const __grid_constant__ ScaledTilesJob job) {
  using Is = MmaOf<id>;
  const int lane = int(threadIdx.x), g = lane / 4, t = lane % 4;
  for (int tile = int(blockIdx.x); tile < job.tiles; tile += int(gridDim.x)) {
    const int row = tile * 16 + g, col = tile * 8 + g;
    arch::ScaledMmaRegisters x{};
#pragma unroll
    for (int r = 0; r < 4; ++r) x.a[r] = job.a[(row + r % 2 * 8) * kRowWords + t + r / 2 * 4];
#pragma unroll
    for (int r = 0; r < 2; ++r) x.b[r] = job.b[col * kRowWords + t + r * 4];
    x.a_scales = job.a_scales[row + t % 2 * 8], x.b_scales = job.b_scales[col];
    const int first = row * 8 + 2 * t, second = first + 8 * 8;
    uint32_t d[4] = {job.c[first], job.c[first + 1], job.c[second], job.c[second + 1]};
    arch::mma_sync<Is::mma, Is::a, Is::b>(x, d);
    job.d[first] = d[0], job.d[first + 1] = d[1], job.d[second] = d[2], job.d[second + 1] = d[3];
  }
}

// tcgen05: a CTA of 128 threads has a tile, each of them a row of A and of D.

struct TensorTileShared {
  alignas(1024) uint32_t a[2][arch::kTensorLanes][4];  // of two chunks of 16 bytes all rows
  alignas(1024) uint32_t b[2][kMostColumns][4];
  alignas(1024) uint32_t a_scales[arch::kTensorLanes];  // a tile of 128 x 4 (emulation/blocks/layout.h)
  alignas(1024) uint32_t b_scales[arch::kTensorLanes];
  arch::CommitBarrier done;
  uint32_t slot;
};

template <int rows>
__device__ void put_row(const uint32_t* words, int row, uint32_t (&to)[2][rows][4]) {
  for (int word = 0; word < kRowWords; ++word) to[word / 4][row][word % 4] = words[word];
}

template <int rows>
__device__ uint64_t descriptor_of(const uint32_t (&matrix)[2][rows][4]) {
  return arch::descriptor_of(
      {.start = arch::shared_address(matrix), .leading = sizeof matrix[0], .stride = 8 * sizeof matrix[0][0]});
}

__device__ inline uint64_t scales_descriptor(const uint32_t (&scales)[arch::kTensorLanes]) {
  return arch::descriptor_of({.start = arch::shared_address(scales), .leading = sizeof scales, .stride = 8 * 16});
}

__device__ inline void put_tile(const ScaledTilesJob& job, int tile, TensorTileShared& shared) {
  const int row = int(threadIdx.x), scale = row % 32 * 4 + row / 32;
  const int of_a = tile * job.m + row, of_b = tile * job.n + row;
  put_row(job.a + of_a * kRowWords, row, shared.a);
  shared.a_scales[scale] = job.a_scales[of_a];
  shared.b_scales[scale] = row < job.n ? job.b_scales[of_b] : 0;
  if (row < job.n) put_row(job.b + of_b * kRowWords, row, shared.b);
}

// Operands, scales and C where the instruction takes them from, the instruction, and D back.
template <arch::Tcgen05Kind kind>
__device__ void tcgen05_tile(const ScaledTilesJob& job, const arch::TensorMemory& memory, int tile, uint32_t parity,
                             TensorTileShared& shared) {
  put_tile(job, tile, shared);
  const uint32_t* c = job.c + (tile * job.m + int(threadIdx.x)) * job.n;
  for (int col = 0; col < job.n; col += arch::kTensorColumns) arch::store_columns(memory, uint32_t(col), c + col);
  arch::publish_shared_memory();
  if constexpr (arch::is_block_scaled(kind)) {
    arch::copy_scales(memory, kScaleColumn, scales_descriptor(shared.a_scales));
    arch::copy_scales(memory, kScaleColumn + 4, scales_descriptor(shared.b_scales));
  }
  const arch::Tcgen05Instruction is{
      .a_format = job.a_number, .b_format = job.b_number, .m = uint32_t(job.m), .n = uint32_t(job.n)};
  arch::tcgen05_mma<kind>(memory,
                          {.a = descriptor_of(shared.a),
                           .b = descriptor_of(shared.b),
                           .instruction = arch::descriptor_of(kind, is),
                           .d = 0,
                           .a_scales = kScaleColumn,
                           .b_scales = kScaleColumn + 4},
                          arch::InputD::d);
  arch::commit(shared.done);
  arch::wait(shared.done, parity);
  uint32_t* d = job.d + (tile * job.m + int(threadIdx.x)) * job.n;
  for (int col = 0; col < job.n; col += arch::kTensorColumns) {
    uint32_t sums[arch::kTensorColumns];
    arch::load_columns(memory, uint32_t(col), sums);
    for (int i = 0; i < arch::kTensorColumns; ++i) d[col + i] = sums[i];
  }
}

template <arch::Tcgen05Kind kind>
__global__ void __launch_bounds__(arch::kTcgen05Threads, 2) run_tcgen05(const __grid_constant__ ScaledTilesJob job) {
  __shared__ TensorTileShared shared;
  arch::initialize(shared.done);
  const arch::TensorMemory memory = arch::allocate_tensor_memory<kTensorMemoryColumns>(
      &shared.slot, job.model + int64_t(blockIdx.x) * kTensorMemoryColumns * arch::kTensorLanes);
  uint32_t parity = 0;
  for (int tile = int(blockIdx.x); tile < job.tiles; tile += int(gridDim.x), parity ^= 1)
    tcgen05_tile<kind>(job, memory, tile, parity, shared);
  arch::free_tensor_memory<kTensorMemoryColumns>(memory);
}

using Kernel = void (*)(ScaledTilesJob);

template <std::size_t id>
constexpr Kernel kernel_of() {
  constexpr ScaledInstruction is = kScaledInstructions[id];
  if constexpr (is.unit == ScaledUnit::mma_sync) {
    return run_mma_sync<int(id)>;
  } else {
    return run_tcgen05<arch::find_tcgen05_kind(is.kind)>;
  }
}
template <std::size_t... id>
constexpr std::array<Kernel, sizeof...(id)> kernels(std::index_sequence<id...>) {
  return {kernel_of<id>()...};
}
constexpr auto kKernels = kernels(std::make_index_sequence<kScaledInstructions.size()>{});

// Of a code in 32 bytes of a row: `shift` zero bits below it, in so many bits, from the start of either half. Registers
// have the elements of K = 32 in bytes; shared memory packs them.
struct Packing {
  int bits, shift;
};
Packing packing(const ScaledInstruction& is, std::string_view format) {
  const FormatEntry& entry = kFormats[std::size_t(find_format(format))];
  if (is.unit == ScaledUnit::tcgen05) return {entry.storage_shift + entry.format.bits(), entry.storage_shift};
  return {256 / is.k, is.k == 32 && entry.format.bits() == 4 ? 2 : 0};
}

std::vector<uint32_t> packed_rows(const std::vector<uint32_t>& codes, int k, const Packing& as) {
  const std::size_t half = std::size_t(k) / 2, halves = codes.size() / half;
  std::vector<uint32_t> words(halves * 4);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const std::size_t bit = i % half * std::size_t(as.bits), word = i / half * 4 + bit / 32;
    const uint64_t code = uint64_t{codes[i] << as.shift} << bit % 32;
    words[word] |= uint32_t(code);
    if (bit % 32 + std::size_t(as.bits) > 32) words[word + 1] |= uint32_t(code >> 32);
  }
  return words;
}

std::vector<uint32_t> packed_scales(const std::vector<uint32_t>& scales, std::size_t rows, int row_scales) {
  std::vector<uint32_t> words(rows);
  for (std::size_t i = 0; i < scales.size(); ++i)
    words[i / std::size_t(row_scales)] |= scales[i] << i % std::size_t(row_scales) * 8;
  return words;
}

ScaledTilesJob tiles_job(const ScaledInstruction& is, std::size_t tiles) {
  ScaledTilesJob job{};
  job.m = is.m, job.n = is.n, job.row_scales = is.row_scales, job.tiles = int(tiles);
  if (is.unit == ScaledUnit::mma_sync) return job;
  const arch::Tcgen05Kind kind = arch::find_tcgen05_kind(is.kind);
  job.a_number = uint32_t(arch::tcgen05_format_number(kind, is.a));
  job.b_number = uint32_t(arch::tcgen05_format_number(kind, is.b));
  return job;
}

void check_sizes(const ScaledInstruction& is, const ScaledTiles& x, std::size_t tiles) {
  const auto is_of = [&](const std::vector<uint32_t>& array, int rows, int cols) {
    return array.size() == tiles * std::size_t(rows) * std::size_t(cols);
  };
  const bool good = is_of(x.a, is.m, is.k) && is_of(x.b, is.n, is.k) && is_of(x.a_scales, is.m, is.row_scales) &&
                    is_of(x.b_scales, is.n, is.row_scales) && is_of(x.c, is.m, is.n);
  if (!good || tiles * std::size_t(is.m) * std::size_t(is.k) > std::size_t{1} << 30)
    throw std::logic_error("tiles are not of the instruction's sizes");
}

}  // namespace

arch::Form scaled_instruction_form(int id) {
  const arch::MatrixForms forms = arch::loaded_matrix_forms();
  const bool sync = kScaledInstructions[std::size_t(id)].unit == ScaledUnit::mma_sync;
  return sync ? forms.mma_block_scaled : forms.tcgen05;
}

void multiply_scaled_tiles(int id, ScaledTiles& tiles) {
  const ScaledInstruction& is = kScaledInstructions[std::size_t(id)];
  const std::size_t count = tiles.a.size() / (std::size_t(is.m) * std::size_t(is.k));
  check_sizes(is, tiles, count);
  tiles.d.resize(tiles.c.size());
  if (count == 0) return;
  const unsigned ctas = std::min(unsigned(count), kMostCtas), warps = is.unit == ScaledUnit::mma_sync ? 1 : 4;
  const DeviceArray<uint32_t> a(packed_rows(tiles.a, is.k, packing(is, is.a)));
  const DeviceArray<uint32_t> b(packed_rows(tiles.b, is.k, packing(is, is.b)));
  const DeviceArray<uint32_t> a_scales(packed_scales(tiles.a_scales, count * std::size_t(is.m), is.row_scales));
  const DeviceArray<uint32_t> b_scales(packed_scales(tiles.b_scales, count * std::size_t(is.n), is.row_scales));
  const DeviceArray<uint32_t> c(tiles.c), d(tiles.d.size());
  const DeviceArray<uint32_t> model(std::size_t{ctas} * kTensorMemoryColumns * arch::kTensorLanes);
  ScaledTilesJob job = tiles_job(is, count);
  job.a = a.data(), job.b = b.data(), job.a_scales = a_scales.data(), job.b_scales = b_scales.data();
  job.c = c.data(), job.d = d.data(), job.model = model.data();
  kKernels[std::size_t(id)]<<<ctas, warps * 32>>>(job);
  check(cudaGetLastError());
  d.copy_to(tiles.d);
}

}  // namespace halfulp

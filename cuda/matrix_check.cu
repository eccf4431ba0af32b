#include "cuda/matrix_check.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cuda/arch/form.h"
#include "cuda/arch/mma.cuh"
#include "cuda/check.h"
#include "cuda/launch.h"
#include "cuda/memory.h"

namespace halfulp {
namespace {

constexpr unsigned kThreads = 128, kMostCtas = 132 * 64;
constexpr uint64_t kTilesAtOnce = uint64_t{1} << 16;
constexpr uint64_t kShown = 8;

// Tiles in the memory of the GPU: rows of a and b as they lie in registers, c and d a code to a word.
struct TilesJob {
  MatrixInstruction is;
  Format a_format, b_format, d_format;
  int element_bits, storage_shift, row_words;
  uint32_t *a, *b, *c, *d;
  uint64_t first, tiles;
};

TilesJob tiles_job(int id) {
  const MatrixInstruction& is = kMatrixInstructions[std::size_t(id)];
  const FormatEntry &a = kFormats[std::size_t(find_format(is.a))], &b = kFormats[std::size_t(find_format(is.b))];
  TilesJob job{};
  job.is = is;
  job.a_format = a.format, job.b_format = b.format;
  job.d_format = kFormats[std::size_t(find_format(is.d))].format;
  job.element_bits = a.storage_bits, job.storage_shift = a.storage_shift;
  job.row_words = is.k * a.storage_bits / 32;
  return job;
}

// Inputs.

__device__ void fill_words(const TilesJob& job, MatrixMode mode, MatrixSide side, uint64_t at) {
  const Format& format = side == MatrixSide::a ? job.a_format : job.b_format;
  const int rows = side == MatrixSide::a ? job.is.m : job.is.n, of_word = 32 / job.element_bits;
  const uint64_t tile = at / (rows * job.row_words);
  const auto first = uint32_t(at % (rows * job.row_words)) * of_word;
  uint32_t word = 0;
  for (int i = 0; i < of_word; ++i)
    word |= (matrix_input(format, mode, side, job.is.k, job.first + tile, first + i) << job.storage_shift)
            << i * job.element_bits;
  (side == MatrixSide::a ? job.a : job.b)[at] = word;
}

__global__ void fill_tiles(const __grid_constant__ TilesJob job, MatrixMode mode) {
  const uint64_t outputs = job.tiles * job.is.m * job.is.n, of_a = job.tiles * job.is.m * job.row_words,
                 of_b = job.tiles * job.is.n * job.row_words, threads = uint64_t(gridDim.x) * blockDim.x;
  for (uint64_t at = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < outputs + of_a + of_b; at += threads) {
    if (at < of_a) {
      fill_words(job, mode, MatrixSide::a, at);
    } else if (at < of_a + of_b) {
      fill_words(job, mode, MatrixSide::b, at - of_a);
    } else {
      const uint64_t of_tile = job.is.m * job.is.n, output = at - of_a - of_b;
      job.c[output] = matrix_input(job.d_format, mode, MatrixSide::c, job.is.n, job.first + output / of_tile,
                                   uint32_t(output % of_tile));
    }
  }
}

// The instruction.

__device__ void load_columns(const TilesJob& job, uint64_t tile, int thread, int threads, arch::MatrixColumns& b) {
  for (int at = thread; at < 64; at += threads) {
    const int word = at / 32 * 4 + at % 4, n = at % 32 / 4;
    b.words[at] = word < job.row_words ? job.b[(tile * job.is.n + n) * job.row_words + word] : 0;
  }
}

__device__ arch::MatrixRegisters load_registers(const TilesJob& job, uint64_t tile, int first_row) {
  const int lane = int(threadIdx.x % 32), g = lane / 4, t = lane % 4;
  arch::MatrixRegisters x{};
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int row = first_row + g + r % 2 * 8, word = t + r / 2 * 4;
    if (word < job.row_words) x.a[r] = job.a[(tile * job.is.m + row) * job.row_words + word];
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t* c = job.c + (tile * job.is.m + first_row + g + half * 8) * job.is.n + 2 * t;
    if (job.d_format.bits() == 16) {
      x.d[half] = c[0] | c[1] << 16;
    } else {
      x.d[2 * half] = c[0], x.d[2 * half + 1] = c[1];
    }
  }
  return x;
}

__device__ void store_registers(const TilesJob& job, uint64_t tile, int first_row, const arch::MatrixRegisters& x) {
  const int lane = int(threadIdx.x % 32), g = lane / 4, t = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    uint32_t* d = job.d + (tile * job.is.m + first_row + g + half * 8) * job.is.n + 2 * t;
    const bool f16 = job.d_format.bits() == 16;
    d[0] = f16 ? x.d[half] & 0xffff : x.d[2 * half];
    d[1] = f16 ? x.d[half] >> 16 : x.d[2 * half + 1];
  }
}

template <int id>
constexpr bool kTogether = kMatrixInstructions[id].unit == MatrixUnit::warpgroup;

// A warp has a tile of its own, or a warpgroup has one.
template <int id>
__global__ void __launch_bounds__(kThreads) run_tiles(const __grid_constant__ TilesJob job) {
  constexpr bool together = kTogether<id>;
  constexpr int kTiles = together ? 1 : kThreads / 32;
  __shared__ arch::MatrixColumns columns[kTiles];
  const int warp = int(threadIdx.x / 32), own = together ? 0 : warp;
  for (uint64_t first = uint64_t(blockIdx.x) * kTiles; first < job.tiles; first += uint64_t(gridDim.x) * kTiles) {
    const uint64_t tile = min(first + own, job.tiles - 1);  // the last one more than once
    load_columns(job, tile, together ? int(threadIdx.x) : int(threadIdx.x % 32), together ? kThreads : 32,
                 columns[own]);
    __syncthreads();
    arch::MatrixRegisters x = load_registers(job, tile, together ? 16 * warp : 0);
    arch::multiply<id>(x, columns[own]);
    store_registers(job, tile, together ? 16 * warp : 0, x);
    __syncthreads();
  }
}

template <std::size_t... id>
constexpr auto runs(std::index_sequence<id...>) {
  return std::array<void (*)(TilesJob), sizeof...(id)>{run_tiles<int(id)>...};
}
constexpr auto kRuns = runs(std::make_index_sequence<kMatrixInstructions.size()>{});

// The model.

struct Counts {
  unsigned long long mismatches;  // what atomicAdd takes
  MatrixMismatch shown[kShown];
};

__device__ void take_row(const TilesJob& job, const uint32_t* words, uint32_t (&codes)[arch::detail::kMostElements]) {
  const uint32_t mask = job.element_bits == 32 ? ~0u : (1u << job.element_bits) - 1;
  for (int i = 0; i < job.is.k; ++i)
    codes[i] = (words[i * job.element_bits / 32] >> (i * job.element_bits % 32) & mask) >> job.storage_shift;
}

__global__ void compare_outputs(const __grid_constant__ TilesJob job, const __grid_constant__ Accumulator model,
                                Counts* counts) {
  const uint64_t outputs = job.tiles * job.is.m * job.is.n, threads = uint64_t(gridDim.x) * blockDim.x;
  for (uint64_t at = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; at < outputs; at += threads) {
    const uint64_t row = at / job.is.n, tile = row / job.is.m, col = at % job.is.n;
    uint32_t a[arch::detail::kMostElements], b[arch::detail::kMostElements];
    take_row(job, job.a + row * job.row_words, a);
    take_row(job, job.b + (tile * job.is.n + col) * job.row_words, b);
    const uint32_t expected = dot_product(model, {job.a_format, a}, {job.b_format, b}, job.is.k, job.c[at]);
    if (expected == job.d[at]) continue;
    const unsigned long long number = atomicAdd(&counts->mismatches, 1ull);
    if (number < kShown) counts->shown[number] = {job.first + tile, int(row % job.is.m), int(col), job.d[at], expected};
  }
}

// Rows of words from and to codes.

std::vector<uint32_t> packed(const TilesJob& job, const std::vector<uint32_t>& codes) {
  const std::size_t of_word = std::size_t(32 / job.element_bits);
  std::vector<uint32_t> words(codes.size() / of_word);
  for (std::size_t i = 0; i < codes.size(); ++i)
    words[i / of_word] |= (codes[i] << job.storage_shift) << i % of_word * std::size_t(job.element_bits);
  return words;
}

std::vector<uint32_t> unpacked(const TilesJob& job, const DeviceArray<uint32_t>& array) {
  const std::vector<uint32_t> words = array.on_host();
  const std::size_t of_word = std::size_t(32 / job.element_bits);
  std::vector<uint32_t> codes(words.size() * of_word);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const uint32_t element = words[i / of_word] >> i % of_word * std::size_t(job.element_bits);
    codes[i] = (element & uint32_t(low_mask(job.element_bits))) >> job.storage_shift;
  }
  return codes;
}

// Memory for so many tiles.
class Tiles {
 public:
  Tiles(int id, uint64_t count)
      : job_(tiles_job(id)),
        a_(std::size_t(count * job_.is.m * job_.row_words)),
        b_(std::size_t(count * job_.is.n * job_.row_words)),
        c_(std::size_t(count * job_.is.m * job_.is.n)),
        d_(c_.size()) {
    job_.a = a_.data(), job_.b = b_.data(), job_.c = c_.data(), job_.d = d_.data();
  }
  TilesJob& job() { return job_; }

  void set(const MatrixAnswers& operands) {
    const auto copy = [](const DeviceArray<uint32_t>& to, const std::vector<uint32_t>& from) {
      check(cudaMemcpy(to.data(), from.data(), to.size() * sizeof(uint32_t), cudaMemcpyHostToDevice));
    };
    copy(a_, packed(job_, operands.a)), copy(b_, packed(job_, operands.b)), copy(c_, operands.c);
    job_.tiles = c_.size() / uint64_t(job_.is.m * job_.is.n);
  }
  MatrixAnswers answers() const {
    return {.a = unpacked(job_, a_), .b = unpacked(job_, b_), .c = c_.on_host(), .d = d_.on_host()};
  }

 private:
  TilesJob job_;
  DeviceArray<uint32_t> a_, b_, c_, d_;
};

void run(int id, const TilesJob& job) {
  kRuns[std::size_t(id)]<<<std::min(gpu::ctas(job.tiles, 1), kMostCtas), kThreads>>>(job);
  check(cudaGetLastError());
}

}  // namespace

bool has_matrix_instruction(int id) {
  return has_target(kMatrixInstructions[std::size_t(id)].targets, arch::loaded_forms().target.substr(3));
}

MatrixAnswers multiply_tiles(int id, const MatrixTiles& tiles) {
  Tiles memory(id, tiles.count);
  memory.job().first = tiles.first, memory.job().tiles = tiles.count;
  fill_tiles<<<kMostCtas, kThreads>>>(memory.job(), tiles.mode);
  run(id, memory.job());
  return memory.answers();
}

std::vector<uint32_t> multiply_tiles(int id, const MatrixAnswers& operands) {
  const TilesJob job = tiles_job(id);
  Tiles memory(id, operands.c.size() / std::size_t(job.is.m * job.is.n));
  memory.set(operands);
  run(id, memory.job());
  return memory.answers().d;
}

MatrixComparison compare_tiles(int id, const MatrixTiles& tiles, const Accumulator& model) {
  Tiles memory(id, std::min(tiles.count, kTilesAtOnce));
  const Counts none{};
  const DeviceArray<Counts> counts(std::span<const Counts>(&none, 1));
  TilesJob& job = memory.job();
  for (uint64_t done = 0; done < tiles.count; done += job.tiles) {
    job.first = tiles.first + done, job.tiles = std::min(tiles.count - done, kTilesAtOnce);
    fill_tiles<<<kMostCtas, kThreads>>>(job, tiles.mode);
    run(id, job);
    compare_outputs<<<kMostCtas, kThreads>>>(job, model, counts.data());
    check(cudaGetLastError());
  }
  const Counts found = counts.on_host()[0];
  const auto shown = std::size_t(std::min<uint64_t>(found.mismatches, kShown));
  return {.outputs = tiles.count * uint64_t(job.is.m) * uint64_t(job.is.n),
          .mismatches = found.mismatches,
          .shown = {found.shown, found.shown + shown}};
}

}  // namespace halfulp

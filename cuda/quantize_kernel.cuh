#pragma once
// The compiled quantizer of one recipe: a thread reads a run of a row, threads that share a block find its largest
// magnitude together, each writes its codes. Whole blocks only.

#include <cstdint>

#include "cuda/arch/magnitude.cuh"
#include "cuda/elements.cuh"
#include "cuda/recipe_code.cuh"
#include "lib/philox.h"

namespace halfulp::gpu {

struct KernelJob {
  const void* x;
  uint64_t rows, cols;
  TensorScale tensor;
  uint64_t seed, stream, first_element, first_block;
  std::byte* codes;
  std::byte* scales;
};

// How threads share the elements of a recipe's blocks.
template <int recipe>
struct Shares {
  static constexpr int block_rows = kRow<recipe>.block.rows, block_cols = kRow<recipe>.block.cols;
  static constexpr bool has_blocks = has_scale(kRow<recipe>);
  static constexpr int run = block_cols == 32 ? 32 : 16;  // elements of a thread
  static constexpr int across = has_blocks ? block_cols / run : 1;
  static constexpr int lanes = has_blocks ? block_rows * across : 1;  // threads of a block
  static constexpr int threads = lanes > 256 ? lanes : 256;           // of a CTA
  static constexpr bool tiles = block_rows > 1;
  static constexpr AmaxNan amax_nan = kRow<recipe>.amax_nan;
};

// The larger magnitude over the threads of a block, which all give a number and all get the result.
template <int lanes, class Larger>
__device__ float over_lanes(float mine, Larger larger) {
  constexpr int kInWarp = lanes < 32 ? lanes : 32;
  const unsigned group = lanes >= 32 ? ~0u : ((1u << kInWarp) - 1) << (threadIdx.x % 32 / kInWarp * kInWarp);
#pragma unroll
  for (int distance = kInWarp / 2; distance > 0; distance /= 2)
    mine = larger(mine, __shfl_xor_sync(group, mine, distance));
  if constexpr (lanes > 32) {
    static_assert(lanes == 1024, "a CTA, whose warps are as many as a warp's threads");
    __shared__ float of_warp[32];
    __syncthreads();  // the last one's readers are done
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    mine = of_warp[threadIdx.x % 32];
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) mine = larger(mine, __shfl_xor_sync(~0u, mine, distance));
  }
  return mine;
}

// The block's largest magnitude as the recipe takes it, and whether every element is a number.
struct Largest {
  float amax;
  bool all_numbers;
};

template <int recipe>
__device__ Largest largest_of_block(const float (&x)[Shares<recipe>::run]) {
  using Is = Shares<recipe>;
  const auto nan_wins = [](float a, float b) { return arch::larger_magnitude(a, b); };
  const auto number_wins = [](float a, float b) { return fmaxf(fabsf(a), fabsf(b)); };
  float amax = 0;
#pragma unroll
  for (int i = 0; i < Is::run; ++i) amax = nan_wins(amax, x[i]);
  amax = over_lanes<Is::lanes>(amax, nan_wins);
  if (amax == amax) return {amax, true};
  if constexpr (Is::amax_nan == AmaxNan::propagates) return {detail::quiet_nan(), false};
  amax = bit_cast<float>(~0u);
#pragma unroll
  for (int i = 0; i < Is::run; ++i) amax = number_wins(amax, x[i]);
  amax = over_lanes<Is::lanes>(amax, number_wins);
  const float of_none = Is::amax_nan == AmaxNan::ignored ? 0 : detail::quiet_nan();
  return {amax == amax ? amax : of_none, false};
}

// Where a thread's run lies, and its block among all.
struct Place {
  uint64_t element;
  uint64_t block;         // of the scales
  uint64_t random_block;  // each row of a tile counts by itself
};

template <int recipe>
__device__ Place place_of(const KernelJob& job, uint64_t thread, uint64_t block_row) {
  using Is = Shares<recipe>;
  if constexpr (!Is::tiles) {
    const uint64_t block = thread / Is::lanes;
    return {thread * Is::run, block, block};
  } else {
    const uint64_t block_col = thread / Is::lanes, blocks = job.cols / Is::block_cols;
    const int lane = int(thread % Is::lanes);
    const uint64_t row = block_row * Is::block_rows + lane / Is::across;
    return {row * job.cols + block_col * Is::block_cols + uint64_t(lane % Is::across * Is::run),
            block_row * blocks + block_col, row * blocks + block_col};
  }
}

// Codes of a run, in order.
template <int recipe, int n, int words>
__device__ void encode_run(const KernelJob& job, const Place& place, float factor, const float (&x)[n],
                           uint32_t (&codes)[words]) {
  using Element = Conversion<recipe, Part::element>;
  constexpr bool by_fours = Element::is_random && kRow<recipe>.random == RandomSource::te;
  constexpr int together = Element::is_random ? 4 : 2;
#pragma unroll
  for (int i = 0; i < words; ++i) codes[i] = 0;
  PhiloxBlock random{};
#pragma unroll
  for (int i = 0; i < n; i += together) {
    float y[together];
#pragma unroll
    for (int k = 0; k < together; ++k) y[k] = scaled_in_block<recipe>(job.tensor, factor, x[i + k]);
    uint32_t of_these = 0;
    if constexpr (by_fours) {
      constexpr int kBlockElements = 16;  // of a Philox block: a word for four
      if (i % kBlockElements == 0)
        random = random_block(job.seed, job.first_block + place.random_block,
                              job.stream + (place.element + i) % Shares<recipe>::block_cols / kBlockElements);
      of_these = Element::four(y, random.words[i / 4 % 4]);
    } else if constexpr (Element::is_random) {
      random = random_block(job.seed, job.stream, (job.first_element + place.element + i) / 4);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        of_these |= Element::one(y[k], {.word = random.words[k], .count = 32}) << k * Element::bits;
    } else {
      of_these = Element::two(y[0], y[1]);
    }
    codes[i * Element::bits / 32] |= of_these << (i * Element::bits % 32);
  }
}

// Whether a run's codes are line_nibbles(), where nothing overflows.
template <int recipe>
constexpr bool kHasLines =
    Conversion<recipe, Part::element>::bits == 4 && !Conversion<recipe, Part::element>::is_native &&
    arch::has_line_code(kRow<recipe>.element.format(), kRow<recipe>.policy) && kRow<recipe>.scaled == Formula("x * m");

template <int recipe>
constexpr float kOverflow = arch::overflow_threshold(kRow<recipe>.element.format());

template <int recipe>
__device__ void store_scale(std::byte* scales, uint64_t block, uint32_t code) {
  constexpr int bits = Conversion<recipe, Part::scale>::bits;
  if constexpr (bits == 8) {
    scales[block] = std::byte(code);
  } else {
    static_assert(bits == 32);
    reinterpret_cast<uint32_t*>(scales)[block] = code;
  }
}

template <int recipe, class Source>
__device__ void quantize_run(const KernelJob& job, const Place& place) {
  using Is = Shares<recipe>;
  constexpr int bits = Conversion<recipe, Part::element>::bits;
  float x[Is::run];
  load<Source>(job.x, place.element, x);
  uint32_t codes[Is::run * bits / 32];
  BlockScale scale;
  bool plain = false;
  if constexpr (Is::has_blocks) {
    const Largest largest = largest_of_block<recipe>(x);
    scale = scale_of_block<recipe>(job.tensor, largest.amax);
    if (place.element % uint64_t(Is::block_cols) == 0 && threadIdx.x % Is::lanes == 0)
      store_scale<recipe>(job.scales, place.block, scale.code);
    if constexpr (kHasLines<recipe>) plain = largest.all_numbers && largest.amax * scale.factor < kOverflow<recipe>;
  }
  if (plain) {
    if constexpr (kHasLines<recipe>) {
#pragma unroll
      for (int i = 0; i < Is::run / 8; ++i)
        codes[i] = arch::line_nibbles<Conversion<recipe, Part::element>::format_id>(x + 8 * i, scale.factor);
    }
  } else {
    encode_run<recipe>(job, place, scale.factor, x, codes);
  }
  store(job.codes + place.element * bits / 8, codes);
}

// Blocks along x, block rows of tiles along y, which has fewer places than a tensor can have rows.
template <int recipe, class Source>
__global__ void __launch_bounds__(Shares<recipe>::threads) quantize_kernel(KernelJob job) {
  using Is = Shares<recipe>;
  const uint64_t thread = uint64_t(blockIdx.x) * Is::threads + threadIdx.x;
  const uint64_t rows_together = Is::tiles ? Is::block_rows : job.rows;
  if (thread >= rows_together * job.cols / Is::run) return;
  for (uint64_t row = blockIdx.y; row < job.rows / rows_together; row += gridDim.y)
    quantize_run<recipe, Source>(job, place_of<recipe>(job, thread, row));
}

}  // namespace halfulp::gpu

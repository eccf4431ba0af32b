#pragma once
// The compiled quantizer of one recipe: a thread reads a run of a row, threads that share a block find its largest
// magnitude together, each writes its codes. Whole blocks only.

#include <cstdint>

#include "cuda/arch/magnitude.cuh"
#include "cuda/arch/stochastic.cuh"
#include "cuda/elements.cuh"
#include "cuda/launch.h"
#include "cuda/quantize.h"
#include "cuda/recipe_code.cuh"
#include "emulation/blocks/layout.h"
#include "lib/philox.h"

namespace halfulp::gpu {

struct KernelJob {
  const void* x;
  uint64_t rows, cols;
  TensorScale tensor;
  uint64_t seed, stream, first_element, first_block;
  PhiloxKeys keys;  // of the seed
  std::byte* codes;
  std::byte* scales;
  bool swizzled;  // the scales lie in the tiles of emulation/blocks/layout.h
};

inline KernelJob kernel_job(const GpuQuantizeJob& job) {
  return {.x = job.x,
          .rows = job.shape.rows,
          .cols = job.shape.cols,
          .tensor = job.tensor,
          .seed = job.random.seed,
          .stream = job.random.stream,
          .first_element = job.random.first_element,
          .first_block = job.random.first_block,
          .keys = philox_keys(job.random.seed),
          .codes = job.codes,
          .scales = job.scales,
          .swizzled = job.scale_order == ScaleOrder::tiles};
}

// How the threads of a CTA share the elements of a recipe's blocks. Without tiles runs follow one another, and the
// threads of a block with them; a CTA of tiles is as high as they are.
template <int recipe>
struct Shares {
  static constexpr int block_rows = kRow<recipe>.block.rows, block_cols = kRow<recipe>.block.cols;
  static constexpr bool has_blocks = has_scale(kRow<recipe>), tiles = block_rows > 1;
  static constexpr int run = block_cols % 32 == 0 && (tiles || block_cols == 32) ? 32 : 16;  // elements of a thread
  static constexpr int lanes = has_blocks ? block_cols / run : 1;  // threads of a block side by side
  static constexpr int threads = block_rows > 64 ? block_rows* lanes : 256;
  static constexpr int across = tiles ? threads / block_rows : threads;  // threads of a CTA side by side
  static constexpr AmaxNan amax_nan = kRow<recipe>.amax_nan;
};

// How a kernel of Shares is launched, and on what.
struct Launch {
  unsigned threads;
  uint64_t across, run, block_rows, block_cols;
  bool has_blocks, tiles;

  bool takes(const Matrix& shape) const {
    if (!has_blocks) return shape.elements() % run == 0;
    return shape.cols % block_cols == 0 && shape.rows % block_rows == 0;
  }
  dim3 grid(const Matrix& shape) const {
    const uint64_t runs = (tiles ? shape.cols : shape.elements()) / run;
    const uint64_t rows = tiles ? shape.rows / block_rows : 1;
    return {unsigned((runs + across - 1) / across), unsigned(rows < kMaxGridRows ? rows : kMaxGridRows)};
  }
};

template <int recipe>
constexpr Launch launch_of() {
  using Is = Shares<recipe>;
  return {.threads = Is::threads,
          .across = Is::across,
          .run = Is::run,
          .block_rows = uint64_t(Is::block_rows),
          .block_cols = uint64_t(Is::block_cols),
          .has_blocks = Is::has_blocks,
          .tiles = Is::tiles};
}

template <class... Pointer>
bool lie_on_16_bytes(Pointer... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0) && ...);
}

// The larger number over the threads of a block, which all give one and all get the result.
template <int recipe, class Larger>
__device__ float over_block(float mine, Larger larger) {
  using Is = Shares<recipe>;
  static_assert(Is::lanes <= 32 && (!Is::tiles || Is::across <= 32));
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    if (distance < Is::lanes || (Is::tiles && distance >= Is::across))
      mine = larger(mine, __shfl_xor_sync(~0u, mine, distance));
  if constexpr (Is::tiles) {
    constexpr int kWarps = Is::threads / 32, kBlocks = Is::across / Is::lanes;
    __shared__ float of_warp[kWarps][kBlocks];
    const int block = int(threadIdx.x) % Is::across / Is::lanes;
    __syncthreads();  // the last ones are read
    if (threadIdx.x % 32 < Is::across && threadIdx.x % Is::lanes == 0) of_warp[threadIdx.x / 32][block] = mine;
    __syncthreads();
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) mine = larger(mine, of_warp[warp][block]);
  }
  return mine;
}

// A block's largest magnitude as the recipe takes it, and whether every element is a number.
struct Largest {
  float amax;
  bool all_numbers;
};

template <int recipe, class Source>
__device__ Largest largest_of_block(const Run<Source, Shares<recipe>::run>& run) {
  using Is = Shares<recipe>;
  const auto larger = [](float a, float b) { return fmaxf(a, b); };
  const float amax = over_block<recipe>(run.largest_magnitude(), arch::larger_magnitude);
  // A vote, so that all threads of a block, and of a CTA of tiles, go the same way.
  const bool numbers = Is::tiles ? __syncthreads_and(amax == amax) : __all_sync(~0u, amax == amax);
  if (numbers) return {amax, true};
  if constexpr (Is::amax_nan == AmaxNan::propagates) return {amax == amax ? amax : detail::quiet_nan(), amax == amax};
  const float number = over_block<recipe>(run.largest_number(), larger);
  if constexpr (Is::amax_nan == AmaxNan::propagates_from_all)
    if (over_block<recipe>(run.has_number(), larger) == 0) return {detail::quiet_nan(), false};
  return {number, amax == amax};
}

// Where a thread's run lies in a matrix, and its block.
struct Place {
  uint64_t element;
  uint64_t block;         // among the scales
  uint64_t random_block;  // each row of a tile counts by itself
  bool inside;
};

template <int recipe>
__device__ Place place_of(uint64_t rows, uint64_t cols, uint64_t block_row) {
  using Is = Shares<recipe>;
  if constexpr (!Is::tiles) {
    const uint64_t thread = uint64_t(blockIdx.x) * Is::threads + threadIdx.x, block = thread / Is::lanes;
    return {thread * Is::run, block, block, thread < rows * cols / Is::run};
  } else {
    const uint64_t across = uint64_t(blockIdx.x) * Is::across + threadIdx.x % Is::across;
    const uint64_t row = block_row * Is::block_rows + threadIdx.x / Is::across;
    const uint64_t blocks = cols / Is::block_cols, block = across / Is::lanes;
    return {row * cols + across * Is::run, block_row * blocks + block, row * blocks + block, across < cols / Is::run};
  }
}

// Philox's words for 16 elements from number `element` of the matrix on, as Transformer Engine takes them.
template <int recipe>
__device__ PhiloxBlock words_of_16(const KernelJob& job, const Place& place, uint64_t element) {
  return random_block(job.keys, job.first_block + place.random_block,
                      job.stream + element % Shares<recipe>::block_cols / 16);
}

// Philox's words for 4 elements of a run from its element i on, one for each. Of the blocks' numbers the low half is
// counted: it must not carry in the run.
__device__ inline PhiloxBlock words_of_4(const KernelJob& job, const Place& place, int i) {
  const uint64_t first = (job.first_element + place.element) / 4;
  return random_block(job.keys, job.stream, (first >> 32 << 32) | uint32_t(uint32_t(first) + uint32_t(i / 4)));
}

__device__ inline bool words_carry(const KernelJob& job, const Place& place, int elements) {
  return uint32_t((job.first_element + place.element) / 4) > ~uint32_t{0} - uint32_t(elements / 4);
}

// Word number i of four. By comparisons: by a variable position words would go through memory.
__device__ inline uint32_t word_at(const PhiloxBlock& block, uint64_t i) {
  return i < 2 ? (i == 0 ? block[0] : block[1]) : (i == 2 ? block[2] : block[3]);
}

// The random bits of element number `element`.
template <int recipe>
__device__ RandomBits random_bits(const KernelJob& job, const Place& place, uint64_t element) {
  using Element = Conversion<recipe, Part::element>;
  if constexpr (!Element::is_random) {
    return {};
  } else if constexpr (kRow<recipe>.random == RandomSource::ideal) {
    const uint64_t index = job.first_element + element;
    return {.word = word_at(random_block(job.seed, job.stream, index / 4), index % 4), .count = 32};
  } else {
    const uint32_t word = word_at(words_of_16<recipe>(job, place, element), element % 16 / 4);
    return random_bits_of_four(four_lanes(Element::bits), word, int(element % 4));
  }
}

// The codes of a register's worth of converted numbers, of element i of the run on.
template <int recipe, int n>
__device__ uint32_t encode_word(const KernelJob& job, const Place& place, int i, const float (&y)[n],
                                PhiloxBlock& random) {
  using Element = Conversion<recipe, Part::element>;
  if constexpr (!Element::is_random) return Element::full(y);
  uint32_t codes = 0;
#pragma unroll
  for (int k = 0; k < n; k += 4) {
    if ((i + k) % 16 == 0) random = words_of_16<recipe>(job, place, place.element + i + k);
    codes |= Element::four(y + k, random.words[(i + k) / 4 % 4]) << k * Element::bits;
  }
  return codes;
}

// Codes of a run, in order.
template <int recipe, int n, int words>
__device__ void encode_run(const KernelJob& job, const Place& place, float factor, const float (&x)[n],
                           uint32_t (&codes)[words]) {
  constexpr int kOfWord = n / words;
  PhiloxBlock random{};
#pragma unroll
  for (int word = 0; word < words; ++word) {
    float y[kOfWord];
#pragma unroll
    for (int k = 0; k < kOfWord; ++k) y[k] = scaled_in_block<recipe>(job.tensor, factor, x[word * kOfWord + k]);
    codes[word] = encode_word<recipe>(job, place, word * kOfWord, y, random);
  }
}

// Whether the codes of a run without NaN are the registers of cuda/arch/nearest.cuh or stochastic.cuh.
template <int recipe>
constexpr bool has_lines() {
  using Element = Conversion<recipe, Part::element>;
  if (kRow<recipe>.scaled != Formula("x * m")) return false;
  const bool nibbles = Element::bits == 4 && !Element::is_native;
  if (arch::has_stochastic_code(Element::format, kRow<recipe>.policy))
    return nibbles || kRow<recipe>.random == RandomSource::ideal;  // which no instruction has
  return nibbles && Element::is_nearest && arch::has_line_code(Element::format);
}
template <int recipe>
constexpr bool kHasLines = has_lines<recipe>();
template <int recipe>
constexpr bool kHasWordsOf4 = is_random(kRow<recipe>) && kRow<recipe>.random == RandomSource::ideal;

// The codes of a register's worth of elements, which x begins with, of element i of the run on.
template <int recipe, int n>
__device__ uint32_t stochastic_word(const KernelJob& job, const Place& place, float factor, int i, const float* x,
                                    PhiloxBlock& random) {
  using Element = Conversion<recipe, Part::element>;
  if constexpr (kRow<recipe>.random == RandomSource::te) {
    if (i % 16 == 0) random = words_of_16<recipe>(job, place, place.element + i);
    return arch::stochastic_nibbles<Element::format_id>(x, factor, random.words[i / 4 % 4],
                                                        random.words[i / 4 % 4 + 1]);
  } else {
    uint32_t words[n];
#pragma unroll
    for (int k = 0; k < n; ++k) {
      if (k % 4 == 0) random = words_of_4(job, place, i + k);
      words[k] = random.words[k % 4];
    }
    return arch::stochastic_register<Element::format_id>(x, factor, words);
  }
}

// What is known of the products of a block's elements and its factor.
enum class Products { any, numbers, below_line_end };

template <int recipe>
__device__ Products products_of(const Largest& largest, float factor) {
  using Element = Conversion<recipe, Part::element>;
  if constexpr (!kHasLines<recipe>) return Products::any;
  if (!largest.all_numbers || !(factor < detail::infinity())) return Products::any;
  // A power of two leaves many blocks beyond it: with both kinds in a warp, both would be computed.
  if constexpr (Conversion<recipe, Part::scale>::format.mantissa_bits == 0) return Products::numbers;
  if constexpr (Element::is_random) return Products::numbers;
  return largest.amax * factor < arch::kLineEnd<Element::format_id> ? Products::below_line_end : Products::numbers;
}

template <int recipe, Products products, int n, int words>
__device__ void encode_lines(const KernelJob& job, const Place& place, float factor, const float (&x)[n],
                             uint32_t (&codes)[words]) {
  using Element = Conversion<recipe, Part::element>;
  constexpr int kOfWord = n / words;
  PhiloxBlock random{};
#pragma unroll
  for (int i = 0; i < words; ++i) {
    if constexpr (Element::is_random) {
      codes[i] = stochastic_word<recipe, kOfWord>(job, place, factor, i * kOfWord, x + i * kOfWord, random);
    } else {
      constexpr auto magnitudes =
          products == Products::numbers ? arch::Magnitudes::any : arch::Magnitudes::below_line_end;
      codes[i] = arch::line_nibbles<Element::format_id, magnitudes>(x + 8 * i, factor);
    }
  }
}

// One register's codes where a product may be NaN, from element i of the run on. Elements are read anew and one by one:
// this is rare, and shall cost the others neither registers nor instructions.
template <int recipe, class At>
__device__ uint32_t encode_slowly(const KernelJob& job, const Place& place, int i, float factor, At at) {
  using Element = Conversion<recipe, Part::element>;
  uint32_t codes = 0;
#pragma unroll 1
  for (int k = 0; k < 32 / Element::bits; ++k) {
    const RandomBits random = random_bits<recipe>(job, place, place.element + i + k);
    codes |= Element::one(scaled_in_block<recipe>(job.tensor, factor, at(i + k)), random) << k * Element::bits;
  }
  return codes;
}

// Codes of a run; at(i) is x[i].
template <int recipe, int n, int words, class At>
__device__ void encode(const KernelJob& job, const Place& place, float factor, Products products, const float (&x)[n],
                       uint32_t (&codes)[words], At at) {
  if constexpr (kHasWordsOf4<recipe>)
    if (words_carry(job, place, n)) products = Products::any;
  if constexpr (!kHasLines<recipe>) {
    encode_run<recipe>(job, place, factor, x, codes);
  } else if (products == Products::below_line_end) {
    encode_lines<recipe, Products::below_line_end>(job, place, factor, x, codes);
  } else if (products == Products::numbers) {
    encode_lines<recipe, Products::numbers>(job, place, factor, x, codes);
  } else {
#pragma unroll
    for (int word = 0; word < words; ++word)
      codes[word] = encode_slowly<recipe>(job, place, word * n / words, factor, at);
  }
}

// Scale number `block` of all.
template <int recipe>
__device__ void store_scale(const KernelJob& job, uint64_t block, uint32_t code) {
  constexpr int bits = Conversion<recipe, Part::scale>::bits;
  if constexpr (bits == 8) {
    const uint64_t scales = job.cols / Shares<recipe>::block_cols;
    job.scales[job.swizzled ? swizzled_offset(scales, block / scales, block % scales) : block] = std::byte(code);
  } else {
    static_assert(bits == 32);
    reinterpret_cast<uint32_t*>(job.scales)[block] = code;
  }
}

template <int recipe, class Source>
__device__ void quantize_run(const KernelJob& job, const Place& place) {
  using Is = Shares<recipe>;
  constexpr int bits = Conversion<recipe, Part::element>::bits;
  const Run<Source, Is::run> run(job.x, place.inside ? place.element : 0);
  BlockScale scale;
  Products products = Products::any;
  if constexpr (Is::has_blocks) {
    const Largest largest = largest_of_block<recipe>(run);
    scale = scale_of_block<recipe>(job.tensor, largest.amax);
    products = products_of<recipe>(largest, scale.factor);
  }
  if (!place.inside) return;
  if constexpr (Is::has_blocks)
    if (threadIdx.x % Is::lanes == 0 && (!Is::tiles || threadIdx.x < Is::across))
      store_scale<recipe>(job, place.block, scale.code);
  uint32_t codes[Is::run * bits / 32];
  encode<recipe>(job, place, scale.factor, products, run.x, codes,
                 [&](int i) { return element<Source>(job.x, place.element + uint64_t(i)); });
  store(job.codes + place.element * bits / 8, codes);
}

// Runs along x, rows of tiles along y, which has fewer places than a matrix can have rows. No thread leaves before the
// last exchange between threads.
template <int recipe, class Source>
__global__ void __launch_bounds__(Shares<recipe>::threads) quantize_kernel(KernelJob job) {
  if constexpr (!Shares<recipe>::tiles) {
    quantize_run<recipe, Source>(job, place_of<recipe>(job.rows, job.cols, 0));
  } else {
    for (uint64_t row = blockIdx.y; row < job.rows / Shares<recipe>::block_rows; row += gridDim.y)
      quantize_run<recipe, Source>(job, place_of<recipe>(job.rows, job.cols, row));
  }
}

}  // namespace halfulp::gpu

#pragma once
// The arithmetic of emulation/simd/matmul_kernels.h, a thread's 4 x 4 elements of the product at a time.

#include <cstdint>

#include "emulation/matmul/dot_product.h"
#include "emulation/simd/matmul_job.h"

namespace halfulp::gpu {

constexpr int kTileSide = 64, kThreadSide = 4, kThreadsAcross = kTileSide / kThreadSide;
constexpr int kGemmThreads = kThreadsAcross * kThreadsAcross;

// An operand's codes, and its terms: of row r at position p, value [p * rows + r]; of units likewise. `rows` is padded
// to whole tiles.
struct GemmTerms {
  DotOperand codes;  // of row 0
  int count;         // rows that there are
  int64_t rows;
  float *values, *scales;
  int *exponents, *scale_exponents;
  uint32_t* masks;
  const float* promotion_scales;
};

struct GemmKernelJob {
  Accumulator row;
  int k, steps, step, part;
  GemmTerms a, b;
  const uint32_t* c;
  uint32_t* d;
  int segment, slice;  // steps, between promotions and of a slice
  uint8_t* left;       // 1 for each element that is left to the definition
  float* totals;       // [m, n], where sums leave the accumulator before the end
};

// What a thread works on: the elements from [row, col] on.
struct ThreadTile {
  int row, col;        // in the product
  int in_row, in_col;  // in the CTA's tile
};

template <class T>
struct Square {
  T at[kThreadSide][kThreadSide];
};

template <class Function>
__device__ void for_each_element(const Function& function) {
#pragma unroll
  for (int i = 0; i < kThreadSide; ++i)
#pragma unroll
    for (int j = 0; j < kThreadSide; ++j) function(i, j);
}

__device__ inline float power_of_two(int exponent) {
  const int in_range = min(max(exponent, -126), 127);
  return bit_cast<float>((in_range + 127) << 23);
}

__device__ inline int exponent_of(float x, int least) {
  const int bits = bit_cast<int>(x) & 0x7fff'ffff;
  return bits == 0 ? simd::kZeroExponent : max((bits >> 23) - 127, least);
}

__device__ inline bool beyond(int largest, simd::StepLimits limits) {
  return largest > limits.most || (largest < limits.least && largest > simd::kZeroExponent / 2);
}

__device__ inline double nearest_f16(double x) {
  const double magnitude = fmax(fabs(x), 1.0 / (1 << 14));
  const double binade = bit_cast<double>(bit_cast<uint64_t>(magnitude) & 0x7ff0'0000'0000'0000);
  const double magic = binade * 1.5 * double(uint64_t{1} << 42);
  const double rounded = (x + magic) - magic;
  return fabs(rounded) > 65504.0 ? copysign(double(bit_cast<float>(0x7f80'0000)), x) : rounded;
}

__device__ inline float rounded(const SumFormat& sum, double total, int exponent) {
  if (sum.format.bits() == 16) return float(nearest_f16(total * double(power_of_two(exponent))));
  const uint64_t kept = ~uint64_t{0} << (53 - 24 + sum.unused_bits);
  return float(bit_cast<double>(bit_cast<uint64_t>(total) & kept)) * power_of_two(exponent);
}

__device__ inline float sum_value(const Accumulator& row, uint32_t code) {
  return row.sum.format.bits() == 32 ? bit_cast<float>(code) : decode(row.sum.format, code);
}
__device__ inline uint32_t sum_code(const Accumulator& row, float sum) {
  if (sum != sum) return row.sum.format.magnitude_mask();
  if (row.sum.format.bits() == 32) return bit_cast<uint32_t>(sum);
  return encode(row.sum.format, {.rounding = Rounding::nearest_even, .overflow = Overflow::to_special}, sum, {});
}

// What a step's products and accumulator become on the way to their sum.
struct Cut {
  int exponent;  // of the last bit that is kept
  float factor;  // of the products
};

// Copies `terms` positions of the CTA's rows or columns into shared memory, four elements a thread at a time.
template <class T>
__device__ void copy_terms(const T* from, int64_t rows, int first_row, int first_term, int terms, T (*to)[kTileSide]) {
  static_assert(sizeof(T) == 4);
  for (int at = int(threadIdx.x); at < terms * kTileSide / 4; at += kGemmThreads) {
    const int term = at / (kTileSide / 4), row = at % (kTileSide / 4) * 4;
    *reinterpret_cast<uint4*>(&to[term][row]) =
        *reinterpret_cast<const uint4*>(from + (first_term + term) * rows + first_row + row);
  }
}

template <class T>
struct Four {
  T at[4];
};
template <class T>
__device__ Four<T> four_of(const T* from) {
  Four<T> four;
  *reinterpret_cast<uint4*>(four.at) = *reinterpret_cast<const uint4*>(from);
  return four;
}

// Products that are cut one by one: `part` at a time, a multiple of 4.
constexpr int kMostTerms = 32, kTermsOfInt = 16;
struct AlignedTile {
  float a[kMostTerms][kTileSide], b[kMostTerms][kTileSide];
  int a_exponents[kMostTerms][kTileSide], b_exponents[kMostTerms][kTileSide];
};

__device__ inline void load_part(const GemmKernelJob& job, const ThreadTile& at, int first_term, AlignedTile& tile) {
  const int row = at.row - at.in_row, col = at.col - at.in_col;
  __syncthreads();
  copy_terms(job.a.values, job.a.rows, row, first_term, job.part, tile.a);
  copy_terms(job.b.values, job.b.rows, col, first_term, job.part, tile.b);
  copy_terms(job.a.exponents, job.a.rows, row, first_term, job.part, tile.a_exponents);
  copy_terms(job.b.exponents, job.b.rows, col, first_term, job.part, tile.b_exponents);
  __syncthreads();
}

__device__ inline Square<int> largest_exponents(const AlignedTile& tile, int part, const ThreadTile& at) {
  Square<int> most;
  for_each_element([&](int i, int j) { most.at[i][j] = simd::kZeroExponent; });
#pragma unroll 4
  for (int k = 0; k < part; ++k) {
    const Four<int> a = four_of(&tile.a_exponents[k][at.in_row]), b = four_of(&tile.b_exponents[k][at.in_col]);
    for_each_element([&](int i, int j) { most.at[i][j] = max(most.at[i][j], a.at[i] + b.at[j]); });
  }
  return most;
}

// Sums of 16 cut products fit an int (matmul_kernels.h).
__device__ inline void add_cut(const AlignedTile& tile, int part, const ThreadTile& at, const Square<Cut>& cut,
                               Square<double>& sum) {
#pragma unroll 1
  for (int first = 0; first < part; first += kTermsOfInt) {
    Square<int> some{};
#pragma unroll 4
    for (int k = first; k < min(part, first + kTermsOfInt); ++k) {
      const Four<float> a = four_of(&tile.a[k][at.in_row]), b = four_of(&tile.b[k][at.in_col]);
      for_each_element(
          [&](int i, int j) { some.at[i][j] += static_cast<int>(a.at[i] * b.at[j] * cut.at[i][j].factor); });
    }
    for_each_element([&](int i, int j) { sum.at[i][j] += double(some.at[i][j]); });
  }
}

// The exponents of a step's sums, and whether they are within the limits: bit 4i + j of `left` where they are not.
struct Scales {
  const int *a, *b;  // exponents of the step's scales, of row 0 and column 0 of the thread; null: none
  __device__ int at(int i, int j) const { return a == nullptr ? 0 : a[i] + b[j]; }
};

__device__ inline Square<Cut> cuts_of(const Accumulator& row, const Square<int>& most, const Scales& scales,
                                      const Square<float>& sums, uint32_t& left) {
  const int floor = max(row.least_exponent, simd::kAlignedLimits.least);
  Square<Cut> cut;
  for_each_element([&](int i, int j) {
    const int scale = scales.at(i, j);
    const int all = max(most.at[i][j] + scale, exponent_of(sums.at[i][j], row.sum.format.min_exponent()));
    left |= uint32_t(beyond(all, simd::kAlignedLimits)) << (kThreadSide * i + j);
    const int exponent = max(all, floor) - row.kept_bits;
    cut.at[i][j] = {exponent, power_of_two(scale - exponent)};
  });
  return cut;
}

// The products from position `first_term` on into sums.
__device__ inline void add_part(const GemmKernelJob& job, const ThreadTile& at, int first_term, const Scales& scales,
                                AlignedTile& tile, Square<float>& sums, uint32_t& left) {
  load_part(job, at, first_term, tile);
  const Square<Cut> cut = cuts_of(job.row, largest_exponents(tile, job.part, at), scales, sums, left);
  Square<double> sum;
  for_each_element([&](int i, int j) {
    sum.at[i][j] = double(static_cast<int>(sums.at[i][j] * power_of_two(-cut.at[i][j].exponent)));
  });
  add_cut(tile, job.part, at, cut, sum);
  for_each_element([&](int i, int j) { sums.at[i][j] = rounded(job.row.sum, sum.at[i][j], cut.at[i][j].exponent); });
}

// FP8 as F16: two parts from zero, then the accumulator.
__device__ inline void add_step(const GemmKernelJob& job, const ThreadTile& at, int step, AlignedTile& tile,
                                Square<float>& sums, uint32_t& left) {
  Scales scales{nullptr, nullptr};
  if (job.a.scale_exponents != nullptr)
    scales = {job.a.scale_exponents + step * job.a.rows + at.row, job.b.scale_exponents + step * job.b.rows + at.col};
  if (job.row.order != SumOrder::pairs_of_four) return add_part(job, at, step * job.part, scales, tile, sums, left);
  Square<float> parts{};
  for (int half = 0; half < 2; ++half) add_part(job, at, (2 * step + half) * job.part, scales, tile, parts, left);
  for_each_element([&](int i, int j) { sums.at[i][j] += parts.at[i][j]; });
}

// FP4: four groups of 16 products a step.
struct GroupsTile {
  float a[simd::kGroupTerms][kTileSide], b[simd::kGroupTerms][kTileSide];
};

__device__ inline void load_group(const GemmKernelJob& job, const ThreadTile& at, int first_term, GroupsTile& tile) {
  __syncthreads();
  copy_terms(job.a.values, job.a.rows, at.row - at.in_row, first_term, int(simd::kGroupTerms), tile.a);
  copy_terms(job.b.values, job.b.rows, at.col - at.in_col, first_term, int(simd::kGroupTerms), tile.b);
  __syncthreads();
}

// The scales of a group, of the thread's rows and columns.
struct GroupScales {
  int64_t a, b;  // positions
  __device__ GroupScales(const GemmKernelJob& job, const ThreadTile& at, int group)
      : a(group * job.a.rows + at.row), b(group * job.b.rows + at.col) {}
  __device__ bool count(const GemmKernelJob& job, int i, int j) const {
    return (job.a.masks[a + i] & job.b.masks[b + j]) != 0;
  }
  __device__ int exponent(const GemmKernelJob& job, int i, int j) const {
    return count(job, i, j) ? job.a.scale_exponents[a + i] + job.b.scale_exponents[b + j] : simd::kZeroExponent;
  }
  __device__ float value(const GemmKernelJob& job, int i, int j) const {
    return count(job, i, j) ? job.a.scales[a + i] * job.b.scales[b + j] : 0;
  }
};

// The exact sums of a group's products: at most 576, in quarters.
__device__ inline Square<float> group_sums(const GroupsTile& tile, const ThreadTile& at) {
  Square<float> sum{};
#pragma unroll 4
  for (int k = 0; k < int(simd::kGroupTerms); ++k) {
    const Four<float> a = four_of(&tile.a[k][at.in_row]), b = four_of(&tile.b[k][at.in_col]);
    for_each_element([&](int i, int j) { sum.at[i][j] = fmaf(a.at[i], b.at[j], sum.at[i][j]); });
  }
  return sum;
}

__device__ inline Square<int> group_exponents(const GemmKernelJob& job, const ThreadTile& at, int step,
                                              const Square<float>& sums, uint32_t& left) {
  Square<int> most;
  for_each_element([&](int i, int j) { most.at[i][j] = exponent_of(sums.at[i][j], -126); });
  for (int g = 0; g < int(simd::kStepGroups); ++g) {
    const GroupScales scales(job, at, step * int(simd::kStepGroups) + g);
    for_each_element([&](int i, int j) { most.at[i][j] = max(most.at[i][j], scales.exponent(job, i, j)); });
  }
  for_each_element([&](int i, int j) {
    left |= uint32_t(beyond(most.at[i][j], simd::kGroupLimits)) << (kThreadSide * i + j);
    most.at[i][j] = max(most.at[i][j], simd::kGroupLimits.least) - job.row.kept_bits;
  });
  return most;
}

__device__ inline void add_step(const GemmKernelJob& job, const ThreadTile& at, int step, GroupsTile& tile,
                                Square<float>& sums, uint32_t& left) {
  const Square<int> exponent = group_exponents(job, at, step, sums, left);
  Square<double> sum;
  for_each_element(
      [&](int i, int j) { sum.at[i][j] = trunc(double(sums.at[i][j]) * double(power_of_two(-exponent.at[i][j]))); });
  for (int g = 0; g < int(simd::kStepGroups); ++g) {
    const int group = step * int(simd::kStepGroups) + g;
    load_group(job, at, group * int(simd::kGroupTerms), tile);
    const Square<float> products = group_sums(tile, at);
    const GroupScales scales(job, at, group);
    for_each_element([&](int i, int j) {
      const float factor = scales.value(job, i, j) * power_of_two(-exponent.at[i][j]);
      sum.at[i][j] += trunc(double(products.at[i][j]) * double(factor));
    });
  }
  for_each_element([&](int i, int j) { sums.at[i][j] = rounded(job.row.sum, sum.at[i][j], exponent.at[i][j]); });
}

// Promotion number `at` of K, and the end of a slice.
__device__ inline float promoted(const GemmKernelJob& job, int i, int j, int at, float sum, float total) {
  if (job.row.promotion.step == PromotionStep::add) return total + sum;
  const int count = (job.k + job.row.promotion.every - 1) / job.row.promotion.every;
  const float a =
      job.a.promotion_scales == nullptr || i >= job.a.count ? 1 : job.a.promotion_scales[i * int64_t(count) + at];
  const float b =
      job.b.promotion_scales == nullptr || j >= job.b.count ? 1 : job.b.promotion_scales[j * int64_t(count) + at];
  return fmaf(a * b, sum, total);
}

__device__ inline ThreadTile thread_tile() {
  ThreadTile at;
  at.in_row = int(threadIdx.x) / kThreadsAcross * kThreadSide;
  at.in_col = int(threadIdx.x) % kThreadsAcross * kThreadSide;
  at.row = int(blockIdx.y) * kTileSide + at.in_row;
  at.col = int(blockIdx.x) * kTileSide + at.in_col;
  return at;
}

// Elements of the thread that the product has.
template <class Function>
__device__ void for_each_output(const GemmKernelJob& job, const ThreadTile& at, const Function& function) {
  for_each_element([&](int i, int j) {
    if (at.row + i < job.a.count && at.col + j < job.b.count)
      function(i, j, int64_t(at.row + i) * job.b.count + at.col + j);
  });
}

// Steps `first` to `end` onto sums.
template <class StepTile>
__device__ void add_steps(const GemmKernelJob& job, const ThreadTile& at, int first, int end, StepTile& tile,
                          Square<float>& sums, uint32_t& left) {
  for (int step = first; step < end; ++step) add_step(job, at, step, tile, sums, left);
}

// A slice of K from zero, into job.totals: promoted where the row says so. These sums are in memory and not in
// registers, of which there would be too few.
template <class StepTile>
__device__ void add_slice(const GemmKernelJob& job, const ThreadTile& at, int first, int end, StepTile& tile,
                          uint32_t& left) {
  for (int step = first; step < end; step += job.segment) {
    Square<float> sums{};
    add_steps(job, at, step, min(end, step + job.segment), tile, sums, left);
    for_each_output(job, at, [&](int i, int j, int64_t to) {
      const float total = step == first ? 0 : job.totals[to], sum = sums.at[i][j];
      job.totals[to] =
          job.row.promotion.every == 0 ? sum : promoted(job, at.row + i, at.col + j, step / job.segment, sum, total);
    });
  }
}

// Whether sums leave the accumulator before the end (slices.h).
enum class Sums { chained, in_f32 };

template <class StepTile, Sums kind>
__global__ void __launch_bounds__(kGemmThreads) multiply(const __grid_constant__ GemmKernelJob job) {
  __shared__ StepTile tile;
  const ThreadTile at = thread_tile();
  uint32_t left = 0;
  const auto c_at = [&](int64_t to) { return job.c == nullptr ? 0 : sum_value(job.row, job.c[to]); };
  if constexpr (kind == Sums::chained) {
    Square<float> sums{};
    for_each_output(job, at, [&](int i, int j, int64_t to) { sums.at[i][j] = c_at(to); });
    add_steps(job, at, 0, job.steps, tile, sums, left);
    for_each_output(job, at, [&](int i, int j, int64_t to) { job.d[to] = sum_code(job.row, sums.at[i][j]); });
  } else {
    for_each_output(job, at, [&](int, int, int64_t to) { job.d[to] = 0; });
    for (int step = 0; step < job.steps; step += job.slice) {
      add_slice(job, at, step, min(job.steps, step + job.slice), tile, left);
      for_each_output(job, at, [&](int, int, int64_t to) {
        job.d[to] = bit_cast<uint32_t>(bit_cast<float>(job.d[to]) + job.totals[to]);
      });
    }
    for_each_output(
        job, at, [&](int, int, int64_t to) { job.d[to] = sum_code(job.row, bit_cast<float>(job.d[to]) + c_at(to)); });
  }
  for_each_output(job, at,
                  [&](int i, int j, int64_t to) { job.left[to] = uint8_t(left >> (kThreadSide * i + j) & 1); });
}

}  // namespace halfulp::gpu

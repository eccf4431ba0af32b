#pragma once
// What kernels do in FP32 around their instructions: shared by the definition and the fast ways of gemm.h.

#include <algorithm>
#include <cmath>

#include "emulation/matmul/dot_product.h"
#include "emulation/matmul/gemm.h"
#include "lib/bits.h"

namespace halfulp {

// Row i of an operand.
inline DotOperand dot_operand(const GemmOperand& x, std::size_t i, std::size_t k) {
  DotOperand operand{.format = x.format, .codes = x.codes.data() + i * k};
  if (x.scales.empty()) return operand;
  operand.scale_format = x.scale_format;
  operand.scales = x.scales.data() + i * ((k + x.scaled - 1) / x.scaled);
  operand.scaled = int(x.scaled);
  return operand;
}

inline bool keeps_all_bits(const Accumulator& row) { return row.kept_bits == kAllBits; }

// Whether sums leave the accumulator before the end.
inline bool adds_in_f32(const Accumulator& row) { return row.promotion.every != 0 || row.slices != 1; }

// Of K; a multiple of what the row adds at a time.
inline std::size_t slice_length(const GemmJob& job) {
  const auto block = std::size_t(std::max(job.row.promotion.every, job.row.block == kAllProducts ? 1 : job.row.block));
  const auto slices = std::size_t(job.row.slices);
  const std::size_t each = (job.k + slices - 1) / slices;
  return std::max(block, (each + block - 1) / block * block);
}

// `total` after promotion number `at` of element [i, j].
inline float promote(const GemmJob& job, std::size_t i, std::size_t j, std::size_t at, float sum, float total) {
  if (job.row.promotion.step == PromotionStep::add) return total + sum;
  const auto every = std::size_t(job.row.promotion.every);
  const std::size_t count = (job.k + every - 1) / every;
  const auto scale = [&](const GemmOperand& x, std::size_t of) {
    return x.promotion_scales.empty() ? 1.0f : x.promotion_scales[of * count + at];
  };
  return std::fma(scale(job.a, i) * scale(job.b, j), sum, total);
}

// FP32 bits; any NaN is that of the instructions.
inline uint32_t f32_code(float x) { return x == x ? bit_cast<uint32_t>(x) : 0x7fff'ffff; }

}  // namespace halfulp

#pragma once
// FP32 sums over the elements of a block or group whose order is part of a recipe.

#include <cstddef>

#include "emulation/blocks/recipe.h"

namespace halfulp {

// PyTorch 2.15's sum on a CPU, of up to 256 numbers (measured): vector number v of eight is added to accumulator v % 4,
// the accumulators in their order, and at last the eight lanes in theirs.
constexpr float torch_sum(const float* x, std::size_t count) {
  constexpr std::size_t kLanes = 8, kAccumulators = 4;
  float sums[kAccumulators][kLanes]{};
  for (std::size_t i = 0; i < count; ++i) sums[i / kLanes % kAccumulators][i % kLanes] += x[i];
  float sum = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    sum += sums[0][lane] + sums[1][lane] + sums[2][lane] + sums[3][lane];
  return sum;
}

// The total of a block's losses.
constexpr float total_of_losses(LossTotal total, const float* losses, std::size_t count) {
  if (total == LossTotal::torch) return torch_sum(losses, count);
  float sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    sum = total == LossTotal::sequential ? sum + losses[i] : apply(Op::maximum, sum, losses[i]);
  return sum;
}

// sum y * y / sum y * c over a group, 1 where the divisor is 0. Each product and sum is rounded; eight elements are
// added in their order, and such sums pairwise, the second half onto the first, as the warps of Quartet II's kernel do
// (without the contraction to fused operations that nvcc may choose there).
constexpr float correction_factor(const float* y, const float* c, std::size_t count) {
  constexpr std::size_t kRun = 8, kMaxRuns = 64;
  float squares[kMaxRuns]{}, products[kMaxRuns]{};
  std::size_t runs = count / kRun;
  for (std::size_t i = 0; i < count; ++i) {
    squares[i / kRun] += y[i] * y[i];
    products[i / kRun] += y[i] * c[i];
  }
  while (runs > 1) {
    runs /= 2;
    for (std::size_t i = 0; i < runs; ++i) {
      squares[i] += squares[runs + i];
      products[i] += products[runs + i];
    }
  }
  return products[0] == 0 ? 1 : squares[0] / products[0];
}

}  // namespace halfulp

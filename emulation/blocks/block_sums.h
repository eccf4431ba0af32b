#pragma once
// FP32 sums over the elements of a block or group whose order is part of a recipe.

#include <cstddef>

#include "emulation/blocks/recipe.h"

namespace halfulp {

// The total of a block's losses, which are added in their order. PyTorch 2.15's sum on a CPU is that of up to 256
// numbers (measured): vector number v of eight is added to accumulator v % 4, the accumulators in their order, and at
// last the eight lanes in theirs.
class LossSum {
 public:
  HOST_DEVICE constexpr explicit LossSum(LossTotal total) : total_(total) {}

  HOST_DEVICE constexpr void add(float loss) {
    float& sum = total_ == LossTotal::torch ? sums_[count_ / kLanes % kAccumulators][count_ % kLanes] : sums_[0][0];
    sum = total_ == LossTotal::largest ? apply(Op::maximum, sum, loss) : sum + loss;
    ++count_;
  }

  HOST_DEVICE constexpr float total() const {
    if (total_ != LossTotal::torch) return sums_[0][0];
    float sum = 0;
    for (int lane = 0; lane < kLanes; ++lane) sum += sums_[0][lane] + sums_[1][lane] + sums_[2][lane] + sums_[3][lane];
    return sum;
  }

 private:
  static constexpr int kLanes = 8, kAccumulators = 4;
  LossTotal total_;
  int count_ = 0;
  float sums_[kAccumulators][kLanes]{};
};

constexpr float total_of_losses(LossTotal total, const float* losses, std::size_t count) {
  LossSum sum{total};
  for (std::size_t i = 0; i < count; ++i) sum.add(losses[i]);
  return sum.total();
}

// sum y * y / sum y * c over a group of up to 512 elements, 1 where the divisor is 0. Each product and sum is rounded;
// eight elements are added in their order, and such sums pairwise, the second half onto the first, as the warps of
// Quartet II's kernel do (without the contraction to fused operations that nvcc may choose there).
class CorrectionSums {
 public:
  HOST_DEVICE constexpr void add(float y, float c) {
    squares_[count_ / kRun] += y * y;
    products_[count_ / kRun] += y * c;
    ++count_;
  }

  HOST_DEVICE constexpr float factor() {
    for (int runs = count_ / kRun / 2; runs > 0; runs /= 2) {
      for (int i = 0; i < runs; ++i) {
        squares_[i] += squares_[runs + i];
        products_[i] += products_[runs + i];
      }
    }
    return products_[0] == 0 ? 1 : squares_[0] / products_[0];
  }

 private:
  static constexpr int kRun = 8, kMaxRuns = 64;
  int count_ = 0;
  float squares_[kMaxRuns]{}, products_[kMaxRuns]{};
};

constexpr float correction_factor(const float* y, const float* c, std::size_t count) {
  CorrectionSums sums;
  for (std::size_t i = 0; i < count; ++i) sums.add(y[i], c[i]);
  return sums.factor();
}

}  // namespace halfulp

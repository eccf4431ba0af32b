#pragma once
// What a kernel does to the sum of an output after its last instruction: FP32, each operation rounded to nearest even.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "emulation/matmul/slices.h"

namespace halfulp {

// In this order: the row's factor and then the column's (PyTorch aten/src/ATen/native/cuda/RowwiseScaledMM.cu), then
// alpha * sum, or with c fma(alpha, sum, beta * c) (NVIDIA/cutlass epilogue/thread/linear_combination.h).
struct Epilogue {
  bool scales = false;  // by alpha, which may be 1: that changes the bits of a NaN alone
  float alpha = 1;
  float beta = 0;
  std::span<const float> c{};            // [m, n]; none: no beta * c
  std::span<const float> row_factors{};  // [m]; none: 1
  std::span<const float> col_factors{};  // [n]; none: 1

  bool is_nothing() const { return !scales && c.empty() && row_factors.empty() && col_factors.empty(); }

  // Of element [i, j] of n columns; FP32 bits both.
  uint32_t apply(uint32_t sum, std::size_t i, std::size_t j, std::size_t n) const {
    if (is_nothing()) return sum;
    float x = bit_cast<float>(sum);
    if (!row_factors.empty()) x = row_factors[i] * x;
    if (!col_factors.empty()) x = col_factors[j] * x;
    if (!c.empty()) return f32_code(std::fma(alpha, x, beta * c[i * n + j]));
    return f32_code(scales ? alpha * x : x);
  }
};

}  // namespace halfulp

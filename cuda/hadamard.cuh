#pragma once
// The Hadamard transform of 16 along columns, as emulation/blocks/hadamard.h defines it, in a thread's registers.

#include <cstdint>

#include "cuda/arch/cvt.cuh"
#include "cuda/arch/magnitude.cuh"
#include "cuda/elements.cuh"

namespace halfulp::gpu {

inline constexpr int kRotated = 16;
inline constexpr int kToBf16 = find_ptx_cvt("cvt.rn.bf16x2.f32");

// Butterflies of elements 1, 2, 4, 8 apart.
template <class Number>
__device__ void rotate(Number (&v)[kRotated]) {
#pragma unroll
  for (int apart = 1; apart < kRotated; apart *= 2) {
#pragma unroll
    for (int i = 0; i < kRotated; ++i) {
      if (i & apart) continue;
      const Number a = v[i], b = v[i + apart];
      v[i] = a + b;
      v[i + apart] = a - b;
    }
  }
}

// Whether every sum of the transform is exact in FP32: for numbers of so many bits, and no NaN. All are multiples of
// the lowest bit that the least of them may have, and so are the sums, which are no larger than that of the magnitudes.
// That one is rounded only if it is 2^24 such multiples or more, which rounding leaves it.
template <int bits>
__device__ bool is_exact_in_fp32(const float (&x)[kRotated]) {
  constexpr float kOverflow = 0x1p126f;
  float sum = 0, least = kOverflow;
#pragma unroll
  for (int i = 0; i < kRotated; ++i) {
    sum += fabsf(x[i]);
    least = fminf(least, x[i] == 0 ? kOverflow : fabsf(x[i]));
  }
  const int top = int(bit_cast<uint32_t>(sum) >> 23), bottom = int(bit_cast<uint32_t>(least) >> 23);
  return sum < kOverflow && top - max(bottom, 1) <= 24 - bits;
}

// FP32 that rounds to BF16 as the double does: its last bit says whether bits were cut off.
__device__ inline float rounded_to_odd(double x) {
  const float nearest = float(x);
  const uint32_t cut = bit_cast<uint32_t>(nearest) - (fabs(double(nearest)) > fabs(x) ? 1 : 0);
  return double(nearest) == x || x != x ? nearest : bit_cast<float>(cut | 1);
}

// In FP64, of which few GPUs have much.
__device__ inline void rotate_in_fp64(float (&x)[kRotated]) {
  double v[kRotated];
#pragma unroll
  for (int i = 0; i < kRotated; ++i) v[i] = double(x[i]);
  rotate(v);
#pragma unroll
  for (int i = 0; i < kRotated; ++i) x[i] = rounded_to_odd((v[i] + 0.0) * 0.25);
}

// A column to FP32 numbers that round to its results in BF16. Bit i of `signs` is set where element i changes its sign.
template <int bits>
__device__ void rotate_column(uint32_t signs, float (&x)[kRotated]) {
#pragma unroll
  for (int i = 0; i < kRotated; ++i)
    x[i] = bit_cast<float>(bit_cast<uint32_t>(x[i]) ^ (signs << (31 - i) & 0x8000'0000));
  if (!is_exact_in_fp32<bits>(x)) return rotate_in_fp64(x);
  rotate(x);
#pragma unroll
  for (int i = 0; i < kRotated; ++i) x[i] = fmaf(x[i], 0.25f, 0.0f);  // a sum of zero is +0
}

// Both columns of a thread's pairs, to BF16.
template <class Source>
__device__ void rotate_columns(uint32_t signs, const Pair<Source> (&pairs)[kRotated], Pair<Bf16> (&rotated)[kRotated]) {
  uint32_t words[2][kRotated / 2];
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    float x[kRotated];
#pragma unroll
    for (int i = 0; i < kRotated; ++i) x[i] = pairs[i][k];
    rotate_column<Source::kSignificandBits>(signs, x);
#pragma unroll
    for (int i = 0; i < kRotated; i += 2) {
      const uint32_t sources[2] = {bit_cast<uint32_t>(x[i]), bit_cast<uint32_t>(x[i + 1])};
      words[k][i / 2] = arch::convert<kToBf16>(sources);
    }
  }
#pragma unroll
  for (int i = 0; i < kRotated; ++i) {
    const uint32_t first = words[0][i / 2], second = words[1][i / 2];
    rotated[i].words[0] = i % 2 == 0 ? (first & 0xffff) | second << 16 : first >> 16 | (second & 0xffff'0000);
  }
}

}  // namespace halfulp::gpu

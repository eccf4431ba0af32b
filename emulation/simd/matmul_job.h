#pragma once
// What the kernels of matrix products are called with: terms of both operands laid out for vectors, one lane a column
// of the product. Between matmul.cpp and the kernels; not for others.

#include <cstddef>
#include <cstdint>

namespace halfulp::simd {

// Exponents that stand for a zero and for what is no number: added to any others they remain far below and far above
// those of numbers, and Inf * 0 above.
inline constexpr int kZeroExponent = -20000, kSpecialExponent = 60000;

// A step: as many products as the row adds at a time. Where the exponents of one lie beyond these the kernel leaves it
// to the definition.
struct StepLimits {
  int least, most;
};
inline constexpr StepLimits kAlignedLimits{-100, 120}, kGroupLimits{-80, 120};

enum class StepRounding { f32_toward_zero, f16_nearest };

// Steps `first` to `end` of products of `rows` rows into `sums`, FP32 [rows, lanes].
struct StepsJob {
  std::size_t rows, first, end, steps;  // steps: of all K
  int kept_bits, least_exponent, unused_bits;
  int least_sum_exponent;  // of the smallest normal sum
  StepRounding rounding;
  float* sums;
  // Does step `at` of a row by definition, for all lanes.
  void (*exactly)(const void* context, std::size_t row, std::size_t at, float* sums);
  const void* context;
};

// Products that are cut and added one by one. A step has `halves` parts of `part` terms: two where FP8 goes as F16.
struct AlignedJob {
  StepsJob steps;
  std::size_t part, halves;
  const float* a;              // [rows, steps * part * halves]
  const int32_t* a_exponents;  // likewise, unnormalised; kSpecialExponent for Inf and NaN
  const int32_t* a_scales;     // exponents, [rows, steps], or none
  const float* b;              // [steps * part * halves, lanes]
  const int32_t* b_exponents;
  const int32_t* b_scales;  // [steps, lanes]
};

// FP4: groups of kGroupTerms products, four a step.
inline constexpr std::size_t kGroupTerms = 16, kStepGroups = 4;
// Bits of a group's mask: elements that are not zero; and two that meet in the mask of any other group where either
// scale is NaN. None are set where the scale is zero.
inline constexpr uint32_t kNanScaleA = 1u << 16, kNanScaleB = 1u << 17;
struct GroupsJob {
  StepsJob steps;
  const float* a;              // [rows, groups, kGroupTerms]
  const uint32_t* a_masks;     // [rows, groups]
  const float* a_scales;       // likewise: values
  const int32_t* a_exponents;  // likewise: of the scales
  const float* b;              // [groups, kGroupTerms, lanes]
  const uint32_t* b_masks;     // [groups, lanes]
  const float* b_scales;
  const int32_t* b_exponents;
};

}  // namespace halfulp::simd

#pragma once
// A recipe's arithmetic in a kernel: its formulas as straight code, its conversions by the seam of cuda/arch. A
// position in kKernelRecipes is the parameter, since device code cannot take a struct of a catalog.

#include <cstdint>
#include <utility>

#include "cuda/arch/cvt.cuh"
#include "cuda/arch/exponent.cuh"
#include "cuda/arch/nearest.cuh"
#include "cuda/elements.cuh"
#include "cuda/kernel_recipes.h"
#include "emulation/blocks/block.h"

namespace halfulp::gpu {

template <int recipe>
inline constexpr Recipe kRow = kKernelRecipes[recipe];

enum class Field { unrounded, factor, scaled, value };

constexpr const Formula& formula_of(const Recipe& r, Field field) {
  switch (field) {
    case Field::unrounded: return r.unrounded;
    case Field::factor: return r.factor;
    case Field::scaled: return r.scaled;
    case Field::value: return r.value;
  }
  return r.value;
}

// The stack's depth before a step.
constexpr int depth_before(const Formula& formula, int step) {
  int depth = 0;
  for (int i = 0; i < step; ++i) depth += 1 - formula[i].arguments;
  return depth;
}

// Variables, because device code may not call what constant expressions may.
template <int recipe, Field field>
inline constexpr Formula kFormula = formula_of(kRow<recipe>, field);
template <int recipe, Field field>
inline constexpr int kSteps = kFormula<recipe, field>.size();
template <int recipe, Field field, int i>
inline constexpr Step kStep = kFormula<recipe, field>[i];
template <int recipe, Field field, int i>
inline constexpr int kDepth = depth_before(kFormula<recipe, field>, i);

template <int recipe, Field field, int i>
__device__ void run_step(float* stack, const Values& values) {
  constexpr Step step = kStep<recipe, field, i>;
  constexpr int top = kDepth<recipe, field, i>;
  if constexpr (step.op == Op::constant) {
    stack[top] = step.constant;
  } else if constexpr (step.op == Op::symbol) {
    stack[top] = values[step.symbol];
  } else {
    constexpr int first = top - step.arguments;
    stack[first] = apply(step.op, stack[first], stack[first + 1], stack[first + 2]);
  }
}

template <int recipe, Field field, int... i>
__device__ float run_steps(const Values& values, std::integer_sequence<int, i...>) {
  float stack[Formula::kMaxDepth + 2];
  (run_step<recipe, field, i>(stack, values), ...);
  return stack[0];
}

// What evaluate() gives for a row's formula.
template <int recipe, Field field>
__device__ float evaluate_row(const Values& values) {
  return run_steps<recipe, field>(values, std::make_integer_sequence<int, kSteps<recipe, field>>{});
}

enum class Part { element, scale };

// Whether an instruction for codes of `a` is one for those of `b`: the formats are the same, or `b` is a scale's, whose
// numbers have no minus sign, and differs in having none.
constexpr bool has_codes_of(const Format& a, Format b, Part part) {
  if (part == Part::scale && b.sign == Sign::none) b.sign = a.sign;
  return a == b;
}

// The instruction that converts FP32 numbers to a format as a policy wants it; -1 where there is none.
constexpr int find_conversion(const FormatName& to, const Policy& policy, Part part = Part::element) {
  for (std::size_t id = 0; id < kPtxCvts.size(); ++id) {
    const PtxCvt op = ptx_cvt(kPtxCvts[id]);
    const bool same = has_codes_of(op.to.format, to.format(), part) && op.policy == policy && op.relu == Relu::no;
    if (same && op.from.name == "f32" && op.operands == op.lanes && op.lanes > 1) return int(id);
  }
  return -1;
}

// The instruction that converts a pair of a scale's codes to F16; -1 where there is none.
constexpr int find_scale_decoding(const FormatName& from) {
  for (std::size_t id = 0; id < kPtxCvts.size(); ++id) {
    const PtxCvt op = ptx_cvt(kPtxCvts[id]);
    const bool same = has_codes_of(op.from.format, from.format(), Part::scale) && op.to.name == "f16";
    if (same && op.lanes == 2 && op.operands == 1 && op.relu == Relu::no) return int(id);
  }
  return -1;
}

template <int recipe, Part part>
struct Conversion {
  static constexpr FormatName name = part == Part::element ? kRow<recipe>.element : kRow<recipe>.scale;
  static constexpr Policy policy = part == Part::element ? kRow<recipe>.policy : kRow<recipe>.scale_policy;
  static constexpr Format format = name.format();
  static constexpr int format_id = find_format(name.name());
  static constexpr int bits = name.storage_bits();
  static constexpr bool is_random = is_stochastic(policy.rounding);
  static constexpr bool is_nearest = arch::has_nearest_code(format, policy);
  static constexpr bool is_exponent = part == Part::scale && arch::has_exponent_code(format, policy);
  static constexpr int cvt = find_conversion(name, policy, part);  // of two numbers, or four with a random word
  static constexpr int decoding = part == Part::scale ? find_scale_decoding(name) : -1;
  static constexpr bool is_native = [] {
    if constexpr (cvt >= 0) return arch::is_native<cvt>();
    return false;
  }();

  __device__ static uint32_t one(float x, RandomBits random = {}) {
    constexpr Format to = format;
    constexpr Policy how = policy;
    if constexpr (is_nearest) return arch::nearest_code<format_id>(bit_cast<uint32_t>(x));
    if constexpr (is_exponent) return arch::exponent_code<policy.rounding>(bit_cast<uint32_t>(x) & 0x7fff'ffffu);
    return encode(to, how, x, random);
  }

  // Codes of two numbers, the first in the low bits.
  __device__ static uint32_t two(float low, float high) {
    const uint32_t sources[2] = {bit_cast<uint32_t>(low), bit_cast<uint32_t>(high)};
    if constexpr (is_native) return arch::convert<cvt>(sources);
    return one(low) | one(high) << bits;
  }

  // A register of codes of 4, 8 or 16 bits, the first in the low bits.
  __device__ static uint32_t full(const float* x) {
    if constexpr (bits == 4) {
      return arch::join_bytes(two(x[0], x[1]), two(x[2], x[3]), two(x[4], x[5]), two(x[6], x[7]));
    } else if constexpr (bits == 8) {
      return two(x[0], x[1]) | two(x[2], x[3]) << 16;
    } else {
      static_assert(bits == 16);
      return two(x[0], x[1]);
    }
  }

  // Codes of four numbers that share a random word.
  __device__ static uint32_t four(const float* x, uint32_t word) {
    const uint32_t sources[4] = {bit_cast<uint32_t>(x[0]), bit_cast<uint32_t>(x[1]), bit_cast<uint32_t>(x[2]),
                                 bit_cast<uint32_t>(x[3])};
    if constexpr (is_native) return arch::convert<cvt>(sources, word);
    uint32_t codes = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) codes |= one(x[i], random_bits_of_four(four_lanes(bits), word, i)) << i * bits;
    return codes;
  }
};

// The value of a scale's code; which NaN it is does not matter here.
template <int recipe>
__device__ float value_of_scale(uint32_t code) {
  using Scale = Conversion<recipe, Part::scale>;
  constexpr Format format = Scale::format;
  if constexpr (Scale::decoding >= 0) {
    if constexpr (arch::is_native<Scale::decoding>()) {
      const uint32_t codes[2] = {code, 0};
      return F16::number(arch::convert<Scale::decoding>(codes), 0);
    }
  }
  return decode(format, code);
}

template <int recipe>
__device__ BlockScale scale_of_block(const TensorScale& tensor, float amax) {
  using Scale = Conversion<recipe, Part::scale>;
  Values values = values_of(tensor);
  values[Symbol::a] = amax;
  BlockScale scale;
  scale.unrounded = values[Symbol::d] = evaluate_row<recipe, Field::unrounded>(values);
  if constexpr (Scale::is_native) {
    scale.code = Scale::two(scale.unrounded, 0) & uint32_t(low_mask(Scale::bits));
  } else {
    scale.code = Scale::one(scale.unrounded);
  }
  scale.value = values[Symbol::s] = value_of_scale<recipe>(scale.code);
  scale.factor = evaluate_row<recipe, Field::factor>(values);
  return scale;
}

// What is converted to an element's code.
template <int recipe>
__device__ float scaled_in_block(const TensorScale& tensor, float factor, float x) {
  if constexpr (kSteps<recipe, Field::scaled> == 0) {
    return x;
  } else {
    Values values = values_of(tensor);
    values[Symbol::x] = x;
    values[Symbol::m] = factor;
    return evaluate_row<recipe, Field::scaled>(values);
  }
}

}  // namespace halfulp::gpu

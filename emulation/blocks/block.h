#pragma once
// The arithmetic of one block: amax to scale, element to code, code to value. Constexpr, for CPU and GPU; every
// operation is one IEEE FP32 operation, rounded to nearest, subnormals kept.

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "emulation/blocks/recipe.h"
#include "formats/codec.h"

namespace halfulp {

// Largest finite value of a format.
HOST_DEVICE constexpr float max_value(const Format& f) { return decode(f, f.max_code()); }

HOST_DEVICE constexpr float magnitude(float x) { return bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fff'ffff); }

// C's fminf(x, FLT_MAX): a NaN becomes FLT_MAX.
HOST_DEVICE constexpr float at_most_flt_max(float x) { return x < FLT_MAX ? x : FLT_MAX; }

// One step of the largest magnitude, starting at 0. The result does not depend on the order of the steps.
HOST_DEVICE constexpr float larger_magnitude(AmaxNan nan, float amax, float x) {
  const float m = magnitude(x);
  if (nan == AmaxNan::propagates && (m != m || amax != amax)) return std::numeric_limits<float>::quiet_NaN();
  return m > amax ? m : amax;
}

// The largest magnitude of `count` elements.
template <int recipe_id>
HOST_DEVICE constexpr float block_amax(const float* x, std::size_t count) {
  float amax = 0;
  for (std::size_t i = 0; i < count; ++i) amax = larger_magnitude(kRecipes[recipe_id].amax_nan, amax, x[i]);
  return amax;
}

// The scale of a tensor: what its values are multiplied by before blocks are formed, and its inverse.
struct TensorScale {
  float amax = 0;
  float encode = 1;
  float decode = 1;
};

// S_enc and S_dec of the tensor's largest magnitude.
template <int recipe_id>
HOST_DEVICE constexpr TensorScale tensor_scale(float amax) {
  constexpr Recipe r = kRecipes[recipe_id];
  if constexpr (r.outer == OuterScale::none) {
    return {.amax = amax, .encode = 1, .decode = 1};
  } else {
    constexpr float kRange = max_value(kScaleFormat<recipe_id>) * max_value(kElementFormat<recipe_id>);  // 448 * 6
    float encode = amax == 0 ? 1 : at_most_flt_max(kRange / amax);
    if (encode == 0) encode = 1;  // amax is Inf
    return {.amax = amax, .encode = encode, .decode = 1.0f / encode};
  }
}

struct BlockScale {
  uint32_t code;     // in the recipe's scale format
  float unrounded;   // the scale before it was rounded to that format; amax for mx_floor
  float multiplier;  // of the elements
};

// 2^-(code - 127) as the kernels take it: the code 254 - code; NaN for NaN.
HOST_DEVICE constexpr float e8m0_reciprocal(uint32_t code) {
  constexpr Format kE8M0 = format_named("e8m0");
  return code == 0xff ? std::numeric_limits<float>::quiet_NaN() : decode(kE8M0, 254 - code);
}

// The scale of a block whose largest magnitude is amax.
template <int recipe_id>
HOST_DEVICE constexpr BlockScale block_scale(float amax, const TensorScale& tensor) {
  constexpr Recipe r = kRecipes[recipe_id];
  constexpr Format element = kElementFormat<recipe_id>;
  if constexpr (r.scale_rule == ScaleRule::mx_floor) {
    const int exponent = int(bit_cast<uint32_t>(amax) >> 23) - 127;
    const int biased = exponent - element.max_exponent() + 127;
    const uint32_t code = exponent == 128 ? 0xff : biased < 0 ? 0 : uint32_t(biased);
    return {.code = code, .unrounded = amax, .multiplier = e8m0_reciprocal(code)};
  } else if constexpr (r.scale_rule == ScaleRule::mx_round_up) {
    constexpr float kReciprocal = 1.0f / max_value(element);
    constexpr Policy kUp{.rounding = Rounding::up, .overflow = Overflow::saturate};
    const float scale = amax * kReciprocal;
    const uint32_t code = encode(kScaleFormat<recipe_id>, kUp, scale);
    return {.code = code, .unrounded = scale, .multiplier = e8m0_reciprocal(code)};
  } else if constexpr (r.scale_rule == ScaleRule::nvfp4_encode) {
    constexpr float kReciprocal = 1.0f / max_value(element);
    const float scale = at_most_flt_max(amax * (tensor.encode * kReciprocal));
    const uint32_t code = encode(kScaleFormat<recipe_id>, kSaturatingCast, scale);
    const float inverse = 1.0f / (decode(kScaleFormat<recipe_id>, code) * tensor.decode);
    return {.code = code, .unrounded = scale, .multiplier = at_most_flt_max(inverse)};
  } else {
    return {.code = 0, .unrounded = 1, .multiplier = 1};
  }
}

// The code of an element. Sources other than float are for recipes without scales, which convert them as they are.
template <int recipe_id, class Source>
HOST_DEVICE constexpr uint32_t encode_element(const BlockScale& scale, Source x) {
  if constexpr (has_scale(kRecipes[recipe_id])) {
    return encode(kElementFormat<recipe_id>, kRecipes[recipe_id].policy, x * scale.multiplier);
  } else {
    return encode(kElementFormat<recipe_id>, kRecipes[recipe_id].policy, x);
  }
}

// What the codes of a block are multiplied by, in the order of the publisher's own dequantization.
template <int recipe_id>
HOST_DEVICE constexpr float decode_multiplier(uint32_t scale_code, const TensorScale& tensor) {
  constexpr Recipe r = kRecipes[recipe_id];
  if constexpr (!has_scale(r)) {
    return 1;
  } else if constexpr (has_outer_scale(r)) {
    constexpr float kRange = max_value(kScaleFormat<recipe_id>) * max_value(kElementFormat<recipe_id>);
    return decode(kScaleFormat<recipe_id>, scale_code) * tensor.amax * (1.0f / kRange);
  } else {
    return decode(kScaleFormat<recipe_id>, scale_code);
  }
}

template <int recipe_id>
HOST_DEVICE constexpr float decode_element(uint32_t code, float multiplier) {
  return decode(kElementFormat<recipe_id>, code) * multiplier;
}

}  // namespace halfulp

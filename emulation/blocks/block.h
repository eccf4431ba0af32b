#pragma once
// The arithmetic of one block: amax to scale, element to code, code to value. Constexpr, for CPU and GPU; every
// operation is one IEEE FP32 operation, rounded to nearest, subnormals kept.

#include <cstddef>
#include <cstdint>

#include "emulation/blocks/recipe.h"
#include "formats/codec.h"

namespace halfulp {

// Largest finite value of a format.
HOST_DEVICE constexpr float max_value(const Format& f) { return decode(f, f.max_code()); }

HOST_DEVICE constexpr float magnitude(float x) { return bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fff'ffff); }

// One step of the largest magnitude, starting at 0. The result does not depend on the order of the steps. One that is
// NaN where every element is: block_statistics().
HOST_DEVICE constexpr float larger_magnitude(AmaxNan nan, float amax, float x) {
  const float m = magnitude(x);
  if (nan == AmaxNan::propagates && (m != m || amax != amax)) return detail::quiet_nan();
  return m > amax ? m : amax;
}

// What a block's scale is a function of.
struct BlockStatistics {
  float amax = 0;
  float sum = 0;      // in the order of the elements, in FP32
  float squares = 0;  // likewise
};

// Of rows x cols elements, row_stride apart, in row order.
HOST_DEVICE constexpr BlockStatistics block_statistics(const Recipe& r, const float* x, std::size_t rows,
                                                       std::size_t cols, std::size_t row_stride) {
  BlockStatistics s;
  std::size_t nans = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t col = 0; col < cols; ++col) {
      const float value = x[row * row_stride + col];
      s.amax = larger_magnitude(r.amax_nan, s.amax, value);
      s.sum += value;
      s.squares += value * value;
      nans += value != value;
    }
  }
  const bool all = nans == rows * cols && nans > 0;
  if (r.amax_nan == AmaxNan::propagates_from_all && all) s.amax = detail::quiet_nan();
  return s;
}

// The scale of a tensor.
struct TensorScale {
  float amax = 0;
  float encode = 1;
  float decode = 1;
};

// S_enc and S_dec of the tensor's largest magnitude; 1 where the recipe has none.
HOST_DEVICE constexpr TensorScale tensor_scale(const Recipe& r, float amax) {
  TensorScale t{.amax = amax};
  Values values;
  values[Symbol::A] = amax;
  if (!r.encode.empty()) t.encode = evaluate(r.encode, values);
  values[Symbol::S_enc] = t.encode;
  if (!r.decode.empty()) t.decode = evaluate(r.decode, values);
  return t;
}

HOST_DEVICE constexpr Values values_of(const TensorScale& tensor) {
  Values values;
  values[Symbol::A] = tensor.amax;
  values[Symbol::S_enc] = tensor.encode;
  values[Symbol::S_dec] = tensor.decode;
  return values;
}

struct BlockScale {
  uint32_t code = 0;    // in the recipe's scale format
  float unrounded = 1;  // d: before it was rounded to that format
  float value = 1;      // s: of the code
  float factor = 1;     // m: of the elements
};

// The scale of a block by one of the recipe's formulas for it.
HOST_DEVICE constexpr BlockScale block_scale(const Recipe& r, const TensorScale& tensor, const BlockStatistics& block,
                                             const Formula& unrounded) {
  Values values = values_of(tensor);
  values[Symbol::a] = block.amax;
  values[Symbol::sum] = block.sum;
  values[Symbol::squares] = block.squares;
  BlockScale scale;
  scale.unrounded = values[Symbol::d] = evaluate(unrounded, values);
  const Format& format = r.scale.format();
  scale.code = encode(format, r.scale_policy, scale.unrounded);
  scale.value = values[Symbol::s] = decode(format, scale.code);
  scale.factor = evaluate(r.factor, values);
  return scale;
}

// What is converted to an element's code.
HOST_DEVICE constexpr float scaled_element(const Recipe& r, const TensorScale& tensor, float factor, float x) {
  if (r.scaled.empty()) return x;
  Values values = values_of(tensor);
  values[Symbol::x] = x;
  values[Symbol::m] = factor;
  return evaluate(r.scaled, values);
}

HOST_DEVICE constexpr uint32_t encode_element(const Recipe& r, const TensorScale& tensor, const BlockScale& scale,
                                              float x, RandomBits random = {}) {
  return encode(r.element.format(), r.policy, scaled_element(r, tensor, scale.factor, x), random);
}

// What a code stands for under its block's scale, `scale` being the value of the scale's code.
HOST_DEVICE constexpr float decode_element(const Recipe& r, const TensorScale& tensor, float scale, uint32_t code) {
  Values values = values_of(tensor);
  values[Symbol::c] = decode(r.element.format(), code);
  values[Symbol::s] = scale;
  return r.value.empty() ? values[Symbol::c] : evaluate(r.value, values);
}

}  // namespace halfulp

#pragma once
// Tensors through a recipe, for tests: codes, scales and values side by side.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipes.h"
#include "formats/packing.h"

namespace halfulp {

struct Quantized {
  const Recipe* recipe;
  Matrix shape;
  TensorScale tensor;
  std::vector<std::byte> codes;
  std::vector<std::byte> scales;

  uint32_t code(std::size_t i) const {
    const FormatEntry& format = recipe->element.entry();
    switch (format.storage_bits) {
      case 4: return load_code<4>(codes.data(), i);
      case 8: return load_code<8>(codes.data(), i) >> format.storage_shift;
      case 16: return load_code<16>(codes.data(), i) >> format.storage_shift;
      default: return load_code<32>(codes.data(), i) >> format.storage_shift;
    }
  }

  uint32_t scale(std::size_t block) const {
    return recipe->scale.entry().storage_bits == 8 ? load_code<8>(scales.data(), block)
                                                   : load_code<32>(scales.data(), block);
  }

  float scale_value(std::size_t block) const { return decode(recipe->scale.format(), scale(block)); }

  std::vector<float> values() const {
    std::vector<float> y(shape.elements());
    dequantize(*recipe, tensor, shape, codes, scales, y);
    return y;
  }

  // The codes of 4 bits as a hexadecimal digit each, in the order of the elements.
  std::string code_text() const {
    std::string text;
    for (std::size_t i = 0; i < shape.elements(); ++i) text += "0123456789abcdef"[code(i) & 0xf];
    return text;
  }
};

inline TensorScale tensor_scale_of(const Recipe& recipe, std::span<const float> x) {
  return tensor_scale(recipe, largest_magnitude(recipe, 0, x));
}

inline Quantized quantized(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape,
                           std::span<const float> x, const Randomness& random = {}) {
  Quantized q{.recipe = &recipe,
              .shape = shape,
              .tensor = tensor,
              .codes = std::vector<std::byte>(code_bytes(recipe, shape)),
              .scales = std::vector<std::byte>(scale_bytes(recipe, shape))};
  quantize<float>(recipe, tensor, shape, x, random, q.codes, q.scales);
  return q;
}

// `x` as one row, followed by zeros up to a whole block.
inline Quantized quantized_block(const Recipe& recipe, std::vector<float> x, float tensor_amax,
                                 const Randomness& random = {}) {
  const Matrix block{.rows = uint64_t(recipe.block.rows), .cols = block_cols(recipe, {.rows = 1, .cols = x.size()})};
  x.resize(block.elements());
  return quantized(recipe, tensor_scale(recipe, tensor_amax), block, x, random);
}

// A recipe's name as part of a test's.
inline std::string test_name(std::string_view recipe) {
  std::string name(recipe);
  for (char& c : name)
    if (c == '/' || c == '-') c = '_';
  return name;
}

}  // namespace halfulp

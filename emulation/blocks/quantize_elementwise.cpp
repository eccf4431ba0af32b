// The reference: elementwise.h over the blocks of a matrix, one after the other.

#include <algorithm>
#include <vector>

#include "emulation/blocks/elementwise.h"
#include "emulation/simd/scalar.h"

namespace halfulp {

Elementwise elementwise(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape, const float* x,
                        const Randomness& random) {
  return {.recipe = &recipe,
          .tensor = tensor,
          .x = x,
          .rows = shape.rows,
          .cols = shape.cols,
          .height = uint64_t(recipe.block.rows),
          .width = block_cols(recipe, shape),
          .grid_cols = scale_grid(recipe, shape).cols,
          .seed = random.seed,
          .stream = random.stream,
          .scale_stream = random.scale_stream,
          .first_element = random.first_element,
          .first_block = random.first_block,
          .words = random.words.empty() ? nullptr : random.words.data()};
}

void quantize_elementwise(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape,
                          std::span<const float> x, const Randomness& random, std::span<std::byte> codes,
                          std::span<std::byte> scales) {
  const Elementwise e = elementwise(recipe, tensor, shape, x.data(), random);
  std::vector<uint32_t> code(x.size());
  std::vector<BlockScale> scale(scale_grid(recipe, shape).elements());
  for (uint64_t block = 0; block < scale.size(); ++block) {
    scale[block] = scale_of_block(e, block);
    encode_block(e, scale[block], block, code.data());
  }
  if (!has_scale(recipe))
    for (std::size_t i = 0; i < x.size(); ++i) code[i] = code_at(e, {}, i / shape.cols, i % shape.cols);
  const simd::Storage storage{.bits = recipe.element.entry().storage_bits,
                              .shift = recipe.element.entry().storage_shift};
  for (std::size_t i = 0; i < code.size(); ++i) simd::store_at(storage, codes.data(), i, code[i] << storage.shift);
  for (uint64_t block = 0; block < scale.size(); ++block) {
    const uint32_t stored =
        has_correction(recipe) ? corrected_scale(e, scale.data(), code.data(), block) : scale[block].code;
    simd::store_at({.bits = recipe.scale.storage_bits()}, scales.data(), block, stored);
  }
}

}  // namespace halfulp

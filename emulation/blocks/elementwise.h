#pragma once
// What a recipe makes of a matrix, by definition: every element by the functions of block.h, nothing shared between
// elements but their block's scale. Constexpr, for CPU and GPU; fast on neither.

#include <cstdint>

#include "emulation/blocks/block_sums.h"
#include "emulation/blocks/quantize.h"
#include "formats/ptx_cvt.h"
#include "lib/philox.h"

namespace halfulp {

// A matrix, the blocks into which a recipe divides it, and Randomness without a span, whose members device code cannot
// call.
struct Elementwise {
  const Recipe* recipe;
  TensorScale tensor;
  const float* x;
  uint64_t rows, cols;
  uint64_t height, width;  // of a block
  uint64_t grid_cols;      // blocks side by side
  uint64_t seed, stream, scale_stream, first_element, first_block;
  const uint32_t* words;  // null where there are none

  HOST_DEVICE constexpr float at(uint64_t row, uint64_t col) const { return x[row * cols + col]; }
};

Elementwise elementwise(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape, const float* x,
                        const Randomness& random);

// The elements of one block.
struct BlockRange {
  uint64_t first_row, first_col, rows, cols;
};

HOST_DEVICE constexpr BlockRange block_range(const Elementwise& e, uint64_t block) {
  const uint64_t row = block / e.grid_cols * e.height, col = block % e.grid_cols * e.width;
  return {.first_row = row,
          .first_col = col,
          .rows = e.height < e.rows - row ? e.height : e.rows - row,
          .cols = e.width < e.cols - col ? e.width : e.cols - col};
}

HOST_DEVICE constexpr uint32_t random_word_of_four(const Elementwise& e, uint64_t row, uint64_t col) {
  if (e.words != nullptr) return e.words[(row * e.cols + col) / 4];
  const uint64_t block = e.first_block + row * ((e.cols + e.width - 1) / e.width) + col / e.width;
  const uint64_t word = col % e.width / 4;
  return random_block(e.seed, block, e.stream + word / 4)[word % 4];
}

HOST_DEVICE constexpr RandomBits random_bits_at(const Elementwise& e, uint64_t row, uint64_t col) {
  if (!is_stochastic(e.recipe->policy.rounding)) return {};
  if (e.recipe->random == RandomSource::ideal)
    return {.word = random_word(e.seed, e.stream, e.first_element + row * e.cols + col), .count = 32};
  return random_bits_of_four(four_lanes(e.recipe->element.storage_bits()), random_word_of_four(e, row, col),
                             int(col % 4));
}

HOST_DEVICE constexpr uint32_t code_at(const Elementwise& e, const BlockScale& scale, uint64_t row, uint64_t col) {
  return encode_element(*e.recipe, e.tensor, scale, e.at(row, col), random_bits_at(e, row, col));
}

HOST_DEVICE constexpr float loss_at(const Elementwise& e, const BlockScale& scale, uint64_t row, uint64_t col) {
  Values values = values_of(e.tensor);
  values[Symbol::x] = e.at(row, col);
  values[Symbol::c] = decode(e.recipe->element.format(), code_at(e, scale, row, col));
  values[Symbol::s] = scale.value;
  values[Symbol::m] = scale.factor;
  values[Symbol::v] = evaluate(e.recipe->choice.estimate, values);
  return evaluate(e.recipe->choice.loss, values);
}

HOST_DEVICE constexpr float loss_of_block(const Elementwise& e, const BlockScale& scale, const BlockRange& block) {
  LossSum sum{e.recipe->choice.total};
  for (uint64_t row = block.first_row; row < block.first_row + block.rows; ++row)
    for (uint64_t col = block.first_col; col < block.first_col + block.cols; ++col)
      sum.add(loss_at(e, scale, row, col));
  return sum.total();
}

// The scale of block number `block`, before any correction.
HOST_DEVICE constexpr BlockScale scale_of_block(const Elementwise& e, uint64_t block) {
  const Recipe& r = *e.recipe;
  const BlockRange range = block_range(e, block);
  const BlockStatistics statistics =
      block_statistics(r, e.x + range.first_row * e.cols + range.first_col, range.rows, range.cols, e.cols);
  const BlockScale scale = block_scale(r, e.tensor, statistics, r.unrounded);
  if (r.choice.alternative.empty()) return scale;
  const BlockScale other = block_scale(r, e.tensor, statistics, r.choice.alternative);
  return loss_of_block(e, other, range) < loss_of_block(e, scale, range) ? other : scale;
}

// The codes of the block under its scale, at their elements' positions in `codes`.
HOST_DEVICE constexpr void encode_block(const Elementwise& e, const BlockScale& scale, uint64_t block,
                                        uint32_t* codes) {
  const BlockRange range = block_range(e, block);
  for (uint64_t row = range.first_row; row < range.first_row + range.rows; ++row)
    for (uint64_t col = range.first_col; col < range.first_col + range.cols; ++col)
      codes[row * e.cols + col] = code_at(e, scale, row, col);
}

// The code of the scale of block number `block`, corrected by all elements of its group.
HOST_DEVICE constexpr uint32_t corrected_scale(const Elementwise& e, const BlockScale* scales, const uint32_t* codes,
                                               uint64_t block) {
  const Recipe& r = *e.recipe;
  const uint64_t size = uint64_t(r.correction.group), first = block * e.width / size * size;
  CorrectionSums sums;
  for (uint64_t i = 0; i < size; ++i)
    sums.add(scaled_element(r, e.tensor, scales[(first + i) / e.width].factor, e.x[first + i]),
             decode(r.element.format(), codes[first + i]));
  Values values = values_of(e.tensor);
  values[Symbol::s] = scales[block].value;
  values[Symbol::v] = sums.factor();
  const uint32_t word = random_word(e.seed, e.scale_stream, e.first_block + block);
  return encode(r.scale.format(), r.correction.policy, evaluate(r.correction.scale, values),
                {.word = word, .count = 32});
}

}  // namespace halfulp

// The reference: every element by the functions of block.h, nothing shared between elements but their block's scale.

#include <algorithm>
#include <vector>

#include "emulation/blocks/block_sums.h"
#include "emulation/blocks/quantize.h"
#include "emulation/simd/scalar.h"
#include "lib/philox.h"

namespace halfulp {
namespace {

class Elementwise {
 public:
  Elementwise(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape, std::span<const float> x,
              const Randomness& random)
      : r_(recipe), tensor_(tensor), shape_(shape), x_(x), random_(random), grid_(scale_grid(recipe, shape)) {}

  void run(std::span<std::byte> codes, std::span<std::byte> scales) {
    codes_.resize(x_.size());
    scales_.resize(std::max<std::size_t>(1, grid_.elements()));
    if (has_scale(r_)) {
      for (uint64_t row = 0; row < grid_.rows; ++row)
        for (uint64_t col = 0; col < grid_.cols; ++col) block(row, col);
      if (has_correction(r_)) correct();
    } else {
      for (std::size_t i = 0; i < x_.size(); ++i) codes_[i] = encode_at({}, i / shape_.cols, i % shape_.cols);
    }
    const simd::Storage code{.bits = r_.element.entry().storage_bits, .shift = r_.element.entry().storage_shift};
    for (std::size_t i = 0; i < codes_.size(); ++i) simd::store_at(code, codes.data(), i, codes_[i] << code.shift);
    if (!has_scale(r_)) return;
    for (std::size_t i = 0; i < scales_.size(); ++i)
      simd::store_at({.bits = r_.scale.entry().storage_bits}, scales.data(), i, scales_[i].code);
  }

 private:
  uint64_t rows_of(uint64_t block_row) const { return std::min(height(), shape_.rows - block_row * height()); }
  uint64_t cols_of(uint64_t block_col) const { return std::min(width(), shape_.cols - block_col * width()); }
  uint64_t height() const { return uint64_t(r_.block.rows); }
  uint64_t width() const { return block_cols(r_, shape_); }

  RandomBits bits_at(uint64_t row, uint64_t col) const {
    if (!is_stochastic(r_.policy.rounding)) return {};
    const uint64_t element = random_.first_element + row * shape_.cols + col;
    if (r_.random == RandomSource::ideal)
      return {.word = random_word(random_.seed, random_.stream, element), .count = 32};
    const uint64_t block = random_.first_block + row * ((shape_.cols + width() - 1) / width()) + col / width();
    const uint64_t word = col % width() / 4;
    const uint32_t bits = random_.words.empty() ? random_block(random_.seed, block, random_.stream + word / 4)[word % 4]
                                                : random_.words[(row * shape_.cols + col) / 4];
    return simd::random_bits_of(simd::WordOfFour{.words = {&bits, 1}}, {.bits = r_.element.entry().storage_bits},
                                col % 4);
  }

  uint32_t encode_at(const BlockScale& scale, uint64_t row, uint64_t col) const {
    return encode_element(r_, tensor_, scale, x_[row * shape_.cols + col], bits_at(row, col));
  }

  void block(uint64_t block_row, uint64_t block_col) {
    const uint64_t first = block_row * height() * shape_.cols + block_col * width();
    const BlockStatistics statistics =
        block_statistics(r_, &x_[first], rows_of(block_row), cols_of(block_col), shape_.cols);
    BlockScale scale = block_scale(r_, tensor_, statistics, r_.unrounded);
    if (has_choice(r_)) {
      const BlockScale other = block_scale(r_, tensor_, statistics, r_.choice.alternative);
      if (loss(block_row, block_col, other) < loss(block_row, block_col, scale)) scale = other;
    }
    scales_[block_row * grid_.cols + block_col] = scale;
    for (uint64_t row = block_row * height(); row < block_row * height() + rows_of(block_row); ++row)
      for (uint64_t col = block_col * width(); col < block_col * width() + cols_of(block_col); ++col)
        codes_[row * shape_.cols + col] = encode_at(scale, row, col);
  }

  float loss(uint64_t block_row, uint64_t block_col, const BlockScale& scale) const {
    std::vector<float> losses;
    for (uint64_t row = block_row * height(); row < block_row * height() + rows_of(block_row); ++row) {
      for (uint64_t col = block_col * width(); col < block_col * width() + cols_of(block_col); ++col) {
        Values values = values_of(tensor_);
        values[Symbol::x] = x_[row * shape_.cols + col];
        values[Symbol::c] = decode(r_.element.format(), encode_at(scale, row, col));
        values[Symbol::s] = scale.value;
        values[Symbol::m] = scale.factor;
        values[Symbol::v] = evaluate(r_.choice.estimate, values);
        losses.push_back(evaluate(r_.choice.loss, values));
      }
    }
    return total_of_losses(r_.choice.total, losses.data(), losses.size());
  }

  void correct() {
    const std::size_t group = std::size_t(r_.correction.group), blocks = group / width();
    for (std::size_t first = 0; first < x_.size(); first += group) {
      std::vector<float> y, c;
      for (std::size_t i = first; i < first + group; ++i) {
        y.push_back(scaled_element(r_, tensor_, scales_[i / width()].factor, x_[i]));
        c.push_back(decode(r_.element.format(), codes_[i]));
      }
      const float factor = correction_factor(y.data(), c.data(), group);
      for (std::size_t block = first / width(); block < first / width() + blocks; ++block) correct(block, factor);
    }
  }

  void correct(std::size_t block, float factor) {
    Values values = values_of(tensor_);
    values[Symbol::s] = scales_[block].value;
    values[Symbol::v] = factor;
    const uint32_t word = random_word(random_.seed, random_.scale_stream, random_.first_block + block);
    scales_[block].code = encode(r_.scale.format(), r_.correction.policy, evaluate(r_.correction.scale, values),
                                 {.word = word, .count = 32});
  }

  const Recipe& r_;
  const TensorScale& tensor_;
  Matrix shape_;
  std::span<const float> x_;
  const Randomness& random_;
  Matrix grid_;
  std::vector<uint32_t> codes_;
  std::vector<BlockScale> scales_;
};

}  // namespace

void quantize_elementwise(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape,
                          std::span<const float> x, const Randomness& random, std::span<std::byte> codes,
                          std::span<std::byte> scales) {
  Elementwise(recipe, tensor, shape, x, random).run(codes, scales);
}

}  // namespace halfulp

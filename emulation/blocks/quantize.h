#pragma once
// A recipe over arrays: values to packed codes and scales, and back. Knows no files.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "emulation/blocks/block.h"
#include "emulation/blocks/recipe.h"
#include "lib/dtype.h"

namespace halfulp {

// Values in row order. Columns lie along the axis that is quantized.
struct Matrix {
  uint64_t rows;
  uint64_t cols;
  uint64_t elements() const { return rows * cols; }
};

// How many scales a matrix has, as rows and columns; none where the recipe has no scales.
Matrix scale_grid(const Recipe& recipe, const Matrix& shape);

// The columns of one block: the recipe's, or all where it says so.
uint64_t block_cols(const Recipe& recipe, const Matrix& shape);

// Bytes of the codes and of the scales of a matrix.
uint64_t code_bytes(const Recipe& recipe, const Matrix& shape);
uint64_t scale_bytes(const Recipe& recipe, const Matrix& shape);

// Why a recipe cannot take elements of this dtype, or rows of this length; empty where it can. Block recipes are
// defined on F32, F16 and BF16; an elementwise one takes every number exactly.
std::string refusal(const Recipe& recipe, Dtype dtype);
std::string refusal(const Recipe& recipe, const Matrix& shape);

// The random bits of a stochastic recipe, for a part of a tensor. Two tensors with other streams share no word.
struct Randomness {
  uint64_t seed = 0;
  uint64_t stream = 0;         // of the elements: their words are random_word(seed, stream, element)
  uint64_t scale_stream = 1;   // of the scales, where they are rounded stochastically: (seed, scale_stream, block)
  uint64_t first_element = 0;  // position in the tensor of the first element here
  uint64_t first_block = 0;    // and of its block, each row of a tile counting by itself
  // For RandomSource::te: one word for four elements, instead of random_block(seed, block, stream + i / 4)[i % 4] for
  // word i of a block.
  std::span<const uint32_t> words{};
};

// The largest magnitude of a tensor as the recipe takes it, continuing from `amax`. Any order and division gives the
// same.
float largest_magnitude(const Recipe& recipe, float amax, std::span<const float> x);

// Quantizes a matrix. `codes` and `scales` have code_bytes() and scale_bytes(); only an elementwise recipe without a
// tensor scale is defined for sources other than float. Requires that refusal() is empty.
template <class Source>
void quantize(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape, std::span<const Source> x,
              const Randomness& random, std::span<std::byte> codes, std::span<std::byte> scales);

// The same by definition, one element after the other: what quantize() is tested against.
void quantize_elementwise(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape,
                          std::span<const float> x, const Randomness& random, std::span<std::byte> codes,
                          std::span<std::byte> scales);

// The values of codes, in FP32 as the publisher's dequantization rounds them.
void dequantize(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape, std::span<const std::byte> codes,
                std::span<const std::byte> scales, std::span<float> y);

}  // namespace halfulp

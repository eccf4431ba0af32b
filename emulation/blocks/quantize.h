#pragma once
// A recipe over arrays: values to packed codes and scales, and back. The scalar reference; knows no files.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "emulation/blocks/block.h"
#include "emulation/blocks/recipe.h"
#include "lib/dtype.h"

namespace halfulp {

// Why a recipe cannot take a tensor of this dtype and shape, or empty. A block recipe is defined on what its publisher
// feeds it, F32, F16 and BF16, in rows of whole blocks; an elementwise one takes every number exactly.
std::string refusal(const Recipe& recipe, Dtype dtype, std::span<const uint64_t> shape);

// The length of a row, along which blocks lie: the last dimension; 1 for rank 0.
uint64_t row_length(std::span<const uint64_t> shape);

// Bytes of the codes and of the scales of so many elements.
uint64_t code_bytes(const Recipe& recipe, uint64_t elements);
uint64_t scale_bytes(const Recipe& recipe, uint64_t elements);

// tensor_scale() for a run-time recipe.
TensorScale tensor_scale_of(int recipe_id, float amax);

// The largest magnitude as the recipe takes it, continuing from `amax`. Any order and division gives the same.
float largest_magnitude(int recipe_id, float amax, std::span<const float> x);

// Quantizes whole blocks. `codes` and `scales` have code_bytes() and scale_bytes() of x.size() elements; scales is
// empty for an elementwise recipe, the only kind that is defined for sources other than float.
template <class Source>
void quantize(int recipe_id, const TensorScale& tensor, std::span<const Source> x, std::span<std::byte> codes,
              std::span<std::byte> scales);

// The values of whole blocks of codes, in FP32 as the publisher's dequantization rounds them.
void dequantize(int recipe_id, const TensorScale& tensor, std::span<const std::byte> codes,
                std::span<const std::byte> scales, std::span<float> y);

}  // namespace halfulp

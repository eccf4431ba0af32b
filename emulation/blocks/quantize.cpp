#include "emulation/blocks/quantize.h"

#include <fmt/format.h>

#include <type_traits>

#include "emulation/elements.h"
#include "formats/packing.h"

namespace halfulp {
namespace {

// Every scale format of the catalog stores a code in a byte.
constexpr int kScaleBits = 8;

template <int id>
void quantize_blocks(const TensorScale& tensor, std::span<const float> x, std::byte* codes, std::byte* scales) {
  constexpr Recipe kRecipe = kRecipes[id];
  constexpr int kBits = element_of(kRecipe).storage_bits;
  static_assert(scale_of(kRecipe).storage_bits == kScaleBits);
  for (std::size_t begin = 0; begin < x.size(); begin += kRecipe.block) {
    const BlockScale scale = block_scale<id>(block_amax<id>(&x[begin], kRecipe.block), tensor);
    store_code<kScaleBits>(scales, begin / kRecipe.block, scale.code);
    for (std::size_t i = begin; i < begin + kRecipe.block; ++i)
      store_code<kBits>(codes, i, encode_element<id>(scale, x[i]));
  }
}

template <int id, class Source>
void quantize_elements(std::span<const Source> x, std::byte* codes) {
  constexpr FormatEntry kElement = element_of(kRecipes[id]);
  for (std::size_t i = 0; i < x.size(); ++i) store_code<kElement.storage_bits>(codes, i, encode_element<id>({}, x[i]));
}

template <int id>
void dequantize_blocks(const TensorScale& tensor, const std::byte* codes, const std::byte* scales, std::span<float> y) {
  constexpr Recipe kRecipe = kRecipes[id];
  constexpr int kBits = element_of(kRecipe).storage_bits;
  for (std::size_t begin = 0; begin < y.size(); begin += kRecipe.block) {
    const uint32_t scale = has_scale(kRecipe) ? load_code<kScaleBits>(scales, begin / kRecipe.block) : 0;
    const float multiplier = decode_multiplier<id>(scale, tensor);
    for (std::size_t i = begin; i < begin + kRecipe.block; ++i)
      y[i] = decode_element<id>(load_code<kBits>(codes, i), multiplier);
  }
}

}  // namespace

std::string refusal(const Recipe& recipe, Dtype dtype, std::span<const uint64_t> shape) {
  const ElementKind kind = element_kind(dtype);
  if (kind == ElementKind::none)
    return fmt::format("{} elements are not numbers that halfulp can round", row(dtype).name);
  if (!has_scale(recipe)) return "";
  if (dtype != Dtype::f32 && dtype != Dtype::f16 && dtype != Dtype::bf16) {
    return fmt::format("recipe {} takes F32, F16 or BF16, not {}; convert the tensor first, saying how it is rounded",
                       recipe.name, row(dtype).name);
  }
  if (row_length(shape) % uint64_t(recipe.block) != 0) {
    return fmt::format("the last dimension of shape {} is not a multiple of {}, the block of recipe {}",
                       shape_text(shape), recipe.block, recipe.name);
  }
  return "";
}

uint64_t row_length(std::span<const uint64_t> shape) { return shape.empty() ? 1 : shape.back(); }

uint64_t code_bytes(const Recipe& recipe, uint64_t elements) {
  return packed_bytes(element_of(recipe).storage_bits, elements);
}

uint64_t scale_bytes(const Recipe& recipe, uint64_t elements) {
  return has_scale(recipe) ? elements / uint64_t(recipe.block) : 0;
}

TensorScale tensor_scale_of(int recipe_id, float amax) {
  TensorScale tensor;
  with_recipe(recipe_id, [&]<int id>() { tensor = tensor_scale<id>(amax); });
  return tensor;
}

float largest_magnitude(int recipe_id, float amax, std::span<const float> x) {
  const AmaxNan nan = kRecipes[std::size_t(recipe_id)].amax_nan;
  for (const float value : x) amax = larger_magnitude(nan, amax, value);
  return amax;
}

template <class Source>
void quantize(int recipe_id, const TensorScale& tensor, std::span<const Source> x, std::span<std::byte> codes,
              std::span<std::byte> scales) {
  with_recipe(recipe_id, [&]<int id>() {
    if constexpr (!has_scale(kRecipes[id])) {
      quantize_elements<id>(x, codes.data());
    } else if constexpr (std::is_same_v<Source, float>) {
      quantize_blocks<id>(tensor, x, codes.data(), scales.data());
    }
  });
}

template void quantize(int, const TensorScale&, std::span<const float>, std::span<std::byte>, std::span<std::byte>);
template void quantize(int, const TensorScale&, std::span<const double>, std::span<std::byte>, std::span<std::byte>);
template void quantize(int, const TensorScale&, std::span<const int64_t>, std::span<std::byte>, std::span<std::byte>);
template void quantize(int, const TensorScale&, std::span<const uint64_t>, std::span<std::byte>, std::span<std::byte>);

void dequantize(int recipe_id, const TensorScale& tensor, std::span<const std::byte> codes,
                std::span<const std::byte> scales, std::span<float> y) {
  with_recipe(recipe_id, [&]<int id>() { dequantize_blocks<id>(tensor, codes.data(), scales.data(), y); });
}

}  // namespace halfulp

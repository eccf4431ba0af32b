// Quantizes a block with a recipe, and back.

#include <array>
#include <cstddef>
#include <span>

#include "emulation/analysis/error.h"
#include "emulation/blocks/quantize.h"

using namespace halfulp;

int main() {
  constexpr int kRecipe = find_recipe("nvfp4/te");
  static_assert(kRecipe >= 0);
  std::array<float, 16> x{};
  x[1] = 6.0f;
  std::array<std::byte, 8> codes{};
  std::array<std::byte, 1> scales{};
  std::array<float, 16> back{};
  const TensorScale tensor = tensor_scale_of(kRecipe, largest_magnitude(kRecipe, 0, x));
  quantize(kRecipe, tensor, std::span<const float>(x), codes, scales);
  dequantize(kRecipe, tensor, codes, scales, back);
  const bool good = codes[0] == std::byte{0x70} && scales[0] == std::byte{0x7e} && back[1] == 6.0f;
  return good ? 0 : 1;
}

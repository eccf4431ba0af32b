// Quantizes a block with a recipe, and back.

#include <array>
#include <cstddef>

#include "emulation/analysis/error.h"
#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipes.h"

using namespace halfulp;

int main() {
  constexpr const Recipe& kRecipe = recipe_named("nvfp4/te");
  constexpr Matrix kShape{.rows = 1, .cols = 16};
  std::array<float, 16> x{};
  x[1] = 6.0f;
  std::array<std::byte, 8> codes{};
  std::array<std::byte, 1> scales{};
  std::array<float, 16> back{};
  const TensorScale tensor = tensor_scale(kRecipe, largest_magnitude(kRecipe, 0, x));
  quantize<float>(kRecipe, tensor, kShape, x, {}, codes, scales);
  dequantize(kRecipe, tensor, kShape, codes, scales, back);
  const bool good = codes[0] == std::byte{0x70} && scales[0] == std::byte{0x7e} && back[1] == 6.0f;
  return good ? 0 : 1;
}

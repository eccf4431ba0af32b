#include "tests/reproduce/quantizers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "emulation/blocks/recipe_fields.h"
#include "emulation/blocks/recipes.h"
#include "lib/random_values.h"
#include "lib/threads.h"

namespace halfulp::reproduce {

Recipe with_fields(const Recipe& like, const Fields& fields) {
  Recipe recipe = like;
  for (const auto& [name, text] : fields) set_field(recipe, name, text);
  if (const std::string wrong = contradiction(recipe); !wrong.empty()) throw std::invalid_argument(wrong);
  return recipe;
}

const Fields& stochastic_with_headroom() {
  static const Fields kFields{{"rounding", "stochastic"},
                              {"S_enc", "2688 / A * (16 / 17)"},
                              {"d", "a * (S_enc * (17 / 16 / 6))"},
                              {"q", "c * (s * S_dec)"}};
  return kFields;
}

std::vector<float> normals(std::string_view name, const Matrix& shape) {
  std::vector<float> x(shape.elements());
  parallel_for(shape.rows, default_threads(), [&](std::size_t row) {
    for (uint64_t i = row * shape.cols; i < (row + 1) * shape.cols; ++i) x[i] = float(normal(1, stream_of(name), i));
  });
  return x;
}

std::vector<float> quantized(const Recipe& recipe, const Matrix& shape, std::span<const float> x,
                             const Randomness& random) {
  const TensorScale tensor = tensor_scale(recipe, largest_magnitude(recipe, 0, x));
  std::vector<std::byte> codes(code_bytes(recipe, shape)), scales(scale_bytes(recipe, shape));
  quantize<float>(recipe, tensor, shape, x, random, codes, scales);
  std::vector<float> values(shape.elements());
  dequantize(recipe, tensor, shape, codes, scales, values);
  return values;
}

std::vector<float> stochastic_four_over_six(const Matrix& shape, std::span<const float> x, uint64_t seed,
                                            uint64_t stream_of_6, uint64_t stream_of_4) {
  constexpr std::size_t kBlock = 16;
  const Recipe& like = recipe_named("nvfp4/te-4over6-mse-256");
  const auto rounded = [&](std::string_view d, uint64_t stream) {
    const Recipe recipe =
        with_fields(like, {{"rounding", "stochastic"}, {"d", d}, {"d2", ""}, {"v", ""}, {"loss", ""}});
    return quantized(recipe, shape, x, {.seed = seed, .stream = stream});
  };
  std::vector<float> values = rounded(like.unrounded.text(), stream_of_6);
  const std::vector<float> to_4 = rounded(like.choice.alternative.text(), stream_of_4);
  for (std::size_t first = 0; first < x.size(); first += kBlock) {
    double excess = 0;
    for (std::size_t i = first; i < first + kBlock; ++i)
      excess += std::pow(double(values[i]) - double(x[i]), 2) - std::pow(double(to_4[i]) - double(x[i]), 2);
    if (excess > 0) std::copy_n(&to_4[first], kBlock, &values[first]);
  }
  return values;
}

std::vector<float> transposed(const Matrix& shape, std::span<const float> x) {
  std::vector<float> y(x.size());
  for (uint64_t row = 0; row < shape.rows; ++row)
    for (uint64_t col = 0; col < shape.cols; ++col) y[col * shape.rows + row] = x[row * shape.cols + col];
  return y;
}

Mean mean_of(std::span<const double> clusters) {
  const double n = double(clusters.size());
  double sum = 0, squares = 0;
  for (const double c : clusters) sum += c;
  for (const double c : clusters) squares += (c - sum / n) * (c - sum / n);
  return {.value = sum / n, .se = std::sqrt(squares / (n - 1) / n)};
}

}  // namespace halfulp::reproduce

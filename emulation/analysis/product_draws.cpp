#include "emulation/analysis/product_draws.h"

#include <algorithm>
#include <cmath>

#include "emulation/blocks/hadamard.h"
#include "emulation/matmul/fp64_product.h"
#include "lib/philox.h"
#include "lib/threads.h"

namespace halfulp {
namespace {

bool is_random(const ProductOperand& operand) { return operand.recipe != nullptr && is_random(*operand.recipe); }

bool has_fresh_signs(const ProductExperiment& e) { return e.signs == SignsDrawn::each_draw && e.a.rotation; }

// Different for each operand and draw, whatever their names: a draw is no part of a name.
uint64_t stream_of(const ProductOperand& operand, std::size_t draw) {
  return halfulp::stream_of(operand.name + "#" + std::to_string(draw));
}

// Every step-th row, in FP64.
std::vector<double> rows_of(std::span<const float> x, const Matrix& shape, std::size_t step) {
  std::vector<double> rows;
  for (std::size_t row = 0; row < shape.rows; row += step)
    rows.insert(rows.end(), x.begin() + std::ptrdiff_t(row * shape.cols),
                x.begin() + std::ptrdiff_t((row + 1) * shape.cols));
  return rows;
}

std::vector<double> product_of(const ProductExperiment& e, const OutputSample& sample, std::span<const float> a,
                               std::span<const float> b) {
  const std::size_t m = sample.rows(e.a.shape), n = sample.cols(e.b.shape);
  std::vector<double> d(m * n);
  multiply_fp64(m, n, e.a.shape.cols, rows_of(a, e.a.shape, sample.row_step), rows_of(b, e.b.shape, sample.col_step),
                d);
  return d;
}

// Fresh signs come from seeds that no two draws share.
Rotation rotation_in(const ProductOperand& operand, const ProductExperiment& e, std::size_t draw) {
  Rotation rotation = operand.rotation;
  if (!has_fresh_signs(e)) return rotation;
  rotation->signs = HadamardSigns::seeded;
  rotation->seed = random_bits64(e.seed, halfulp::stream_of("signs of draws"), draw);
  return rotation;
}

}  // namespace

bool is_random(const ProductExperiment& e) { return is_random(e.a) || is_random(e.b) || has_fresh_signs(e); }

std::vector<uint64_t> streams_of(const ProductExperiment& e) {
  std::vector<uint64_t> streams;
  for (const ProductOperand* operand : {&e.a, &e.b})
    for (std::size_t draw = 0; is_random(*operand) && draw < e.draws; ++draw)
      streams.push_back(stream_of(*operand, draw));
  return streams;
}

std::vector<float> drawn_values(const ProductOperand& operand, const ProductExperiment& e, std::size_t draw) {
  std::vector<float> values = operand.x;
  if (const Rotation rotation = rotation_in(operand, e, draw)) hadamard(*rotation, operand.shape.cols, values, values);
  if (operand.recipe == nullptr) return values;
  const Recipe& recipe = *operand.recipe;
  const TensorScale scale = tensor_scale(recipe, largest_magnitude(recipe, 0, values));
  std::vector<std::byte> codes(code_bytes(recipe, operand.shape)), scales(scale_bytes(recipe, operand.shape));
  const Randomness random{.seed = e.seed,
                          .stream = stream_of(operand, draw),
                          .scale_stream = halfulp::stream_of(operand.name + ".scales#" + std::to_string(draw))};
  quantize<float>(recipe, scale, operand.shape, values, random, codes, scales);
  dequantize(recipe, scale, operand.shape, codes, scales, values);
  return values;
}

OutputSample sample_of(const ProductExperiment& e, uint64_t max_floats, uint64_t max_products) {
  OutputSample sample;
  const auto outputs = [&] { return uint64_t(sample.rows(e.a.shape)) * sample.cols(e.b.shape); };
  const auto fits = [&] {
    // Multiply-adds of the products, and of the draws' errors with each other.
    return outputs() * e.draws <= max_floats && outputs() * e.draws * (e.a.shape.cols + e.draws / 2) <= max_products;
  };
  while (!fits() && outputs() > 1) {
    const bool rows = sample.rows(e.a.shape) >= sample.cols(e.b.shape);
    ++(rows ? sample.row_step : sample.col_step);
  }
  return sample;
}

std::vector<double> exact_product(const ProductExperiment& e, const OutputSample& sample) {
  return product_of(e, sample, e.a.x, e.b.x);
}

std::vector<double> drawn_product(const ProductExperiment& e, const OutputSample& sample, std::size_t draw) {
  return product_of(e, sample, drawn_values(e.a, e, draw), drawn_values(e.b, e, draw));
}

Draws draw_products(const ProductExperiment& e, const OutputSample& sample, int threads,
                    const std::function<void()>& drawn) {
  Draws draws(exact_product(e, sample), e.draws, sample.cols(e.b.shape));
  const std::vector<double> same = is_random(e) ? std::vector<double>() : drawn_product(e, sample, 0);
  parallel_for(e.draws, threads, [&](std::size_t draw) {
    draws.set(draw, same.empty() ? drawn_product(e, sample, draw) : same);
    if (drawn) drawn();
  });
  return draws;
}

}  // namespace halfulp

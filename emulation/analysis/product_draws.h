#pragma once
// One product of two quantized operands, quantized anew in each draw: the gradient or activation whose bias is asked
// for. Products are in FP64, so that only the quantization is measured. Knows no files and no roles.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "emulation/analysis/draws.h"
#include "emulation/blocks/quantize.h"
#include "emulation/panels.h"

namespace halfulp {

// Rows along which the product sums.
struct ProductOperand {
  std::vector<float> x;  // [shape.rows, shape.cols]
  Matrix shape;
  const Recipe* recipe = nullptr;  // none: the operand is as it is
  Rotation rotation{};             // of its rows, as the other operand's
  std::string name{};              // of its random words: "x_wgrad"
};

// What is new in each draw, beside the random words of recipes that have some.
enum class SignsDrawn { once, each_draw };

struct ProductExperiment {
  ProductOperand a, b;  // d = a @ b^T
  SignsDrawn signs = SignsDrawn::once;
  uint64_t seed = 0;
  std::size_t draws = 64;
};

// Whether draws differ at all.
bool is_random(const ProductExperiment& experiment);

// The streams of random words that the draws use: of the words, not of signs.
std::vector<uint64_t> streams_of(const ProductExperiment& experiment);

// What comes back from the operand's codes in one draw, rotated as it is.
std::vector<float> drawn_values(const ProductOperand& operand, const ProductExperiment& experiment, std::size_t draw);

// The outputs that are looked at: every row_step-th row and col_step-th column.
struct OutputSample {
  std::size_t row_step = 1, col_step = 1;
  std::size_t rows(const Matrix& a) const { return (a.rows + row_step - 1) / row_step; }
  std::size_t cols(const Matrix& b) const { return (b.rows + col_step - 1) / col_step; }
};

// As many outputs, spread evenly, as `max_floats` numbers and `max_products` multiply-adds over all draws allow.
OutputSample sample_of(const ProductExperiment& experiment, uint64_t max_floats = uint64_t{1} << 26,
                       uint64_t max_products = uint64_t{1} << 35);

// The sampled outputs of the operands as they are, and in one draw.
std::vector<double> exact_product(const ProductExperiment& experiment, const OutputSample& sample);
std::vector<double> drawn_product(const ProductExperiment& experiment, const OutputSample& sample, std::size_t draw);

// The draws' products of the sampled outputs against the exact one of the operands as they are. Requires that
// refusal() of each operand is empty.
Draws draw_products(const ProductExperiment& experiment, const OutputSample& sample, int threads,
                    const std::function<void()>& drawn = {});

}  // namespace halfulp

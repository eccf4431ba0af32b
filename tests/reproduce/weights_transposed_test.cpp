// The two quantized copies of one weight, along its rows and along its columns (arXiv:2509.25149): with blocks of 1 x
// 16 the backward pass multiplies by other weights than the forward pass did, with tiles of 16 x 16 by the same. The
// figures are an independent program's.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "emulation/blocks/recipes.h"
#include "tests/reproduce/quantizers.h"
#include "tests/reproduce/side_by_side.h"

namespace halfulp::reproduce {
namespace {

constexpr Matrix kShape{.rows = 2048, .cols = 2048};

// Errors of Q(W) and of Q(W^T)^T.
struct Sums {
  double differences = 0, weights = 0, ee = 0, ff = 0, ef = 0;
};

Sums compare_copies(const Recipe& recipe) {
  const std::vector<float> w = normals("weights", kShape), by_row = quantized(recipe, kShape, w);
  const std::vector<float> by_col = transposed(kShape, quantized(recipe, kShape, transposed(kShape, w)));
  Sums sums;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double x = w[i], e = by_row[i] - x, f = by_col[i] - x;
    sums.differences += (e - f) * (e - f), sums.weights += x * x, sums.ee += e * e, sums.ff += f * f, sums.ef += e * f;
  }
  return sums;
}

// 0.1% is the standard error of a squared error over as many values; half a unit of the last digit comes on top.
TEST(WeightsTransposed, BlocksGiveTwoDifferentWeights) {
  const Sums sums = compare_copies(recipe_named("nvfp4/te"));
  expect_published({"nvfp4/te: |Q(W) - Q(W^T)^T|^2 / |W|^2", 1.70e-2, 0.005e-2 + 4 * 1.70e-5},
                   sums.differences / sums.weights);
  expect_published({"nvfp4/te: correlation of the two errors", .06, .005 + 4 / std::sqrt(double(kShape.elements()))},
                   sums.ef / std::sqrt(sums.ee * sums.ff));
}

TEST(WeightsTransposed, TilesGiveTheSameWeights) {
  const Sums sums = compare_copies(recipe_named("nvfp4/te-2d"));
  expect_published({"nvfp4/te-2d: |Q(W) - Q(W^T)^T|^2 / |W|^2", 0, 0}, sums.differences / sums.weights);
}

}  // namespace
}  // namespace halfulp::reproduce

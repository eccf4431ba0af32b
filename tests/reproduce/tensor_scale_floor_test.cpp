// A tensor's scale that is held at 2^-6 or above, and its blocks' scales too, under gradients far smaller: stochastic
// rounding keeps their mean and makes their norm a multiple of what it was. Reported for training on AMD's ALTO; the
// figures are an independent program's.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "emulation/blocks/recipes.h"
#include "tests/reproduce/quantizers.h"
#include "tests/reproduce/side_by_side.h"

namespace halfulp::reproduce {
namespace {

constexpr Matrix kShape{.rows = 256, .cols = 512};

Recipe with_floors() {
  return with_fields(recipe_named("nvfp4/te"), {{"rounding", "stochastic"},
                                                {"S_enc", "min(2688 / A * (16 / 17), 64)"},
                                                {"d", "max(a * (S_enc * (17 / 16 / 6)), 0x1p-6)"},
                                                {"q", "c * (s * S_dec)"}});
}

struct Figures {
  double rel_mse;
  double norm;  // of the quantized tensor, relative
};

Figures figures_of(const Recipe& recipe, float largest, int tensor) {
  std::vector<float> x = normals("tensor " + std::to_string(tensor), kShape);
  const float factor = largest / largest_magnitude(recipe, 0, x);
  for (float& value : x) value *= factor;
  const std::vector<float> q = quantized(recipe, kShape, x, {.seed = 1, .stream = uint64_t(tensor)});
  double ee = 0, xx = 0, qq = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double e = double(q[i]) - double(x[i]);
    ee += e * e, xx += double(x[i]) * double(x[i]), qq += double(q[i]) * double(q[i]);
  }
  return {.rel_mse = ee / xx, .norm = std::sqrt(qq / xx)};
}

// How many standard deviations a tensor's largest element is decides of these figures, and the published ones are of
// one tensor each, of a size that is not published: four standard deviations over tensors of 131,072 elements, and half
// a unit of the last digit.
void expect_row(float largest, const Figures& published, const Figures& half_units) {
  constexpr int kTensors = 32;
  const Recipe recipe = with_floors();
  std::vector<double> errors, norms;
  for (int tensor = 0; tensor < kTensors; ++tensor) {
    const Figures f = figures_of(recipe, largest, tensor);
    errors.push_back(f.rel_mse), norms.push_back(f.norm);
  }
  const auto tolerance = [&](const Mean& mean, double half_unit) {
    return half_unit + 4 * mean.se * std::sqrt(kTensors);
  };
  const Mean error = mean_of(errors), norm = mean_of(norms);
  char largest_text[32];
  std::snprintf(largest_text, sizeof largest_text, "largest element %g: ", double(largest));
  expect_published({std::string(largest_text) + "rel_mse", published.rel_mse, tolerance(error, half_units.rel_mse)},
                   error.value);
  if (half_units.norm > 0)
    expect_published({std::string(largest_text) + "norm, relative", published.norm, tolerance(norm, half_units.norm)},
                     norm.value);
}

TEST(TensorScaleFloor, IsHarmlessForLargeGradients) {
  expect_row(1e-2f, {.rel_mse = 2.4e-2, .norm = 1}, {.rel_mse = .05e-2, .norm = 0});
}

TEST(TensorScaleFloor, RaisesTheErrorOfGradientsOfAThousandth) {
  expect_row(1e-3f, {.rel_mse = 6.2e-2, .norm = 1}, {.rel_mse = .05e-2, .norm = 0});
}

TEST(TensorScaleFloor, DoublesTheNormOfGradientsOfATenThousandth) {
  expect_row(1e-4f, {.rel_mse = 3.5, .norm = 2.1}, {.rel_mse = .05, .norm = .05});
}

TEST(TensorScaleFloor, MultipliesTheNormOfGradientsOfAHundredThousandth) {
  expect_row(1e-5f, {.rel_mse = 43, .norm = 6.6}, {.rel_mse = .5, .norm = .05});
}

}  // namespace
}  // namespace halfulp::reproduce

// Layer-norm gains near one under MXFP8 (arXiv:2506.20752): blocks whose largest element is just under a power of two
// clamp together where the scale is rounded down. The figures are an independent program's, for gains from
// N(mean, 0.02) in blocks of 32.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "emulation/analysis/error.h"
#include "emulation/blocks/recipes.h"
#include "tests/reproduce/quantizers.h"
#include "tests/reproduce/side_by_side.h"

namespace halfulp::reproduce {
namespace {

constexpr Matrix kShape{.rows = 2048, .cols = 2048};
constexpr std::size_t kBlock = 32;
constexpr std::size_t kBlocks = kShape.rows * kShape.cols / kBlock;

std::vector<float> gains(float mean) {
  std::vector<float> gamma = normals("layer norm", kShape);
  for (float& g : gamma) g = mean + 0.02f * g;
  return gamma;
}

struct Figures {
  double clipped;
  Mean bias;
  double rms;
};

Figures figures_of(const Recipe& recipe, float mean) {
  const std::vector<float> x = gains(mean), q = quantized(recipe, kShape, x);
  std::vector<double> errors(kBlocks);
  double squares = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double e = double(q[i]) - double(x[i]);
    errors[i / kBlock] += e / double(kBlock), squares += e * e / double(x.size());
  }
  ErrorSums sums(recipe, ErrorDetail::summary);
  sums.add<float>(tensor_scale(recipe, 0), kShape, x);
  return {.clipped = sums.figures().at("clipped"), .bias = mean_of(errors), .rms = std::sqrt(squares)};
}

// A block clips all of its elements or none, nearly: so much is the standard error of a share.
double tolerance_of_share(double share, double half_unit) {
  return half_unit + 4 * std::sqrt(share * (1 - share) / double(kBlocks));
}

std::string named(const Recipe& recipe, float mean, const char* figure) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*s, gains about %.2f: %s", int(recipe.name.size()), recipe.name.data(),
                double(mean), figure);
  return text;
}

const Recipe& kFloor = recipe_named("mxfp8/ocp");
const Recipe& kRoundUp = recipe_named("mxfp8/te");

TEST(LayerNorm, FloorClampsMostGainsJustBelowAPowerOfTwo) {
  const Figures at_95 = figures_of(kFloor, 0.95f);
  expect_published({named(kFloor, 0.95f, "clipped"), .816, tolerance_of_share(.816, .0005)}, at_95.clipped);
  expect_published({named(kFloor, 0.95f, "bias"), -.0614, .00005 + 4 * at_95.bias.se}, at_95.bias.value);
  expect_published({named(kFloor, 0.95f, "rms"), .0701, .00005 + 4 * at_95.bias.se}, at_95.rms);
  const Figures at_90 = figures_of(kFloor, 0.90f);
  expect_published({named(kFloor, 0.90f, "clipped"), .895, tolerance_of_share(.895, .0005)}, at_90.clipped);
  expect_published({named(kFloor, 0.90f, "bias"), -.0252, .00005 + 4 * at_90.bias.se}, at_90.bias.value);
}

TEST(LayerNorm, FloorClampsNothingOnceTheLargestGainOfABlockIsAboveOne) {
  for (const float mean : {0.99f, 1.0f, 1.1f})
    expect_published({named(kFloor, mean, "clipped"), 0, .0005}, figures_of(kFloor, mean).clipped);
}

TEST(LayerNorm, RoundingUpClampsNothing) {
  for (const float mean : {0.90f, 0.95f, 0.99f, 1.0f, 1.1f})
    expect_published({named(kRoundUp, mean, "clipped"), 0, 0}, figures_of(kRoundUp, mean).clipped);
  const Figures at_95 = figures_of(kRoundUp, 0.95f);
  expect_published({named(kRoundUp, 0.95f, "bias"), -.0025, .00005 + 4 * at_95.bias.se}, at_95.bias.value);
  expect_published({named(kRoundUp, 0.95f, "rms"), .0176, .00005 + 4 * at_95.bias.se}, at_95.rms);
}

}  // namespace
}  // namespace halfulp::reproduce

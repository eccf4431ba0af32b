// Faults that others had, each caught by the check that is there for it, which passes without the fault.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "emulation/analysis/bias.h"
#include "emulation/analysis/error.h"
#include "emulation/analysis/streams.h"
#include "emulation/blocks/recipes.h"
#include "formats/catalog.h"
#include "formats/codec.h"
#include "formats/packing.h"
#include "lib/philox.h"
#include "lib/random_values.h"
#include "lib/threads.h"
#include "tests/reproduce/quantizers.h"
#include "tests/reproduce/side_by_side.h"

namespace halfulp::reproduce {
namespace {

constexpr Matrix kShape{.rows = 1024, .cols = 1024};

Json bias_of(const Recipe& recipe, const std::vector<float>& x) {
  BiasSums sums(recipe, ErrorDetail::strata);
  const TensorScale tensor = tensor_scale(recipe, largest_magnitude(recipe, 0, x));
  sums.add<float>({.tensor = tensor, .panel = {.first_row = 0, .first_col = 0, .shape = kShape}}, x, {});
  return sums.figures();
}

// Says what the check found with and without the fault.
void compare(const std::string& check, const Json& right, const Json& fault) {
  report(check + ": " + right.dump() + "; with the fault: " + fault.dump());
}

void compare_verdicts(const std::string& check, const Json& right, const Json& fault) {
  const auto found = [](const Json& f) { return Json{f.at("verdict"), f.at("value")}; };
  compare(check, found(right), found(fault));
  EXPECT_EQ(right.at("verdict"), "not detected");
  EXPECT_EQ(fault.at("verdict"), "biased");
}

// SplitMix64 whose state starts at seed * golden.
uint32_t overlapping_word(uint64_t seed, uint64_t index) {
  uint64_t z = (seed + index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return uint32_t((z ^ z >> 31) >> 32);
}

TEST(Mutant, OverlappingStreamsAreCaughtByTheCheckOfStreams) {
  std::vector<uint64_t> seeds(64);
  std::iota(seeds.begin(), seeds.end(), 0);
  const StreamCheck right = check_streams(
      seeds, [](uint64_t seed, uint64_t index) { return random_word(seed, 0, index); }, default_threads());
  const StreamCheck fault = check_streams(seeds, overlapping_word, default_threads());
  compare("check of streams", summary(right), summary(fault));
  EXPECT_TRUE(right.independent());
  ASSERT_TRUE(fault.overlap);
  EXPECT_EQ(fault.overlap->shift, 1);
}

TEST(Mutant, NoHeadroomIsCaughtByTheShrinkage) {
  const Recipe& te = recipe_named("nvfp4/te");
  const std::vector<float> x = normals("gaussian", kShape);
  const auto shrinkage = [&](const Fields& fields) {
    return bias_of(with_fields(te, fields), x).at("bias").at("shrinkage");
  };
  const Json right = shrinkage(stochastic_with_headroom()), fault = shrinkage({{"rounding", "stochastic"}});
  compare_verdicts("shrinkage", right, fault);
}

// Sums of two 8-bit significands, half of which are ties of BF16: a binade of them.
std::vector<float> ties() {
  std::vector<float> x(kShape.elements());
  for (uint64_t i = 0; i < x.size(); ++i)
    x[i] = float(4 + (int(128 * uniform(1, 0, i)) + int(128 * uniform(1, 1, i))) / 64.0);
  return x;
}

TEST(Mutant, TiesAwayAreCaughtByTheMeanErrorOfABinade) {
  const auto mean_error = [x = ties()](const Fields& fields) {
    return bias_of(with_fields(recipe_named("bf16"), fields), x).at("bias").at("by_binade").at("2");
  };
  const Json right = mean_error({}), fault = mean_error({{"rounding", "nearest-away"}});
  compare_verdicts("mean error from 4 to 8", right, fault);
}

TEST(Mutant, ScaleRoundedDownIsCaughtByTheClippedShare) {
  const std::vector<float> x = normals("gaussian", kShape);
  const Json right = bias_of(recipe_named("mxfp8/te"), x).at("clipped");
  const Json fault = bias_of(recipe_named("mxfp8/ocp"), x).at("clipped");
  compare("clipped share", right, fault);
  EXPECT_EQ(right, 0);
  EXPECT_GT(fault, 0.008);
}

// Elements divided by their scale, and multiplied by its reciprocal.
struct Codes {
  std::vector<std::byte> codes, scales;
  float of(uint64_t i) const { return decode(format_named("e2m1"), load_code<4>(codes.data(), i)); }
};

Codes codes_of(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape, const std::vector<float>& x) {
  Codes c{.codes = std::vector<std::byte>(code_bytes(recipe, shape)),
          .scales = std::vector<std::byte>(scale_bytes(recipe, shape))};
  quantize<float>(recipe, tensor, shape, x, {}, c.codes, c.scales);
  return c;
}

struct Reciprocal {
  double differing = 0;  // share of elements
  uint64_t not_ties = 0;
};

Reciprocal compare_division(const Matrix& shape, const std::vector<float>& x) {
  const Recipe& divides = recipe_named("nvfp4/modelopt");
  const Recipe multiplies = with_fields(divides, {{"m", "1 / (s * S_dec)"}, {"y", "x * m + 0"}});
  const TensorScale tensor = tensor_scale(divides, largest_magnitude(divides, 0, x));
  const Codes right = codes_of(divides, tensor, shape, x), fault = codes_of(multiplies, tensor, shape, x);
  Reciprocal result;
  for (uint64_t i = 0; i < x.size(); ++i) {
    if (right.of(i) == fault.of(i)) continue;
    const float scale = decode(format_named("ue4m3"), uint32_t(right.scales[i / 16])) * tensor.decode;
    const float midpoint = (right.of(i) + fault.of(i)) / 2;
    result.differing += 1 / double(x.size());
    result.not_ties += x[i] / scale != midpoint && x[i] * (1 / scale) != midpoint;
  }
  return result;
}

// Whether BF16 elements can be ties at all depends on the tensor's largest element, whose share of the scales it is:
// the published share is of one tensor, and differs from that by up to four standard deviations over tensors.
TEST(Mutant, ReciprocalForDivisionIsCaughtByComparingCodesAndOnlyChangesTies) {
  constexpr Matrix kSmall{.rows = 256, .cols = 512};
  constexpr int kTensors = 64;
  std::vector<double> shares;
  for (int tensor = 0; tensor < kTensors; ++tensor) {
    const std::vector<float> x = normals("tensor " + std::to_string(tensor), kSmall);
    const Reciprocal result = compare_division(kSmall, quantized(recipe_named("bf16"), kSmall, x));
    EXPECT_EQ(result.not_ties, 0u);
    shares.push_back(100 * result.differing);
  }
  const Mean mean = mean_of(shares);
  expect_published({"reciprocal for division: differing elements, %", 0.029, 4 * mean.se * std::sqrt(kTensors)},
                   mean.value);
  EXPECT_GT(std::ranges::max(shares), 0);
}

}  // namespace
}  // namespace halfulp::reproduce

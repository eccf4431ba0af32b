// Stochastic rounding with few random bits is biased: Fitzgibbon and Felix, "On Stochastic Rounding with Few Random
// Bits" (arXiv:2504.20634). The figures are means over all values of a source between two neighbours, the lower one
// included, in ulps of the result: -(2^-n - 2^-s) / 2 for n random bits and a source with s more bits than the result.
// The source of the first figure is not stated where we read it: -0.124 is that of a source with nine more bits, such
// as binary16 to E2M1; from binary32 it is -0.125.

#include <gtest/gtest.h>

#include "emulation/analysis/rounding_bias.h"
#include "tests/reproduce/side_by_side.h"

namespace halfulp::reproduce {
namespace {

double mean_over_source(std::string_view from, std::string_view to, int bits) {
  const Conversion c{.from = kFormats[std::size_t(find_format(from))],
                     .to = kFormats[std::size_t(find_format(to))],
                     .policy = {.rounding = Rounding::stochastic, .overflow = Overflow::saturate},
                     .random_bits = bits};
  return *interval_biases(c)[1].source;
}

TEST(FewBits, AreBiasedAsPublished) {
  expect_published({"2 random bits, binary16 to E2M1, ulps", -.124, .0005}, mean_over_source("f16", "e2m1", 2));
  expect_published({"2 random bits, binary32 to E2M1, ulps", -.125, .0005}, mean_over_source("f32", "e2m1", 2));
  expect_published({"3 random bits, BF16 to E5M2, ulps", -.047, .0005}, mean_over_source("bf16", "e5m2", 3));
}

}  // namespace
}  // namespace halfulp::reproduce

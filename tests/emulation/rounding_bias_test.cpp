// The closed forms of emulation/analysis/rounding_bias.h against sums over all random words and over all values of a
// source, and against neighbours found in the list of a format's values.

#include "emulation/analysis/rounding_bias.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace halfulp {
namespace {

const FormatEntry& format(std::string_view name) { return kFormats[std::size_t(find_format(name))]; }

Conversion stochastic(std::string_view to, int bits, std::string_view from = "f32",
                      Overflow overflow = Overflow::saturate) {
  return {.from = format(from),
          .to = format(to),
          .policy = {.rounding = Rounding::stochastic, .overflow = overflow},
          .random_bits = bits};
}

Conversion deterministic(std::string_view to, Rounding rounding, std::string_view from) {
  return {.from = format(from), .to = format(to), .policy = {.rounding = rounding, .overflow = Overflow::saturate}};
}

// All finite magnitudes of a format, ascending.
std::vector<double> magnitudes(const Format& f) {
  std::vector<double> values;
  for (uint32_t code = 0; code <= f.max_code(); ++code) values.push_back(double(decode(f, code)));
  return values;
}

// Values of every class: zero, between and beside codes, ties, subnormal, at the top, beyond it.
std::vector<double> every_class(const Format& f) {
  const std::vector<double> codes = magnitudes(f);
  std::vector<double> values{0.0, codes.back() * 1.4, codes.back() * 3};
  const std::size_t step = std::max<std::size_t>(1, codes.size() / 5);
  std::vector<std::size_t> at{0, 1, codes.size() - 2};
  for (std::size_t i = 2; i + 1 < codes.size(); i += step) at.push_back(i);
  for (const std::size_t i : at) {
    const double low = codes[i], gap = codes[i + 1] - low;
    for (const double fraction : {0.0, 0x1p-20, 0.25, 0.3, 0.5, 0.5 + 0x1p-30, 0.7071, 1 - 0x1p-17})
      values.push_back(low + fraction * gap);
  }
  const std::size_t positive = values.size();
  for (std::size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  return values;
}

struct Moments {
  double mean, variance;
};

// Over every random word, added up in long double, which holds the sums exactly.
Moments over_all_words(const Conversion& c, double x) {
  const uint32_t words = uint32_t{1} << c.random_bits;
  long double sum = 0, squares = 0;
  for (uint32_t word = 0; word < words; ++word) {
    const long double q = decode(c.to.format, encode(c.to.format, c.policy, x, {.word = word, .count = c.random_bits}));
    sum += q, squares += q * q;
  }
  const long double mean = sum / words;
  return {.mean = double(mean), .variance = double(squares / words - mean * mean)};
}

struct Case {
  std::string to;
  int bits;
};
class AllWords : public testing::TestWithParam<Case> {};

TEST_P(AllWords, GiveTheMeanAndTheVariance) {
  const Conversion c = stochastic(GetParam().to, GetParam().bits);
  for (const double x : every_class(c.to.format)) {
    const Outcomes outcomes = outcomes_of(c, x);
    const Moments brute = over_all_words(c, x);
    EXPECT_EQ(outcomes.mean(), brute.mean) << x;
    EXPECT_NEAR(outcomes.variance(), brute.variance, 1e-15 * (x * x + 1e-300)) << x;
  }
}

// The neighbours by the list of values, and the share by whole numbers: no code of the conversion.
TEST_P(AllWords, AreNeededNowhereInTheDefinition) {
  const Conversion c = stochastic(GetParam().to, GetParam().bits);
  const std::vector<double> codes = magnitudes(c.to.format);
  for (const double x : every_class(c.to.format)) {
    const double size = std::fabs(x);
    const Outcomes outcomes = outcomes_of(c, x);
    if (size >= codes.back()) {
      EXPECT_EQ(outcomes.mean(), std::copysign(codes.back(), x));
      continue;
    }
    const auto above = std::upper_bound(codes.begin(), codes.end(), size);
    const double low = *(above - 1), gap = *above - low;
    const double steps = std::floor(std::ldexp((size - low) / gap, GetParam().bits));
    EXPECT_EQ(std::fabs(outcomes.mean()), low + gap * std::ldexp(steps, -GetParam().bits)) << x;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, AllWords,
                         testing::Values(Case{"e2m1", 2}, Case{"e2m1", 3}, Case{"e2m1", 8}, Case{"e2m1", 16},
                                         Case{"e4m3", 2}, Case{"e4m3", 3}, Case{"e4m3", 8}, Case{"e4m3", 16},
                                         Case{"e5m2", 2}, Case{"e5m2", 3}, Case{"e5m2", 8}, Case{"e5m2", 16},
                                         Case{"bf16", 2}, Case{"bf16", 3}, Case{"bf16", 8}, Case{"bf16", 16}),
                         [](const auto& instance) {
                           return instance.param.to + "_" + std::to_string(instance.param.bits) + "_bits";
                         });

TEST(OutcomesOf, AreTheSpecialsThatThePolicySays) {
  const Conversion saturating = stochastic("e5m2", 8), overflowing = stochastic("e5m2", 8, "f32", Overflow::to_special);
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(outcomes_of(saturating, inf).mean(), 57344);
  EXPECT_EQ(outcomes_of(overflowing, inf).mean(), inf);
  EXPECT_EQ(outcomes_of(overflowing, 60000).mean(), inf) << "Inf with some words is Inf on average";
  EXPECT_TRUE(std::isnan(outcomes_of(saturating, std::nan("")).mean()));
}

// Both lanes of the pair by the instruction's own model, over all words that differ for them.
TEST(CovarianceOfPair, IsThatOfTheInstruction) {
  constexpr PtxCvt kOp = kPtxCvtAt<find_ptx_cvt("cvt.rs.satfinite.e4m3x4.f32")>;
  const Conversion c = conversion_of(kOp);
  for (const auto& [x, y] : {std::pair{1.04f, 1.04f}, {1.0416667f, 3.3f}, {-0.3f, 0.7f}, {0.001f, 250.0f}}) {
    long double both = 0, first = 0, second = 0;
    for (uint32_t word = 0; word < 1 << 16; ++word) {
      const double a = decode(kOp.to.format, convert_lane(kOp, bit_cast<uint32_t>(x), word, 0));
      const double b = decode(kOp.to.format, convert_lane(kOp, bit_cast<uint32_t>(y), word, 1));
      both += a * b, first += a, second += b;
    }
    const long double n = 1 << 16;
    EXPECT_NEAR(covariance_of_pair(outcomes_of(c, x), outcomes_of(c, y)), double(both / n - first / n * (second / n)),
                1e-12);
  }
}

// The mean error in ulps over every value of the source in a binade.
double over_source(const Conversion& c, int exponent) {
  const Format& from = c.from.format;
  double sum = 0, count = 0;
  for (uint32_t code = 0; code <= from.max_code(); ++code) {
    const double x = double(decode(from, code));
    if (x < std::ldexp(1.0, exponent) || x >= std::ldexp(1.0, exponent + 1)) continue;
    sum += (outcomes_of(c, x).mean() - x) / ulp_at(c.to.format, x);
    count += 1;
  }
  return sum / count;
}

TEST(IntervalBiases, AreMeansOverAllValuesOfTheSource) {
  std::vector<Conversion> conversions{stochastic("e5m2", 3, "bf16"), stochastic("e2m1", 2, "f16"),
                                      stochastic("e4m3", 8, "bf16"), stochastic("e4m3", 2, "f16")};
  for (const RoundingEntry& row : kRoundings)
    if (!is_stochastic(row.rounding)) conversions.push_back(deterministic("e4m3", row.rounding, "bf16"));
  for (const Conversion& c : conversions) {
    const std::vector<IntervalBias> biases = interval_biases(c);
    EXPECT_NEAR(*biases[1].source, over_source(c, 0), 1e-13) << c.to.name << " " << int(c.policy.rounding);
  }
}

// By the midpoint rule, from outcomes alone.
double integral_mean(const Conversion& c, double from, double to, bool logarithmic) {
  constexpr int kPoints = 1 << 18;
  double sum = 0, weights = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double x = from + (to - from) * (i + 0.5) / kPoints, weight = logarithmic ? 1 / x : 1;
    sum += weight * (outcomes_of(c, x).mean() - x) / ulp_at(c.to.format, x);
    weights += weight;
  }
  return sum / weights;
}

TEST(IntervalBiases, AreIntegralsOverTheReals) {
  std::vector<Conversion> conversions{stochastic("e2m1", 2), stochastic("e4m3", 3), stochastic("e5m2", 8)};
  for (const RoundingEntry& row : kRoundings)
    if (!is_stochastic(row.rounding)) conversions.push_back(deterministic("e4m3", row.rounding, "f32"));
  for (const Conversion& c : conversions) {
    for (const IntervalBias& bias : interval_biases(c)) {
      EXPECT_NEAR(bias.uniform, integral_mean(c, bias.from, bias.to, false), 2e-4) << c.to.name << " " << bias.from;
      if (!bias.log_uniform) continue;
      EXPECT_NEAR(*bias.log_uniform, integral_mean(c, bias.from, bias.to, true), 2e-4) << c.to.name << " " << bias.from;
    }
  }
}

// From 4096 steps a binade on a series stands in for the sum.
TEST(IntervalBiases, AreTheirSumForManySteps) {
  for (const int bits : {5, 8}) {
    const uint64_t steps = uint64_t{128} << bits;
    long double sum = 0;
    for (uint64_t m = steps; m < 2 * steps; ++m) sum += (long double)(m)*std::log1p(1 / (long double)(m)) - 1;
    const double expected = double(sum / std::log(2.0L) / (long double)(1 << bits));
    EXPECT_NEAR(*interval_biases(stochastic("bf16", bits))[1].log_uniform, expected, 1e-13);
  }
}

TEST(IntervalBiases, CoverThePositiveRange) {
  for (const FormatEntry& row : kFormats) {
    if (row.format.bits() > 16) continue;
    const std::vector<IntervalBias> biases =
        interval_biases({.from = format("f32"), .to = row, .policy = {Rounding::nearest_even, Overflow::saturate}});
    double end = biases.front().from;
    for (const IntervalBias& bias : biases) {
      EXPECT_EQ(bias.from, end) << row.name;
      end = bias.binades <= 1 ? bias.to : std::ldexp(bias.from, bias.binades);
    }
    EXPECT_EQ(end, double(decode(row.format, row.format.max_code()))) << row.name;
  }
}

TEST(IntervalBiases, SayNothingOfASourceWithoutValuesThere) {
  const std::vector<IntervalBias> biases = interval_biases(deterministic("e5m2", Rounding::nearest_away, "e4m3"));
  EXPECT_TRUE(biases[1].source.has_value());
  EXPECT_FALSE(biases[2].source.has_value()) << "from 32768 on, and E4M3 ends at 448";
}

TEST(IntervalBiases, TellTiesAwayFromTiesToEven) {
  const auto source = [](Rounding rounding) {
    return *interval_biases(deterministic("e4m3", rounding, "bf16"))[1].source;
  };
  EXPECT_EQ(source(Rounding::nearest_even), 0);
  EXPECT_EQ(source(Rounding::nearest_away), 0x1p-5);  // a tie of each 16 values, half an ulp
  EXPECT_EQ(source(Rounding::nearest_zero), -0x1p-5);
}

TEST(BiasCurve, IsThatOfItsPoints) {
  const Conversion c = stochastic("e2m1", 2);
  const BiasCurve curve = bias_curve(c);
  ASSERT_GT(curve.x.size(), 100u);
  EXPECT_TRUE(std::ranges::is_sorted(curve.x));
  for (std::size_t i = 0; i < curve.x.size(); ++i)
    EXPECT_EQ(curve.bias[i], over_all_words(c, curve.x[i]).mean - curve.x[i]);
}

}  // namespace
}  // namespace halfulp

// Distributions: moments and quantiles against theory, accuracy against libm, and the exact bits.

#include "lib/random_values.h"

#include <gtest/gtest.h>

#include <cmath>

namespace halfulp {
namespace {

constexpr uint64_t kSeed = 42;
constexpr uint64_t kCount = uint64_t{1} << 20;

struct Moments {
  double mean = 0;
  double second = 0;
  double third = 0;
  double fourth = 0;
};

// Raw moments; long double because 2^20 terms must not add an error near the standard errors tested.
template <class Value>
Moments moments_of(Value value) {
  long double sums[4] = {};
  for (uint64_t i = 0; i < kCount; ++i) {
    const long double x = value(i);
    sums[0] += x;
    sums[1] += x * x;
    sums[2] += x * x * x;
    sums[3] += x * x * x * x;
  }
  const auto mean = [](long double sum) { return double(sum / kCount); };
  return {.mean = mean(sums[0]), .second = mean(sums[1]), .third = mean(sums[2]), .fourth = mean(sums[3])};
}

// Five standard errors of the mean of kCount values with the given variance: a false alarm in two million seeds.
double five_errors(double variance) { return 5 * std::sqrt(variance / double(kCount)); }

TEST(UnitInterval, NeverReachesItsEnds) {
  EXPECT_EQ(unit_interval(0), 0x1p-53);
  EXPECT_EQ(unit_interval(~uint64_t{0}), 1 - 0x1p-53);
}

// The moments of x - 1/2: 0, 1/12, 0, 1/80; the variance of x^k is E x^2k - (E x^k)^2.
TEST(Uniform, HasTheMomentsOfTheDistribution) {
  const Moments m = moments_of([](uint64_t i) { return uniform(kSeed, 1, i) - 0.5; });
  EXPECT_NEAR(m.mean, 0, five_errors(1.0 / 12));
  EXPECT_NEAR(m.second, 1.0 / 12, five_errors(1.0 / 80 - 1.0 / 144));
  EXPECT_NEAR(m.third, 0, five_errors(1.0 / 448));
  EXPECT_NEAR(m.fourth, 1.0 / 80, five_errors(1.0 / 2304 - 1.0 / 6400));
}

// E x^2k = 1, 3, 15, 105 for k = 1 .. 4.
TEST(Normal, HasTheMomentsOfTheDistribution) {
  const Moments m = moments_of([](uint64_t i) { return normal(kSeed, 2, i); });
  EXPECT_NEAR(m.mean, 0, five_errors(1));
  EXPECT_NEAR(m.second, 1, five_errors(3 - 1));
  EXPECT_NEAR(m.third, 0, five_errors(15));
  EXPECT_NEAR(m.fourth, 3, five_errors(105 - 9));
}

// long double erfc inverts the quantile. An error dx of x moves the probability by the density times dx; four ulps of x
// are the algorithm's own 1e-16, one ulp for each polynomial, and one for the logarithm under the root.
TEST(NormalQuantile, InvertsTheDistributionFunction) {
  const auto density = [](long double x) { return std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979323846L); };
  for (double p = 0x1p-53; p < 0.9999; p = p < 0x1p-6 ? p * 1.037 : p + 0x1.01p-9) {
    const long double x = normal_quantile(p);
    const long double back = std::erfc(-x / std::sqrt(2.0L)) / 2;
    const long double ulps = std::abs(back - p) / density(x) / (std::abs(x) * 0x1p-52L);
    EXPECT_LT(double(ulps), 4.0) << std::hexfloat << "p " << p << " x " << double(x);
  }
}

TEST(NormalQuantile, IsOdd) {
  for (const double p : {0.001, 0.02, 0.0749, 0.0751, 0.3}) {
    const double exact = std::ldexp(std::floor(std::ldexp(p, 40)), -40);  // so that 1 - p is exact
    EXPECT_EQ(normal_quantile(1 - exact), -normal_quantile(exact)) << p;
  }
}

TEST(PortableLog, IsNearLibm) {
  for (uint64_t i = 0; i < 100'000; ++i) {
    const double x = std::ldexp(uniform(kSeed, 3, i), int(i % 2000) - 1000);
    const double expected = std::log(x);
    ASSERT_NEAR(portable_log(x), expected, 3 * 0x1p-52 * std::abs(expected)) << std::hexfloat << x;
  }
}

// |t| of three degrees of freedom is beyond 3.182, 5.841 and 12.924 with probability 0.05, 0.01 and 0.001 (any table).
// The variance of the sample's variance is infinite, so quantiles are counted instead of moments.
TEST(StudentT3, HasTheTailsOfTheDistribution) {
  struct Tail {
    double beyond;
    double probability;
    uint64_t count = 0;
  };
  Tail tails[] = {{3.182446305, 0.05}, {5.840909310, 0.01}, {12.92397864, 0.001}};
  for (uint64_t i = 0; i < kCount; ++i) {
    const double t = std::abs(student_t3(kSeed, 4, i));
    for (Tail& tail : tails) tail.count += t > tail.beyond ? 1 : 0;
  }
  for (const Tail& tail : tails) {
    const double variance = tail.probability * (1 - tail.probability);
    EXPECT_NEAR(double(tail.count) / double(kCount), tail.probability, five_errors(variance)) << tail.beyond;
  }
}

TEST(StudentT3, IsSymmetric) {
  uint64_t negative = 0;
  for (uint64_t i = 0; i < kCount; ++i) negative += student_t3(kSeed, 5, i) < 0 ? 1 : 0;
  EXPECT_NEAR(double(negative) / double(kCount), 0.5, five_errors(0.25));
}

// Order-dependent hash of the bits of the first 2^16 values.
template <class Value>
uint64_t checksum(Value value) {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t i = 0; i < (1 << 16); ++i) hash = (hash ^ bit_cast<uint64_t>(double(value(i)))) * 0x100000001b3;
  return hash;
}

// These bits must never change: published results name only their seed.
TEST(RandomValues, UniformBitsAreFixed) {
  EXPECT_EQ(checksum([](uint64_t i) { return uniform(kSeed, 6, i); }), 0x25c460f2765cef7d);
}

TEST(RandomValues, NormalBitsAreFixed) {
  EXPECT_EQ(checksum([](uint64_t i) { return normal(kSeed, 6, i); }), 0x1384181ff30cf577);
}

TEST(RandomValues, StudentT3BitsAreFixed) {
  EXPECT_EQ(checksum([](uint64_t i) { return student_t3(kSeed, 6, i); }), 0xf0842424fcecdf33);
}

}  // namespace
}  // namespace halfulp

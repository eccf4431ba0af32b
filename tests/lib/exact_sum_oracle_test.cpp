// ExactSum against MPFR's correctly rounded mpfr_sum.

#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "lib/exact_sum.h"

namespace halfulp {
namespace {

// A sum of doubles has at most 2098 + 64 bits, so mpfr_sum at that precision is exact, and the only rounding is the
// last.
class MpfrSum {
 public:
  MpfrSum() { mpfr_init2(result_, 2200); }
  ~MpfrSum() { mpfr_clear(result_); }
  MpfrSum(const MpfrSum&) = delete;
  MpfrSum& operator=(const MpfrSum&) = delete;

  double operator()(const std::vector<double>& values) {
    std::vector<mpfr_t> terms(values.size());
    std::vector<mpfr_ptr> pointers;
    for (size_t i = 0; i < values.size(); ++i) {
      mpfr_init2(terms[i], 53);
      mpfr_set_d(terms[i], values[i], MPFR_RNDN);
      pointers.push_back(terms[i]);
    }
    mpfr_sum(result_, pointers.data(), pointers.size(), MPFR_RNDN);
    for (auto& term : terms) mpfr_clear(term);
    return mpfr_get_d(result_, MPFR_RNDN);
  }

 private:
  mpfr_t result_;
};

double exact_sum(const std::vector<double>& values) {
  ExactSum sum;
  for (const double x : values) sum.add(x);
  return sum.value();
}

// Zeros differ in sign by contract: ExactSum's is +0.
void expect_same(const std::vector<double>& values, MpfrSum& mpfr, int seed) {
  const double expected = mpfr(values) + 0.0;
  const double got = exact_sum(values);
  ASSERT_EQ(bit_cast<uint64_t>(got), bit_cast<uint64_t>(expected))
      << "case " << seed << std::hexfloat << " expected " << expected << " got " << got;
}

double random_finite(std::mt19937_64& generator) {
  double x = std::numeric_limits<double>::infinity();
  while (!std::isfinite(x)) x = bit_cast<double>(uint64_t(generator()));
  return x;
}

TEST(ExactSumOracle, RandomBitsOfAllMagnitudes) {
  MpfrSum mpfr;
  for (int seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 generator{uint64_t(seed)};
    std::vector<double> values(1 + generator() % 60);
    for (double& x : values) x = random_finite(generator);
    expect_same(values, mpfr, seed);
  }
}

// Each value's negative is there too, one unit off in the last place: everything above cancels.
TEST(ExactSumOracle, CancellationDownToTheLastBits) {
  MpfrSum mpfr;
  for (int seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 generator{uint64_t(seed)};
    std::vector<double> values;
    for (uint64_t i = 0; i < 1 + generator() % 30; ++i) {
      const double x = random_finite(generator);
      values.push_back(x);
      values.push_back(-std::nextafter(x, 0));
    }
    std::shuffle(values.begin(), values.end(), generator);
    expect_same(values, mpfr, seed);
  }
}

// A double, half its unit in the last place, and a far smaller value of either sign or none.
TEST(ExactSumOracle, TiesAndNearTies) {
  MpfrSum mpfr;
  for (int seed = 0; seed < 20'000; ++seed) {
    std::mt19937_64 generator{uint64_t(seed)};
    const double x = random_finite(generator);
    const double half_ulp = (std::nextafter(std::abs(x), DBL_MAX) - std::abs(x)) / 2;
    const double nudge = std::ldexp(double(int(generator() % 3) - 1), -int(generator() % 1074));
    expect_same({x, generator() % 2 != 0 ? half_ulp : -half_ulp, nudge}, mpfr, seed);
  }
}

TEST(ExactSumOracle, SubnormalResults) {
  MpfrSum mpfr;
  for (int seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 generator{uint64_t(seed)};
    std::vector<double> values;
    for (int i = 0; i < 10; ++i) values.push_back(bit_cast<double>(generator() & 0x800f'ffff'ffff'ffff));
    values.push_back(0x1p-1021);
    values.push_back(-0x1p-1021);
    expect_same(values, mpfr, seed);
  }
}

TEST(ExactSumOracle, AroundTheLargestDouble) {
  MpfrSum mpfr;
  for (int seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 generator{uint64_t(seed)};
    const int scale = 960 + int(generator() % 12);
    std::vector<double> values = {DBL_MAX, DBL_MAX, -DBL_MAX};
    for (int i = 0; i < 4; ++i) values.push_back(std::ldexp(double(int(generator() % 9) - 4), scale + i));
    expect_same(values, mpfr, seed);
  }
}

}  // namespace
}  // namespace halfulp

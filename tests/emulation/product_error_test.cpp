// Exact products against integers, and what is said of errors against errors made on purpose.

#include "emulation/analysis/product_error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "formats/catalog.h"
#include "formats/codec.h"

namespace halfulp {
namespace {

const Format kF32 = format_named("f32");

double total(const std::vector<double>& parts) {
  double sum = 0;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) sum += *part;
  return sum;
}

// Integers of `bits` bits over 2^shift, so that sums go by way of 64 bits, of 128 bits or of neither.
struct Size {
  int bits, shift;
};
class ExactProducts : public testing::TestWithParam<Size> {};

TEST_P(ExactProducts, AreSumsOfIntegers) {
  std::mt19937_64 random(1);
  const std::size_t k = 100;
  std::vector<double> a(3 * k), b(2 * k);
  std::vector<__int128> wanted(6);
  const auto [bits, shift] = GetParam();
  const auto draw = [&] { return int64_t(random() & low_mask(bits)) - (int64_t{1} << (bits - 1)); };
  std::vector<int64_t> of_a, of_b;
  for (double& x : a) x = std::ldexp(double(of_a.emplace_back(draw())), -shift);
  for (double& x : b) x = std::ldexp(double(of_b.emplace_back(draw())), -shift);
  const ExactProduct product({a, 3, k}, {b, 2, k});
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 2; ++j) {
      __int128 sum = 0;
      for (std::size_t at = 0; at < k; ++at) sum += static_cast<__int128>(of_a[i * k + at]) * of_b[j * k + at];
      for (const double part : product.element(i, j)) sum -= static_cast<__int128>(std::ldexp(part, 2 * shift));
      EXPECT_TRUE(sum == 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ExactProducts, testing::Values(Size{12, 3}, Size{40, 9}, Size{53, 20}),
                         [](const auto& instance) { return "Bits" + std::to_string(instance.param.bits); });

// Sums as large as their ranges of bits allow: 1 is the lowest bit of both, and multiplied by 0.
class LargestSums : public testing::TestWithParam<Size> {};

TEST_P(LargestSums, DoNotOverflow) {
  const auto [bits, zeros] = GetParam();
  const int64_t largest = int64_t(low_mask(bits));
  std::vector<double> a(1024, std::ldexp(double(largest), zeros)), b = a;
  a[0] = b[1] = 1, a[1] = b[0] = 0;
  __int128 sum = static_cast<__int128>(largest) * largest * 1022;
  for (const double part : ExactProduct({a, 1, 1024}, {b, 1, 1024}).element(0, 0))
    sum -= static_cast<__int128>(std::ldexp(part, -2 * zeros));
  EXPECT_TRUE(sum == 0);
}

INSTANTIATE_TEST_SUITE_P(Sizes, LargestSums,
                         testing::Values(Size{26, 0}, Size{27, 0}, Size{30, 0}, Size{53, 0}, Size{53, 4}, Size{53, 5},
                                         Size{53, 9}, Size{53, 30}),
                         [](const auto& instance) {
                           return "Bits" + std::to_string(instance.param.bits) + "Zeros" +
                                  std::to_string(instance.param.shift);
                         });

TEST(ExactProduct, KeepsWhatCancellationLeavesOfAnyRange) {
  const std::vector<double> a{0x1p200, 1, -0x1p200, 0x1p-300}, b{0x1p200, 0x1p-150, 0x1p200, 0x1p-300};
  EXPECT_EQ(total(ExactProduct({a, 1, 4}, {b, 1, 4}).element(0, 0)), 0x1p-150);
}

TEST(ExactProduct, IsNanWhereARowHasOneAndExactElsewhere) {
  const std::vector<double> a{1, NAN, 1, 2}, b{3, 4};
  const ExactProduct product({a, 2, 2}, {b, 1, 2});
  EXPECT_TRUE(std::isnan(total(product.element(0, 0))));
  EXPECT_EQ(total(product.element(1, 0)), 11);
}

TEST(ScaledSum, RoundsToOddWhereItIsNoDouble) {
  const double parts[] = {1, 0x1p-80};
  const Rounded rounded = scaled_sum(parts, 1);
  EXPECT_EQ(rounded.nearest, 1);
  EXPECT_EQ(rounded.odd, std::nextafter(1, 2));
}

// m rows of one product x[i] * 1, and d as given.
Json figures_of(const std::vector<double>& x, const std::vector<uint32_t>& d) {
  const std::vector<double> one{1};
  const ExactProduct product({x, x.size(), 1}, {one, 1, 1});
  ProductErrors errors;
  errors.add({.m = x.size(), .n = 1, .format = kF32, .d = d, .operands = product}, 1, 2);
  return errors.figures();
}

uint32_t f32(double x) { return bit_cast<uint32_t>(float(x)); }

TEST(ProductErrors, AreNoneOfCorrectlyRoundedOutputs) {
  std::vector<double> x;
  std::vector<uint32_t> d;
  for (int i = 1; i < 100; ++i) x.push_back(i * 0.1), d.push_back(f32(i * 0.1));
  const Json figures = figures_of(x, d);
  EXPECT_EQ(figures.at("correctly_rounded"), 99);
  EXPECT_LT(figures.at("mean_abs_ulps").at("value").get<double>(), 0.5);
}

TEST(ProductErrors, OfTruncationAreTowardZero) {
  std::vector<double> x;
  std::vector<uint32_t> d;
  for (int i = 1; i < 400; ++i) {
    x.push_back((i % 2 == 0 ? 1 : -1) * (1 + i * 0x1p-30));
    d.push_back(f32(i % 2 == 0 ? 1 : -1));  // i * 2^-7 ulps are cut
  }
  const Json figures = figures_of(x, d);
  EXPECT_NEAR(figures.at("toward_zero_ulps").at("value").get<double>(), 200 * 0x1p-7, 1e-6);
  EXPECT_GT(figures.at("toward_zero_ulps").at("z").get<double>(), 10);
  EXPECT_LT(std::fabs(figures.at("bias_ulps").at("z").get<double>()), 1);
  EXPECT_GT(figures.at("shrinkage").at("value").get<double>(), 0);
}

TEST(ProductErrors, CountOutputsThatOverflowAndLeaveThemOut) {
  const Json figures = figures_of({1, 1e30, NAN}, {f32(1), 0x7f80'0000, 0x7fff'ffff});
  EXPECT_EQ(figures.at("overflowed"), 1);
  EXPECT_EQ(figures.at("not_finite"), 1);
  EXPECT_EQ(figures.at("correctly_rounded"), 2);
  EXPECT_EQ(figures.at("rel_mse").at("value"), 0);
}

TEST(ProductErrors, SplitIntoOperandsAccumulatorAndWhatIsCrossed) {
  const std::vector<double> x{1, 2, 3}, q{1.25, 2, 2.5}, one{1};
  const std::vector<uint32_t> d{f32(1.5), f32(2), f32(2.5)};
  const ExactProduct operands({q, 3, 1}, {one, 1, 1}), originals({x, 3, 1}, {one, 1, 1});
  ProductErrors errors;
  errors.add({.m = 3, .n = 1, .format = kF32, .d = d, .operands = operands, .originals = &originals}, 1, 1);
  const Json mse = errors.split().at("rel_mse");
  const auto value = [&](const char* part) { return mse.at(part).at("value").get<double>(); };
  EXPECT_DOUBLE_EQ(value("operands"), (.0625 + .25) / 14);
  EXPECT_DOUBLE_EQ(value("accumulator"), .0625 / 14);
  EXPECT_DOUBLE_EQ(value("crossed"), 2 * .0625 / 14);
  EXPECT_DOUBLE_EQ(value("total"), value("operands") + value("accumulator") + value("crossed"));
}

TEST(ProductErrors, DoNotDependOnThreads) {
  std::mt19937 random(3);
  std::vector<double> a(40 * 8), b(30 * 8);
  for (double& x : a) x = std::normal_distribution<>()(random);
  for (double& x : b) x = std::normal_distribution<>()(random);
  std::vector<uint32_t> d(1200);
  for (uint32_t& x : d) x = f32(std::normal_distribution<>()(random));
  const ExactProduct product({a, 40, 8}, {b, 30, 8});
  Json figures[2];
  for (const int threads : {1, 5}) {
    ProductErrors errors;
    errors.add({.m = 40, .n = 30, .format = kF32, .d = d, .operands = product}, 7, threads);
    figures[threads == 1] = errors.figures();
  }
  EXPECT_EQ(figures[0].dump(), figures[1].dump());
}

}  // namespace
}  // namespace halfulp

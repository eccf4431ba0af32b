// The order of the epilogue's roundings, on numbers that tell orders apart.

#include "emulation/matmul/epilogue.h"

#include <gtest/gtest.h>

#include <vector>

namespace halfulp {
namespace {

float applied(const Epilogue& epilogue, float sum, std::size_t i = 0, std::size_t j = 0) {
  return bit_cast<float>(epilogue.apply(bit_cast<uint32_t>(sum), i, j, 1));
}

constexpr float kOdd = 1 + 0x1p-23f, kThird = 1 / 3.0f, kTenth = 0.1f;

TEST(Epilogue, LeavesEveryBitWhereThereIsNothingToDo) {
  EXPECT_EQ(Epilogue{}.apply(0x7fc0'1234, 0, 0, 1), 0x7fc0'1234u);
  EXPECT_EQ(Epilogue{}.apply(0x8000'0000, 0, 0, 1), 0x8000'0000u);
}

TEST(Epilogue, MultipliesByTheRowsFactorFirst) {
  const std::vector<float> rows{kThird}, cols{kTenth};
  const float sum = 9 * 1.1f, expected = kTenth * (kThird * sum);
  ASSERT_NE(expected, kThird * (kTenth * sum));
  ASSERT_NE(expected, (kTenth * kThird) * sum);
  EXPECT_EQ(applied({.row_factors = rows, .col_factors = cols}, sum), expected);
}

TEST(Epilogue, TakesTheFactorsOfItsRowAndColumn) {
  const std::vector<float> rows{1, 2, 3}, cols{10, 100};
  const Epilogue epilogue{.row_factors = rows, .col_factors = cols};
  EXPECT_EQ(bit_cast<float>(epilogue.apply(bit_cast<uint32_t>(1.0f), 2, 1, 2)), 300);
}

TEST(Epilogue, RoundsAlphaTimesTheSumOnceWithoutC) {
  EXPECT_EQ(applied({.scales = true, .alpha = kThird}, kOdd), kThird * kOdd);
}

// beta * c is rounded; alpha * sum is not, before it is added.
TEST(Epilogue, AddsWithOneRoundingOfItsOwn) {
  const std::vector<float> c{kTenth};
  const float expected = std::fma(kThird, kOdd, kTenth * kTenth);
  ASSERT_NE(expected, std::fma(kTenth, kTenth, kThird * kOdd));
  EXPECT_EQ(applied({.scales = true, .alpha = kThird, .beta = kTenth, .c = c}, kOdd), expected);
}

TEST(Epilogue, MakesEveryNaNTheInstructions) {
  EXPECT_EQ((Epilogue{.scales = true, .alpha = 1}).apply(0xffc0'0001, 0, 0, 1), 0x7fff'ffffu);
}

}  // namespace
}  // namespace halfulp

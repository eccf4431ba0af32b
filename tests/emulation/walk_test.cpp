// Walks through outputs against the outputs themselves, and against what they must say of a cut.

#include "emulation/matmul/walk.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/emulation/random_products.h"

namespace halfulp {
namespace {

class Walk : public testing::TestWithParam<Accumulator> {};

TEST_P(Walk, EndsWithTheOutput) {
  for (const std::string_view input : inputs_of(GetParam()))
    for (const Draw draw : kDraws)
      for (const int slices : {1, 3}) {
        Accumulator row = GetParam();
        if (row.sum.format.bits() == 32) row.slices = slices;
        const Product product(row, entry(input).format, entry(input).format, 3, 2, 320, draw, 7);
        for (std::size_t i = 0; i < 3; ++i)
          EXPECT_EQ(result_of(walk_element(product.job, i, i % 2).back()), gemm_element(product.job, i, i % 2))
              << row.name << ' ' << input << " draw " << int(draw) << " slices " << slices;
      }
}

TEST_P(Walk, SaysEveryProductOnce) {
  const std::string_view input = inputs_of(GetParam()).front();
  const Product product(GetParam(), entry(input).format, entry(input).format, 1, 1, 320, Draw::narrow, 1);
  std::vector<int> seen(320);
  for (const WalkedStep& step : walk_element(product.job, 0, 0))
    for (const WalkedTerm& term : step.block.terms)
      for (int k = term.first; k < term.first + term.count; ++k) ++seen[std::size_t(k)];
  EXPECT_EQ(seen, std::vector<int>(320, 1));
}

std::vector<Accumulator> instructions() {
  std::vector<Accumulator> rows;
  for (const Accumulator& row : kAccumulators)
    if (row.kept_bits != kAllBits) rows.push_back(row);
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Rows, Walk, testing::ValuesIn(instructions()), [](const auto& instance) {
  std::string name(instance.param.name);
  std::ranges::replace(name, '.', '_');
  return name;
});

// 64 is where 1/16 * 1/16 stops counting: its lowest kept bit is 2^(6 - 13), and a product is 2^-8.
TEST(WalkedCut, LosesASixteenthOfASixteenthAt64) {
  const Accumulator row = accumulator("sm90.qgmma.f32");
  const Format e4m3 = entry("e4m3").format;
  const std::vector<uint32_t> sixteenth(32, encode(e4m3, {}, 1 / 16.0)), c{bit_cast<uint32_t>(64.0f)};
  const GemmJob job{.row = row, .m = 1, .n = 1, .k = 32, .a = {e4m3, sixteenth}, .b = {e4m3, sixteenth}, .c = c};
  const WalkedBlock block = walk_element(job, 0, 0).back().block;
  EXPECT_EQ(block.unit, -7);
  EXPECT_EQ(block.terms[0].cut, 64 << 7);
  EXPECT_EQ(block.terms[1].cut, 0);
  EXPECT_EQ(block.result, c[0]);
}

}  // namespace
}  // namespace halfulp

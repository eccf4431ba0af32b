// Tiles for Blackwell's matrix instructions: do their modes show what accumulators do, and are they what is written
// down?

#include "emulation/matmul/scaled_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "formats/catalog.h"
#include "formats/codec.h"

namespace halfulp {
namespace {

const Format& format(std::string_view name) { return kFormats[std::size_t(find_format(name))].format; }
const Accumulator& row_of(const ScaledInstruction& is) {
  return kAccumulators[std::size_t(find_accumulator(is.accumulator))];
}

class ScaledRows : public testing::TestWithParam<int> {
 protected:
  const ScaledInstruction& is_ = kScaledInstructions[std::size_t(GetParam())];

  std::size_t refused(const Accumulator& wrong, MatrixMode mode) const {
    const ScaledTiles tiles = scaled_inputs(is_, mode, 0, is_.unit == ScaledUnit::mma_sync ? 8 : 1);
    std::size_t refused = 0;
    for (std::size_t i = 0; i < tiles.c.size(); ++i)
      refused += scaled_output(is_, wrong, tiles, i) != scaled_output(is_, row_of(is_), tiles, i);
    return refused;
  }
  std::size_t refused_in_some_mode(const Accumulator& wrong) const {
    std::size_t most = 0;
    for (std::size_t mode = 0; mode < kMatrixModeNames.size(); ++mode)
      most = std::max(most, refused(wrong, MatrixMode(mode)));
    return most;
  }
};

TEST_P(ScaledRows, HaveAnAccumulatorThatTakesTheirFormats) {
  ASSERT_GE(find_accumulator(is_.accumulator), 0);
  for (const std::string_view name : {is_.a, is_.b})
    EXPECT_NE(("," + std::string(row_of(is_).inputs) + ",").find("," + std::string(name) + ","), std::string::npos)
        << name;
  EXPECT_EQ(is_.row_scales > 0, row_of(is_).scales != SumScales::none);
  EXPECT_EQ(is_.k % row_of(is_).block, 0);
}

TEST_P(ScaledRows, AreFoundByTheirPtxAndFormats) {
  EXPECT_EQ(find_scaled_instruction(ptx_of(is_), is_.a, is_.b), GetParam());
  EXPECT_EQ(find_scaled_instruction(ptx_of(is_), is_.a, "f32"), -1);
}

TEST_P(ScaledRows, RefuseABitMoreOrLess) {
  for (const int difference : {-1, 1}) {
    Accumulator wrong = row_of(is_);
    wrong.kept_bits += difference;
    EXPECT_GT(refused_in_some_mode(wrong), 0u) << wrong.kept_bits;
  }
}

TEST_P(ScaledRows, RefuseARoundingToNearest) {
  Accumulator wrong = row_of(is_);
  wrong.sum.rounding = Rounding::nearest_even;
  EXPECT_GT(refused_in_some_mode(wrong), 0u);
}

TEST_P(ScaledRows, DrawCodesAndScalesOfTheirFormats) {
  for (std::size_t mode = 0; mode < kMatrixModeNames.size(); ++mode) {
    const ScaledTiles tiles = scaled_inputs(is_, MatrixMode(mode), 3, 2);
    EXPECT_EQ(tiles.a.size(), std::size_t(2 * is_.m * is_.k));
    EXPECT_EQ(tiles.b_scales.size(), std::size_t(2 * is_.n * is_.row_scales));
    for (const uint32_t code : tiles.a) EXPECT_LE(code, format(is_.a).code_mask());
    for (const uint32_t scale : tiles.a_scales) {
      EXPECT_LE(scale, 0xffu);
      EXPECT_TRUE(MatrixMode(mode) == MatrixMode::bits || !is_nan_code(format(is_.scale), scale)) << scale;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ScaledRows, testing::Range(0, int(kScaledInstructions.size())));

TEST(ScaledInputs, AreFunctionsOfTheirNumber) {
  const ScaledInstruction& is = kScaledInstructions[16];
  const ScaledTiles all = scaled_inputs(is, MatrixMode::wide, 0, 3), last = scaled_inputs(is, MatrixMode::wide, 2, 1);
  EXPECT_TRUE(std::equal(last.a.begin(), last.a.end(), all.a.end() - long(last.a.size())));
  EXPECT_TRUE(std::equal(last.b_scales.begin(), last.b_scales.end(), all.b_scales.end() - long(last.b_scales.size())));
  EXPECT_TRUE(std::equal(last.c.begin(), last.c.end(), all.c.end() - long(last.c.size())));
}

TEST(PtxOf, SpellsOneOfEachUnit) {
  EXPECT_EQ(ptx_of(kScaledInstructions[16]),
            "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3");
  EXPECT_EQ(ptx_of(kScaledInstructions[0]), "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e4m3.f32");
  EXPECT_EQ(ptx_of(kScaledInstructions.back()), "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16");
}

}  // namespace
}  // namespace halfulp

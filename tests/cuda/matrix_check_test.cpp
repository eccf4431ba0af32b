// Matrix instructions of the GPU that is here against the models, over all modes of inputs; and against models that are
// wrong by a little, which the mode that shows it must refuse.

#include "cuda/matrix_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cuda/arch/form.h"
#include "cuda/cvt_check.h"
#include "emulation/matmul/dot_product.h"
#include "emulation/matmul/instruction.h"
#include "formats/catalog.h"

namespace halfulp {
namespace {

// Of each instruction and mode; HALFULP_MATRIX_OUTPUTS says otherwise.
uint64_t outputs() {
  const char* text = std::getenv("HALFULP_MATRIX_OUTPUTS");
  return text == nullptr ? uint64_t{1} << 20 : std::strtoull(text, nullptr, 10);
}

std::string name_of(std::string_view ptx) {
  std::string name(ptx);
  std::ranges::replace_if(
      name, [](char c) { return c == '.' || c == ':'; }, '_');
  return name;
}

class MatrixInstructions : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  }
  const int id_ = int(GetParam());
  const MatrixInstruction& is_ = kMatrixInstructions[GetParam()];

  // By the capability in the target's name, "sm_90a".
  static int capability() { return std::stoi(arch::loaded_forms().target.substr(3)); }
  // Of the instruction, or of the model that stands for it where the GPU has none: Hopper's.
  Accumulator model() const {
    return kAccumulators[std::size_t(accumulator_on(is_, has_matrix_instruction(id_) ? capability() : 90))];
  }
  uint64_t tiles_of(uint64_t wanted) const {
    const auto of_tile = uint64_t(is_.m * is_.n);
    return (wanted + of_tile - 1) / of_tile;
  }
};

TEST_P(MatrixInstructions, AreTheModels) {
  for (std::size_t mode = 0; mode < kMatrixModeNames.size(); ++mode) {
    const MatrixComparison found = compare_tiles(id_, {MatrixMode(mode), 0, tiles_of(outputs())}, model());
    EXPECT_EQ(found.mismatches, 0u) << kMatrixModeNames[mode] << " of " << found.outputs;
    for (const MatrixMismatch& x : found.shown)
      std::printf("tile %llu [%d, %d]: %08x, not %08x\n", static_cast<unsigned long long>(x.tile), x.row, x.col, x.got,
                  x.model);
  }
}

// The GPU's operands and results, an element to a number, are what the CPU makes of the same tiles.
TEST_P(MatrixInstructions, TakeTheOperandsOfTheirTiles) {
  constexpr MatrixTiles kTiles{MatrixMode::wide, 7, 3};
  const MatrixAnswers got = multiply_tiles(id_, kTiles);
  const FormatEntry &a = kFormats[std::size_t(find_format(is_.a))], &b = kFormats[std::size_t(find_format(is_.b))];
  const FormatEntry& d = kFormats[std::size_t(find_format(is_.d))];
  const auto expect = [&](const std::vector<uint32_t>& codes, const Format& format, MatrixSide side, int rows,
                          int cols) {
    ASSERT_EQ(codes.size(), 3u * std::size_t(rows) * std::size_t(cols));
    const std::size_t of_tile = std::size_t(rows) * std::size_t(cols);
    for (std::size_t i = 0; i < codes.size(); ++i)
      ASSERT_EQ(codes[i], matrix_input(format, MatrixMode::wide, side, cols, 7 + i / of_tile, uint32_t(i % of_tile)));
  };
  expect(got.a, a.format, MatrixSide::a, is_.m, is_.k);
  expect(got.b, b.format, MatrixSide::b, is_.n, is_.k);
  expect(got.c, d.format, MatrixSide::c, is_.m, is_.n);
  for (std::size_t i = 0; i < got.d.size(); ++i) {
    const std::size_t row = i / std::size_t(is_.n), tile = row / std::size_t(is_.m), col = i % std::size_t(is_.n);
    const DotOperand of_a{a.format, got.a.data() + row * std::size_t(is_.k)};
    const DotOperand of_b{b.format, got.b.data() + (tile * std::size_t(is_.n) + col) * std::size_t(is_.k)};
    ASSERT_EQ(got.d[i], dot_product(model(), of_a, of_b, is_.k, got.c[i]));
  }
  MatrixAnswers operands = got;
  operands.d.clear();
  EXPECT_EQ(multiply_tiles(id_, operands), got.d);
}

// Models that are wrong by a little: some mode shows each, and how often is printed.
TEST_P(MatrixInstructions, RefuseModelsThatAreWrongByALittle) {
  const auto refused = [&](const char* what, const Accumulator& wrong) {
    double most = 0;
    std::size_t shows = 0;
    for (std::size_t mode = 0; mode < kMatrixModeNames.size(); ++mode) {
      const MatrixComparison found = compare_tiles(id_, {MatrixMode(mode), 0, tiles_of(uint64_t{1} << 22)}, wrong);
      const double share = double(found.mismatches) / double(found.outputs);
      if (share > most) most = share, shows = mode;
    }
    std::printf("%s: %.4f%% of outputs differ in mode %s\n", what, 100 * most,
                std::string(kMatrixModeNames[shows]).c_str());
    return most > 0;
  };
  Accumulator fewer = model(), more = model(), half = model(), nearest = model();
  --fewer.kept_bits, ++more.kept_bits;
  half.block /= 2;
  nearest.sum.rounding = Rounding::nearest_even;
  EXPECT_TRUE(refused("a bit fewer", fewer));
  EXPECT_TRUE(refused("a bit more", more));
  EXPECT_TRUE(is_.k <= half.block || refused("half the block", half));
  EXPECT_TRUE(model().sum.rounding == Rounding::nearest_even || refused("nearest even", nearest));
}

INSTANTIATE_TEST_SUITE_P(Each, MatrixInstructions, testing::Range<std::size_t>(0, kMatrixInstructions.size()),
                         [](const auto& instance) { return name_of(kMatrixInstructions[instance.param].ptx); });

}  // namespace
}  // namespace halfulp

// Models that are wrong in one way each, which what an H200 answered must refuse: a test that they passed would be
// none. That a bit more or less, half a block and FP8's other order are refused is in dot_product_test.cpp.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "emulation/matmul/dot_product.h"
#include "emulation/recordings/matrix_recording.h"
#include "formats/catalog.h"

namespace halfulp {
namespace {

enum class Wrong {
  nothing,
  floors,             // cut toward minus infinity, as a shift of two's complement would
  normalises,         // products of two significands of which one is 2 or more have an exponent more
  adds_c_last,        // c is added to the rounded sum of the products
  rounds_to_nearest,  // the sum is
  keeps_minus_zero,   // a sum of zero has c's sign
};

// The arithmetic of dot_product.h, term by term, with something wrong.
class WrongSum {
 public:
  WrongSum(const Accumulator& row, Wrong wrong) : row_(row), wrong_(wrong) {
    if (wrong == Wrong::rounds_to_nearest) row_.sum.rounding = Rounding::nearest_even;
  }

  uint32_t dot_product(const DotOperand& a, const DotOperand& b, int k, uint32_t c) const {
    for (int first = 0; first < k; first += row_.block) c = block(a, b, first, std::min(k, first + row_.block), c);
    return c;
  }

 private:
  Operand term(Operand product) const {
    if (wrong_ == Wrong::normalises && product.kind == Unpacked::Kind::finite &&
        product.significand >> product.fraction_bits >= 2)
      ++product.exponent, ++product.fraction_bits;
    return product;
  }

  int64_t cut(const Operand& x, int largest) const {
    const int shift = row_.kept_bits + x.exponent - x.fraction_bits - largest;
    const __int128 value = x.negative ? -__int128(x.significand) : __int128(x.significand);
    if (shift >= 0) return int64_t(value << shift);
    const __int128 unit = __int128(1) << std::min(-shift, 100);
    const __int128 floored = value >= 0 ? value / unit : -((-value + unit - 1) / unit);
    return int64_t(wrong_ == Wrong::floors ? floored : value / unit);
  }

  uint32_t block(const DotOperand& a, const DotOperand& b, int first, int end, uint32_t c) const {
    std::vector<Operand> terms;
    for (int k = first; k < end; ++k) terms.push_back(term(detail::product_term(row_, a, b, k)));
    if (wrong_ != Wrong::adds_c_last) terms.push_back(operand_of(row_.sum.format, c));
    BlockSum specials(row_.kept_bits, row_.least_exponent);
    int largest = row_.least_exponent;
    for (const Operand& x : terms) {
      specials.see(x);
      if (x.kind == Unpacked::Kind::finite && x.significand != 0) largest = std::max(largest, x.exponent);
    }
    Unpacked total = specials.total();
    if (total.kind == Unpacked::Kind::finite) {
      int64_t sum = 0;
      for (const Operand& x : terms) sum += cut(x, largest);
      total = {uint64_t(sum < 0 ? -sum : sum), largest - row_.kept_bits, sum < 0, Unpacked::Kind::finite};
    }
    const uint32_t rounded = round_sum(row_.sum, total);
    if (wrong_ == Wrong::adds_c_last) return detail::add_sums(row_.sum, rounded, c);
    return wrong_ == Wrong::keeps_minus_zero && rounded == 0 ? c & row_.sum.format.sign_mask() : rounded;
  }

  Accumulator row_;
  Wrong wrong_;
};

struct RecordedFile {
  std::string path;
  MatrixRecording recording;
  const Accumulator* row;
};

// Those of the datapaths themselves: FP8 that goes as F16 is made of others.
const std::vector<RecordedFile>& files() {
  static const std::vector<RecordedFile> all = [] {
    std::vector<RecordedFile> files;
    for (const auto& entry : std::filesystem::directory_iterator(HALFULP_TEST_DATA "/h200/mma")) {
      if (entry.path().extension() != ".safetensors") continue;
      RecordedFile file{entry.path().string(), read_matrix_recording(entry.path().string()), nullptr};
      file.row = &kAccumulators[std::size_t(accumulator_of(file.recording, file.path))];
      if (file.row->order == SumOrder::ascending) files.push_back(std::move(file));
    }
    return files;
  }();
  return all;
}

// Mismatches by class of inputs.
std::map<std::string, std::size_t> mismatches(const RecordedFile& file, Wrong wrong) {
  const MatrixForm form = matrix_form(file.recording.form);
  const Format a = kFormats[std::size_t(find_format(form.a))].format;
  const Format b = kFormats[std::size_t(find_format(form.b))].format;
  const WrongSum model(*file.row, wrong);
  const ScaledTiles& tiles = file.recording.tiles;
  const auto n = std::size_t(form.n), m = std::size_t(form.m), k = std::size_t(form.k);
  std::map<std::string, std::size_t> found;
  for (std::size_t at = 0; at < tiles.d.size(); ++at) {
    const std::size_t row = at / n, tile = row / m;
    const DotOperand of_a{a, &tiles.a[row * k]}, of_b{b, &tiles.b[(tile * n + at % n) * k]};
    if (model.dot_product(of_a, of_b, form.k, tiles.c[at]) != tiles.d[at])
      ++found[file.recording.kinds[file.recording.tile_kinds[tile]]];
  }
  return found;
}

// How many files refuse a model, and which class does so most often.
std::size_t refusals(Wrong wrong, const char* what) {
  std::size_t refused = 0;
  std::map<std::string, std::size_t> classes;
  for (const RecordedFile& file : files()) {
    const std::map<std::string, std::size_t> found = mismatches(file, wrong);
    refused += !found.empty();
    for (const auto& [kind, count] : found) classes[kind] += count;
  }
  std::printf("%s: refused by %zu of %zu files:", what, refused, files().size());
  for (const auto& [kind, count] : classes) std::printf(" %s %zu", kind.c_str(), count);
  std::printf("\n");
  return refused;
}

std::size_t files_into_f16() {
  return std::size_t(std::ranges::count_if(
      files(), [](const RecordedFile& file) { return file.row->sum.rounding == Rounding::nearest_even; }));
}

TEST(WrongModels, AreRightWhereNothingIsWrong) { EXPECT_EQ(refusals(Wrong::nothing, "nothing wrong"), 0u); }
TEST(WrongModels, ThatFloorAreRefused) { EXPECT_EQ(refusals(Wrong::floors, "floor"), files().size()); }
// Rounding to F16 hides it in the tiles that there are.
TEST(WrongModels, ThatNormaliseProductsAreRefused) {
  EXPECT_EQ(refusals(Wrong::normalises, "normalised products"), files().size() - files_into_f16());
}
TEST(WrongModels, ThatAddTheAccumulatorLastAreRefused) {
  EXPECT_EQ(refusals(Wrong::adds_c_last, "c added last"), files().size());
}
TEST(WrongModels, ThatRoundSumsToNearestAreRefused) {
  EXPECT_EQ(refusals(Wrong::rounds_to_nearest, "nearest even"), files().size() - files_into_f16());
}
TEST(WrongModels, ThatKeepTheSignOfZeroAreRefused) { EXPECT_GT(refusals(Wrong::keeps_minus_zero, "-0 kept"), 0u); }

}  // namespace
}  // namespace halfulp

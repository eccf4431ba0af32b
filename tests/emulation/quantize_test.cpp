// quantize() and dequantize() against their definitions, one element after the other, for every row of the catalog.

#include "emulation/blocks/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulation/blocks/recipe_fields.h"
#include "emulation/blocks/recipes.h"
#include "tests/emulation/hard_inputs.h"
#include "tests/emulation/quantized.h"

namespace halfulp {
namespace {

constexpr Randomness kRandom{.seed = 7, .stream = 11, .scale_stream = 13, .first_element = 0, .first_block = 0};

// Rows of 128 or more, so that every recipe takes them; as many rows as its blocks have.
Matrix shape_for(const Recipe& recipe, std::size_t count) {
  const uint64_t rows = recipe.block.cols == Extent::kWhole ? count / 128 : uint64_t(recipe.block.rows);
  return {.rows = rows, .cols = count / rows};
}

Quantized by_definition(const Recipe& recipe, const Matrix& shape, std::span<const float> x,
                        const Randomness& random = kRandom) {
  Quantized q{.recipe = &recipe,
              .shape = shape,
              .tensor = tensor_scale_of(recipe, x),
              .codes = std::vector<std::byte>(code_bytes(recipe, shape)),
              .scales = std::vector<std::byte>(scale_bytes(recipe, shape))};
  quantize_elementwise(recipe, q.tensor, shape, x, random, q.codes, q.scales);
  return q;
}

// Where two results part, or nothing.
std::string difference(const Quantized& got, const Quantized& expected, std::span<const float> x) {
  const Matrix grid = scale_grid(*got.recipe, got.shape);
  for (std::size_t i = 0; i < grid.elements(); ++i)
    if (got.scale(i) != expected.scale(i))
      return "scale " + std::to_string(i) + ": " + std::to_string(got.scale(i)) + ", by definition " +
             std::to_string(expected.scale(i));
  for (std::size_t i = 0; i < x.size(); ++i)
    if (got.code(i) != expected.code(i))
      return "element " + std::to_string(i) + " = " + std::to_string(x[i]) + ": " + std::to_string(got.code(i)) +
             ", by definition " + std::to_string(expected.code(i));
  return "";
}

void expect_definition(const Recipe& recipe, const Matrix& shape, std::span<const float> x,
                       const Randomness& random = kRandom) {
  ASSERT_EQ(contradiction(recipe), "");
  ASSERT_EQ(refusal(recipe, shape), "");
  const TensorScale tensor = tensor_scale_of(recipe, x);
  EXPECT_EQ(difference(quantized(recipe, tensor, shape, x, random), by_definition(recipe, shape, x, random), x), "")
      << recipe.name << ", " << shape.rows << " x " << shape.cols;
}

void expect_definition(const Recipe& recipe, std::span<const float> x) {
  expect_definition(recipe, shape_for(recipe, x.size()), x);
}

class EveryRecipe : public testing::TestWithParam<std::size_t> {
 protected:
  const Recipe& recipe_ = kRecipes[GetParam()];
};

INSTANTIATE_TEST_SUITE_P(Catalog, EveryRecipe, testing::Range<std::size_t>(0, kRecipes.size()),
                         [](const auto& instance) { return test_name(kRecipes[instance.param].name); });

TEST_P(EveryRecipe, QuantizesNormalsByDefinition) { expect_definition(recipe_, uneven_normals(1 << 16)); }

TEST_P(EveryRecipe, QuantizesAnyBitsByDefinition) { expect_definition(recipe_, any_bits(1 << 14)); }

TEST_P(EveryRecipe, QuantizesAllBf16ByDefinition) { expect_definition(recipe_, all_bf16()); }

// Tensors of zeros and of ordinary size: the largest magnitude of these elements is Inf or NaN.
TEST_P(EveryRecipe, QuantizesSpecialBlocksByDefinition) {
  const std::vector<float> x = special_blocks();
  const Matrix shape = shape_for(recipe_, x.size());
  for (const float amax : {0.f, 6.f}) {
    Quantized expected = by_definition(recipe_, shape, x);
    expected.tensor = tensor_scale(recipe_, amax);
    quantize_elementwise(recipe_, expected.tensor, shape, x, kRandom, expected.codes, expected.scales);
    EXPECT_EQ(difference(quantized(recipe_, expected.tensor, shape, x, kRandom), expected, x), "") << amax;
  }
}

TEST_P(EveryRecipe, QuantizesTiesByDefinition) { expect_definition(recipe_, ties(1 << 13)); }

TEST_P(EveryRecipe, RoundsInEveryModeByDefinition) {
  for (const RoundingEntry& mode : kRoundings) {
    Recipe recipe = recipe_;
    recipe.policy.rounding = mode.rounding;
    SCOPED_TRACE(mode.name);
    expect_definition(recipe, uneven_normals(1 << 11));
    expect_definition(recipe, ties(1 << 11));
  }
}

Recipe with_te_words(const Recipe& row) {
  Recipe recipe = row;
  recipe.policy.rounding = Rounding::stochastic;
  recipe.random = RandomSource::te;
  return recipe;
}

TEST_P(EveryRecipe, TakesAWordForFourElementsByDefinition) {
  if (!has_scale(recipe_)) GTEST_SKIP() << "SKIPPED: there are no blocks";
  expect_definition(with_te_words(recipe_), uneven_normals(1 << 13));
}

TEST_P(EveryRecipe, TakesGivenWordsByDefinition) {
  if (!has_scale(recipe_)) GTEST_SKIP() << "SKIPPED: there are no blocks";
  std::vector<uint32_t> words(1 << 11);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = random_word(8, 0, i);
  const std::vector<float> x = uneven_normals(1 << 13);
  const Recipe recipe = with_te_words(recipe_);
  expect_definition(recipe, shape_for(recipe, x.size()), x, {.words = words});
}

// Blocks at the ends of rows, and of the matrix, that are not whole.
TEST_P(EveryRecipe, QuantizesPartialBlocksByDefinition) {
  if (has_correction(recipe_)) GTEST_SKIP() << "SKIPPED: groups of blocks are whole";
  Recipe recipe = recipe_;
  recipe.edge = Edge::partial;
  for (const Matrix& shape : {Matrix{1, 2}, Matrix{3, 34}, Matrix{17, 130}, Matrix{129, 62}, Matrix{1, 5000}})
    expect_definition(recipe, shape, uneven_normals(shape.elements()));
}

TEST_P(EveryRecipe, TakesAWordForFourElementsOfPartialBlocksByDefinition) {
  if (has_correction(recipe_) || !has_scale(recipe_)) GTEST_SKIP() << "SKIPPED: there are no partial blocks";
  Recipe recipe = with_te_words(recipe_);
  recipe.edge = Edge::partial;
  for (const Matrix& shape : {Matrix{3, 36}, Matrix{17, 132}, Matrix{129, 60}})
    expect_definition(recipe, shape, uneven_normals(shape.elements()));
}

TEST(Refusal, IsOfRowsThatAreNotWholeFoursWhereFourElementsTakeAWord) {
  Recipe recipe = with_te_words(recipe_named("mxfp8/te"));
  recipe.edge = Edge::partial;
  EXPECT_NE(refusal(recipe, Matrix{3, 34}).find("rows of 34 are not whole fours"), std::string::npos);
  EXPECT_EQ(refusal(recipe, Matrix{3, 36}), "");
}

// Rows that are no multiple of anything, which 4-bit codes do not have.
TEST_P(EveryRecipe, QuantizesOddRowsByDefinition) {
  if (recipe_.element.entry().storage_bits == 4) GTEST_SKIP() << "SKIPPED: rows of 4-bit codes are whole bytes";
  Recipe recipe = recipe_;
  recipe.edge = Edge::partial;
  for (const Matrix& shape : {Matrix{1, 1}, Matrix{7, 33}, Matrix{131, 127}})
    expect_definition(recipe, shape, uneven_normals(shape.elements()));
}

TEST_P(EveryRecipe, QuantizesNothing) {
  for (const Matrix& shape : {Matrix{0, 128}, Matrix{128, 0}, Matrix{0, 0}}) {
    const Quantized q = quantized(recipe_, tensor_scale(recipe_, 0), shape, {});
    EXPECT_TRUE(q.codes.empty() && q.scales.empty() && q.values().empty());
  }
}

// The words that follow a part's first are those of the part.
TEST_P(EveryRecipe, DividesGivenWords) {
  if (!has_scale(recipe_)) GTEST_SKIP() << "SKIPPED: there are no blocks";
  const Recipe recipe = with_te_words(recipe_);
  std::vector<uint32_t> words(1 << 11);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = random_word(8, 0, i);
  const Matrix shape = shape_for(recipe, 1 << 13), half{.rows = shape.rows, .cols = shape.cols / 2};
  if (shape.rows != 1) GTEST_SKIP() << "SKIPPED: rows stay whole";
  const std::vector<float> x = uneven_normals(1 << 13);
  const TensorScale tensor = tensor_scale_of(recipe, x);
  const std::vector<std::byte> whole = quantized(recipe, tensor, shape, x, {.words = words}).codes;
  const std::vector<std::byte> second =
      quantized(recipe, tensor, half, std::span(x).subspan(1 << 12), {.words = std::span(words).subspan(1 << 10)})
          .codes;
  EXPECT_TRUE(std::ranges::equal(std::span(whole).subspan(whole.size() / 2), second));
}

// Columns from `first` on of a matrix of one row, or rows from `first` on.
struct PartOf {
  Matrix shape;
  uint64_t first;  // element
};

// A part quantized by itself, with its place in the whole, has the bytes that the whole has there.
void expect_part(const Recipe& recipe, const Quantized& whole, std::span<const float> x, const PartOf& part) {
  const Matrix before_rows{.rows = part.first / whole.shape.cols, .cols = whole.shape.cols};
  const Matrix before_cols{.rows = 1, .cols = part.first % whole.shape.cols};
  Randomness random = kRandom;
  random.first_element = part.first;
  random.first_block =
      before_rows.rows * scale_grid(recipe, whole.shape).cols + scale_grid(recipe, before_cols).elements();
  const Quantized q = quantized(recipe, whole.tensor, part.shape, x.subspan(part.first, part.shape.elements()), random);
  const std::size_t codes = code_bytes(recipe, before_rows) + code_bytes(recipe, before_cols);
  const std::size_t scales = scale_bytes(recipe, before_rows) + scale_bytes(recipe, before_cols);
  EXPECT_TRUE(std::ranges::equal(q.codes, std::span(whole.codes).subspan(codes, q.codes.size())))
      << "codes from element " << part.first;
  EXPECT_TRUE(std::ranges::equal(q.scales, std::span(whole.scales).subspan(scales, q.scales.size())))
      << "scales from element " << part.first;
}

// Divides rows at multiples of a block's rows.
void expect_row_parts(const Recipe& recipe, const Matrix& shape, std::span<const float> x) {
  const Quantized whole = quantized(recipe, tensor_scale_of(recipe, x), shape, x, kRandom);
  const uint64_t height = uint64_t(recipe.block.rows);
  for (uint64_t row = 0, rows = height; row < shape.rows; row += rows, rows += height)
    expect_part(recipe, whole, x, {{.rows = std::min(rows, shape.rows - row), .cols = shape.cols}, row * shape.cols});
}

// Divides one row at multiples of a block, or of a group.
void expect_col_parts(const Recipe& recipe, const Matrix& shape, std::span<const float> x) {
  const Quantized whole = quantized(recipe, tensor_scale_of(recipe, x), shape, x, kRandom);
  const uint64_t unit = std::max({block_cols(recipe, shape), uint64_t(recipe.correction.group), uint64_t{4}});
  for (uint64_t col = 0, cols = unit; col < shape.cols; col += cols, cols = 3 * cols)
    expect_part(recipe, whole, x, {{.rows = 1, .cols = std::min(cols, shape.cols - col)}, col});
}

// As it is, and with random bits of both kinds.
std::vector<Recipe> with_random_bits(const Recipe& row) {
  std::vector<Recipe> recipes(2, row);
  recipes[1].policy.rounding = Rounding::stochastic;
  if (has_scale(row)) recipes.push_back(with_te_words(row));
  return recipes;
}

TEST_P(EveryRecipe, DoesNotDependOnHowRowsAreDivided) {
  for (const Recipe& recipe : with_random_bits(recipe_)) {
    const Matrix shape{.rows = uint64_t(recipe.block.rows) * 10, .cols = recipe.block.rows > 16 ? 128u : 384u};
    expect_row_parts(recipe, shape, uneven_normals(shape.elements()));
  }
}

TEST_P(EveryRecipe, DoesNotDependOnHowOneRowIsDivided) {
  if (recipe_.block.rows > 1 || recipe_.block.cols == Extent::kWhole) GTEST_SKIP() << "SKIPPED: rows stay whole";
  for (const Recipe& recipe : with_random_bits(recipe_)) {
    const Matrix shape{.rows = 1, .cols = 128 * 80};
    expect_col_parts(recipe, shape, uneven_normals(shape.elements()));
  }
}

// A block's random bits do not depend on its values.
TEST_P(EveryRecipe, DoesNotDependOnTheSeedUnlessRandom) {
  if (is_random(recipe_)) GTEST_SKIP() << "SKIPPED: random";
  const std::vector<float> x = uneven_normals(1 << 13);
  const Matrix shape = shape_for(recipe_, x.size());
  const TensorScale tensor = tensor_scale_of(recipe_, x);
  EXPECT_EQ(quantized(recipe_, tensor, shape, x, {.seed = 1}).codes,
            quantized(recipe_, tensor, shape, x, {.seed = 2}).codes);
}

// A recipe of single numbers takes numbers that are no floats.
template <class Source>
void expect_numbers_by_definition(const std::vector<Source>& x) {
  for (const Recipe& recipe : kRecipes) {
    if (has_scale(recipe) || has_outer_scale(recipe)) continue;
    for (const Recipe& r : with_random_bits(recipe)) {
      Quantized q = quantized(r, {}, {.rows = 1, .cols = 0}, {});
      q.codes.resize(code_bytes(r, {.rows = 1, .cols = x.size()}));
      const Randomness random{.seed = 3, .stream = 5, .first_element = 17};
      quantize<Source>(r, {}, {.rows = 1, .cols = x.size()}, x, random, q.codes, {});
      for (std::size_t i = 0; i < x.size(); ++i) {
        const RandomBits bits{.word = random_word(3, 5, 17 + i), .count = 32};
        ASSERT_EQ(q.code(i), encode(r.element.entry().format, r.policy, x[i], bits)) << r.name << ' ' << x[i];
      }
    }
  }
}

TEST(Numbers, OfFp64AreRoundedOnce) {
  std::vector<double> x;
  for (uint64_t i = 0; i < 1000; ++i) x.push_back(bit_cast<double>(random_bits64(1, 0, i)));
  for (uint64_t i = 0; i < 1000; ++i) x.push_back(normal(1, 1, i));
  expect_numbers_by_definition(x);
}

TEST(Numbers, ThatAreIntegersAreRoundedOnce) {
  std::vector<int64_t> x{INT64_MIN, INT64_MAX, 0, -1, (int64_t{1} << 24) + (1 << 16) + 1};
  for (uint64_t i = 0; i < 1000; ++i) x.push_back(int64_t(random_bits64(1, 2, i)) >> i % 64);
  expect_numbers_by_definition(x);
  expect_numbers_by_definition(std::vector<uint64_t>{0, 1, UINT64_MAX, uint64_t{1} << 63});
}

float larger(float amax, std::span<const float> x, AmaxNan nan) {
  for (const float value : x) amax = larger_magnitude(nan, amax, value);
  return amax;
}

TEST(LargestMagnitude, IsTheSameInEveryOrderAndDivision) {
  std::vector<float> x = special_blocks();
  for (const AmaxNan nan : {AmaxNan::ignored, AmaxNan::propagates}) {
    Recipe recipe = recipe_named("fp8/te");
    recipe.amax_nan = nan;
    const float whole = larger(0, x, nan);
    EXPECT_TRUE(std::isnan(whole) == (nan == AmaxNan::propagates));
    for (const std::size_t cut : {0u, 1u, 17u, 4097u}) {
      const float begin = largest_magnitude(recipe, 0, std::span(x).first(cut));
      const float all = largest_magnitude(recipe, begin, std::span(x).subspan(cut));
      EXPECT_TRUE(all == whole || (std::isnan(all) && std::isnan(whole))) << cut;
    }
    std::ranges::reverse(x);
  }
}

TEST(LargestMagnitude, OfNothingIsZero) { EXPECT_EQ(largest_magnitude(recipe_named("nvfp4/te"), 0, {}), 0); }

TEST(Refusal, NamesTheTypeThatABlockRecipeDoesNotTake) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16})
    EXPECT_EQ(refusal(recipe_named("nvfp4/te"), dtype), "");
  EXPECT_NE(refusal(recipe_named("nvfp4/te"), Dtype::f64).find("nvfp4/te takes F32, F16 or BF16, not F64"),
            std::string::npos);
  EXPECT_NE(refusal(recipe_named("fp8/te"), Dtype::i32).find("fp8/te takes F32, F16 or BF16, not I32"),
            std::string::npos);
  EXPECT_EQ(refusal(recipe_named("bf16"), Dtype::f64), "");
}

struct RefusedShape {
  const Recipe* recipe;
  Matrix shape;
  std::string_view reason;
};

TEST(Refusal, NamesTheRowsThatAreNotWholeBlocks) {
  for (const auto& [recipe, shape, reason] : {
           RefusedShape{&recipe_named("nvfp4/te"), {4, 24}, "rows of 24 are not a multiple of 16"},
           RefusedShape{&recipe_named("nvfp4/te-2d"), {24, 16}, "24 rows are not a multiple of 16"},
           RefusedShape{&recipe_named("nvfp4/ms-eden"), {1, 64}, "rows of 64 are not a multiple of 128"},
       })
    EXPECT_NE(refusal(*recipe, shape).find(reason), std::string::npos) << refusal(*recipe, shape);
}

TEST(Refusal, NamesRowsOfHalfABytesMultiple) {
  Recipe recipe = recipe_named("nvfp4/te");
  recipe.edge = Edge::partial;
  EXPECT_EQ(refusal(recipe, Matrix{3, 15}), "rows of 15 codes of 4 bits are not whole bytes");
}

bool same(float p, float q) {
  return bit_cast<uint32_t>(p) == bit_cast<uint32_t>(q) || (std::isnan(p) && std::isnan(q));
}

void expect_values_by_definition(const Quantized& q) {
  const std::vector<float> y = q.values();
  const uint64_t cols = scale_grid(*q.recipe, q.shape).cols;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t block =
        i / q.shape.cols / uint64_t(q.recipe->block.rows) * cols + i % q.shape.cols / block_cols(*q.recipe, q.shape);
    const float scale = has_scale(*q.recipe) ? q.scale_value(block) : 1;
    const float expected = decode_element(*q.recipe, q.tensor, scale, q.code(i));
    ASSERT_TRUE(same(y[i], expected)) << q.recipe->name << " element " << i << ": " << y[i] << ", by definition "
                                      << expected;
  }
}

TEST_P(EveryRecipe, DequantizesByDefinition) {
  const std::vector<float> x = uneven_normals(1 << 14);
  expect_values_by_definition(by_definition(recipe_, shape_for(recipe_, x.size()), x));
}

// Bytes with the bits that no code has cleared.
void fill_with_codes(std::vector<std::byte>& bytes, const FormatEntry& format, uint64_t stream) {
  const uint32_t mask = format.format.code_mask() << format.storage_shift;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const uint32_t kept = format.storage_bits == 4 ? 0xff : mask >> (i * 8 % uint32_t(format.storage_bits));
    bytes[i] = std::byte(random_word(9, stream, i) & kept & 0xff);
  }
}

TEST_P(EveryRecipe, DequantizesAnyCodesByDefinition) {
  const Matrix shape = shape_for(recipe_, 1 << 14);
  for (const float amax : {6.f, 1e-36f}) {
    Quantized q = quantized(recipe_, tensor_scale(recipe_, amax), shape, std::vector<float>(shape.elements()));
    fill_with_codes(q.codes, recipe_.element.entry(), 0);
    if (has_scale(recipe_)) fill_with_codes(q.scales, recipe_.scale.entry(), 1);
    expect_values_by_definition(q);
  }
}

TEST_P(EveryRecipe, DequantizesPartialBlocksByDefinition) {
  if (has_correction(recipe_)) GTEST_SKIP() << "SKIPPED: groups of blocks are whole";
  Recipe recipe = recipe_;
  recipe.edge = Edge::partial;
  for (const Matrix& shape : {Matrix{1, 2}, Matrix{3, 34}, Matrix{17, 130}, Matrix{129, 62}})
    expect_values_by_definition(by_definition(recipe, shape, uneven_normals(shape.elements())));
}

// Formulas that no row has, in recipes that do not contradict themselves.
struct Composed {
  const Recipe* like;
  std::vector<std::pair<std::string_view, std::string_view>> fields;
};

const std::vector<Composed> kComposed{
    {&recipe_named("nvfp4/te"), {{"q", "c * (c < 0 ? 2 * s : s)"}}},
    {&recipe_named("nvfp4/te"), {{"q", "s * c"}}},
    {&recipe_named("nvfp4/te"), {{"q", "c"}}},
    {&recipe_named("nvfp4/te"), {{"q", "c + s"}}},
    {&recipe_named("nvfp4/te"), {{"y", "x"}}},
    {&recipe_named("nvfp4/te"), {{"y", "m * x"}}},
    {&recipe_named("nvfp4/te"), {{"y", "x * S_enc"}}},
    {&recipe_named("nvfp4/te"), {{"m", "d"}, {"y", "x / m"}}},
    {&recipe_named("nvfp4/te"), {{"m", "squares == 0 ? 0 : sum / squares"}}},
    {&recipe_named("nvfp4/te"), {{"d", "squares / 16"}}},
    {&recipe_named("nvfp4/te"), {{"block", "1x12"}}},
    {&recipe_named("nvfp4/te"), {{"block", "2x20"}}},
    {&recipe_named("nvfp4/te"), {{"block", "1x8"}, {"rounding", "stochastic"}}},
    {&recipe_named("nvfp4/te"), {{"block", "4x8"}, {"d", "squares / 32"}}},
    {&recipe_named("nvfp4/te"), {{"scale", "f32"}}},
    {&recipe_named("nvfp4/te-4over6-mae"), {{"block", "4x6"}}},
    {&recipe_named("nvfp4/te-4over6-mae"), {{"d2", "squares / 16"}}},
    {&recipe_named("nvfp4/te-4over6-mae"), {{"rounding", "stochastic"}}},
    {&recipe_named("nvfp4/te-4over6-mae"), {{"scale", "f32"}}},
    {&recipe_named("nvfp4/te-4over6-mae"), {{"correction-group", "32"}, {"s2", "s * v"}}},
    {&recipe_named("nvfp4/ms-eden"), {{"correction-group", "16"}}},
    {&recipe_named("nvfp4/ms-eden"), {{"correction-group", "512"}}},
    {&recipe_named("nvfp4/ms-eden"), {{"s2-rounding", "nearest-even"}}},
    {&recipe_named("nvfp4/ms-eden"), {{"rounding", "stochastic"}, {"random", "te"}}},
    {&recipe_named("mxfp8/te"), {{"scale", "f32"}, {"block", "3x5"}}},
    {&recipe_named("mxfp8/te"), {{"element", "bf16"}}},
    {&recipe_named("mxfp8/te"), {{"element", "f32"}}},
    {&recipe_named("mxfp8/te"), {{"block", "1xrow"}}},
    {&recipe_named("mxfp8/te"), {{"zero", "positive"}, {"nan", "quiet"}, {"overflow", "to-special"}}},
    {&recipe_named("fp8/te"), {{"y", "x * S_enc + A"}}},
    {&recipe_named("bf16"), {{"y", "x * 3"}, {"q", "c / 3"}}},
    {&recipe_named("bf16"), {{"S_dec", "A"}, {"y", "x / S_dec"}, {"q", "c * S_dec"}}},
};

class ComposedRecipe : public testing::TestWithParam<Composed> {
 protected:
  ComposedRecipe() : recipe_(*GetParam().like) {
    for (const auto& [name, text] : GetParam().fields) set_field(recipe_, name, text);
    recipe_.edge = has_correction(recipe_) ? Edge::refused : Edge::partial;
  }
  Recipe recipe_;
};

TEST_P(ComposedRecipe, QuantizesByDefinition) {
  for (const Matrix& shape : {Matrix{12, 1024}, Matrix{1, 10240}})
    expect_definition(recipe_, shape, uneven_normals(shape.elements()));
}

TEST_P(ComposedRecipe, DequantizesByDefinition) {
  for (const Matrix& shape : {Matrix{12, 512}, Matrix{1, 10240}})
    expect_values_by_definition(by_definition(recipe_, shape, uneven_normals(shape.elements())));
}

INSTANTIATE_TEST_SUITE_P(Fields, ComposedRecipe, testing::ValuesIn(kComposed));

}  // namespace
}  // namespace halfulp

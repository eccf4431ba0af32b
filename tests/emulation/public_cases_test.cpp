// Public bug reports of this field whose subject is a recipe's scale or its codes: inputs and right answers are read
// from tests/golden/public_reports.json, by id. A report's rule that is no named recipe is composed from one.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulation/analysis/error.h"
#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipe_fields.h"
#include "emulation/blocks/recipes.h"
#include "emulation/elements.h"
#include "lib/json.h"
#include "lib/random_values.h"
#include "tests/emulation/quantized.h"
#include "tests/emulation/reports.h"

namespace halfulp {
namespace {

using reports::expected;
using reports::input;

uint32_t number_of(const Json& text) { return text.is_number() ? text.get<uint32_t>() : reports::hexadecimal(text); }

float float_of_bits(const Json& text) { return bit_cast<float>(number_of(text)); }

std::vector<float> floats_of(const Json& values) {
  std::vector<float> x;
  for (const Json& value : values) x.push_back(float(to_double(value)));
  return x;
}

float tensor_amax_of(std::string_view id) { return input(id).at("tensor_amax").get<float>(); }

// A recipe with other fields.
Recipe composed(const Recipe& like, std::vector<std::pair<std::string_view, std::string_view>> fields) {
  Recipe recipe = like;
  for (const auto& [name, text] : fields) set_field(recipe, name, text);
  EXPECT_EQ(contradiction(recipe), "");
  return recipe;
}

void expect_first(const Quantized& q, const Json& answer) {
  EXPECT_EQ(q.scale(0), number_of(answer.at("scale")));
  EXPECT_EQ(q.code(0), number_of(answer.at("code")));
  EXPECT_EQ(q.values()[0], answer.at("dequant").get<float>());
}

void expect_codes(const Quantized& q, const Json& answer) {
  for (std::size_t i = 0; i < answer.size(); ++i) EXPECT_EQ(q.code(i), number_of(answer.at(i))) << i;
}

bool all_zero(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float y) { return y == 0; });
}

// The scale bytes of blocks with the report's largest elements.
void expect_scales(const Recipe& recipe, const Json& largest, const Json& answer) {
  for (std::size_t i = 0; i < largest.size(); ++i)
    EXPECT_EQ(quantized_block(recipe, {largest.at(i).get<float>()}, 0).scale(0), answer.at(i).get<uint32_t>())
        << recipe.name << ' ' << largest.at(i);
}

TEST(Report, B12_FloorOfMxfp4) {
  for (const Recipe* recipe : {&recipe_named("mxfp4/ocp"), &recipe_named("mxfp4/torchao-floor")})
    expect_scales(*recipe, input("B12").at("amax"), expected("B12").at("floor"));
}

TEST(Report, B12_RoundingUpOfMxfp4) {
  for (const Recipe* recipe : {&recipe_named("mxfp4/round-up"), &recipe_named("mxfp4/torchao-rceil"),
                               &recipe_named("mxfp4/torchao-main-rceil")})
    expect_scales(*recipe, input("B12").at("amax"), expected("B12").at("rceil"));
}

TEST(Report, B12_EvenOfMxfp4) {
  for (const Recipe* recipe : {&recipe_named("mxfp4/torchao-even"), &recipe_named("mxfp4/torchao-main-even")})
    expect_scales(*recipe, input("B12").at("amax"), expected("B12").at("even"));
}

Quantized b13(const Recipe& recipe) {
  return quantized_block(recipe, {float_of_bits(input("B13").at("amax_bits"))}, 0);
}

TEST(Report, B13_FloorClampsTheLargestElement) {
  expect_first(b13(recipe_named("mxfp8/ocp-e5m2")), expected("B13").at("floor"));
}

TEST(Report, B13_RoundingUpKeepsTheLargestElement) {
  expect_first(b13(recipe_named("mxfp8/te-e5m2")), expected("B13").at("rceil"));
  expect_first(b13(recipe_named("mxfp8/torchao-main-rceil-e5m2")), expected("B13").at("rceil"));
}

TEST(Report, B13_EvenKeepsTheLargestElement) {
  expect_first(b13(recipe_named("mxfp8/torchao-main-even-e5m2")), expected("B13").at("even"));
  expect_first(b13(recipe_named("mxfp8/torchao-even-e5m2")), expected("B13").at("even"));
}

Quantized b15(const Recipe& recipe) { return quantized_block(recipe, {input("B15").at("amax").get<float>()}, 0); }

TEST(Report, B15_FloorDoesNotRoundTheLogarithm) {
  expect_first(b15(recipe_named("mxfp8/ocp")), expected("B15").at("floor"));
}

TEST(Report, B15_RoundingUpDoesNotRoundTheLogarithm) {
  expect_first(b15(recipe_named("mxfp8/te")), expected("B15").at("rceil"));
  expect_first(b15(recipe_named("mxfp8/torchao-main-rceil")), expected("B15").at("rceil"));
}

TEST(Report, B15_EvenRoundsTheMantissa) {
  expect_first(b15(recipe_named("mxfp8/torchao-main-even")), expected("B15").at("even"));
}

TEST(Report, B15_TheNearestLogarithmClipsTheLargestElement) {
  const Recipe nearest = composed(recipe_named("mxfp8/te"), {{"d", "exp2(floor(log2(a / 448) + 0.5))"}});
  expect_first(b15(nearest), expected("B15").at("nearest_log2"));
}

TEST(Report, B16_FloorTakesTheExponentOfTheFp32Amax) {
  const float amax = float_of_bits(input("B16").at("amax_bits").at(0));
  EXPECT_EQ(quantized_block(recipe_named("mxfp8/ocp"), {amax}, 0).scale(0),
            expected("B16").at("floor(0x3FFFFFFF)").get<uint32_t>());
}

TEST(Report, B16_RoundingUpTakesTheFp32Amax) {
  const float amax = float_of_bits(input("B16").at("amax_bits").at(1));
  EXPECT_EQ(quantized_block(recipe_named("mxfp8/te"), {amax}, 0).scale(0),
            expected("B16").at("rceil(448.4375)").get<uint32_t>());
}

// "2^-17".
float power_of(const std::string& text) { return std::ldexp(1.f, std::stoi(text.substr(text.find('^') + 1))); }

TEST(Report, B21_ALowerBoundIsAppliedBeforeRoundingUp) {
  ASSERT_EQ(number_of(input("B21").at("min_scale_bits")), bit_cast<uint32_t>(0x1.24924Ap-18f));
  const Recipe clamped = composed(recipe_named("mxfp8/te"), {{"d", "max(a * (1 / 448), 0x1.24924Ap-18)"}});
  const Quantized q = quantized_block(clamped, {input("B21").at("amax").get<float>()}, 0);
  EXPECT_EQ(q.scale(0), expected("B21").at("e8m0").get<uint32_t>());
  EXPECT_EQ(q.scale_value(0), power_of(expected("B21").at("scale")));
}

TEST(Report, B22_ElementsAreQuantizedWithTheRoundedScale) {
  const Quantized q =
      quantized_block(recipe_named("fp8/deepseek-128x128-ue8m0"), {input("B22").at("block_max").get<float>()}, 0);
  EXPECT_EQ(q.scale_value(0), expected("B22").at("scale").get<float>());
  EXPECT_EQ(q.code(0), number_of(expected("B22").at("code")));
  EXPECT_EQ(q.values()[0], expected("B22").at("dequant").get<float>());
}

// As many zeros as a block or group of the recipe has, in a tensor with this largest magnitude.
Quantized zeros(const Recipe& recipe, float tensor_amax) {
  const Matrix shape{.rows = uint64_t(recipe.block.rows), .cols = 128};
  return quantized(recipe, tensor_scale(recipe, tensor_amax), shape, std::vector<float>(shape.elements(), 0));
}

TEST(Report, B28_AZeroBlockIsZerosUnderEveryRecipe) {
  for (const Recipe& recipe : kRecipes) {
    const Quantized q = zeros(recipe, 1);
    EXPECT_TRUE(all_zero(q.values())) << recipe.name;
    for (std::size_t i = 0; i < q.shape.elements(); ++i)
      ASSERT_EQ(decode(recipe.element.format(), q.code(i)), 0) << recipe.name;
  }
}

// Two publishers divide by the tensor's scale without looking at it, and have NaN there as their packages do.
TEST(Report, B28_ATensorOfZerosIsZerosButWhereThePublisherDividesByZero) {
  std::vector<std::string_view> not_zeros;
  for (const Recipe& recipe : kRecipes)
    if (!all_zero(zeros(recipe, 0).values())) not_zeros.push_back(recipe.name);
  EXPECT_EQ(not_zeros, (std::vector<std::string_view>{"nvfp4/torchao", "nvfp4/modelopt"}));
}

// The scale is amax / 448, which no publisher leaves as small as this.
TEST(Report, B28_ASubnormalScaleIsNotFlushed) {
  const Recipe plain = composed(recipe_named("fp8/deepseek-1x128"), {{"d", "a * (1 / 448)"}, {"block", "1x32"}});
  const Quantized q = quantized_block(plain, floats_of(input("B28").at("block")), 0);
  EXPECT_EQ(q.scale(0), number_of(expected("B28").at("scale_bits_no_ftz")));
}

TEST(Report, B29_ANaNPropagatesToTheBlock) {
  for (const Recipe* recipe : {&recipe_named("mxfp8/ocp"), &recipe_named("mxfp8/torchao-main-rceil")}) {
    const Quantized q = quantized_block(*recipe, floats_of(input("B29").at("block")), 0);
    EXPECT_EQ(q.scale(0), number_of(expected("B29").at("propagate").at("scale"))) << recipe->name;
    EXPECT_TRUE(std::ranges::all_of(q.values(), [](float x) { return std::isnan(x); })) << recipe->name;
  }
}

TEST(Report, B29_TransformerEngineIgnoresANaN) {
  const Json& answer = expected("B29").at("ignore");
  const Quantized q = quantized_block(recipe_named("mxfp8/te"), floats_of(input("B29").at("block")), 0);
  EXPECT_EQ(q.scale(0), answer.at("scale").get<uint32_t>());
  expect_codes(q, answer.at("codes_first3"));
}

TEST(Report, B31_FloorOfMxfp4) {
  expect_scales(recipe_named("mxfp4/ocp"), input("B31").at("amax"), expected("B31").at("floor"));
}

TEST(Report, B31_RoundingUpOfMxfp4) {
  for (const Recipe* recipe : {&recipe_named("mxfp4/round-up"), &recipe_named("mxfp4/torchao-rceil"),
                               &recipe_named("mxfp4/torchao-main-rceil")})
    expect_scales(*recipe, input("B31").at("amax"), expected("B31").at("rceil"));
}

TEST(Report, B31_EvenOfMxfp4) {
  for (const Recipe* recipe : {&recipe_named("mxfp4/torchao-even"), &recipe_named("mxfp4/torchao-main-even")})
    expect_scales(*recipe, input("B31").at("amax"), expected("B31").at("even"));
}

uint32_t c08_scale(const Recipe& recipe) { return quantized_block(recipe, {}, tensor_amax_of("C08")).scale(0); }

TEST(Report, C08_AZeroBlockOfTransformerEngineHasScaleZero) {
  EXPECT_EQ(c08_scale(recipe_named("nvfp4/te")), number_of(expected("C08").at("te")));
}

TEST(Report, C08_AZeroBlockOfModeloptHasTheLargestScale) {
  EXPECT_EQ(c08_scale(recipe_named("nvfp4/modelopt-static")), number_of(expected("C08").at("modelopt_fixed")));
}

// Before there was a clamp.
TEST(Report, C08_AZeroBlockOfOldModeloptHasANaNScale) {
  const Recipe old = composed(recipe_named("nvfp4/modelopt-static"),
                              {{"d", "(a / 6 == 0 ? 1 : a / 6) * 448 / (A / 6)"}, {"scale-overflow", "to-special"}});
  EXPECT_EQ(c08_scale(old), number_of(expected("C08").at("modelopt_old")));
}

// The three rules differ in the factor of the block's elements alone.
Recipe c10_recipe(std::string_view rule) {
  if (rule == "te_ref") return recipe_named("nvfp4/te");
  return composed(recipe_named("nvfp4/te"),
                  {{"m", rule == "zero_if_scale0" ? "s == 0 ? 0 : min(1 / (s * S_dec), FLT_MAX)"
                                                  : "a == 0 ? 0 : 1 / (s * S_dec)"}});
}

class C10 : public testing::TestWithParam<std::string_view> {
 protected:
  const Recipe recipe_ = c10_recipe(GetParam());
  const Quantized q_ = quantized_block(recipe_, floats_of(input("C10").at("block")), tensor_amax_of("C10"));
};

TEST_P(C10, AScaleOfZeroHasTheRulesCodes) {
  EXPECT_EQ(q_.scale(0), number_of(expected("C10").at("scale")));
  expect_codes(q_, expected("C10").at(GetParam()));
}

TEST_P(C10, AScaleOfZeroDecodesToZeros) { EXPECT_TRUE(all_zero(q_.values())); }

INSTANTIATE_TEST_SUITE_P(Report, C10, testing::Values("te_ref", "zero_if_scale0", "zero_if_amax0"),
                         [](const auto& instance) { return std::string(instance.param); });

void expect_c11(const Recipe& recipe, std::string_view column) {
  const Quantized q = quantized_block(recipe, floats_of(input("C11").at("block")), tensor_amax_of("C11"));
  EXPECT_EQ(q.scale(0), number_of(expected("C11").at(column)));
  EXPECT_EQ(q.code_text(), "0000000000000000");
}

TEST(Report, C11_AZeroBlockHasScaleZeroAndZeroCodes) { expect_c11(recipe_named("nvfp4/te"), "te"); }

// torchao's own bound is the smallest normal number, 2^-6; the report's is the smallest number.
TEST(Report, C11_AClampedZeroBlockHasTheSmallestScaleAndZeroCodes) {
  expect_c11(composed(recipe_named("nvfp4/torchao"), {{"d", "minimum(maximum(a / 6 / S_dec, 0x1p-9), 448)"}}),
             "clamped");
}

TEST(Report, C12_SignedZeroAndNaNHaveTheCodesOfTheInstruction) {
  std::vector<float> x = floats_of(input("C12").at("values"));
  x.push_back(6);  // makes the block's scale 1
  expect_codes(quantized_block(recipe_named("nvfp4/te"), x, 2688), expected("C12").at("cuda"));
}

TEST(Report, C14_ATieTakesTheLargestToSix) {
  for (const Recipe* recipe : {&recipe_named("nvfp4/te-4over6-mse-256"), &recipe_named("nvfp4/te-4over6-mae-256")}) {
    const Quantized q = quantized_block(*recipe, floats_of(input("C14").at("block")), tensor_amax_of("C14"));
    EXPECT_EQ(q.scale(0), number_of(expected("C14").at("scale"))) << recipe->name;
    expect_codes(q, expected("C14").at("codes2"));
  }
}

// Both candidates have no error, so that this is a tie.
TEST(Report, C14_BothScalesHaveNoError) {
  const Recipe& recipe = recipe_named("nvfp4/te-4over6-mse-256");
  const std::vector<float> x = floats_of(input("C14").at("block"));
  for (const std::string_view d : {recipe.unrounded.text(), recipe.choice.alternative.text()}) {
    const Recipe one = composed(recipe, {{"d", d}, {"d2", ""}, {"v", ""}, {"loss", ""}});
    const Quantized q = quantized_block(one, x, tensor_amax_of("C14"));
    double squares = 0;
    for (std::size_t i = 0; i < x.size(); ++i) squares += double(q.values()[i] - x[i]) * double(q.values()[i] - x[i]);
    EXPECT_EQ(squares, expected("C14").at(d == recipe.unrounded.text() ? "sse6" : "sse4").get<double>());
  }
}

// A reader that knows the dtype has 672; four bytes from the same place are something else.
TEST(Report, C15_AScaleIsReadAsItsOwnType) {
  const uint32_t code = number_of(input("C15").at("global_scale_bf16"));
  float scale = 0;
  load_elements<float>(Dtype::bf16, reinterpret_cast<const std::byte*>(&code), 0, {&scale, 1});
  EXPECT_EQ(scale, expected("C15").at("correct").get<float>());
  const std::string_view wrong[] = {"misread_next_zero", "misread_next_same"};
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(bit_cast<float>(code | number_of(input("C15").at("next_bytes").at(i)) << 16),
              expected("C15").at(wrong[i]).get<float>());
}

// Four scales: rows are divided by themselves, the last block of each into four elements.
TEST(Report, D04_BlocksStartAgainInEachRow) {
  const Recipe partial = composed(recipe_named("nvfp4/torchao-one-level"), {{"edge", "partial"}});
  const Matrix shape{.rows = input("D04").at("shape").at(0), .cols = input("D04").at("shape").at(1)};
  std::vector<float> x(shape.cols, 1);
  x.resize(shape.elements(), 100);
  const Quantized q = quantized(partial, {}, shape, x);
  EXPECT_EQ(scale_grid(partial, shape).cols, expected("D04").at("blocks_per_row").get<uint64_t>());
  EXPECT_EQ(q.scales.size(), expected("D04").at("total").get<std::size_t>());
  for (std::size_t i = 16; i < 20; ++i)
    EXPECT_EQ(q.code(i), number_of(expected("D04").at("row0_tail_codes"))) << "element " << i;
}

// The two rules of the report; what they do over steps of training is not looked at here.
TEST(Report, G05_ScalesAreAmaxOver448OrThePowerOfTwoAbove) {
  const Json& amax = input("G05").at("block_amax");
  for (std::size_t i = 0; i < amax.size(); ++i) {
    const std::vector<float> x{amax.at(i).get<float>()};
    EXPECT_EQ(quantized_block(recipe_named("fp8/deepseek-1x128"), x, 0).scale_value(0),
              expected("G05").at("f32").at(i).get<float>());
    EXPECT_EQ(quantized_block(recipe_named("fp8/deepseek-1x128-ue8m0"), x, 0).scale_value(0),
              expected("G05").at("pow2").at(i).get<float>());
  }
}

double relative_rms(const Recipe& recipe, std::span<const float> x) {
  ErrorSums sums(recipe, ErrorDetail::summary);
  sums.add(TensorScale{}, {.rows = 1, .cols = x.size()}, x);
  return std::sqrt(sums.figures().at("rel_mse").get<double>());
}

// "About": one mantissa bit doubles the error of normal values, and few values are subnormal. 1.99 within 5%.
TEST(Report, G06_E5m2HasTwiceTheErrorOfE4m3) {
  std::vector<float> x(1 << 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(normal(1, 0, i));
  EXPECT_NEAR(relative_rms(recipe_named("mxfp8/te-e5m2"), x) / relative_rms(recipe_named("mxfp8/te"), x), 2, 0.1);
}

}  // namespace
}  // namespace halfulp

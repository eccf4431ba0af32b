// Public bug reports of this field whose subject is a recipe's scale or its codes: inputs and right answers are read
// from tests/golden/public_reports.json, by id. Columns for recipes that do not exist here are not looked at.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/analysis/error.h"
#include "emulation/blocks/quantize.h"
#include "formats/packing.h"
#include "lib/random_values.h"

namespace halfulp {
namespace {

const Json& report(std::string_view id) {
  static const Json kReports = Json::parse(std::ifstream(HALFULP_TEST_DATA "/public_reports.json"));
  for (const Json& r : kReports)
    if (r.at("id") == id) return r;
  throw std::invalid_argument("no report " + std::string(id));
}

const Json& expected(std::string_view id) { return report(id).at("expected"); }
const Json& input(std::string_view id) { return report(id).at("input"); }

uint32_t number_of(const Json& text) {
  return text.is_number() ? text.get<uint32_t>() : uint32_t(std::stoul(text.get<std::string>(), nullptr, 16));
}

float float_of_bits(const Json& text) { return bit_cast<float>(number_of(text)); }

std::vector<float> floats_of(const Json& values) {
  std::vector<float> x;
  for (const Json& value : values) x.push_back(float(to_double(value)));
  return x;
}

// One block through a recipe.
struct Block {
  uint32_t scale;
  std::vector<uint32_t> codes;
  std::vector<float> values;
};

Block block_of(std::string_view recipe_name, std::vector<float> x, float tensor_amax = 0) {
  const int id = find_recipe(recipe_name);
  const Recipe& recipe = kRecipes[std::size_t(id)];
  x.resize(std::size_t(recipe.block));
  std::vector<std::byte> codes(code_bytes(recipe, x.size())), scales(1);
  const TensorScale tensor = tensor_scale_of(id, tensor_amax);
  quantize<float>(id, tensor, x, codes, scales);
  Block block{.scale = uint32_t(scales[0]), .codes = {}, .values = std::vector<float>(x.size())};
  for (std::size_t i = 0; i < x.size(); ++i)
    block.codes.push_back(codes.size() < x.size() ? load_code<4>(codes.data(), i) : load_code<8>(codes.data(), i));
  dequantize(id, tensor, codes, scales, block.values);
  return block;
}

void expect_first(const Block& block, const Json& answer) {
  EXPECT_EQ(block.scale, number_of(answer.at("scale")));
  EXPECT_EQ(block.codes[0], number_of(answer.at("code")));
  EXPECT_EQ(block.values[0], answer.at("dequant").get<float>());
}

TEST(Report, B13_FloorClampsTheLargestElement) {
  expect_first(block_of("mxfp8/ocp-e5m2", {float_of_bits(input("B13").at("amax_bits"))}), expected("B13").at("floor"));
}

TEST(Report, B13_RoundingUpKeepsTheLargestElement) {
  expect_first(block_of("mxfp8/te-e5m2", {float_of_bits(input("B13").at("amax_bits"))}), expected("B13").at("rceil"));
}

TEST(Report, B15_FloorDoesNotRoundTheLogarithm) {
  expect_first(block_of("mxfp8/ocp", {input("B15").at("amax").get<float>()}), expected("B15").at("floor"));
}

TEST(Report, B15_RoundingUpDoesNotRoundTheLogarithm) {
  expect_first(block_of("mxfp8/te", {input("B15").at("amax").get<float>()}), expected("B15").at("rceil"));
}

TEST(Report, B16_FloorTakesTheExponentOfTheFp32Amax) {
  const Block block = block_of("mxfp8/ocp", {float_of_bits(input("B16").at("amax_bits").at(0))});
  EXPECT_EQ(block.scale, expected("B16").at("floor(0x3FFFFFFF)").get<uint32_t>());
}

TEST(Report, B16_RoundingUpTakesTheFp32Amax) {
  const Block block = block_of("mxfp8/te", {float_of_bits(input("B16").at("amax_bits").at(1))});
  EXPECT_EQ(block.scale, expected("B16").at("rceil(448.4375)").get<uint32_t>());
}

TEST(Report, B29_OcpPropagatesANaNToTheBlock) {
  const Block block = block_of("mxfp8/ocp", floats_of(input("B29").at("block")));
  EXPECT_EQ(block.scale, number_of(expected("B29").at("propagate").at("scale")));
  EXPECT_TRUE(std::ranges::all_of(block.values, [](float x) { return std::isnan(x); }));
}

TEST(Report, B29_TransformerEngineIgnoresANaN) {
  const Json& answer = expected("B29").at("ignore");
  const Block block = block_of("mxfp8/te", floats_of(input("B29").at("block")));
  EXPECT_EQ(block.scale, answer.at("scale").get<uint32_t>());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(block.codes[i], number_of(answer.at("codes_first3").at(i)));
}

Block c10() {
  return block_of("nvfp4/te", floats_of(input("C10").at("block")), input("C10").at("tensor_amax").get<float>());
}

TEST(Report, C10_AScaleOfZeroKeepsTheCodesOfTransformerEngine) {
  const Block block = c10();
  EXPECT_EQ(block.scale, number_of(expected("C10").at("scale")));
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(block.codes[i], number_of(expected("C10").at("te_ref").at(i))) << i;
}

TEST(Report, C10_AScaleOfZeroDecodesToZeros) {
  EXPECT_TRUE(std::ranges::all_of(c10().values, [](float x) { return x == 0; }));
}

TEST(Report, C08_AZeroBlockHasScaleZero) {
  const Block block = block_of("nvfp4/te", {}, input("C08").at("tensor_amax").get<float>());
  EXPECT_EQ(block.scale, number_of(expected("C08").at("te")));
}

TEST(Report, C11_AZeroBlockHasScaleZeroAndZeroCodes) {
  const Block block =
      block_of("nvfp4/te", floats_of(input("C11").at("block")), input("C11").at("tensor_amax").get<float>());
  EXPECT_EQ(block.scale, number_of(expected("C11").at("te")));
  EXPECT_TRUE(std::ranges::all_of(block.codes, [](uint32_t code) { return code == 0; }));
}

TEST(Report, C12_SignedZeroAndNaNHaveTheCodesOfTheInstruction) {
  std::vector<float> x = floats_of(input("C12").at("values"));
  x.push_back(6);  // makes the block's scale 1
  const Block block = block_of("nvfp4/te", x, 2688);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(block.codes[i], number_of(expected("C12").at("cuda").at(i))) << i;
}

// B28's subject is a scale that FTZ would lose; a zero block gives zeros under every recipe.
TEST(Report, B28_AZeroBlockIsZerosUnderEveryRecipe) {
  for (const Recipe& recipe : kRecipes) {
    if (!has_scale(recipe)) continue;
    const Block block = block_of(recipe.name, {});
    EXPECT_TRUE(std::ranges::all_of(block.codes, [](uint32_t code) { return code == 0; })) << recipe.name;
    EXPECT_TRUE(std::ranges::all_of(block.values, [](float x) { return x == 0; })) << recipe.name;
  }
}

double relative_rms(std::string_view recipe, std::span<const float> x) {
  ErrorSums sums(find_recipe(recipe), ErrorDetail::summary);
  sums.add(TensorScale{}, x);
  return std::sqrt(sums.figures().at("rel_mse").get<double>());
}

// "About": one mantissa bit doubles the error of normal values, and few values are subnormal. 1.99 within 5%.
TEST(Report, G06_E5m2HasTwiceTheErrorOfE4m3) {
  std::vector<float> x(1 << 16);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(normal(1, 0, i));
  EXPECT_NEAR(relative_rms("mxfp8/te-e5m2", x) / relative_rms("mxfp8/te", x), 2, 0.1);
}

}  // namespace
}  // namespace halfulp

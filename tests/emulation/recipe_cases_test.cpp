// Recipes on inputs whose answers were computed from the publishers' formulas with another program, or printed by their
// kernels' arithmetic on an H200. The id in a test's name is the case's number in the project's list of cases.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/blocks/block.h"
#include "emulation/blocks/block_sums.h"
#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipes.h"
#include "tests/emulation/quantized.h"

namespace halfulp {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

uint32_t bits(float x) { return bit_cast<uint32_t>(x); }

template <class Case>
std::string id_of(const testing::TestParamInfo<Case>& instance) {
  return std::string(instance.param.id);
}

// S_enc and S_dec of nvfp4/te by the tensor's largest magnitude, as bits.
struct TensorScaleCase {
  std::string_view id;
  float amax;
  uint32_t encode;
  uint32_t decode;
};

const std::vector<TensorScaleCase> kTensorScales{
    {"T090", 2688, 0x3f80'0000, 0x3f80'0000},   {"T091", 1, 0x4528'0000, 0x39c3'0c31},
    {"T092", 3, 0x4460'0000, 0x3a92'4925},      {"T093", 5, 0x4406'6666, 0x3af3'cf3e},
    {"T094", 0, 0x3f80'0000, 0x3f80'0000},      {"T095", kInf, 0x3f80'0000, 0x3f80'0000},
    {"T096", kNaN, 0x7f7f'ffff, 0x0020'0000},    // only a caller's own amax is NaN: the tensor's drops NaN
    {"T097", 1e-36f, 0x7f7f'ffff, 0x0020'0000},  // S_dec is subnormal
};

class NvfpTensorScale : public testing::TestWithParam<TensorScaleCase> {};

TEST_P(NvfpTensorScale, IsThePublishers) {
  const TensorScale scale = tensor_scale(recipe_named("nvfp4/te"), GetParam().amax);
  EXPECT_EQ(std::pair(bits(scale.encode), bits(scale.decode)), std::pair(GetParam().encode, GetParam().decode))
      << std::hex << bits(scale.encode) << ' ' << bits(scale.decode);
}

INSTANTIATE_TEST_SUITE_P(Spec, NvfpTensorScale, testing::ValuesIn(kTensorScales), id_of<TensorScaleCase>);

// compute_scale_from_amax: a tensor that has no amax to divide by keeps its values.
TEST(Fp8TensorScale, IsOneWhereTheAmaxIsZeroOrNotFinite) {
  for (const Recipe* recipe : {&recipe_named("fp8/te"), &recipe_named("fp8/te-e5m2")})
    for (const float amax : {0.f, kInf, kNaN}) {
      const TensorScale scale = tensor_scale(*recipe, amax);
      EXPECT_EQ(std::pair(scale.encode, scale.decode), std::pair(1.f, 1.f)) << recipe->name << ' ' << amax;
    }
}

constexpr std::array<float, 16> kX{1,           -1,          .9140625f,    .75f,          .66796875f, .58203125f,
                                   .5f,         .416015625f, .333984375f,  .291015625f,   .25f,       .208984375f,
                                   .166015625f, .125f,       .0830078125f, .041748046875f};

std::array<float, 16> filled(float x) {
  std::array<float, 16> block;
  block.fill(x);
  return block;
}

std::array<float, 16> ones_and_inf() {
  std::array<float, 16> block = filled(1);
  block.back() = kInf;
  return block;
}

constexpr float kTiny = 0x1p-20f;

// A block under a given amax of the tensor: scale byte, factor, codes from element 0 on.
struct NvfpBlockCase {
  std::string_view id;
  float tensor_amax;
  std::array<float, 16> x;
  uint32_t scale;
  uint32_t factor;
  std::string_view codes;
  std::vector<uint32_t> words = {};  // of RandomSource::te; none: to nearest
};

// The words that Transformer Engine's generator gives thread 0 of a launch with seed 1234.
std::vector<uint32_t> first_words() {
  const PhiloxBlock words = random_block(1234, 0, 0);
  return {words[0], words[1], words[2], words[3]};
}

const std::vector<NvfpBlockCase> kNvfpBlocks{
    {"T098",
     2688,
     {6, -6, 5, 4, 3.5f, 3, 2.5f, 2, 1.75f, 1.5f, 1.25f, 1, .75f, .5f, .25f, -0.f},
     0x38,
     0x3f80'0000,
     "7f66654443222108"},
    {"T099", 1, kX, 0x7e, 0x40c0'0000, "7f76655443332211"},
    {"T100", 3, kX, 0x71, 0x40c7'1c71, "7f76665544332211"},
    {"T101", 3, kX, 0x71, 0x40c7'1c71, "7f67665444322111", first_words()},
    {"T102", 3, kX, 0x71, 0x40c7'1c71, "7f66655443322110", {0, 0, 0, 0}},
    {"T103", 3, kX, 0x71, 0x40c7'1c71, "7f77766554433221", {~0u, ~0u, ~0u, ~0u}},
    {"T104",
     0,
     {0, 0, 0, 0, 0, 0, 0, 0, -0.f, -0.f, -0.f, -0.f, -0.f, -0.f, -0.f, -0.f},
     0x00,
     0x7f7f'ffff,
     "0000000088888888"},
    // The scale underflows: elements become the largest code though the block decodes to zero.
    {"T105",
     1024,
     {kTiny, kTiny, kTiny, kTiny, kTiny, kTiny, kTiny, kTiny, -kTiny, -kTiny, -kTiny, -kTiny, 0, 0, -0.f, -0.f},
     0x00,
     0x7f7f'ffff,
     "77777777ffff0088"},
    {"T106", kInf, ones_and_inf(), 0x7e, 0x3b12'4925, "0000000000000007"},
    {"T107", 1e-36f, filled(1e-36f), 0x66, 0x7c92'4925, "7777777777777777"},
};

// nvfp4/te with the rounding of a case.
Recipe te_rounding(const NvfpBlockCase& c) {
  Recipe recipe = recipe_named("nvfp4/te");
  if (c.words.empty()) return recipe;
  recipe.policy.rounding = Rounding::stochastic;
  recipe.random = RandomSource::te;
  return recipe;
}

BlockStatistics statistics_of(const Recipe& recipe, std::span<const float> x) {
  return block_statistics(recipe, x.data(), 1, x.size(), x.size());
}

class NvfpBlock : public testing::TestWithParam<NvfpBlockCase> {
 protected:
  const Recipe recipe_ = te_rounding(GetParam());
  const TensorScale tensor_ = tensor_scale(recipe_, GetParam().tensor_amax);
  const BlockScale scale_ = block_scale(recipe_, tensor_, statistics_of(recipe_, GetParam().x), recipe_.unrounded);
};

TEST_P(NvfpBlock, HasThePublishersScaleByte) { EXPECT_EQ(scale_.code, GetParam().scale); }

TEST_P(NvfpBlock, MultipliesItsElementsByThePublishersInverse) {
  EXPECT_EQ(bits(scale_.factor), GetParam().factor) << std::hex << bits(scale_.factor);
}

TEST_P(NvfpBlock, HasThePublishersCodes) {
  const Quantized q = quantized(recipe_, tensor_, {.rows = 1, .cols = 16}, GetParam().x, {.words = GetParam().words});
  EXPECT_EQ(q.code_text(), GetParam().codes);
}

INSTANTIATE_TEST_SUITE_P(Spec, NvfpBlock, testing::ValuesIn(kNvfpBlocks), id_of<NvfpBlockCase>);

// The words of T101 come from the seed alone where the block is the tensor's first.
TEST(Spec, T101_WordsComeFromTheSeed) {
  Recipe recipe = recipe_named("nvfp4/te");
  recipe.policy.rounding = Rounding::stochastic;
  recipe.random = RandomSource::te;
  const Quantized q = quantized(recipe, tensor_scale(recipe, 3), {.rows = 1, .cols = 16}, kX, {.seed = 1234});
  EXPECT_EQ(q.code_text(), "7f67665444322111");
}

// A block of nvfp4/te-4over6-mse: what the largest to 4 and the largest to 6 come to, and which is taken.
struct FourOverSixCase {
  std::string_view id;
  float tensor_amax;
  std::array<float, 16> x;
  uint32_t scale_of_4, error_of_4;
  uint32_t scale_of_6, error_of_6;
  uint32_t taken;
};

const std::vector<FourOverSixCase> kFourOverSix{
    {"T109", 6, {4, -4, 3, 2, 1.5f, 1, .5f, 0, 4, 4, 4, 4, 4, 4, 4, 4}, 0x7e, 0, 0x79, 0x3eeb'c14b, 0x7e},
    // A tie, since the scale of 4 clips.
    {"T110", 6, {6, -6, 3, 2, 1.5f, 1, .5f, 0, 4, 4, 4, 4, 4, 4, 4, 4}, 0x7e, 0, 0x7e, 0, 0x7e},
    {"T111", 8, filled(1), 0x6a, 0x3d14'9b91, 0x66, 0, 0x66},
};

class FourOverSix : public testing::TestWithParam<FourOverSixCase> {
 protected:
  static constexpr const Recipe& kRecipe = recipe_named("nvfp4/te-4over6-mse");
  const TensorScale tensor_ = tensor_scale(kRecipe, GetParam().tensor_amax);

  BlockScale scale(const Formula& unrounded) const {
    return block_scale(kRecipe, tensor_, statistics_of(kRecipe, GetParam().x), unrounded);
  }

  // e2m1 * float(sf) * amax / 2688 less x, squared, summed from element 0 on, in FP32.
  float error(const BlockScale& scale) const {
    float sum = 0;
    for (const float x : GetParam().x) {
      const float value = decode(kRecipe.element.format(), encode_element(kRecipe, tensor_, scale, x)) * scale.value *
                          GetParam().tensor_amax / 2688;
      sum += (value - x) * (value - x);
    }
    return sum;
  }
};

TEST_P(FourOverSix, HasThePublishersScales) {
  EXPECT_EQ(scale(kRecipe.choice.alternative).code, GetParam().scale_of_4);
  EXPECT_EQ(scale(kRecipe.unrounded).code, GetParam().scale_of_6);
}

TEST_P(FourOverSix, HasThePublishersErrors) {
  EXPECT_EQ(bits(error(scale(kRecipe.choice.alternative))), GetParam().error_of_4);
  EXPECT_EQ(bits(error(scale(kRecipe.unrounded))), GetParam().error_of_6);
}

TEST_P(FourOverSix, TakesTheSmallerError) {
  const Quantized q = quantized(kRecipe, tensor_, {.rows = 1, .cols = 16}, GetParam().x);
  EXPECT_EQ(q.scale(0), GetParam().taken);
}

INSTANTIATE_TEST_SUITE_P(Spec, FourOverSix, testing::ValuesIn(kFourOverSix), id_of<FourOverSixCase>);

// The scale byte by the block's largest magnitude, in the columns of the list of cases.
struct MxScaleCase {
  std::string_view id;
  float amax;
  std::vector<uint32_t> scales;
};

// OCP's floor, torchao's CEIL, EVEN and RCEIL on its main branch, Transformer Engine's.
constexpr const Recipe* kE4m3Columns[] = {&recipe_named("mxfp8/ocp"), &recipe_named("mxfp8/torchao-main-ceil"),
                                          &recipe_named("mxfp8/torchao-main-even"),
                                          &recipe_named("mxfp8/torchao-main-rceil"), &recipe_named("mxfp8/te")};

const std::vector<MxScaleCase> kE4m3Scales{
    {"T115", 448, {0x7f, 0x80, 0x7f, 0x7f, 0x7f}},       {"T116", 449, {0x7f, 0x80, 0x7f, 0x80, 0x80}},
    {"T117", 480, {0x7f, 0x80, 0x7f, 0x80, 0x80}},       {"T118", 511, {0x7f, 0x80, 0x80, 0x80, 0x80}},
    {"T119", 512, {0x80, 0x80, 0x80, 0x80, 0x80}},       {"T120", 1, {0x77, 0x77, 0x77, 0x77, 0x77}},
    {"T121", 1.75f, {0x77, 0x78, 0x77, 0x77, 0x77}},     {"T122", 1.8125f, {0x77, 0x78, 0x77, 0x78, 0x78}},
    {"T123", 1.9375f, {0x77, 0x78, 0x78, 0x78, 0x78}},   {"T124", 0, {0x00, 0x00, 0x00, 0x00, 0x00}},
    {"T125", 0x1p-126f, {0x00, 0x00, 0x00, 0x00, 0x00}}, {"T126", 0x1.fep127f, {0xf6, 0xf7, 0xff, 0xf7, 0xf7}},
    {"T127", kInf, {0xff, 0xff, 0xff, 0xff, 0xfe}},      {"T128", kNaN, {0xff, 0xff, 0xff, 0xff, 0xff}},
};

constexpr const Recipe* kE5m2Columns[] = {&recipe_named("mxfp8/ocp-e5m2"), &recipe_named("mxfp8/te-e5m2")};

const std::vector<MxScaleCase> kE5m2Scales{
    {"T129", 57344, {0x7f, 0x7f}},
    {"T130", 57345, {0x7f, 0x80}},
    {"T131", 1.75f, {0x70, 0x70}},
    {"T132", 1.8125f, {0x70, 0x71}},
};

BlockScale scale_of_amax(const Recipe& recipe, float amax) {
  return block_scale(recipe, {}, {.amax = amax}, recipe.unrounded);
}

class Mxfp8E4m3Scale : public testing::TestWithParam<MxScaleCase> {};

TEST_P(Mxfp8E4m3Scale, IsThePublishers) {
  for (std::size_t i = 0; i < GetParam().scales.size(); ++i)
    EXPECT_EQ(scale_of_amax(*kE4m3Columns[i], GetParam().amax).code, GetParam().scales[i]) << kE4m3Columns[i]->name;
}

INSTANTIATE_TEST_SUITE_P(Spec, Mxfp8E4m3Scale, testing::ValuesIn(kE4m3Scales), id_of<MxScaleCase>);

class Mxfp8E5m2Scale : public testing::TestWithParam<MxScaleCase> {};

TEST_P(Mxfp8E5m2Scale, IsThePublishers) {
  for (std::size_t i = 0; i < GetParam().scales.size(); ++i)
    EXPECT_EQ(scale_of_amax(*kE5m2Columns[i], GetParam().amax).code, GetParam().scales[i]) << kE5m2Columns[i]->name;
}

INSTANTIATE_TEST_SUITE_P(Spec, Mxfp8E5m2Scale, testing::ValuesIn(kE5m2Scales), id_of<MxScaleCase>);

// amax * fl(1/448) is one rounded product, also one ulp either side of 448.
struct ProductCase {
  std::string_view id;
  uint32_t amax;
  uint32_t product;
  uint32_t scale;
};

const std::vector<ProductCase> kProducts{
    {"T133", 0x43df'ffff, 0x3f80'0000, 0x7f},
    {"T134", 0x43e0'0000, 0x3f80'0000, 0x7f},
    {"T135", 0x43e0'0001, 0x3f80'0001, 0x80},
};

class Mxfp8Product : public testing::TestWithParam<ProductCase> {};

TEST_P(Mxfp8Product, IsRoundedOnce) {
  const BlockScale scale = scale_of_amax(recipe_named("mxfp8/te"), bit_cast<float>(GetParam().amax));
  EXPECT_EQ(std::pair(bits(scale.unrounded), scale.code), std::pair(GetParam().product, GetParam().scale));
}

INSTANTIATE_TEST_SUITE_P(Spec, Mxfp8Product, testing::ValuesIn(kProducts), id_of<ProductCase>);

// The first elements of a block of MXFP8, the others zero.
struct MxElementsCase {
  std::string_view id;
  const Recipe* recipe;
  std::vector<float> x;
  uint32_t scale;
  std::vector<uint32_t> codes;
};

const std::vector<MxElementsCase> kMxElements{
    {"T136", &recipe_named("mxfp8/te"), {1, -0.5f, 0.0078125f, 0.001f, -0.f}, 0x77, {0x78, 0xf0, 0x40, 0x28, 0x80}},
    {"T137", &recipe_named("mxfp8/ocp"), {1.9375f, 1.75f, -1.9375f}, 0x77, {0x7e, 0x7e, 0xfe}},
    {"T138", &recipe_named("mxfp8/te"), {1.9375f, 1.75f, -1.9375f}, 0x78, {0x78, 0x76, 0xf8}},
};

class Mxfp8Elements : public testing::TestWithParam<MxElementsCase> {};

TEST_P(Mxfp8Elements, HaveThePublishersCodes) {
  const MxElementsCase& c = GetParam();
  const Quantized q = quantized_block(*c.recipe, c.x, 0);
  EXPECT_EQ(q.scale(0), c.scale);
  for (std::size_t i = 0; i < c.codes.size(); ++i) EXPECT_EQ(q.code(i), c.codes[i]) << "element " << i;
}

INSTANTIATE_TEST_SUITE_P(Spec, Mxfp8Elements, testing::ValuesIn(kMxElements), id_of<MxElementsCase>);

// Codes of 1.0 under scales of 2.0 times codes of 2.0 under scales of 0.5, sixteen times.
TEST(Spec, T149_DotProductOfTwoBlocks) {
  const Format e2m1 = format_named("e2m1"), ue4m3 = format_named("ue4m3");
  float sum = 0;
  for (int k = 0; k < 16; ++k) sum += decode(e2m1, 2) * decode(ue4m3, 0x40) * (decode(e2m1, 4) * decode(ue4m3, 0x30));
  EXPECT_EQ(sum, 32);
}

// The factor of a product's epilogue: amax of A, times amax of B, times FP32's 1 / (6 * 6 * 448 * 448).
TEST(Spec, T150_FactorOfAProductMultipliesFromTheLeft) {
  constexpr float kInverse = 1.f / 7225344;
  static_assert(bit_cast<uint32_t>(kInverse) == 0x3414'9b93);
  const float a = 3, b = 5;
  EXPECT_EQ(bits(1 * a * b * kInverse), 0x360b'51dau);
}

}  // namespace
}  // namespace halfulp

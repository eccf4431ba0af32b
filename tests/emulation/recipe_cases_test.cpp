// Recipes on inputs whose answers were computed from the publishers' formulas with another program, or printed by their
// kernels' arithmetic on an H200. The id in a test's name is the case's number in the project's list of cases.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/blocks/block.h"
#include "emulation/blocks/quantize.h"
#include "formats/packing.h"

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
  const TensorScale scale = tensor_scale_of(find_recipe("nvfp4/te"), GetParam().amax);
  EXPECT_EQ(std::pair(bits(scale.encode), bits(scale.decode)), std::pair(GetParam().encode, GetParam().decode))
      << std::hex << bits(scale.encode) << ' ' << bits(scale.decode);
}

INSTANTIATE_TEST_SUITE_P(Spec, NvfpTensorScale, testing::ValuesIn(kTensorScales), id_of<TensorScaleCase>);

// A block of nvfp4/te under a given amax of the tensor: scale byte, multiplier, codes from element 0 on.
struct NvfpBlockCase {
  std::string_view id;
  float tensor_amax;
  std::array<float, 16> x;
  uint32_t scale;
  uint32_t multiplier;
  std::string_view codes;
};

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

const std::vector<NvfpBlockCase> kNvfpBlocks{
    {"T098",
     2688,
     {6, -6, 5, 4, 3.5f, 3, 2.5f, 2, 1.75f, 1.5f, 1.25f, 1, .75f, .5f, .25f, -0.f},
     0x38,
     0x3f80'0000,
     "7f66654443222108"},
    {"T099", 1, kX, 0x7e, 0x40c0'0000, "7f76655443332211"},
    {"T100", 3, kX, 0x71, 0x40c7'1c71, "7f76665544332211"},
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

class NvfpBlock : public testing::TestWithParam<NvfpBlockCase> {
 protected:
  static constexpr int kRecipe = find_recipe("nvfp4/te");

  BlockScale scale() const {
    float amax = 0;
    for (const float x : GetParam().x) amax = larger_magnitude(AmaxNan::ignored, amax, x);
    return block_scale<kRecipe>(amax, tensor_scale_of(kRecipe, GetParam().tensor_amax));
  }
};

TEST_P(NvfpBlock, HasThePublishersScaleByte) { EXPECT_EQ(scale().code, GetParam().scale); }

TEST_P(NvfpBlock, MultipliesItsElementsByThePublishersInverse) {
  EXPECT_EQ(bits(scale().multiplier), GetParam().multiplier) << std::hex << bits(scale().multiplier);
}

TEST_P(NvfpBlock, HasThePublishersCodes) {
  std::array<std::byte, 8> codes;
  std::array<std::byte, 1> scales;
  quantize<float>(kRecipe, tensor_scale_of(kRecipe, GetParam().tensor_amax), GetParam().x, codes, scales);
  std::string text;
  for (std::size_t i = 0; i < 16; ++i) text += "0123456789abcdef"[load_code<4>(codes.data(), i)];
  EXPECT_EQ(text, GetParam().codes);
}

INSTANTIATE_TEST_SUITE_P(Spec, NvfpBlock, testing::ValuesIn(kNvfpBlocks), id_of<NvfpBlockCase>);

// The block scale of nvfp4/te where block and tensor have these largest magnitudes, BF16 codes.
BlockScale nvfp4_scale(uint32_t block_amax, uint32_t tensor_amax) {
  constexpr int kRecipe = find_recipe("nvfp4/te");
  const auto bf16 = [](uint32_t code) { return bit_cast<float>(code << 16); };
  return block_scale<kRecipe>(bf16(block_amax), tensor_scale_of(kRecipe, bf16(tensor_amax)));
}

// (amax / 6) * S_enc would be 40a80000 and byte 4a.
TEST(Spec, T108_NvfpScaleIsNotASixthTimesTheTensorScale) {
  const BlockScale scale = nvfp4_scale(0x3c43, 0x3f82);
  EXPECT_EQ(std::pair(bits(scale.unrounded), scale.code), std::pair(0x40a8'0001u, 0x4bu));
}

// (amax * S_enc) * (1/6) would be byte 46. Found with the program of tests/oracle/recipes_numpy.py.
TEST(Spec, NvfpScaleMultipliesTheTensorScaleByASixthFirst) {
  const BlockScale scale = nvfp4_scale(0x3c11, 0x3f8c);
  EXPECT_EQ(std::pair(bits(scale.unrounded), scale.code), std::pair(0x4068'0001u, 0x47u));
}

// The scale byte by the block's largest magnitude, for OCP's floor and for TransformerEngine.
struct MxScaleCase {
  std::string_view id;
  float amax;
  uint32_t floor;
  uint32_t te;
};

const std::vector<MxScaleCase> kE4m3Scales{
    {"T115", 448, 0x7f, 0x7f},   {"T116", 449, 0x7f, 0x80},       {"T117", 480, 0x7f, 0x80},
    {"T118", 511, 0x7f, 0x80},   {"T119", 512, 0x80, 0x80},       {"T120", 1, 0x77, 0x77},
    {"T121", 1.75f, 0x77, 0x77}, {"T122", 1.8125f, 0x77, 0x78},   {"T123", 1.9375f, 0x77, 0x78},
    {"T124", 0, 0x00, 0x00},     {"T125", 0x1p-126f, 0x00, 0x00}, {"T126", 0x1.fep127f, 0xf6, 0xf7},
    {"T127", kInf, 0xff, 0xfe},  {"T128", kNaN, 0xff, 0xff},
};

const std::vector<MxScaleCase> kE5m2Scales{
    {"T129", 57344, 0x7f, 0x7f},
    {"T130", 57345, 0x7f, 0x80},
    {"T131", 1.75f, 0x70, 0x70},
    {"T132", 1.8125f, 0x70, 0x71},
};

template <int recipe_id>
uint32_t scale_byte(float amax) {
  return block_scale<recipe_id>(amax, {}).code;
}

class Mxfp8E4m3Scale : public testing::TestWithParam<MxScaleCase> {};

TEST_P(Mxfp8E4m3Scale, OfOcpIsRoundedDown) {
  EXPECT_EQ(scale_byte<find_recipe("mxfp8/ocp")>(GetParam().amax), GetParam().floor);
}

TEST_P(Mxfp8E4m3Scale, OfTransformerEngineIsRoundedUp) {
  EXPECT_EQ(scale_byte<find_recipe("mxfp8/te")>(GetParam().amax), GetParam().te);
}

INSTANTIATE_TEST_SUITE_P(Spec, Mxfp8E4m3Scale, testing::ValuesIn(kE4m3Scales), id_of<MxScaleCase>);

class Mxfp8E5m2Scale : public testing::TestWithParam<MxScaleCase> {};

TEST_P(Mxfp8E5m2Scale, OfOcpIsRoundedDown) {
  EXPECT_EQ(scale_byte<find_recipe("mxfp8/ocp-e5m2")>(GetParam().amax), GetParam().floor);
}

TEST_P(Mxfp8E5m2Scale, OfTransformerEngineIsRoundedUp) {
  EXPECT_EQ(scale_byte<find_recipe("mxfp8/te-e5m2")>(GetParam().amax), GetParam().te);
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
  const BlockScale scale = block_scale<find_recipe("mxfp8/te")>(bit_cast<float>(GetParam().amax), {});
  EXPECT_EQ(std::pair(bits(scale.unrounded), scale.code), std::pair(GetParam().product, GetParam().scale));
}

INSTANTIATE_TEST_SUITE_P(Spec, Mxfp8Product, testing::ValuesIn(kProducts), id_of<ProductCase>);

// The first elements of a block of MXFP8, the others zero.
struct MxElementsCase {
  std::string_view id;
  std::string_view recipe;
  std::vector<float> x;
  uint32_t scale;
  std::vector<uint32_t> codes;
};

const std::vector<MxElementsCase> kMxElements{
    {"T136", "mxfp8/te", {1, -0.5f, 0.0078125f, 0.001f, -0.f}, 0x77, {0x78, 0xf0, 0x40, 0x28, 0x80}},
    {"T137", "mxfp8/ocp", {1.9375f, 1.75f, -1.9375f}, 0x77, {0x7e, 0x7e, 0xfe}},
    {"T138", "mxfp8/te", {1.9375f, 1.75f, -1.9375f}, 0x78, {0x78, 0x76, 0xf8}},
};

class Mxfp8Elements : public testing::TestWithParam<MxElementsCase> {};

TEST_P(Mxfp8Elements, HaveThePublishersCodes) {
  const MxElementsCase& c = GetParam();
  std::array<float, 32> x{};
  std::ranges::copy(c.x, x.begin());
  std::array<std::byte, 32> codes;
  std::array<std::byte, 1> scale;
  quantize<float>(find_recipe(c.recipe), {}, x, codes, scale);
  EXPECT_EQ(uint32_t(scale[0]), c.scale);
  for (std::size_t i = 0; i < c.codes.size(); ++i) EXPECT_EQ(uint32_t(codes[i]), c.codes[i]) << "element " << i;
}

INSTANTIATE_TEST_SUITE_P(Spec, Mxfp8Elements, testing::ValuesIn(kMxElements), id_of<MxElementsCase>);

}  // namespace
}  // namespace halfulp

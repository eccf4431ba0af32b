// Publishers' orders of the same operations, on inputs where they give other bytes. Inputs were found, and bytes
// computed, with another program from the publishers' formulas.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/blocks/block.h"
#include "emulation/blocks/recipes.h"
#include "tests/emulation/quantized.h"

namespace halfulp {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

float bf16(uint32_t code) { return bit_cast<float>(code << 16); }

constexpr const Recipe& kTe = recipe_named("nvfp4/te");
constexpr const Recipe& kFastMath = recipe_named("nvfp4/te-fast-math");
constexpr const Recipe& k4over6 = recipe_named("nvfp4/te-4over6-mse");
constexpr const Recipe& kCublasLt = recipe_named("nvfp4/cublaslt");
constexpr const Recipe& kCutlass = recipe_named("nvfp4/cutlass");
constexpr const Recipe& kFlashInfer = recipe_named("nvfp4/flashinfer");
constexpr const Recipe& kTorchao = recipe_named("nvfp4/torchao");
constexpr const Recipe& kModelopt = recipe_named("nvfp4/modelopt");
constexpr const Recipe& kModeloptStatic = recipe_named("nvfp4/modelopt-static");
constexpr const Recipe& kCompressedTensors = recipe_named("nvfp4/compressed-tensors");

struct Side {
  const Recipe* recipe;
  uint32_t byte;
};

// Largest magnitudes of the tensor and of the block, BF16, for which two recipes have other scale bytes.
struct ScaleParting {
  uint32_t tensor_amax;
  uint32_t block_amax;
  Side one, other;
};

const std::vector<ScaleParting> kScalePartings{
    {0x3f82, 0x3c43, {&kTe, 0x4b}, {&k4over6, 0x4a}},  // T108
    {0x3ffc, 0x3c99, {&kTe, 0x49}, {&k4over6, 0x48}},
    {0x3ffc, 0x3c99, {&kTe, 0x49}, {&kCublasLt, 0x48}},
    {0x3f1a, 0x3d51, {&kTe, 0x62}, {&kTorchao, 0x61}},
    {0x3ffc, 0x3c99, {&kTe, 0x49}, {&kModelopt, 0x48}},
    {0x40c4, 0x3e05, {&kTe, 0x52}, {&kModeloptStatic, 0x51}},
    {0x3fe0, 0x3c68, {&kTe, 0x46}, {&kCompressedTensors, 0x47}},
    {0x4082, 0x3bc3, {&k4over6, 0x32}, {&kCublasLt, 0x33}},
    {0x3f1a, 0x3d51, {&k4over6, 0x62}, {&kTorchao, 0x61}},
    {0x3f8c, 0x3efa, {&k4over6, 0x75}, {&kModelopt, 0x74}},
    {0x40c4, 0x3e05, {&k4over6, 0x52}, {&kModeloptStatic, 0x51}},
    {0x3fe0, 0x3c68, {&k4over6, 0x46}, {&kCompressedTensors, 0x47}},
    {0x3f1a, 0x3d51, {&kCublasLt, 0x62}, {&kTorchao, 0x61}},
    {0x4082, 0x3bc3, {&kCublasLt, 0x33}, {&kModelopt, 0x32}},
    {0x40c4, 0x3e05, {&kCublasLt, 0x52}, {&kModeloptStatic, 0x51}},
    {0x3fe0, 0x3c68, {&kCublasLt, 0x46}, {&kCompressedTensors, 0x47}},
    {0x3f1a, 0x3d51, {&kTorchao, 0x61}, {&kModelopt, 0x62}},
    {0x40c4, 0x3e05, {&kTorchao, 0x52}, {&kModeloptStatic, 0x51}},
    {0x3fe0, 0x3c68, {&kTorchao, 0x46}, {&kCompressedTensors, 0x47}},
    {0x40c4, 0x3e05, {&kModelopt, 0x52}, {&kModeloptStatic, 0x51}},
    {0x3fe0, 0x3c68, {&kModelopt, 0x46}, {&kCompressedTensors, 0x47}},
    {0x40c4, 0x3e05, {&kModeloptStatic, 0x51}, {&kCompressedTensors, 0x52}},
};

std::string name_of(std::size_t index, const Side& one, const Side& other) {
  return std::to_string(index) + "_" + test_name(one.recipe->name) + "_and_" + test_name(other.recipe->name);
}

class ScaleOrder : public testing::TestWithParam<ScaleParting> {};

// Of 4over6 the scale that takes the largest to 6.
TEST_P(ScaleOrder, PartsTwoRecipes) {
  const auto& [tensor_amax, block_amax, one, other] = GetParam();
  for (const Side& side : {one, other}) {
    const TensorScale tensor = tensor_scale(*side.recipe, bf16(tensor_amax));
    const BlockStatistics block{.amax = bf16(block_amax)};
    EXPECT_EQ(block_scale(*side.recipe, tensor, block, side.recipe->unrounded).code, side.byte) << side.recipe->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Nvfp4, ScaleOrder, testing::ValuesIn(kScalePartings), [](const auto& instance) {
  return name_of(instance.index, instance.param.one, instance.param.other);
});

// (amax * S_enc) * (1/6), no publisher's order, would be byte 46.
TEST(ScaleOrder, OfTransformerEngineMultipliesTheTensorScaleByASixthFirst) {
  const BlockScale scale = block_scale(kTe, tensor_scale(kTe, bf16(0x3f8c)), {.amax = bf16(0x3c11)}, kTe.unrounded);
  EXPECT_EQ(bit_cast<uint32_t>(scale.unrounded), 0x4068'0001u);
  EXPECT_EQ(scale.code, 0x47u);
}

// The same with (amax / 6) * S_enc: 40a80000 and byte 4a.
TEST(ScaleOrder, T108_OfTransformerEngineIsNotASixthTimesTheTensorScale) {
  const BlockScale scale = block_scale(kTe, tensor_scale(kTe, bf16(0x3f82)), {.amax = bf16(0x3c43)}, kTe.unrounded);
  EXPECT_EQ(bit_cast<uint32_t>(scale.unrounded), 0x40a8'0001u);
  EXPECT_EQ(scale.code, 0x4bu);
}

// The same scale byte, and an element whose code is another: the block is amax, x and zeros.
struct ElementParting {
  uint32_t tensor_amax;
  uint32_t block_amax;
  uint32_t x;
  uint32_t scale;
  Side one, other;
};

const std::vector<ElementParting> kElementPartings{
    {0x40e4, 0x3d56, 0x3c77, 0x45, {&kTe, 3}, {&kCutlass, 4}},
    {0x40d4, 0x3bca, 0x3b24, 0x2d, {&kTe, 4}, {&kFastMath, 5}},
    {0x40e4, 0x3d56, 0x3c77, 0x45, {&kTe, 3}, {&kTorchao, 4}},
    {0x3f13, 0x3b97, 0x3b75, 0x46, {&kTe, 7}, {&kModelopt, 6}},
    {0x3f13, 0x3b97, 0x3b75, 0x46, {&kTe, 7}, {&kCublasLt, 6}},
    {0x3f13, 0x3b97, 0x3b75, 0x46, {&kTe, 7}, {&kCompressedTensors, 6}},
    {0x40d4, 0x3bca, 0x3b24, 0x2d, {&kCutlass, 4}, {&kFastMath, 5}},
    {0x4036, 0x3db8, 0x3c36, 0x56, {&kCutlass, 2}, {&kTorchao, 1}},
    {0x3f13, 0x3b97, 0x3b75, 0x46, {&kCutlass, 7}, {&kModelopt, 6}},
    {0x3f13, 0x3b97, 0x3b75, 0x46, {&kCutlass, 7}, {&kCublasLt, 6}},
    {0x3f13, 0x3b97, 0x3b75, 0x46, {&kCutlass, 7}, {&kCompressedTensors, 6}},
    {0x40d4, 0x3bca, 0x3b24, 0x2d, {&kFastMath, 5}, {&kTorchao, 4}},
    {0x40d4, 0x3bca, 0x3b24, 0x2d, {&kFastMath, 5}, {&kModelopt, 4}},
    {0x40d4, 0x3bca, 0x3b24, 0x2d, {&kFastMath, 5}, {&kCublasLt, 4}},
    {0x40d4, 0x3bca, 0x3b24, 0x2d, {&kFastMath, 5}, {&kCompressedTensors, 4}},
    {0x3f13, 0x3b97, 0x3b75, 0x46, {&kTorchao, 7}, {&kModelopt, 6}},
    {0x3f13, 0x3b97, 0x3b75, 0x46, {&kTorchao, 7}, {&kCublasLt, 6}},
    {0x3f13, 0x3b97, 0x3b75, 0x46, {&kTorchao, 7}, {&kCompressedTensors, 6}},
    {0x3f51, 0x3bce, 0x3a51, 0x46, {&kModelopt, 1}, {&kCublasLt, 2}},
    {0x40c0, 0x3b1d, 0x3a30, 0x23, {&kModelopt, 3}, {&kCompressedTensors, 4}},
    {0x3f51, 0x3bce, 0x3a51, 0x46, {&kCublasLt, 2}, {&kCompressedTensors, 1}},
};

class ElementOrder : public testing::TestWithParam<ElementParting> {};

TEST_P(ElementOrder, PartsTwoRecipes) {
  const auto& [tensor_amax, block_amax, x, scale, one, other] = GetParam();
  for (const Side& side : {one, other}) {
    const Quantized q = quantized_block(*side.recipe, {bf16(block_amax), bf16(x)}, bf16(tensor_amax));
    EXPECT_EQ(q.scale(0), scale) << side.recipe->name;
    EXPECT_EQ(q.code(1), side.byte) << side.recipe->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Nvfp4, ElementOrder, testing::ValuesIn(kElementPartings), [](const auto& instance) {
  return name_of(instance.index, instance.param.one, instance.param.other);
});

// Transformer Engine adds errors in the order of the elements, fouroversix as PyTorch does: an ulp decides between the
// two scales of these blocks, in a tensor whose largest magnitude is 6.
struct SumParting {
  std::vector<uint32_t> block;  // BF16
  uint32_t sequential, torch;   // scale bytes
};

const std::vector<SumParting> kSumPartings{
    {{0x3f1a, 0x3e89, 0x3f17, 0x3eb0, 0x3f0d, 0x3eaf, 0x3e9e, 0x3f17, 0x3914, 0xbfa5, 0xbe04, 0x3f78, 0xc00e, 0xbf0b,
      0x3f17, 0x3d80},
     0x71,
     0x6c},
    {{0xbfba, 0x3e8d, 0xbe2b, 0xbf52, 0xbe04, 0xbbbd, 0xbc90, 0xbf0d, 0xbff1, 0x3e07, 0xbf9b, 0xbe35, 0x3fcd, 0xbf70,
      0x3e1b, 0xbf25},
     0x6a,
     0x6f},
};

class SumOrder : public testing::TestWithParam<SumParting> {};

TEST_P(SumOrder, PartsTwoRecipes) {
  std::vector<float> x;
  for (const uint32_t code : GetParam().block) x.push_back(bf16(code));
  EXPECT_EQ(quantized_block(recipe_named("nvfp4/te-4over6-mse-256"), x, 6).scale(0), GetParam().sequential);
  EXPECT_EQ(quantized_block(recipe_named("nvfp4/fouroversix-mse"), x, 6).scale(0), GetParam().torch);
}

INSTANTIATE_TEST_SUITE_P(Nvfp4, SumOrder, testing::ValuesIn(kSumPartings));

// FlashInfer's exact mode and CUTLASS round scales as Transformer Engine does; a NaN parts them.
struct NanParting {
  std::string_view name;
  std::vector<float> x;
  std::vector<Side> sides;
};

const std::vector<NanParting> kNanPartings{
    {"OneNaN", {kNaN, 6}, {{&kTe, 0x38}, {&kFlashInfer, 0x38}, {&kCutlass, 0x7f}}},
    {"AllNaN", std::vector<float>(16, kNaN), {{&kTe, 0x00}, {&kFlashInfer, 0x7f}, {&kCutlass, 0x7f}}},
};

class NanOrder : public testing::TestWithParam<NanParting> {};

TEST_P(NanOrder, PartsRecipesWithTheSameFormula) {
  for (const Side& side : GetParam().sides)
    EXPECT_EQ(quantized_block(*side.recipe, GetParam().x, 2688).scale(0), side.byte) << side.recipe->name;
}

INSTANTIATE_TEST_SUITE_P(Nvfp4, NanOrder, testing::ValuesIn(kNanPartings),
                         [](const auto& instance) { return std::string(instance.param.name); });

// A block of zeros beside others: how each publisher leaves its scale.
struct ZeroBlock {
  const Recipe* recipe;
  uint32_t scale;
};

const std::vector<ZeroBlock> kZeroBlocks{
    {&kTe, 0x00},         {&kFastMath, 0x00}, {&k4over6, 0x00},   {&kCublasLt, 0x00},       {&kCutlass, 0x00},
    {&kFlashInfer, 0x00}, {&kTorchao, 0x08},  {&kModelopt, 0x38}, {&kModeloptStatic, 0x7e}, {&kCompressedTensors, 0x20},
};

class BlockOfZeros : public testing::TestWithParam<ZeroBlock> {};

TEST_P(BlockOfZeros, HasThePublishersScale) {
  EXPECT_EQ(quantized_block(*GetParam().recipe, {}, 6).scale(0), GetParam().scale);
}

TEST_P(BlockOfZeros, DecodesToZeros) {
  for (const float y : quantized_block(*GetParam().recipe, {}, 6).values()) ASSERT_EQ(y, 0);
}

INSTANTIATE_TEST_SUITE_P(Nvfp4, BlockOfZeros, testing::ValuesIn(kZeroBlocks),
                         [](const auto& instance) { return test_name(instance.param.recipe->name); });

}  // namespace
}  // namespace halfulp

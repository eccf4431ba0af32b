// Kernels against the CPU: quantize() for those that are compiled, the definition for every recipe, shape and tail.
// HALFULP_GPU_ELEMENTS in the environment sets how many elements a compiled kernel is given, 2^22 unless told.

#include "cuda/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "cuda/cvt_check.h"
#include "cuda/dequantize.h"
#include "cuda/kernel_recipes.h"
#include "cuda/memory.h"
#include "emulation/simd/simd.h"
#include "lib/threads.h"
#include "tests/emulation/hard_inputs.h"
#include "tests/emulation/quantized.h"

namespace halfulp {
namespace {

constexpr Dtype kDtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16};
constexpr uint64_t kCols = 4096, kPartRows = 128;
constexpr uint64_t kPart = kCols * kPartRows;

uint64_t elements_wanted() {
  const char* text = std::getenv("HALFULP_GPU_ELEMENTS");
  const uint64_t given = text == nullptr ? uint64_t{1} << 22 : std::strtoull(text, nullptr, 10);
  return std::max<uint64_t>(given / kPart, 1) * kPart;
}

// Numbers that a dtype has, as its elements and as FP32.
struct Input {
  std::vector<std::byte> elements;
  std::vector<float> x;
};

simd::Storage storage_of(const FormatEntry& format) { return {.bits = format.storage_bits, .shift = 0}; }

Input input_of(Dtype dtype, std::vector<float> x) {
  const FormatEntry& format = kFormats[std::size_t(find_format(dtype == Dtype::f16    ? "f16"
                                                               : dtype == Dtype::bf16 ? "bf16"
                                                                                      : "f32"))];
  Input input{.elements = std::vector<std::byte>(x.size() * row(dtype).bits / 8), .x = std::move(x)};
  const Policy nearest{.rounding = Rounding::nearest_even, .overflow = Overflow::to_special};
  simd::encode_blocks(format.format, nearest, storage_of(format), input.x, {}, input.elements);
  simd::decode_blocks(format.format, storage_of(format), input.elements, {}, input.x);
  return input;
}

// Every eighth part has any bits, Inf and NaN among them; another has the special blocks.
std::vector<float> part_of_input(uint64_t part) {
  if (part % 8 == 7) return any_bits(kPart, part);
  std::vector<float> x = uneven_normals(kPart, part);
  if (part % 8 == 3) {
    const std::vector<float> special = special_blocks();
    std::copy_n(special.begin(), std::min(special.size(), x.size()), x.begin());
  }
  return x;
}

const Input& large_input(Dtype dtype) {
  static std::map<Dtype, Input> inputs;
  const auto [input, is_new] = inputs.try_emplace(dtype);
  if (is_new) {
    const uint64_t count = elements_wanted();
    std::vector<float> x(count);
    parallel_for(count / kPart, default_threads(), [&](std::size_t part) {
      std::ranges::copy(part_of_input(part), x.begin() + std::ptrdiff_t(part * kPart));
    });
    input->second = input_of(dtype, std::move(x));
  }
  return input->second;
}

// A NaN is any NaN: which one a product gives is the processor's.
std::vector<uint32_t> bits_of(std::span<const float> values) {
  std::vector<uint32_t> bits(values.size());
  std::ranges::transform(values, bits.begin(), [](float x) { return x == x ? bit_cast<uint32_t>(x) : 0x7fc0'0000u; });
  return bits;
}

Quantized on_gpu(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape, Dtype dtype,
                 std::span<const std::byte> elements, const Randomness& random, Kernel kernel) {
  const DeviceArray<std::byte> x(elements);
  const DeviceArray<std::byte> codes(code_bytes(recipe, shape)), scales(scale_bytes(recipe, shape));
  quantize_on_gpu(recipe,
                  {.shape = shape,
                   .dtype = dtype,
                   .x = x.data(),
                   .tensor = tensor,
                   .random = random,
                   .codes = codes.data(),
                   .scales = scales.data()},
                  kernel);
  return {.recipe = &recipe, .shape = shape, .tensor = tensor, .codes = codes.on_host(), .scales = scales.on_host()};
}

std::vector<float> small_input(uint64_t count) {
  std::vector<float> x = special_blocks();
  const std::vector<float> more = uneven_normals(count), wild = any_bits(count);
  for (uint64_t i = 0; x.size() < count; ++i) x.push_back(i / 64 % 4 == 3 ? wild[i] : more[i]);
  x.resize(count);
  return x;
}

class GpuQuantize : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  }
};

class CompiledKernel : public GpuQuantize, public testing::WithParamInterface<std::tuple<std::size_t, Dtype>> {};

// Values of the codes and scales on the GPU, as bits.
std::vector<uint32_t> values_on_gpu(const Recipe& recipe, const Quantized& q, Kernel kernel) {
  const DeviceArray<std::byte> codes(q.codes), scales(q.scales);
  const DeviceArray<float> y(q.shape.elements());
  dequantize_on_gpu(
      recipe, {.shape = q.shape, .tensor = q.tensor, .codes = codes.data(), .scales = scales.data(), .y = y.data()},
      kernel);
  return bits_of(y.on_host());
}

// Parts in which GPU and CPU differ.
std::size_t different_parts(const Recipe& recipe, const TensorScale& tensor, const Input& input,
                            const Randomness& random, const Quantized& got) {
  std::atomic<std::size_t> wrong = 0;
  parallel_for(input.x.size() / kPart, default_threads(), [&](std::size_t part) {
    const Matrix shape{.rows = kPartRows, .cols = kCols};
    Randomness here = random;
    here.first_element = part * kPart;
    here.first_block = kPart / block_cols(recipe, shape) * part;
    const Quantized expected = quantized(recipe, tensor, shape, std::span(input.x).subspan(part * kPart, kPart), here);
    const bool same =
        std::ranges::equal(expected.codes,
                           std::span(got.codes).subspan(part * expected.codes.size(), expected.codes.size())) &&
        std::ranges::equal(expected.scales,
                           std::span(got.scales).subspan(part * expected.scales.size(), expected.scales.size()));
    wrong += !same;
  });
  return wrong;
}

TEST_P(CompiledKernel, GivesTheBytesOfTheCpu) {
  const auto [id, dtype] = GetParam();
  const Recipe& recipe = kKernelRecipes[id];
  const Input& input = large_input(dtype);
  const TensorScale tensor = tensor_scale(recipe, 1000);
  const Randomness random{.seed = 7, .stream = 9};
  const Matrix shape{.rows = input.x.size() / kCols, .cols = kCols};
  const Quantized got = on_gpu(recipe, tensor, shape, dtype, input.elements, random, Kernel::compiled);
  EXPECT_EQ(different_parts(recipe, tensor, input, random, got), 0u) << "parts of " << shape.elements() / kPart;
  std::cout << recipe.name << (is_random(recipe) ? " (stochastic)" : "") << " of " << row(dtype).name << ": "
            << shape.elements() << " elements compared\n";
}

TEST_P(CompiledKernel, GivesTheValuesOfTheCpu) {
  const auto [id, dtype] = GetParam();
  if (dtype != Dtype::f32) GTEST_SKIP() << "values are of one kind";
  const Recipe& recipe = kKernelRecipes[id];
  const Matrix shape{.rows = 256, .cols = 1024};
  Quantized q = quantized(recipe, tensor_scale(recipe, 1000), shape, small_input(shape.elements()), {.seed = 1});
  EXPECT_EQ(values_on_gpu(recipe, q, Kernel::compiled), bits_of(q.values()));
  for (std::size_t i = 0; i < q.codes.size(); ++i) q.codes[i] = std::byte(i * 37);  // every code
  EXPECT_EQ(values_on_gpu(recipe, q, Kernel::compiled), bits_of(q.values()));
}

// The number of a block of four words has a carry within a thread's elements, which is rare enough to have code of its
// own.
TEST_P(CompiledKernel, CountsRandomWordsPast32Bits) {
  const auto [id, dtype] = GetParam();
  const Recipe& recipe = kKernelRecipes[id];
  if (!is_random(recipe)) GTEST_SKIP() << recipe.name << " takes no random bits";
  const Matrix shape{.rows = 128, .cols = 128};
  const Input input = input_of(dtype, small_input(shape.elements()));
  const TensorScale tensor = tensor_scale(recipe, 1000);
  const Randomness random{.seed = 7, .stream = 9, .first_element = (uint64_t{1} << 34) - 4100};
  const Quantized got = on_gpu(recipe, tensor, shape, dtype, input.elements, random, Kernel::compiled);
  EXPECT_EQ(got.codes, quantized(recipe, tensor, shape, input.x, random).codes);
}

std::string kernel_test_name(const testing::TestParamInfo<std::tuple<std::size_t, Dtype>>& instance) {
  const auto [id, dtype] = instance.param;
  return test_name(kKernelRecipes[id].name) + "_" + std::to_string(id) + "_" + std::string(row(dtype).name);
}

INSTANTIATE_TEST_SUITE_P(Each, CompiledKernel,
                         testing::Combine(testing::Range<std::size_t>(0, kKernelRecipes.size()),
                                          testing::ValuesIn(kDtypes)),
                         kernel_test_name);

class BothKernel : public GpuQuantize,
                   public testing::WithParamInterface<std::tuple<std::size_t, Dtype, ColumnLayout>> {};

std::vector<float> transposed(const Matrix& shape, std::span<const float> x) {
  std::vector<float> y(x.size());
  for (uint64_t row = 0; row < shape.rows; ++row)
    for (uint64_t col = 0; col < shape.cols; ++col) y[col * shape.rows + row] = x[row * shape.cols + col];
  return y;
}

// Bytes of a matrix the other way round.
std::vector<std::byte> turned(uint64_t rows, std::span<const std::byte> bytes) {
  const uint64_t cols = bytes.size() / rows;
  std::vector<std::byte> y(bytes.size());
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t col = 0; col < cols; ++col) y[col * rows + row] = bytes[row * cols + col];
  return y;
}

TEST_P(BothKernel, GivesTheBytesOfTwoPasses) {
  const auto [id, dtype, layout] = GetParam();
  const Recipe& recipe = kKernelRecipes[id];
  const Matrix shape{.rows = 512, .cols = 1024}, other{.rows = shape.cols, .cols = shape.rows};
  const TensorScale tensor = tensor_scale(recipe, 1000), column_tensor = tensor_scale(recipe, 300);
  const Input input = input_of(dtype, small_input(shape.elements()));
  const DeviceArray<std::byte> x(input.elements), codes(code_bytes(recipe, shape)), scales(scale_bytes(recipe, shape)),
      column_codes(code_bytes(recipe, other)), column_scales(scale_bytes(recipe, other));
  const GpuQuantizeJob rows{
      .shape = shape, .dtype = dtype, .x = x.data(), .tensor = tensor, .codes = codes.data(), .scales = scales.data()};
  const GpuColumns columns{
      .layout = layout, .tensor = column_tensor, .codes = column_codes.data(), .scales = column_scales.data()};
  if (!has_both_kernel(recipe, rows, columns)) GTEST_SKIP() << recipe.name << " has no such kernel";
  quantize_both_on_gpu(recipe, rows, columns);
  const Quantized expected = quantized(recipe, tensor, shape, input.x);
  Quantized of_columns = quantized(recipe, column_tensor, other, transposed(shape, input.x));
  if (layout == ColumnLayout::in_place) {
    of_columns.codes = turned(other.rows, of_columns.codes);
    of_columns.scales = turned(other.rows, of_columns.scales);
  }
  EXPECT_EQ(codes.on_host(), expected.codes);
  EXPECT_EQ(scales.on_host(), expected.scales);
  EXPECT_EQ(column_codes.on_host(), of_columns.codes);
  EXPECT_EQ(column_scales.on_host(), of_columns.scales);
}

INSTANTIATE_TEST_SUITE_P(Each, BothKernel,
                         testing::Combine(testing::Range<std::size_t>(0, kKernelRecipes.size()),
                                          testing::ValuesIn(kDtypes),
                                          testing::Values(ColumnLayout::in_place, ColumnLayout::transposed)));

class ByDefinition : public GpuQuantize, public testing::WithParamInterface<std::size_t> {};

TEST_P(ByDefinition, TakesEveryTail) {
  const Recipe& recipe = kRecipes[GetParam()];
  std::size_t shapes = 0;
  for (uint64_t cols = 1; cols <= 257; ++cols) {
    const Matrix shape{.rows = 16, .cols = cols};
    if (!refusal(recipe, shape).empty()) continue;
    const Dtype dtype = kDtypes[cols % 3];
    const Input input = input_of(dtype, small_input(shape.elements()));
    const TensorScale tensor = tensor_scale(recipe, 1000);
    const Randomness random{.seed = cols, .stream = 3};
    const Quantized got = on_gpu(recipe, tensor, shape, dtype, input.elements, random, Kernel::definition);
    const Quantized expected = quantized(recipe, tensor, shape, input.x, random);
    ASSERT_EQ(got.codes, expected.codes) << cols << " columns";
    ASSERT_EQ(got.scales, expected.scales) << cols << " columns";
    ASSERT_EQ(values_on_gpu(recipe, expected, Kernel::definition), bits_of(expected.values())) << cols << " columns";
    ++shapes;
  }
  EXPECT_GE(shapes, 1u);
}

TEST_P(ByDefinition, TakesManyBlocks) {
  const Recipe& recipe = kRecipes[GetParam()];
  const Matrix shape{.rows = 256, .cols = 1024};
  const Input input = input_of(Dtype::f32, small_input(shape.elements()));
  const TensorScale tensor = tensor_scale(recipe, 1000);
  const Randomness random{.seed = 11, .stream = 5};
  const Quantized got = on_gpu(recipe, tensor, shape, Dtype::f32, input.elements, random, Kernel::definition);
  const Quantized expected = quantized(recipe, tensor, shape, input.x, random);
  EXPECT_EQ(got.codes, expected.codes);
  EXPECT_EQ(got.scales, expected.scales);
}

INSTANTIATE_TEST_SUITE_P(Catalog, ByDefinition, testing::Range<std::size_t>(0, kRecipes.size()),
                         [](const auto& instance) { return test_name(kRecipes[instance.param].name); });

TEST(KernelRecipes, EveryRowHasAKernelOfItsOwn) {
  for (std::size_t i = 0; i < kKernelRecipes.size(); ++i)
    EXPECT_EQ(find_kernel(kKernelRecipes[i]), int(i)) << kKernelRecipes[i].name;
}

// Without this a kernel that went missing would only skip its test.
TEST(KernelRecipes, TransformerEnginesHaveBothPassesInOne) {
  const auto has = [](std::string_view recipe, Dtype dtype, ColumnLayout layout) {
    const GpuQuantizeJob rows{
        .shape = {.rows = 512, .cols = 1024}, .dtype = dtype, .x = nullptr, .codes = nullptr, .scales = nullptr};
    const Recipe& row = kRecipes[std::size_t(find_recipe(recipe))];
    return has_both_kernel(row, rows, {.layout = layout, .codes = nullptr, .scales = nullptr});
  };
  for (const Dtype dtype : kDtypes) {
    EXPECT_TRUE(has("nvfp4/te", dtype, ColumnLayout::transposed));
    EXPECT_TRUE(has("mxfp8/te", dtype, ColumnLayout::in_place));
    EXPECT_TRUE(has("mxfp8/te", dtype, ColumnLayout::transposed));
    EXPECT_FALSE(has("nvfp4/te", dtype, ColumnLayout::in_place)) << "codes of 4 bits lie along rows";
  }
}

TEST(KernelRecipes, AChangedFieldHasNone) {
  Recipe recipe = recipe_named("nvfp4/te");
  recipe.amax_nan = AmaxNan::propagates;
  EXPECT_EQ(find_kernel(recipe), -1);
}

}  // namespace
}  // namespace halfulp

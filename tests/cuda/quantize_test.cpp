// Kernels against the CPU: quantize() for those that are compiled, the definition for every recipe, shape and tail.
// HALFULP_GPU_ELEMENTS in the environment sets how many elements a compiled kernel is given, 2^22 unless told.

#include "cuda/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cuda/cvt_check.h"
#include "cuda/dequantize.h"
#include "cuda/kernel_recipes.h"
#include "cuda/memory.h"
#include "emulation/blocks/hadamard.h"
#include "emulation/blocks/layout.h"
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

std::vector<float> transposed(const Matrix& shape, std::span<const float> x) {
  std::vector<float> y(x.size());
  transpose<float>({shape.rows, shape.cols}, x, y);
  return y;
}

// Bytes of a matrix the other way round.
std::vector<std::byte> turned(uint64_t rows, std::span<const std::byte> bytes) {
  std::vector<std::byte> y(bytes.size());
  transpose<std::byte>({rows, bytes.size() / rows}, bytes, y);
  return y;
}

std::vector<std::byte> in_order(ScaleOrder order, const Matrix& grid, const std::vector<std::byte>& scales) {
  if (order == ScaleOrder::row_major) return scales;
  constexpr ScaleLayout layout = scale_layout_named("swizzled-128x4");
  const Grid padded = padded_grid(layout, {grid.rows, grid.cols});
  std::vector<std::byte> tiles(padded.rows * padded.cols);
  store_scales(layout, {grid.rows, grid.cols}, scales, tiles);
  return tiles;
}

enum class ColumnCase { plain, in_place, rotated, seeded_rotation, without_rows };

struct BothCase {
  ColumnCase columns;
  ScaleOrder scale_order;
  Matrix shape;
};
constexpr BothCase kBothCases[] = {
    {ColumnCase::plain, ScaleOrder::row_major, {512, 1024}},
    {ColumnCase::plain, ScaleOrder::tiles, {224, 160}},  // parts of tiles
    {ColumnCase::plain, ScaleOrder::row_major, {32, 96}},
    {ColumnCase::in_place, ScaleOrder::row_major, {512, 1024}},
    {ColumnCase::in_place, ScaleOrder::tiles, {224, 160}},
    {ColumnCase::rotated, ScaleOrder::row_major, {512, 1024}},
    {ColumnCase::rotated, ScaleOrder::tiles, {224, 160}},
    {ColumnCase::seeded_rotation, ScaleOrder::row_major, {64, 64}},
    {ColumnCase::without_rows, ScaleOrder::row_major, {224, 160}},
};

ColumnLayout layout_of(ColumnCase columns) {
  return columns == ColumnCase::in_place ? ColumnLayout::in_place : ColumnLayout::transposed;
}

std::optional<Hadamard> rotation_of(ColumnCase columns) {
  if (columns == ColumnCase::rotated) return Hadamard{};
  if (columns == ColumnCase::seeded_rotation) return Hadamard{.signs = HadamardSigns::seeded, .seed = 5};
  return std::nullopt;
}

bool has_both_kernel(const Recipe& recipe, const BothCase& is, Dtype dtype) {
  return has_both_kernel(
      recipe, {.shape = is.shape, .dtype = dtype, .x = nullptr, .codes = nullptr, .scales = nullptr},
      {.layout = layout_of(is.columns), .rotation = rotation_of(is.columns), .codes = nullptr, .scales = nullptr});
}

// What the CPU makes of the columns.
Quantized columns_on_cpu(const Recipe& recipe, const TensorScale& tensor, const BothCase& is, std::span<const float> x,
                         const Randomness& random) {
  const Matrix other{.rows = is.shape.cols, .cols = is.shape.rows};
  std::vector<float> columns = transposed(is.shape, x);
  if (const auto rotation = rotation_of(is.columns)) hadamard(*rotation, other.cols, columns, columns);
  Quantized q = quantized(recipe, tensor, other, columns, random);
  const bool in_place = is.columns == ColumnCase::in_place;
  if (in_place) q.codes = turned(other.rows, q.codes);
  if (in_place && is.scale_order == ScaleOrder::row_major) {
    q.scales = turned(other.rows, q.scales);
  } else {
    q.scales = in_order(is.scale_order, scale_grid(recipe, other), q.scales);
  }
  return q;
}

class BothKernel : public GpuQuantize, public testing::WithParamInterface<std::tuple<std::size_t, Dtype, BothCase>> {};

TEST_P(BothKernel, GivesTheBytesOfTwoPasses) {
  const auto [id, dtype, is] = GetParam();
  const Recipe& recipe = kKernelRecipes[id];
  if (!has_both_kernel(recipe, is, dtype)) GTEST_SKIP() << recipe.name << " has no such kernel";
  const Input input = input_of(dtype, small_input(is.shape.elements()));
  const Randomness random{.seed = 3, .stream = 8}, column_random{.seed = 3, .stream = 70};
  Quantized expected = quantized(recipe, tensor_scale(recipe, 1000), is.shape, input.x, random);
  expected.scales = in_order(is.scale_order, scale_grid(recipe, is.shape), expected.scales);
  const Quantized of_columns = columns_on_cpu(recipe, tensor_scale(recipe, 300), is, input.x, column_random);
  const DeviceArray<std::byte> x(input.elements), codes(expected.codes.size()),
      scales(std::vector<std::byte>(expected.scales.size())), column_codes(of_columns.codes.size()),
      column_scales(std::vector<std::byte>(of_columns.scales.size()));
  const GpuQuantizeJob rows{.shape = is.shape,
                            .dtype = dtype,
                            .x = x.data(),
                            .tensor = expected.tensor,
                            .random = random,
                            .codes = is.columns == ColumnCase::without_rows ? nullptr : codes.data(),
                            .scales = scales.data(),
                            .scale_order = is.scale_order};
  const GpuColumns columns{.layout = layout_of(is.columns),
                           .tensor = of_columns.tensor,
                           .random = column_random,
                           .rotation = rotation_of(is.columns),
                           .codes = column_codes.data(),
                           .scales = column_scales.data(),
                           .scale_order = is.scale_order};
  quantize_both_on_gpu(recipe, rows, columns);
  EXPECT_EQ(column_codes.on_host(), of_columns.codes);
  EXPECT_EQ(column_scales.on_host(), of_columns.scales);
  if (is.columns == ColumnCase::without_rows) return;
  EXPECT_EQ(codes.on_host(), expected.codes);
  EXPECT_EQ(scales.on_host(), expected.scales);
}

INSTANTIATE_TEST_SUITE_P(Each, BothKernel,
                         testing::Combine(testing::Range<std::size_t>(0, kKernelRecipes.size()),
                                          testing::ValuesIn(kDtypes), testing::ValuesIn(kBothCases)));

// At every spread of exponents, so that sums are exact in FP32, in FP64 and in neither.
std::vector<float> spread_input(uint64_t count) {
  std::vector<float> x = uneven_normals(count), wild = any_bits(count);
  for (uint64_t i = 0; i < count; ++i) {
    const int spread = int(i / 4096 % 64);
    if (spread == 63) x[i] = wild[i];
    const int exponent = int(bit_cast<uint32_t>(wild[i]) % uint32_t(2 * spread + 1)) - spread;
    x[i] *= power_of_two(exponent);
    if (i % 11 == 3) x[i] = i % 2 == 0 ? 0.0f : -0.0f;
  }
  return x;
}

class RotatedColumns : public GpuQuantize, public testing::WithParamInterface<Dtype> {};

TEST_P(RotatedColumns, AreThoseOfTheDefinition) {
  const Dtype dtype = GetParam();
  const Recipe& recipe = kRecipes[std::size_t(find_recipe("nvfp4/te"))];
  const BothCase is{ColumnCase::rotated, ScaleOrder::row_major, {.rows = 1024, .cols = 4096}};
  const Input input = input_of(dtype, transposed({is.shape.cols, is.shape.rows}, spread_input(is.shape.elements())));
  const Quantized expected = columns_on_cpu(recipe, tensor_scale(recipe, 0x1p70f), is, input.x, {});
  const DeviceArray<std::byte> x(input.elements), codes(expected.codes.size()), scales(expected.scales.size());
  const GpuQuantizeJob rows{.shape = is.shape, .dtype = dtype, .x = x.data(), .codes = nullptr, .scales = nullptr};
  quantize_both_on_gpu(recipe, rows,
                       {.layout = ColumnLayout::transposed,
                        .tensor = expected.tensor,
                        .rotation = Hadamard{},
                        .codes = codes.data(),
                        .scales = scales.data()});
  EXPECT_EQ(codes.on_host(), expected.codes);
  EXPECT_EQ(scales.on_host(), expected.scales);
}

TEST_P(RotatedColumns, HaveTheLargestMagnitudeOfTheDefinition) {
  const Dtype dtype = GetParam();
  for (const Matrix shape : {Matrix{16, 2}, Matrix{48, 34}, Matrix{4096, 514}}) {
    const Input input = input_of(dtype, uneven_normals(shape.elements(), shape.rows));
    std::vector<float> columns = transposed(shape, input.x);
    hadamard({}, shape.rows, columns, columns);
    const Recipe& recipe = kRecipes[std::size_t(find_recipe("nvfp4/te"))];
    const DeviceArray<std::byte> x(input.elements);
    const float start = 0;
    const DeviceArray<float> amax(std::span<const float>(&start, 1));
    raise_rotated_magnitude(recipe.amax_nan,
                            {.shape = shape, .dtype = dtype, .x = x.data(), .codes = nullptr, .scales = nullptr}, {},
                            amax.data());
    EXPECT_EQ(amax.on_host().front(), largest_magnitude(recipe, 0, columns)) << shape.rows << " x " << shape.cols;
  }
}

// 1 + 2^-8 is halfway between two BF16 numbers; 2^-24 more, a sum of two of 2^-17, is what FP32 would lose beside it.
TEST_F(GpuQuantize, RotatesSumsThatFp32CannotHold) {
  const Matrix shape{.rows = 16, .cols = 2};
  std::vector<float> x(shape.elements());
  x[0] = 1, x[2] = 0x1p-8f, x[4] = 0x1.02p-17f, x[6] = -0x1p-17f;  // of the first column
  const Input input = input_of(Dtype::bf16, x);
  const DeviceArray<std::byte> elements(input.elements);
  const float start = 0;
  const DeviceArray<float> amax(std::span<const float>(&start, 1));
  raise_rotated_magnitude(
      AmaxNan::ignored,
      {.shape = shape, .dtype = Dtype::bf16, .x = elements.data(), .codes = nullptr, .scales = nullptr},
      {.signs = HadamardSigns::none}, amax.data());
  EXPECT_EQ(amax.on_host().front(), 0x1.02p-2f);  // FP32 gives 0.25
}

INSTANTIATE_TEST_SUITE_P(Each, RotatedColumns, testing::ValuesIn(kDtypes),
                         [](const auto& instance) { return std::string(row(instance.param).name); });

class SwizzledScales : public GpuQuantize, public testing::WithParamInterface<std::string_view> {};

TEST_P(SwizzledScales, LieInTiles) {
  const Recipe& recipe = kRecipes[std::size_t(find_recipe(GetParam()))];
  const Matrix shape{.rows = 160, .cols = 1152};
  const Input input = input_of(Dtype::bf16, small_input(shape.elements()));
  const Quantized q = quantized(recipe, tensor_scale(recipe, 1000), shape, input.x);
  const std::vector<std::byte> expected = in_order(ScaleOrder::tiles, scale_grid(recipe, shape), q.scales);
  const DeviceArray<std::byte> x(input.elements), codes(q.codes.size());
  for (const Kernel kernel : {Kernel::compiled, Kernel::definition}) {
    const DeviceArray<std::byte> scales{std::vector<std::byte>(expected.size())};
    quantize_on_gpu(recipe,
                    {.shape = shape,
                     .dtype = Dtype::bf16,
                     .x = x.data(),
                     .tensor = q.tensor,
                     .codes = codes.data(),
                     .scales = scales.data(),
                     .scale_order = ScaleOrder::tiles},
                    kernel);
    EXPECT_EQ(scales.on_host(), expected);
    EXPECT_EQ(codes.on_host(), q.codes);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, SwizzledScales, testing::Values("nvfp4/te", "mxfp8/te", "mxfp4/ocp", "nvfp4/te-2d"),
                         [](const auto& instance) { return test_name(instance.param); });

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
  const auto has = [](std::string_view recipe, Dtype dtype, ColumnLayout layout,
                      const std::optional<Hadamard>& rotation = {}) {
    const GpuQuantizeJob rows{
        .shape = {.rows = 512, .cols = 1024}, .dtype = dtype, .x = nullptr, .codes = nullptr, .scales = nullptr};
    const Recipe& row = kRecipes[std::size_t(find_recipe(recipe))];
    return has_both_kernel(row, rows, {.layout = layout, .rotation = rotation, .codes = nullptr, .scales = nullptr});
  };
  for (const Dtype dtype : kDtypes) {
    EXPECT_TRUE(has("nvfp4/te", dtype, ColumnLayout::transposed, Hadamard{}));
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

// What the GPU's functions refuse before they start anything. Not what they compute.

#include <gtest/gtest.h>

#include <cstdint>

#include "cuda/cvt_check.h"
#include "cuda/dequantize.h"
#include "cuda/memory.h"
#include "cuda/quantize.h"
#include "emulation/blocks/recipes.h"
#include "tests/lib/test_files.h"

namespace halfulp {
namespace {

constexpr Matrix kShape{.rows = 4, .cols = 64};
const Recipe& recipe() { return kRecipes[std::size_t(find_recipe("nvfp4/te"))]; }

// An address that nobody reads.
template <class T>
T* at(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

CaughtError quantize_at(std::uintptr_t x, std::uintptr_t codes, std::uintptr_t scales, Kernel kernel) {
  const GpuQuantizeJob job{.shape = kShape,
                           .dtype = Dtype::f32,
                           .x = at<const void>(x),
                           .codes = at<std::byte>(codes),
                           .scales = at<std::byte>(scales)};
  return error_of([&] { quantize_on_gpu(recipe(), job, kernel); });
}

void expect_refusal(const CaughtError& error, const std::string& beginning) {
  EXPECT_EQ(error.code, ExitCode::environment);
  EXPECT_TRUE(error.text.starts_with(beginning)) << error.text;
}

TEST(MisalignedPointer, OfACompiledKernelIsNamed) {
  expect_refusal(quantize_at(0x1004, 0x2000, 0x3000, Kernel::compiled),
                 "quantize_on_gpu: x lies at 0x1004, 4 bytes past a multiple of 16");
  expect_refusal(quantize_at(0x1000, 0x2008, 0x3000, Kernel::compiled),
                 "quantize_on_gpu: codes lies at 0x2008, 8 bytes past a multiple of 16");
  expect_refusal(quantize_at(0x1000, 0x2000, 0x3001, Kernel::compiled),
                 "quantize_on_gpu: scales lies at 0x3001, 1 byte past a multiple of 16");
}

TEST(MisalignedPointer, OfTheDefinitionIsOneOffItsElements) {
  expect_refusal(quantize_at(0x1002, 0x2001, 0x3001, Kernel::definition),
                 "quantize_on_gpu: x lies at 0x1002, 2 bytes past a multiple of 4");
}

TEST(MisalignedPointer, OfDequantizationIsNamed) {
  const GpuDequantizeJob job{
      .shape = kShape, .codes = at<std::byte>(0x1000), .scales = at<std::byte>(0x2000), .y = at<float>(0x3004)};
  expect_refusal(error_of([&] { dequantize_on_gpu(recipe(), job, Kernel::compiled); }),
                 "dequantize_on_gpu: y lies at 0x3004, 4 bytes past a multiple of 16");
}

TEST(MisalignedPointer, OfRowsAndColumnsIsNamed) {
  const auto both_at = [](std::uintptr_t x, std::uintptr_t row_codes, std::uintptr_t column_codes,
                          std::uintptr_t column_scales) {
    const GpuQuantizeJob rows{.shape = kShape,
                              .dtype = Dtype::bf16,
                              .x = at<const void>(x),
                              .codes = at<std::byte>(row_codes),
                              .scales = at<std::byte>(0x3000)};
    const GpuColumns columns{.layout = ColumnLayout::transposed,
                             .codes = at<std::byte>(column_codes),
                             .scales = at<std::byte>(column_scales)};
    return error_of([&] { quantize_both_on_gpu(recipe(), rows, columns); });
  };
  expect_refusal(both_at(0x1002, 0x2000, 0x4000, 0x5000),
                 "quantize_both_on_gpu: x lies at 0x1002, 2 bytes past a multiple of 16");
  expect_refusal(both_at(0x1000, 0x2004, 0x4000, 0x5000),
                 "quantize_both_on_gpu: codes of rows lies at 0x2004, 4 bytes past a multiple of 16");
  expect_refusal(both_at(0x1000, 0x2000, 0x4008, 0x5000),
                 "quantize_both_on_gpu: codes of columns lies at 0x4008, 8 bytes past a multiple of 16");
  expect_refusal(both_at(0x1000, 0x2000, 0x4000, 0x5001),
                 "quantize_both_on_gpu: scales of columns lies at 0x5001, 1 byte past a multiple of 16");
}

TEST(OutOfMemory, SaysHowMuchWasAskedForAndIsFree) {
  if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  const CaughtError error = error_of([] { DeviceArray<float>(std::size_t{1} << 48); });
  expect_refusal(error, "the GPU's memory is too small: 1125899906842624 bytes (1048576.0 GiB) were asked for, ");
  EXPECT_NO_THROW(DeviceArray<float>(1024)) << "the error is told once";
}

}  // namespace
}  // namespace halfulp

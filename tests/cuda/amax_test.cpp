// The largest magnitude on a GPU against the CPU's, over lengths, dtypes and places of NaN.

#include "cuda/amax.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "cuda/cvt_check.h"
#include "cuda/memory.h"
#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipes.h"
#include "tests/emulation/hard_inputs.h"

namespace halfulp {
namespace {

float amax_on_gpu(AmaxNan nan, Dtype dtype, std::span<const std::byte> elements, uint64_t count, float start) {
  const DeviceArray<std::byte> x(elements);
  const DeviceArray<float> amax(std::span<const float>(&start, 1));
  raise_largest_magnitude(nan, dtype, x.data(), count, amax.data());
  return amax.on_host()[0];
}

class GpuAmax : public testing::TestWithParam<AmaxNan> {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  }

  static void expect_equal(const std::vector<float>& x, float start) {
    Recipe recipe = recipe_named("mxfp8/te");
    recipe.amax_nan = GetParam();
    const float got = amax_on_gpu(GetParam(), Dtype::f32, std::as_bytes(std::span(x)), x.size(), start);
    EXPECT_EQ(bit_cast<uint32_t>(got), bit_cast<uint32_t>(largest_magnitude(recipe, start, x))) << x.size();
  }
};

TEST_P(GpuAmax, IsTheCpusForEveryLength) {
  const std::vector<float> x = uneven_normals(100'000);
  for (std::size_t count = 0; count < 300; ++count) expect_equal({x.begin(), x.begin() + std::ptrdiff_t(count)}, 0);
  expect_equal(x, 0);
  expect_equal(x, 1e6f);
}

TEST_P(GpuAmax, IsTheCpusWithSpecials) {
  expect_equal(special_blocks(), 0);
  expect_equal(any_bits(1 << 20), 0);
  expect_equal(std::vector<float>(1000, bit_cast<float>(0xffc1'2345u)), 0);
}

TEST_P(GpuAmax, TakesHalvesAsTheyAre) {
  const std::vector<uint16_t> bf16{0x3f80, 0xc0a0, 0x4000}, f16{0x3c00, 0xc500, 0x4000};
  EXPECT_EQ(amax_on_gpu(GetParam(), Dtype::bf16, std::as_bytes(std::span(bf16)), 3, 0), 5);
  EXPECT_EQ(amax_on_gpu(GetParam(), Dtype::f16, std::as_bytes(std::span(f16)), 3, 0), 5);
}

INSTANTIATE_TEST_SUITE_P(Nan, GpuAmax, testing::Values(AmaxNan::ignored, AmaxNan::propagates));

}  // namespace
}  // namespace halfulp

// Whole products on the GPU against the CPU's, which is held to the definition in tests/emulation/gemm_test.cpp.

#include "cuda/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cuda/cvt_check.h"
#include "tests/emulation/random_products.h"

namespace halfulp {
namespace {

std::string difference(const GemmJob& job) {
  std::vector<uint32_t> d(job.m * job.n, 0xdead'beef), expected(job.m * job.n);
  gemm_by_gpu(job, d);
  gemm(job, 2, expected);
  for (std::size_t at = 0; at < d.size(); ++at)
    if (d[at] != expected[at])
      return "element " + std::to_string(at / job.n) + ", " + std::to_string(at % job.n) + " is " +
             std::to_string(d[at]) + ", not " + std::to_string(expected[at]);
  return "";
}

std::vector<std::size_t> rows_of_instructions() {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < kAccumulators.size(); ++i)
    if (kAccumulators[i].kept_bits != kAllBits) rows.push_back(i);
  return rows;
}

class GpuGemm : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  }
  const Accumulator& row_ = kAccumulators[GetParam()];
};

TEST_P(GpuGemm, IsTheCpus) {
  unsigned seed = 0;
  for (const std::string_view a : inputs_of(row_))
    for (const std::string_view b : inputs_of(row_, a))
      for (const Draw draw : kDraws) {
        const Product product(row_, entry(a).format, entry(b).format, 67, 130, 144, draw, ++seed);
        ASSERT_EQ(difference(product.job), "") << a << " x " << b << " drawn " << int(draw);
      }
}

TEST_P(GpuGemm, IsTheCpusForEverySize) {
  const std::size_t unit = row_.scales == SumScales::groups ? 16 : 1;
  const Format format = entry(inputs_of(row_)[0]).format;
  for (std::size_t size = 0; size < 70; ++size) {
    const Product product(row_, format, format, 1 + size * 7 % 90, size, size * unit, Draw::narrow, unsigned(size));
    ASSERT_EQ(difference(product.job), "") << size;
  }
}

TEST_P(GpuGemm, IsTheCpusWithPromotionsAndSlices) {
  if (row_.sum.format.bits() != 32) GTEST_SKIP() << "sums in FP16 are not promoted";
  const Format format = entry(inputs_of(row_)[0]).format;
  for (const int every : {0, 64, 128})
    for (const int slices : {1, 2, 5})
      for (const PromotionStep step : {PromotionStep::add, PromotionStep::scaled}) {
        Accumulator row = row_;
        row.promotion = {.every = every, .step = step};
        row.slices = slices;
        Product product(row, format, format, 70, 66, 720, Draw::zeros, unsigned(every + slices));
        std::vector<float> scales(70 * 12);
        for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = 1.0f + float(i) / 3;
        product.job.a.promotion_scales = product.job.b.promotion_scales = scales;
        ASSERT_EQ(difference(product.job), "") << every << " " << slices;
      }
}

INSTANTIATE_TEST_SUITE_P(Rows, GpuGemm, testing::ValuesIn(rows_of_instructions()), [](const auto& instance) {
  std::string name(kAccumulators[instance.param].name);
  std::ranges::replace(name, '.', '_');
  return name;
});

}  // namespace
}  // namespace halfulp

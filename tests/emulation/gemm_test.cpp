// Whole products against their definition, element by element, on every instruction set; and the references against
// integers.

#include "emulation/matmul/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/simd/simd.h"
#include "formats/catalog.h"
#include "formats/codec.h"
#include "lib/bits.h"
#include "tests/emulation/random_products.h"

namespace halfulp {
namespace {

std::string difference(const GemmJob& job, int threads = 1) {
  std::vector<uint32_t> d(job.m * job.n, 0xdead'beef);
  gemm(job, threads, d);
  for (std::size_t i = 0; i < job.m; ++i)
    for (std::size_t j = 0; j < job.n; ++j)
      if (const uint32_t expected = gemm_element(job, i, j); d[i * job.n + j] != expected)
        return "element " + std::to_string(i) + ", " + std::to_string(j) + " is " + std::to_string(d[i * job.n + j]) +
               ", not " + std::to_string(expected);
  return "";
}

template <class Function>
void on_every_target(const Function& function) {
  for (const std::string_view target : simd::targets()) {
    SCOPED_TRACE(target);
    const simd::ForcedTarget forced(target);
    function();
  }
}

class EveryRow : public testing::TestWithParam<std::size_t> {
 protected:
  const Accumulator& row_ = kAccumulators[GetParam()];
};

TEST_P(EveryRow, IsItsDefinition) {
  const std::size_t tail = row_.scales == SumScales::groups ? 16 : 7;
  on_every_target([&] {
    unsigned seed = 0;
    for (const std::string_view a : inputs_of(row_))
      for (const std::string_view b : inputs_of(row_, a))
        for (const Draw draw : kDraws) {
          const Product product(row_, entry(a).format, entry(b).format, 5, 19, 96 + tail, draw, ++seed);
          ASSERT_EQ(refusal(product.job), "");
          ASSERT_EQ(difference(product.job), "") << a << " x " << b << " drawn " << int(draw);
        }
  });
}

TEST_P(EveryRow, IsItsDefinitionForEverySize) {
  const std::size_t unit = row_.scales == SumScales::groups ? 16 : 1;
  const Format format = entry(inputs_of(row_)[0]).format;
  for (std::size_t size = 0; size < 40; ++size) {
    const Product product(row_, format, format, 1 + size % 9, size, size * unit, Draw::narrow, unsigned(size));
    ASSERT_EQ(difference(product.job), "") << size;
  }
}

TEST_P(EveryRow, IsPromotedAndSlicedByDefinition) {
  if (row_.sum.format.bits() != 32) GTEST_SKIP() << "sums in FP16 are not promoted";
  const Format format = entry(inputs_of(row_)[0]).format;
  for (const int every : {0, 64, 128})
    for (const int slices : {1, 2, 3, 5})
      for (const PromotionStep step : {PromotionStep::add, PromotionStep::scaled}) {
        Accumulator row = row_;
        if (row.block == kAllProducts && every != 0) row.block = 1;
        row.promotion = {.every = every, .step = step};
        row.slices = slices;
        Product product(row, format, format, 5, 9, 720, Draw::narrow, unsigned(every + slices));
        std::vector<float> scales(9 * 12);
        for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = 1.0f + float(i) / 3;
        product.job.a.promotion_scales = product.job.b.promotion_scales = scales;
        ASSERT_EQ(refusal(product.job), "");
        ASSERT_EQ(difference(product.job), "") << every << " " << slices;
      }
}

TEST_P(EveryRow, IsTheSameForAnyThreads) {
  const Format format = entry(inputs_of(row_)[0]).format;
  const Product product(row_, format, format, 70, 530, 64, Draw::wide, 3);
  std::vector<uint32_t> one(70 * 530), three(70 * 530);
  gemm(product.job, 1, one);
  gemm(product.job, 3, three);
  EXPECT_EQ(one, three);
}

INSTANTIATE_TEST_SUITE_P(Rows, EveryRow, testing::Range<std::size_t>(0, kAccumulators.size()),
                         [](const auto& instance) {
                           std::string name(kAccumulators[instance.param].name);
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

// A difference that would go unseen is a test that cannot fail.
TEST(Gemm, WithAnotherAccumulatorDiffers) {
  for (const std::string_view name :
       {"sm90.hmma.f32", "sm90.qgmma.f32", "sm100.omma.f32", "sm100.utcqmma_mx.f32", "sm90.mma_sync_fp8.f32"}) {
    const Accumulator row = accumulator(name);
    const Format format = entry(inputs_of(row)[0]).format;
    bool differs = false;
    for (const Draw draw : kDraws) {
      Product product(row, format, format, 16, 16, 256, draw, 1);
      std::vector<uint32_t> d(256), wrong(256);
      gemm(product.job, 1, d);
      --product.job.row.kept_bits;
      gemm(product.job, 1, wrong);
      differs = differs || d != wrong;
    }
    EXPECT_TRUE(differs) << name;
  }
}

// The references. Products of E4M3 are multiples of 2^-18 below 2^18: sums of them are integers that a double holds.
class References : public testing::Test {
 protected:
  static constexpr std::size_t kK = 501;
  const Format e4m3_ = entry("e4m3").format;
  std::vector<uint32_t> a_, b_;
  std::vector<int64_t> products_;  // in units of 2^-18

  References() {
    std::mt19937 random(5);
    for (std::size_t k = 0; k < kK; ++k) {
      a_.push_back(uint32_t(random()) % 0x7f | (uint32_t(random()) & 0x80));
      b_.push_back(uint32_t(random()) % 0x7f | (uint32_t(random()) & 0x80));
      products_.push_back(int64_t(double(decode(e4m3_, a_[k])) * decode(e4m3_, b_[k]) * 0x1p18));
    }
  }
  float result(std::string_view name, float c) const {
    const uint32_t code = bit_cast<uint32_t>(c);
    const GemmJob job{.row = accumulator(name),
                      .m = 1,
                      .n = 1,
                      .k = kK,
                      .a = {.format = e4m3_, .codes = a_},
                      .b = {.format = e4m3_, .codes = b_},
                      .c = {&code, 1}};
    return bit_cast<float>(gemm_element(job, 0, 0));
  }
  static float nearest(int64_t sum) { return float(double(sum) * 0x1p-18); }
  static int64_t exact(float x) { return int64_t(double(x) * 0x1p18); }
};

TEST_F(References, OfFp64RoundOnce) {
  int64_t sum = int64_t{3} << 18;
  for (const int64_t p : products_) sum += p;
  EXPECT_EQ(result("ref.fp64", 3), nearest(sum));
}

TEST_F(References, OfFp32RoundEachSum) {
  float sum = 3;
  for (const int64_t p : products_) sum = nearest(exact(sum) + p);
  EXPECT_EQ(result("ref.fp32_sequential", 3), sum);
}

TEST_F(References, OfHalvesRoundEachSum) {
  // Level by level: 501 products are 256 + 128 + 64 + 32 + 16 + 4 + 1, and what follows a part is added to it first.
  std::vector<float> sums;
  std::size_t at = 0;
  for (const std::size_t part : {256, 128, 64, 32, 16, 4, 1}) {
    std::vector<float> level;
    for (std::size_t k = 0; k < part; ++k) level.push_back(nearest(products_[at + k]));
    for (; level.size() > 1; level.resize(level.size() / 2))
      for (std::size_t i = 0; i < level.size() / 2; ++i)
        level[i] = nearest(exact(level[2 * i]) + exact(level[2 * i + 1]));
    sums.push_back(level[0]);
    at += part;
  }
  ASSERT_EQ(at, kK);
  float sum = sums.back();
  for (std::size_t i = sums.size() - 1; i-- > 0;) sum = nearest(exact(sums[i]) + exact(sum));
  EXPECT_EQ(result("ref.fp32_pairwise", 3), nearest(exact(sum) + (int64_t{3} << 18)));
}

// Twice rounded, to a double and then to FP32, this would be a tie and go down to the even 1.
TEST(ExactSum, IsRoundedOnceToFp32) {
  const Format f32 = entry("f32").format;
  const std::vector<uint32_t> ones(3, 0x3f80'0000);
  const std::vector<uint32_t> terms{bit_cast<uint32_t>(1.0f), bit_cast<uint32_t>(0x1p-24f),
                                    bit_cast<uint32_t>(0x1p-90f)};
  const GemmJob job{.row = accumulator("ref.fp64"),
                    .m = 1,
                    .n = 1,
                    .k = 3,
                    .a = {.format = f32, .codes = terms},
                    .b = {.format = f32, .codes = ones}};
  EXPECT_EQ(gemm_element(job, 0, 0), 0x3f80'0001u);
}

// What a refusal says.
TEST(GemmRefusal, SaysWhatARowTakes) {
  const Format e4m3 = entry("e4m3").format, bf16 = entry("bf16").format;
  const std::vector<uint32_t> codes(64), scales(4);
  const auto job = [&](std::string_view name, const Format& format, std::size_t k, std::size_t scaled) {
    GemmOperand x{.format = format, .codes = codes};
    if (scaled != 0) x.scale_format = entry("e8m0").format, x.scales = scales, x.scaled = scaled;
    return GemmJob{.row = accumulator(name), .m = 1, .n = 1, .k = k, .a = x, .b = x};
  };
  EXPECT_EQ(refusal(job("sm90.qgmma.f32", bf16, 64, 0)), "takes e4m3,e5m2");
  EXPECT_EQ(refusal(job("sm90.qgmma.f32", e4m3, 64, 32)), "takes no scales of blocks");
  EXPECT_EQ(refusal(job("sm100.utcqmma_mx.f32", e4m3, 64, 0)), "needs scales of blocks");
  EXPECT_EQ(refusal(job("sm100.utcqmma_mx.f32", e4m3, 64, 16)),
            "needs scales of 32 elements, or of a multiple of that");
  EXPECT_EQ(refusal(job("sm100.omma.f32", entry("e2m1").format, 60, 16)), "needs a K that 16 divides");
  GemmJob fp32_scales = job("sm100.utcqmma_mx.f32", e4m3, 64, 32);
  fp32_scales.a.scale_format = entry("f32").format;
  EXPECT_EQ(refusal(fp32_scales), "takes scales of e8m0");
  GemmJob mixed = job("sm90.hmma.f32", bf16, 64, 0);
  mixed.b.format = entry("f16").format;
  EXPECT_EQ(refusal(mixed), "takes two operands of one format");
  GemmJob promoted = job("sm90.qgmma.f32", e4m3, 64, 0);
  promoted.row.promotion.every = 48;
  EXPECT_EQ(refusal(promoted), "is promoted after multiples of 32 products");
}

}  // namespace
}  // namespace halfulp

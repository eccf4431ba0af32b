// Products with scales of blocks by both of Blackwell's paths, on whatever GPU there is, against the CPU's.

#include "cuda/gemm_block_scaled.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cuda/cvt_check.h"
#include "emulation/matmul/gemm.h"
#include "formats/catalog.h"
#include "formats/codec.h"

namespace halfulp {
namespace {

struct Kind {
  BlockScaledKind kind;
  std::string_view a, b, scale;
  std::size_t block;
};
constexpr Kind kKinds[] = {
    {BlockScaledKind::nvfp4, "e2m1", "e2m1", "ue4m3", 16}, {BlockScaledKind::mxfp4, "e2m1", "e2m1", "e8m0", 32},
    {BlockScaledKind::mxfp8, "e4m3", "e4m3", "e8m0", 32},  {BlockScaledKind::mxfp8, "e4m3", "e5m2", "e8m0", 32},
    {BlockScaledKind::mxfp8, "e5m2", "e4m3", "e8m0", 32},  {BlockScaledKind::mxfp8, "e5m2", "e5m2", "e8m0", 32},
};

const Format& format(std::string_view name) { return kFormats[std::size_t(find_format(name))].format; }

enum class Draw {
  any,       // codes and scales: NaN, Inf, zeros
  numbers,   // no NaN or Inf; scales within 2^8 of each other
  zeros,     // seven of ten codes
  cancels,   // each odd block is the negative of the one before, but for a few
  far_apart  // scales at either end
};
constexpr Draw kDraws[] = {Draw::any, Draw::numbers, Draw::zeros, Draw::cancels, Draw::far_apart};

// An operand one code to a word, and packed as the kernels take it.
class Operand {
 public:
  Operand(const Kind& kind, std::string_view name, std::size_t rows, std::size_t k, Draw draw, ScaleOrder order,
          unsigned seed)
      : name_(name), scale_(format(kind.scale)), block_(kind.block), order_(order), random_(seed) {
    const std::size_t cols = k / kind.block;
    for (std::size_t i = 0; i < rows * k; ++i) codes_.push_back(code(draw, i, k));
    for (std::size_t i = 0; i < rows * cols; ++i) scales_.push_back(scale(draw));
    pack(rows, cols);
  }

  BlockScaledOperand packed() const {
    return {.format = name_, .codes = packed_codes_, .scales = packed_scales_, .order = order_};
  }
  GemmOperand unpacked() const {
    return {.format = format(name_), .codes = codes_, .scale_format = scale_, .scales = scales_, .scaled = block_};
  }

 private:
  uint32_t pick(uint32_t bound) { return uint32_t(random_()) % bound; }
  uint32_t code(Draw draw, std::size_t i, std::size_t k) {
    const Format& f = format(name_);
    const uint32_t any = uint32_t(random_()) & f.code_mask();
    if (draw == Draw::any) return any;
    if (draw == Draw::zeros && pick(10) < 7) return any & f.sign_mask();
    if (draw == Draw::cancels && i % k >= 32 && i % k / 32 % 2 == 1 && pick(16) != 0)
      return codes_[i - 32] ^ f.sign_mask();
    return (any & f.magnitude_mask()) > f.max_code() ? f.max_code() : any;
  }
  uint32_t scale(Draw draw) {
    const uint32_t one = uint32_t(scale_.bias) << scale_.mantissa_bits;
    switch (draw) {
      case Draw::any: return uint32_t(random_()) & 0xff;
      case Draw::far_apart: return pick(2) == 0 ? pick(4) : scale_.max_code() - pick(4);
      case Draw::cancels: return one;
      default: return one - 8 + pick(16);
    }
  }
  void pack(std::size_t rows, std::size_t cols) {
    const bool nibbles = format(name_).bits() == 4;
    packed_codes_.resize(codes_.size() / (nibbles ? 2 : 1));
    for (std::size_t i = 0; i < codes_.size(); ++i)
      packed_codes_[nibbles ? i / 2 : i] |= uint8_t(codes_[i] << (nibbles ? i % 2 * 4 : 0));
    const bool tiles = order_ == ScaleOrder::tiles;
    const std::size_t bytes = tiles ? round_up(rows, kTileRows) * round_up(cols, kTileCols) : rows * cols;
    packed_scales_.assign(bytes, 0xff);  // padding, NaN, must not be looked at
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t col = 0; col < cols; ++col)
        packed_scales_[tiles ? swizzled_offset(cols, row, col) : row * cols + col] = uint8_t(scales_[row * cols + col]);
  }

  std::string_view name_;
  Format scale_;
  std::size_t block_;
  ScaleOrder order_;
  std::mt19937 random_;
  std::vector<uint32_t> codes_, scales_;
  std::vector<uint8_t> packed_codes_, packed_scales_;
};

struct Sizes {
  std::size_t m, n, k;
};

struct Case {
  Operand a, b;
  std::vector<float> c;
  BlockScaledJob job;

  Case(const Kind& kind, Sizes size, Draw draw, ScaleOrder order, unsigned seed)
      : a(kind, kind.a, size.m, size.k, draw, order, seed), b(kind, kind.b, size.n, size.k, draw, order, seed + 1000) {
    job = {.kind = kind.kind, .m = size.m, .n = size.n, .k = size.k, .a = a.packed(), .b = b.packed()};
  }
  Case(const Case&) = delete;

  void add_c(unsigned seed) {
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < job.m * job.n; ++i) c.push_back(std::ldexp(float(int(random() % 4001) - 2000), -8));
    job.c = c;
  }
};

// FP32 sums, by gemm(), and some of them by the definition.
std::vector<uint32_t> sums(const Case& is, BlockScaledPath path) {
  const BlockScaledJob& job = is.job;
  std::vector<uint32_t> d(job.m * job.n);
  if (job.k == 0) return d;
  const GemmJob on_cpu{.row = accumulator_of(job.kind, path),
                       .m = job.m,
                       .n = job.n,
                       .k = job.k,
                       .a = is.a.unpacked(),
                       .b = is.b.unpacked()};
  EXPECT_EQ(refusal(on_cpu), "");
  gemm(on_cpu, 2, d);
  for (std::size_t i = 0; i < d.size(); i += 97)
    EXPECT_EQ(d[i], gemm_element(on_cpu, i / job.n, i % job.n)) << "the oracles differ at " << i;
  return d;
}

uint32_t with_epilogue(const BlockScaledJob& job, uint32_t sum, std::size_t i) {
  const float x = bit_cast<float>(sum), d = job.c.empty() ? job.alpha * x : std::fma(job.alpha, x, job.beta * job.c[i]);
  const uint32_t bits = d == d ? bit_cast<uint32_t>(d) : 0x7fff'ffff;
  if (job.output == GemmOutput::f32) return bits;
  if (d != d) return 0x7fff;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

std::string difference(const Case& is, BlockScaledPath path) {
  const BlockScaledJob& job = is.job;
  const std::size_t bytes = job.output == GemmOutput::f32 ? 4 : 2;
  std::vector<std::byte> d(job.m * job.n * bytes, std::byte{0xee});
  gemm_block_scaled(job, path, d);
  const std::vector<uint32_t> expected = sums(is, path);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    uint32_t got = 0;
    std::memcpy(&got, d.data() + i * bytes, bytes);
    if (const uint32_t want = with_epilogue(job, expected[i], i); got != want)
      return "element " + std::to_string(i / job.n) + ", " + std::to_string(i % job.n) + " is " + std::to_string(got) +
             ", not " + std::to_string(want);
  }
  return "";
}

class BlockScaledGemm : public testing::TestWithParam<std::tuple<std::size_t, BlockScaledPath>> {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  }
  const Kind& kind_ = kKinds[std::get<0>(GetParam())];
  const BlockScaledPath path_ = std::get<1>(GetParam());
};

TEST_P(BlockScaledGemm, IsTheSumOfTheInstructionsInOrder) {
  unsigned seed = 0;
  for (const Draw draw : kDraws) {
    const ScaleOrder order = ++seed % 2 == 0 ? ScaleOrder::row_major : ScaleOrder::tiles;
    const Case is(kind_, {70, 133, 416}, draw, order, seed);
    ASSERT_EQ(difference(is, path_), "") << "drawn " << int(draw);
  }
}

TEST_P(BlockScaledGemm, TakesEverySizeThatTheBlocksDivide) {
  for (const std::size_t blocks : {0u, 1u, 2u, 3u, 4u, 5u, 7u, 8u, 9u, 12u, 17u}) {
    const Case is(kind_, {1 + blocks * 7, 1 + blocks * 13 % 67, blocks * kind_.block}, Draw::numbers,
                  ScaleOrder::row_major, unsigned(blocks));
    ASSERT_EQ(difference(is, path_), "") << blocks << " blocks";
  }
}

TEST_P(BlockScaledGemm, EndsWithAlphaAndBetaInF32) {
  Case is(kind_, {66, 130, 256}, Draw::numbers, ScaleOrder::tiles, 7);
  is.job.alpha = 0.3f;
  ASSERT_EQ(difference(is, path_), "");
  is.add_c(8);
  is.job.beta = -1.7f;
  ASSERT_EQ(difference(is, path_), "") << "with c";
}

TEST_P(BlockScaledGemm, RoundsToBf16Last) {
  Case is(kind_, {66, 130, 256}, Draw::numbers, ScaleOrder::row_major, 9);
  is.job.output = GemmOutput::bf16;
  is.job.alpha = 0.3f;
  EXPECT_EQ(difference(is, path_), "");
}

TEST_P(BlockScaledGemm, MakesMoreTilesThanThereAreMultiprocessors) {
  const Case is(kind_, {128 * 13 + 1, 128 * 11 + 1, 2 * kind_.block}, Draw::numbers, ScaleOrder::tiles, 10);
  EXPECT_EQ(difference(is, path_), "");
}

INSTANTIATE_TEST_SUITE_P(Kinds, BlockScaledGemm,
                         testing::Combine(testing::Range<std::size_t>(0, std::size(kKinds)),
                                          testing::Values(BlockScaledPath::mma_sync, BlockScaledPath::tcgen05)),
                         [](const auto& instance) {
                           const Kind& kind = kKinds[std::get<0>(instance.param)];
                           const bool sync = std::get<1>(instance.param) == BlockScaledPath::mma_sync;
                           return std::string(kind.a) + "_" + std::string(kind.b) + "_of_" +
                                  std::to_string(kind.block) + (sync ? "_by_mma_sync" : "_by_tcgen05");
                         });

TEST(BlockScaledGemmRun, SaysWhetherTheInstructionsWereModels) {
  if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  const Case is(kKinds[0], {16, 16, 64}, Draw::numbers, ScaleOrder::row_major, 1);
  std::vector<std::byte> d(16 * 16 * 4);
  const BlockScaledRun sync = gemm_block_scaled(is.job, BlockScaledPath::mma_sync, d);
  const BlockScaledRun tensor = gemm_block_scaled(is.job, BlockScaledPath::tcgen05, d);
  const bool rtx = sync.target.starts_with("sm_12"), data_center = sync.target.starts_with("sm_10");
  EXPECT_EQ(sync.form == arch::Form::native, rtx) << sync.target;
  EXPECT_EQ(tensor.form == arch::Form::native, data_center || sync.target.starts_with("sm_11")) << sync.target;
}

TEST(BlockScaledGemmRefusal, NamesWhatIsWrong) {
  Case is(kKinds[0], {16, 16, 64}, Draw::numbers, ScaleOrder::row_major, 1);
  EXPECT_EQ(refusal(is.job), "");
  is.job.k = 72;
  EXPECT_NE(refusal(is.job).find("K = 72 is no multiple"), std::string::npos);
  is.job.k = 64;
  is.job.b.order = ScaleOrder::tiles;
  EXPECT_NE(refusal(is.job).find("b has 64 bytes of scales, not 512"), std::string::npos);
  is.job.a.format = "e4m3";
  EXPECT_NE(refusal(is.job).find("a is of e4m3"), std::string::npos);
}

}  // namespace
}  // namespace halfulp

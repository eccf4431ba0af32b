// Products made by known accumulators are told by their bits, or honestly not told from others; one wrong bit is found.

#include "emulation/analysis/identify_accumulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "emulation/matmul/slices.h"
#include "tests/emulation/random_products.h"

namespace halfulp {
namespace {

std::vector<Accumulator> all_rows() { return {kAccumulators.begin(), kAccumulators.end()}; }

std::vector<uint32_t> d_of(GemmJob job, const Accumulator& row) {
  job.row = row;
  std::vector<uint32_t> d(job.m * job.n);
  gemm(job, 1, d);
  return d;
}

Identification identify(const GemmJob& job, const std::vector<uint32_t>& d, const Format& format,
                        const Epilogue& epilogue = {}) {
  const Observation observation{.tiles = {{.job = job, .epilogue = epilogue, .d = d}}, .rows = all_rows()};
  return identify_accumulator({&observation, 1}, format, 2);
}

// The names of the rows that fit, and the text of each candidate.
std::vector<std::string> names_of(const Identification& found) {
  std::vector<std::string> names;
  for (const SumCandidate& fit : found.fitting) {
    names.emplace_back(fit.row.name);
    names.insert(names.end(), fit.also.begin(), fit.also.end());
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}
std::vector<std::string> texts_of(const Identification& found) {
  std::vector<std::string> texts;
  for (const SumCandidate& fit : found.fitting) texts.push_back(candidate_text(fit));
  return texts;
}

// Whether row y, with a promotion and slices added, can be the arithmetic of row x.
bool can_be(const Accumulator& x, const Accumulator& y) {
  return x.block == y.block && x.kept_bits == y.kept_bits && x.order == y.order && x.operands == y.operands &&
         x.scales == y.scales && x.sum.format == y.sum.format && x.sum.unused_bits == y.sum.unused_bits &&
         x.least_exponent == y.least_exponent && (y.promotion.every == x.promotion.every || y.promotion.every == 0) &&
         (y.slices == x.slices || y.slices == 1);
}

class Identify : public testing::TestWithParam<Accumulator> {};

TEST_P(Identify, FindsTheRowAndNoneOfOtherArithmetic) {
  const Accumulator row = GetParam();
  const std::string_view input =
      inputs_of(row).back() == "e2m1" && row.inputs.empty() ? "bf16" : inputs_of(row).front();
  const Format format = entry(input).format;
  // Exponents all over the range tell blocks and bits apart; in FP32 all orders of such sums are one.
  const Draw draw = row.kept_bits == kAllBits ? Draw::narrow : Draw::wide;
  const Product product(row, format, format, 16, 16, 512, draw, 3);
  std::vector<std::string> expected;
  for (const Accumulator& other : kAccumulators)
    if ((other.inputs.empty() || std::ranges::count(inputs_of(other), input) > 0) && can_be(row, other))
      expected.emplace_back(other.name);
  std::ranges::sort(expected);
  EXPECT_EQ(names_of(identify(product.job, d_of(product.job, row), row.sum.format)), expected);
}

INSTANTIATE_TEST_SUITE_P(Rows, Identify, testing::ValuesIn(kAccumulators), [](const auto& instance) {
  std::string name(instance.param.name);
  std::ranges::replace(name, '.', '_');
  return name;
});

// How many products a candidate adds up before it goes on in FP32. Additions that are exact tell no more of it.
std::size_t chain_length(const SumCandidate& candidate, GemmJob job) {
  job.row = candidate.row;
  return candidate.row.promotion.every != 0 ? std::size_t(candidate.row.promotion.every) : slice_length(job);
}

bool has_text(const Identification& found, const std::string& text) {
  const std::vector<std::string> texts = texts_of(found);
  return std::ranges::find(texts, text) != texts.end();
}

// A product of E4M3 in which rows differ.
class IdentifyKernel : public testing::Test {
 protected:
  const Format e4m3_ = entry("e4m3").format;
  const Format f32_ = entry("f32").format;
  Product product_{accumulator("sm90.qgmma.f32"), e4m3_, e4m3_, 16, 16, 1024, Draw::narrow, 5};
};

TEST_F(IdentifyKernel, FindsPromotions) {
  Accumulator row = accumulator("sm90.qgmma.f32");
  for (const int every : {64, 128, 256, 512}) {
    row.promotion.every = every;
    const Identification found = identify(product_.job, d_of(product_.job, row), f32_);
    EXPECT_TRUE(has_text(found, "sm90.qgmma.f32, promoted every " + std::to_string(every) + " products"));
    for (const SumCandidate& fit : found.fitting)
      EXPECT_EQ(chain_length(fit, product_.job), std::size_t(every)) << candidate_text(fit);
  }
}

// The sums are those that C starts with, whatever the slices.
TEST_F(IdentifyKernel, TakesProductsOfNoTerms) {
  const GemmJob job{.row = accumulator("sm90.qgmma.f32"),
                    .m = 2,
                    .n = 3,
                    .k = 0,
                    .a = {.format = e4m3_, .codes = {}},
                    .b = {.format = e4m3_, .codes = {}}};
  EXPECT_FALSE(identify(job, std::vector<uint32_t>(6, 0), f32_).fitting.empty());
}

TEST_F(IdentifyKernel, FindsSlices) {
  Accumulator row = accumulator("sm90.qgmma.f32");
  for (const int slices : {2, 4, 8, 16}) {
    row.slices = slices;
    const Identification found = identify(product_.job, d_of(product_.job, row), f32_);
    EXPECT_TRUE(has_text(found, "sm90.qgmma.f32, " + std::to_string(slices) + " slices"));
    for (const SumCandidate& fit : found.fitting)
      EXPECT_EQ(chain_length(fit, product_.job), 1024u / unsigned(slices)) << candidate_text(fit);
  }
}

// Columns of both operands in another order: what a kernel that goes through K so computes.
std::vector<uint32_t> reordered(std::span<const uint32_t> codes, std::size_t k, const std::vector<std::size_t>& tiles) {
  std::vector<uint32_t> out;
  const std::size_t width = k / tiles.size();
  for (std::size_t row = 0; row < codes.size() / k; ++row)
    for (const std::size_t tile : tiles)
      out.insert(out.end(), &codes[row * k + tile * width], &codes[row * k + tile * width] + width);
  return out;
}

std::vector<uint32_t> d_in_order(const GemmJob& job, const Accumulator& row, const std::vector<std::size_t>& tiles) {
  const std::vector<uint32_t> a = reordered(job.a.codes, job.k, tiles), b = reordered(job.b.codes, job.k, tiles);
  GemmJob other = job;
  other.a.codes = a, other.b.codes = b;
  return d_of(other, row);
}

TEST_F(IdentifyKernel, FindsDescendingBlocks) {
  std::vector<std::size_t> tiles;
  for (std::size_t t = 0; t < 32; ++t) tiles.push_back(31 - t);
  const Identification found =
      identify(product_.job, d_in_order(product_.job, accumulator("sm90.qgmma.f32"), tiles), f32_);
  EXPECT_EQ(texts_of(found), std::vector<std::string>{"sm90.qgmma.f32, blocks of 32 descending"});
}

TEST_F(IdentifyKernel, FindsInterleavedSlices) {
  std::vector<std::size_t> tiles;
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t t = s; t < 16; t += 2) tiles.push_back(t);
  Accumulator row = accumulator("sm90.qgmma.f32");
  row.slices = 2;
  const Identification found = identify(product_.job, d_in_order(product_.job, row, tiles), f32_);
  EXPECT_EQ(texts_of(found), std::vector<std::string>{"sm90.qgmma.f32, 2 interleaved slices of tiles of 64"});
}

TEST_F(IdentifyKernel, FindsCAddedLast) {
  GemmJob without = product_.job;
  without.c = {};
  std::vector<uint32_t> d = d_of(without, accumulator("sm90.qgmma.f32"));
  for (std::size_t i = 0; i < d.size(); ++i)
    d[i] = bit_cast<uint32_t>(bit_cast<float>(d[i]) + bit_cast<float>(product_.c[i]));
  EXPECT_EQ(texts_of(identify(product_.job, d, f32_)), std::vector<std::string>{"sm90.qgmma.f32, c added last"});
}

TEST_F(IdentifyKernel, FindsWhatWasScaledAndRoundedToBf16) {
  const Format bf16 = entry("bf16").format;
  const Epilogue epilogue{.scales = true, .alpha = 0.3f};
  std::vector<uint32_t> d = d_of(product_.job, accumulator("sm90.qgmma.f32"));
  for (uint32_t& x : d) {
    const float scaled = 0.3f * bit_cast<float>(x);
    x = encode(bf16, {.rounding = Rounding::nearest_even, .overflow = Overflow::to_special}, scaled);
  }
  const std::vector<std::string> names = names_of(identify(product_.job, d, bf16, epilogue));
  EXPECT_NE(std::ranges::find(names, "sm90.qgmma.f32"), names.end());
}

TEST_F(IdentifyKernel, RefutesAFlippedBitWithItsOutput) {
  std::vector<uint32_t> d = d_of(product_.job, accumulator("sm90.qgmma.f32"));
  d[5 * 16 + 7] ^= 1 << 12;
  const Identification found = identify(product_.job, d, f32_);
  EXPECT_TRUE(found.fitting.empty());
  ASSERT_TRUE(found.refutation);
  EXPECT_EQ(found.refutation->candidate.row.name, "sm90.qgmma.f32");
  EXPECT_EQ(found.refutation->row, 5u);
  EXPECT_EQ(found.refutation->col, 7u);
  EXPECT_EQ(found.refutation->observed, found.refutation->computed ^ 1 << 12);
  EXPECT_EQ(found.refuted.front().mismatches, 1u);
}

TEST_F(IdentifyKernel, RefutesWithTheOutputOfFewestProducts) {
  GemmJob job = product_.job;
  std::vector<uint32_t> a(job.a.codes.begin(), job.a.codes.end());
  for (std::size_t k = 3; k < job.k; ++k) a[9 * job.k + k] = 0;
  job.a.codes = a;
  std::vector<uint32_t> d = d_of(job, accumulator("sm90.qgmma.f32"));
  for (uint32_t& x : d) x ^= 1 << 11;
  const Identification found = identify(job, d, f32_);
  ASSERT_TRUE(found.refutation);
  EXPECT_EQ(found.refutation->row, 9u);
  EXPECT_LE(found.refutation->products, 3u);
}

// Small integers are added exactly by all: no data tells rows apart on which they do not differ.
TEST(IdentifyAccumulator, SaysThatRowsCannotBeToldApart) {
  const Format e4m3 = entry("e4m3").format;
  std::vector<uint32_t> ones(4 * 64, encode(e4m3, {}, 1.0f));
  const GemmJob job{.row = {}, .m = 4, .n = 4, .k = 64, .a = {e4m3, ones}, .b = {e4m3, ones}};
  const std::vector<std::string> names =
      names_of(identify(job, d_of(job, accumulator("ref.fp64")), entry("f32").format));
  for (const char* name : {"sm89.qmma.f32", "sm90.qgmma.f32", "sm90.mma_sync_fp8.f32", "sm100.utcqmma.f32", "ref.fp64"})
    EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
}

TEST(IdentifyAccumulator, DoesNotDependOnThreads) {
  const Format bf16 = entry("bf16").format;
  const Product product(accumulator("sm90.hmma.f32"), bf16, bf16, 8, 8, 256, Draw::narrow, 1);
  const std::vector<uint32_t> d = d_of(product.job, accumulator("ref.fp32_pairwise"));
  const Observation observation{.tiles = {{.job = product.job, .epilogue = {}, .d = d}}, .rows = all_rows()};
  const Format f32 = entry("f32").format;
  const Identification one = identify_accumulator({&observation, 1}, f32, 1),
                       many = identify_accumulator({&observation, 1}, f32, 7);
  EXPECT_EQ(texts_of(one), texts_of(many));
  ASSERT_EQ(one.refuted.size(), many.refuted.size());
  for (std::size_t i = 0; i < one.refuted.size(); ++i) EXPECT_EQ(one.refuted[i].mismatches, many.refuted[i].mismatches);
}

}  // namespace
}  // namespace halfulp

// Public bug reports of this field whose subject is a matrix product: inputs and right answers are read from
// tests/golden/public_reports.json, by id.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "emulation/matmul/epilogue.h"
#include "emulation/matmul/gemm.h"
#include "formats/catalog.h"
#include "formats/codec.h"
#include "tests/emulation/reports.h"

namespace halfulp {
namespace {

using Json = nlohmann::json;
using reports::expected;
using reports::hexadecimal;
using reports::input;

Accumulator accumulator(std::string_view name) { return kAccumulators[std::size_t(find_accumulator(name))]; }
uint32_t code_of(const Format& f, double x) {
  return encode(f, {.rounding = Rounding::nearest_even, .overflow = Overflow::saturate}, x);
}
float value_of(const GemmJob& job) { return bit_cast<float>(gemm_element(job, 0, 0)); }

const Format kE2m1 = format_named("e2m1"), kE4m3 = format_named("e4m3"), kE5m2 = format_named("e5m2"),
             kE8m0 = format_named("e8m0");

// 128 products of 2^112 and 2^8 under a scale of 2^-127, which is subnormal in FP32: flushed, the sum would be 0.
TEST(MatmulReport, B07) {
  const Format bf16 = format_named("bf16");
  const auto k = input("B07").at("K").get<std::size_t>();
  const std::vector<uint32_t> a(k, code_of(bf16, 0x1p112)), b(k, code_of(kE4m3, 256)), scales(k / 32, 0);
  for (const char* row : {"ref.fp64", "ref.fp32_sequential", "ref.fp32_pairwise", "ref.fp32_split_k"})
    EXPECT_EQ(
        value_of({.row = accumulator(row), .m = 1, .n = 1, .k = k, .a = {bf16, a}, .b = {kE4m3, b, kE8m0, scales, 32}}),
        expected("B07").get<float>())
        << row;
}

// The same sum as the instruction has it: 2^112 is 2^15 under a scale of 2^97.
TEST(MatmulReport, B07UnderTheInstruction) {
  const auto k = input("B07").at("K").get<std::size_t>();
  const std::vector<uint32_t> a(k, code_of(kE5m2, 0x1p15)), b(k, code_of(kE4m3, 256));
  const std::vector<uint32_t> of_a(k / 32, 127 + 97), of_b(k / 32, 0);
  EXPECT_EQ(value_of({.row = accumulator("sm100.utcqmma_mx.f32"),
                      .m = 1,
                      .n = 1,
                      .k = k,
                      .a = {kE5m2, a, kE8m0, of_a, 32},
                      .b = {kE4m3, b, kE8m0, of_b, 32}}),
            expected("B07").get<float>());
}

// A NaN scale makes every product of its block NaN, that of a zero too.
TEST(MatmulReport, B11) {
  const uint32_t scale = input("B11").at("e8m0_byte").get<uint32_t>();
  for (const char* row : {"sm100.omma.f32", "sm100.utcqmma_mx.f32", "ref.fp64", "ref.fp32_sequential"})
    for (const Json& code : input("B11").at("fp4_codes")) {
      std::vector<uint32_t> a(64, 0), b(64, code_of(kE2m1, 1));
      a[0] = hexadecimal(code);
      const std::vector<uint32_t> nan{scale, 127}, one{127, 127};
      EXPECT_TRUE(std::isnan(value_of({.row = accumulator(row),
                                       .m = 1,
                                       .n = 1,
                                       .k = 64,
                                       .a = {kE2m1, a, kE8m0, nan, 32},
                                       .b = {kE2m1, b, kE8m0, one, 32}})))
          << row << ' ' << code;
    }
}

// What an accumulator keeps of C without products: 13 bits of mantissa where FP8's datapath is narrow.
TEST(MatmulReport, G01) {
  const std::vector<uint32_t> zeros(32, 0);
  const auto kept = [&](const char* row, const Json& c) {
    const std::vector<uint32_t> start{hexadecimal(c)};
    return gemm_element(
        {.row = accumulator(row), .m = 1, .n = 1, .k = 32, .a = {kE4m3, zeros}, .b = {kE4m3, zeros}, .c = start}, 0, 0);
  };
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& c = input("G01").at("C_f32_bits")[i];
    for (const char* row : {"sm89.qmma.f32", "sm90.qgmma.f32"})
      EXPECT_EQ(kept(row, c), hexadecimal(expected("G01").at("13bit_trunc")[i])) << row;
    for (const char* row : {"sm90.mma_sync_fp8.f32", "sm100.utcqmma.f32", "ref.fp64"})
      EXPECT_EQ(kept(row, c), hexadecimal(expected("G01").at("f32")[i])) << row;
  }
}

// The tensors' scales multiply the sum, once: not each product, which rounds otherwise.
TEST(MatmulReport, G09) {
  const auto products = input("G09").at("products").get<std::vector<float>>();
  const float scale = input("G09").at("scale").get<float>();
  float sum = 0, scaled = 0;
  for (const float x : products) sum += x, scaled += scale * x;
  const Epilogue epilogue{.scales = true, .alpha = scale};
  EXPECT_EQ(bit_cast<float>(epilogue.apply(bit_cast<uint32_t>(sum), 0, 0, 1)), scale * sum);
  EXPECT_NEAR(scaled, scale * sum, 4 * 0x1p-25f);  // a few ulps, as the report says
}

TEST(MatmulReport, C28) {
  const Epilogue epilogue{.scales = true,
                          .alpha = input("C28").at("a_global").get<float>() * input("C28").at("b_global").get<float>()};
  const float sum = input("C28").at("acc").get<float>();
  EXPECT_EQ(bit_cast<float>(epilogue.apply(bit_cast<uint32_t>(sum), 0, 0, 1)), expected("C28").get<float>());
}

}  // namespace
}  // namespace halfulp

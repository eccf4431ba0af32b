// Every float32 input through encode and through the CUDA toolkit's own host conversions, and the toolkit's double
// entry points on boundary and random doubles. HALFULP_EXHAUSTIVE_STRIDE=17 in the environment takes every 17th float.

#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ios>
#include <iostream>
#include <random>
#include <string>
#include <string_view>

#include "formats/catalog.h"
#include "formats/codec.h"
#include "tests/exhaustive/sweep.h"
#include "tests/oracle/boundary_inputs.h"

namespace halfulp {
namespace {

void report(const Tally& tally) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::cout << test->name() << ": " << tally.compared << " inputs compared, " << tally.mismatches << " mismatches\n";
  for (const auto& [input, expected, got] : tally.first)
    ADD_FAILURE() << test->name() << std::hex << ": input 0x" << input << " expected 0x" << expected << " got 0x"
                  << got;
}

constexpr Policy kSaturate{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate};
constexpr Policy kSpecial{.rounding = Rounding::nearest_even, .overflow = Overflow::to_special};
constexpr Policy saturating(Rounding rounding) { return {.rounding = rounding, .overflow = Overflow::saturate}; }
constexpr Policy to_special(Rounding rounding) { return {.rounding = rounding, .overflow = Overflow::to_special}; }

// Format and policy are template arguments, so that encode folds into the format's own code.
template <int id, Policy policy, class Theirs>
void sweep(const Theirs& theirs) {
  report(compare_floats([&](uint32_t bits) { return uint32_t(theirs(bit_cast<float>(bits))); },
                        [](uint32_t bits) { return encode(kFormatAt<id>, policy, bit_cast<float>(bits)); },
                        exhaustive_stride()));
}

template <__nv_fp6_interpretation_t kind, cudaRoundMode mode>
constexpr auto kToFp6 = [](float x) { return __nv_cvt_float_to_fp6(x, kind, mode); };
template <cudaRoundMode mode>
constexpr auto kToFp4 = [](float x) { return __nv_cvt_float_to_fp4(x, __NV_E2M1, mode); };
template <__nv_fp8_interpretation_t kind, __nv_saturation_t saturation>
constexpr auto kToFp8 = [](float x) { return __nv_cvt_float_to_fp8(x, saturation, kind); };
template <__nv_saturation_t saturation, cudaRoundMode mode>
constexpr auto kToE8m0 = [](float x) { return __nv_cvt_float_to_e8m0(x, saturation, mode); };

TEST(CudaHeaders, E2m1NearestEven) { sweep<format_id("e2m1"), kSaturate>(kToFp4<cudaRoundNearest>); }
TEST(CudaHeaders, E2m1TowardZero) {
  sweep<format_id("e2m1"), saturating(Rounding::toward_zero)>(kToFp4<cudaRoundZero>);
}
TEST(CudaHeaders, E2m3NearestEven) { sweep<format_id("e2m3"), kSaturate>(kToFp6<__NV_E2M3, cudaRoundNearest>); }
TEST(CudaHeaders, E2m3TowardZero) {
  sweep<format_id("e2m3"), saturating(Rounding::toward_zero)>(kToFp6<__NV_E2M3, cudaRoundZero>);
}
TEST(CudaHeaders, E3m2NearestEven) { sweep<format_id("e3m2"), kSaturate>(kToFp6<__NV_E3M2, cudaRoundNearest>); }
TEST(CudaHeaders, E3m2TowardZero) {
  sweep<format_id("e3m2"), saturating(Rounding::toward_zero)>(kToFp6<__NV_E3M2, cudaRoundZero>);
}
TEST(CudaHeaders, E4m3Satfinite) { sweep<format_id("e4m3"), kSaturate>(kToFp8<__NV_E4M3, __NV_SATFINITE>); }
TEST(CudaHeaders, E4m3Nosat) { sweep<format_id("e4m3"), kSpecial>(kToFp8<__NV_E4M3, __NV_NOSAT>); }
TEST(CudaHeaders, E5m2Satfinite) { sweep<format_id("e5m2"), kSaturate>(kToFp8<__NV_E5M2, __NV_SATFINITE>); }
TEST(CudaHeaders, E5m2Nosat) { sweep<format_id("e5m2"), kSpecial>(kToFp8<__NV_E5M2, __NV_NOSAT>); }
TEST(CudaHeaders, E8m0TowardZeroSatfinite) {
  sweep<format_id("e8m0"), saturating(Rounding::toward_zero)>(kToE8m0<__NV_SATFINITE, cudaRoundZero>);
}
TEST(CudaHeaders, E8m0TowardZeroNosat) {
  sweep<format_id("e8m0"), to_special(Rounding::toward_zero)>(kToE8m0<__NV_NOSAT, cudaRoundZero>);
}
TEST(CudaHeaders, E8m0UpSatfinite) {
  sweep<format_id("e8m0"), saturating(Rounding::up)>(kToE8m0<__NV_SATFINITE, cudaRoundPosInf>);
}
TEST(CudaHeaders, E8m0UpNosat) {
  sweep<format_id("e8m0"), to_special(Rounding::up)>(kToE8m0<__NV_NOSAT, cudaRoundPosInf>);
}

uint32_t raw(__nv_bfloat16 x) { return __nv_bfloat16_raw(x).x; }

TEST(CudaHeaders, Bf16NearestEven) {
  sweep<format_id("bf16"), kSpecial>([](float x) { return raw(__float2bfloat16_rn(x)); });
}
TEST(CudaHeaders, Bf16TowardZero) {
  sweep<format_id("bf16"), to_special(Rounding::toward_zero)>([](float x) { return raw(__float2bfloat16_rz(x)); });
}
TEST(CudaHeaders, Bf16Down) {
  sweep<format_id("bf16"), to_special(Rounding::down)>([](float x) { return raw(__float2bfloat16_rd(x)); });
}
TEST(CudaHeaders, Bf16Up) {
  sweep<format_id("bf16"), to_special(Rounding::up)>([](float x) { return raw(__float2bfloat16_ru(x)); });
}

// Boundary doubles of the format, random bit patterns, random doubles in its range, and NaNs of both signs.
template <class Theirs>
void sweep_doubles(std::string_view format, const Policy& policy, const Theirs& theirs) {
  const Format& f = kFormats[size_t(find_format(format))].format;
  constexpr int kRandom = 1 << 22;
  Tally tally;
  const auto check = [&](double x) { tally.add(bit_cast<uint64_t>(x), uint32_t(theirs(x)), encode(f, policy, x)); };
  oracle::visit_boundaries(f, check);
  oracle::visit_random_doubles(kRandom, check);
  std::mt19937_64 bits(4);
  for (int i = 0; i < kRandom; ++i) check(oracle::random_in_range(f, bits));
  for (int i = 0; i < 1000; ++i) check(bit_cast<double>(uint64_t{bits()} | uint64_t{0x7ff0'0000'0000'0001}));
  for (const double x : {HUGE_VAL, -HUGE_VAL}) check(x);
  report(tally);
}

constexpr Policy with_nan(Overflow overflow, NanInput nan) {
  return {.rounding = Rounding::nearest_even, .overflow = overflow, .nan = nan};
}

// A NaN double keeps its sign in e4m3, sign and payload in e5m2; in fp4 and fp6 it is +max, as from a float.
TEST(CudaHeadersDouble, E4m3Satfinite) {
  sweep_doubles("e4m3", with_nan(Overflow::saturate, NanInput::signed_all_ones),
                [](double x) { return __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E4M3); });
}
TEST(CudaHeadersDouble, E4m3Nosat) {
  sweep_doubles("e4m3", with_nan(Overflow::to_special, NanInput::signed_all_ones),
                [](double x) { return __nv_cvt_double_to_fp8(x, __NV_NOSAT, __NV_E4M3); });
}
TEST(CudaHeadersDouble, E5m2Satfinite) {
  sweep_doubles("e5m2", with_nan(Overflow::saturate, NanInput::payload),
                [](double x) { return __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E5M2); });
}
TEST(CudaHeadersDouble, E5m2Nosat) {
  sweep_doubles("e5m2", with_nan(Overflow::to_special, NanInput::payload),
                [](double x) { return __nv_cvt_double_to_fp8(x, __NV_NOSAT, __NV_E5M2); });
}
TEST(CudaHeadersDouble, E2m3) {
  sweep_doubles("e2m3", kSaturate, [](double x) { return __nv_cvt_double_to_fp6(x, __NV_E2M3, cudaRoundNearest); });
}
TEST(CudaHeadersDouble, E3m2) {
  sweep_doubles("e3m2", kSaturate, [](double x) { return __nv_cvt_double_to_fp6(x, __NV_E3M2, cudaRoundNearest); });
}
TEST(CudaHeadersDouble, E2m1) {
  sweep_doubles("e2m1", kSaturate, [](double x) { return __nv_cvt_double_to_fp4(x, __NV_E2M1, cudaRoundNearest); });
}
TEST(CudaHeadersDouble, E2m1TowardZero) {
  sweep_doubles("e2m1", saturating(Rounding::toward_zero),
                [](double x) { return __nv_cvt_double_to_fp4(x, __NV_E2M1, cudaRoundZero); });
}
TEST(CudaHeadersDouble, E8m0Up) {
  sweep_doubles("e8m0", saturating(Rounding::up),
                [](double x) { return __nv_cvt_double_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf); });
}
TEST(CudaHeadersDouble, E8m0TowardZero) {
  sweep_doubles("e8m0", to_special(Rounding::toward_zero),
                [](double x) { return __nv_cvt_double_to_e8m0(x, __NV_NOSAT, cudaRoundZero); });
}
TEST(CudaHeadersDouble, Bf16) {
  sweep_doubles("bf16", kSpecial, [](double x) { return raw(__double2bfloat16(x)); });
}

// Widening: every code.
TEST(CudaHeadersDecode, EveryE8m0CodeToBf16) {
  for (uint32_t code = 0; code < 256; ++code)
    EXPECT_EQ(encode(format_named("bf16"), kSpecial, decode(format_named("e8m0"), code)),
              __nv_cvt_e8m0_to_bf16raw(__nv_fp8_storage_t(code)).x)
        << code;
}

template <class Theirs>
void expect_halves(const Format& f, const Theirs& theirs) {
  for (uint32_t code = 0; code < uint32_t{1} << f.bits(); ++code)
    EXPECT_EQ(encode(format_named("f16"), kSpecial, decode(f, code)), theirs(code)) << code;
}

TEST(CudaHeadersDecode, EveryE4m3Code) {
  expect_halves(format_named("e4m3"),
                [](uint32_t c) { return __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t(c), __NV_E4M3).x; });
}
TEST(CudaHeadersDecode, EveryE5m2Code) {
  expect_halves(format_named("e5m2"),
                [](uint32_t c) { return __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t(c), __NV_E5M2).x; });
}
TEST(CudaHeadersDecode, EveryE2m3Code) {
  expect_halves(format_named("e2m3"),
                [](uint32_t c) { return __nv_cvt_fp6_to_halfraw(__nv_fp6_storage_t(c), __NV_E2M3).x; });
}
TEST(CudaHeadersDecode, EveryE3m2Code) {
  expect_halves(format_named("e3m2"),
                [](uint32_t c) { return __nv_cvt_fp6_to_halfraw(__nv_fp6_storage_t(c), __NV_E3M2).x; });
}
TEST(CudaHeadersDecode, EveryE2m1Code) {
  expect_halves(format_named("e2m1"),
                [](uint32_t c) { return __nv_cvt_fp4_to_halfraw(__nv_fp4_storage_t(c), __NV_E2M1).x; });
}

}  // namespace
}  // namespace halfulp

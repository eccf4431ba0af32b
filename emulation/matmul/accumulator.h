#pragma once
// How matrix instructions, kernels and references add up: one row for each path through the hardware, named by target
// and SASS mnemonic, since one PTX instruction takes different paths on different targets. The arithmetic is in
// dot_product.h and reference.h.

#include <array>
#include <cstdint>
#include <string_view>

#include "formats/catalog.h"
#include "formats/policy.h"

namespace halfulp {

// What a sum is rounded to, once: from the format's 2^(max_exponent + 1) on Inf, even toward zero.
struct SumFormat {
  Format format;  // of the accumulator and of results
  Rounding rounding;
  int unused_bits = 0;  // low bits of the mantissa that results leave 0
};

// How scales of blocks enter.
enum class SumScales {
  none,
  products,  // one scale of either operand: exponents of the products are those of scaled elements
  groups,    // of 16 products, added exactly: the scales multiply the sum, and only theirs is its exponent
  elements,  // each element times its scale, rounded to FP32 first
};

// Which products are added together.
enum class SumOrder {
  ascending,      // blocks of consecutive k, the sum of one going into the next
  pairs_of_four,  // FP8 as F16: k % 4 in {0, 1}, then {2, 3}, from zero; then c is added, rounded to nearest
  halves,         // the two halves' sums, recursively, each addition rounded; c last
};

// What inputs are before they are multiplied.
enum class SumInputs {
  as_they_are,
  as_f16,  // converted to F16, in which subnormals of E4M3 are normal: their exponents are lower
};

// Whether A and B may have two of a row's formats.
enum class InputMix { no, yes };

// What a kernel does with the sum of `every` products, from zero, before it goes on: adds it to a running total in
// FP32, rounded to nearest even.
enum class PromotionStep {
  add,
  scaled,  // total = fma(scale_a * scale_b, sum, total), with the scales of those products
};
struct Promotion {
  int every = 0;  // products; none: never
  PromotionStep step = PromotionStep::add;
};

enum class SumEvidence {
  measured,   // equal to an H200's answers
  recorded,   // equal to published recordings of that hardware, as their authors and others report
  published,  // a published description or source; held against no hardware
  defined,    // no hardware's: true by its definition
};

inline constexpr int kAllBits = 1 << 20, kAllProducts = 1 << 30;

// A block: products of `block` elements and the accumulator, each exact and each cut toward zero at `kept_bits` below
// the largest exponent among them, but no lower than below `least_exponent`; their exact sum, rounded once.
struct Accumulator {
  std::string_view name;
  std::string_view inputs = "";  // formats, separated by commas; none: every format
  InputMix mix = InputMix::yes;
  int block;
  int kept_bits;
  SumFormat sum;
  int least_exponent = 0;
  SumInputs operands = SumInputs::as_they_are;
  SumScales scales = SumScales::none;
  std::string_view scale_inputs = "";  // their formats, likewise
  SumOrder order = SumOrder::ascending;
  Promotion promotion{};
  int slices = 1;  // of K, as long as each other but for the last, each from zero; their sums are added in FP32, c last
  SumEvidence evidence;
  std::string_view source;
};

namespace detail {
inline constexpr std::string_view kKhattak = "Khattak and Mikaitis, arXiv:2512.07004, MATLAB-tensor-core";
inline constexpr std::string_view kMmaSim = "microsoft/MMA-Sim, arXiv:2511.10909";
inline constexpr std::string_view kH200 = "measured on an H200";
inline constexpr SumFormat kToF32{format_named("f32"), Rounding::toward_zero};
inline constexpr SumFormat kToE8m13{format_named("f32"), Rounding::toward_zero, 10};
inline constexpr SumFormat kToF16{format_named("f16"), Rounding::nearest_even};
inline constexpr SumFormat kToNearestF32{format_named("f32"), Rounding::nearest_even};
inline constexpr std::string_view kF16Bf16 = "f16,bf16", kFp8 = "e4m3,e5m2", kFp8To4 = "e4m3,e5m2,e2m3,e3m2,e2m1";
}  // namespace detail

// clang-format off
inline constexpr auto kAccumulators = std::to_array<Accumulator>({
    {.name = "sm70.hmma.f32", .inputs = "f16", .block = 4, .kept_bits = 23, .sum = detail::kToF32,
     .least_exponent = -131, .evidence = SumEvidence::recorded, .source = detail::kKhattak},
    {.name = "sm70.hmma.f16", .inputs = "f16", .block = 4, .kept_bits = 23, .sum = detail::kToF16,
     .least_exponent = -19, .evidence = SumEvidence::recorded, .source = detail::kKhattak},
    {.name = "sm75.hmma.f32", .inputs = "f16", .block = 8, .kept_bits = 24, .sum = detail::kToF32,
     .least_exponent = -132, .evidence = SumEvidence::published, .source = detail::kMmaSim},
    {.name = "sm75.hmma.f16", .inputs = "f16", .block = 8, .kept_bits = 24, .sum = detail::kToF16,
     .least_exponent = -20, .evidence = SumEvidence::published, .source = detail::kMmaSim},
    {.name = "sm80.hmma.f32", .inputs = detail::kF16Bf16, .mix = InputMix::no, .block = 8, .kept_bits = 24,
     .sum = detail::kToF32, .least_exponent = -132, .evidence = SumEvidence::recorded,
     .source = detail::kKhattak},
    {.name = "sm80.hmma_tf32.f32", .inputs = "tf32", .block = 4, .kept_bits = 24, .sum = detail::kToF32,
     .least_exponent = -132, .evidence = SumEvidence::recorded, .source = detail::kKhattak},
    {.name = "sm80.hmma.f16", .inputs = "f16", .block = 8, .kept_bits = 24, .sum = detail::kToF16,
     .least_exponent = -20, .evidence = SumEvidence::recorded, .source = detail::kKhattak},
    {.name = "sm89.qmma.f32", .inputs = detail::kFp8, .block = 16, .kept_bits = 13,
     .sum = detail::kToE8m13, .least_exponent = -133, .evidence = SumEvidence::recorded,
     .source = detail::kKhattak},
    {.name = "sm89.qmma.f16", .inputs = detail::kFp8, .block = 16, .kept_bits = 13,
     .sum = detail::kToF16, .least_exponent = -133, .evidence = SumEvidence::recorded,
     .source = detail::kKhattak},
    {.name = "sm90.hmma.f32", .inputs = detail::kF16Bf16, .mix = InputMix::no, .block = 16, .kept_bits = 25,
     .sum = detail::kToF32, .least_exponent = -133, .evidence = SumEvidence::measured,
     .source = detail::kH200},
    {.name = "sm90.hmma_tf32.f32", .inputs = "tf32", .block = 8, .kept_bits = 25, .sum = detail::kToF32,
     .least_exponent = -133, .evidence = SumEvidence::measured, .source = detail::kH200},
    {.name = "sm90.hmma.f16", .inputs = "f16", .block = 16, .kept_bits = 25, .sum = detail::kToF16,
     .least_exponent = -21, .evidence = SumEvidence::measured, .source = detail::kH200},
    {.name = "sm90.qgmma.f32", .inputs = detail::kFp8, .block = 32, .kept_bits = 13,
     .sum = detail::kToE8m13, .least_exponent = -133, .evidence = SumEvidence::measured,
     .source = detail::kH200},
    {.name = "sm90.qgmma.f16", .inputs = detail::kFp8, .block = 32, .kept_bits = 13,
     .sum = detail::kToF16, .least_exponent = -133, .evidence = SumEvidence::measured,
     .source = "measured on an H200; not among the recordings in tests/golden"},
    {.name = "sm90.mma_sync_fp8.f32", .inputs = detail::kFp8, .block = 32, .kept_bits = 25,
     .sum = detail::kToF32, .least_exponent = -133, .operands = SumInputs::as_f16, .order = SumOrder::pairs_of_four,
     .evidence = SumEvidence::measured,
     .source = "measured on an H200; ptxas 13.0 emits two HMMA.16816 and an FADD for it on sm_90a and sm_100a"},
    {.name = "sm90.mma_sync_fp8.f16", .inputs = detail::kFp8, .block = 32, .kept_bits = 25, .sum = detail::kToF16,
     .least_exponent = -21, .operands = SumInputs::as_f16, .order = SumOrder::pairs_of_four,
     .evidence = SumEvidence::measured,
     .source = "measured on an H200; ptxas 13.0 emits two HMMA.16816.F16 and an HADD2 for it on sm_90a and sm_100a"},
    {.name = "sm100.utchmma.f32", .inputs = detail::kF16Bf16, .mix = InputMix::no, .block = 16, .kept_bits = 25,
     .sum = detail::kToF32, .least_exponent = -133, .evidence = SumEvidence::published,
     .source = detail::kMmaSim},
    {.name = "sm100.utchmma_tf32.f32", .inputs = "tf32", .block = 8, .kept_bits = 25, .sum = detail::kToF32,
     .least_exponent = -133, .evidence = SumEvidence::published, .source = detail::kMmaSim},
    {.name = "sm100.utcqmma.f32", .inputs = detail::kFp8To4, .block = 32, .kept_bits = 25,
     .sum = detail::kToF32, .least_exponent = -133, .evidence = SumEvidence::published,
     .source = "microsoft/MMA-Sim, arXiv:2511.10909; 25 bits: deepseek-ai/DeepGEMM issue 176"},
    {.name = "sm100.utcqmma_mx.f32", .inputs = detail::kFp8To4, .block = 32, .kept_bits = 25,
     .sum = detail::kToF32, .least_exponent = -133, .scales = SumScales::products,
     .scale_inputs = "e8m0", .evidence = SumEvidence::published, .source = detail::kMmaSim},
    {.name = "sm100.omma.f32", .inputs = "e2m1", .block = 64, .kept_bits = 35, .sum = detail::kToF32,
     .least_exponent = -139, .scales = SumScales::groups, .scale_inputs = "ue4m3,e8m0",
     .evidence = SumEvidence::published,
     .source = "microsoft/MMA-Sim, arXiv:2511.10909; 34 to 37 bits: deepseek-ai/DeepGEMM issue 176"},
    {.name = "sm120.qmma.f32", .inputs = detail::kFp8To4, .block = 32, .kept_bits = 25,
     .sum = detail::kToF32, .least_exponent = -133, .evidence = SumEvidence::published,
     .source = detail::kMmaSim},
    {.name = "sm120.qmma_mx.f32", .inputs = detail::kFp8To4, .block = 32, .kept_bits = 25,
     .sum = detail::kToF32, .least_exponent = -133, .scales = SumScales::products,
     .scale_inputs = "e8m0", .evidence = SumEvidence::published, .source = detail::kMmaSim},
    {.name = "sm120.omma.f32", .inputs = "e2m1", .block = 64, .kept_bits = 35, .sum = detail::kToF32,
     .least_exponent = -139, .scales = SumScales::groups, .scale_inputs = "ue4m3,e8m0",
     .evidence = SumEvidence::published,
     .source = detail::kMmaSim},
    {.name = "cutlass.sm90.fp8", .inputs = detail::kFp8, .block = 32, .kept_bits = 13, .sum = detail::kToE8m13,
     .least_exponent = -133, .promotion = {.every = 128}, .evidence = SumEvidence::published,
     .source = "NVIDIA/cutlass gemm/collective/fp8_accumulation.hpp: four wgmma, then FADD; sums as sm90.qgmma.f32"},
    {.name = "deepgemm.sm90.fp8", .inputs = detail::kFp8, .block = 32, .kept_bits = 13, .sum = detail::kToE8m13,
     .least_exponent = -133, .promotion = {.every = 128, .step = PromotionStep::scaled},
     .evidence = SumEvidence::published,
     .source = "deepseek-ai/DeepGEMM impls/sm90_fp8_gemm_1d2d.cuh: four wgmma, then FFMA; sums as sm90.qgmma.f32"},
    {.name = "ref.fp64", .block = kAllProducts, .kept_bits = kAllBits, .sum = detail::kToNearestF32,
     .scales = SumScales::products, .evidence = SumEvidence::defined,
     .source = "the exact sum of the exact products and c, rounded once"},
    {.name = "ref.fp32_sequential", .block = 1, .kept_bits = kAllBits, .sum = detail::kToNearestF32,
     .scales = SumScales::elements, .evidence = SumEvidence::defined,
     .source = "an FMA for each k; NVIDIA/cutlass util/reference/host/gett.hpp"},
    {.name = "ref.fp32_pairwise", .block = 1, .kept_bits = kAllBits, .sum = detail::kToNearestF32,
     .scales = SumScales::elements, .order = SumOrder::halves, .evidence = SumEvidence::defined,
     .source = "products rounded; the first half is the largest power of two below their number"},
    {.name = "ref.fp32_split_k", .block = 1, .kept_bits = kAllBits, .sum = detail::kToNearestF32,
     .scales = SumScales::elements, .slices = 4, .evidence = SumEvidence::defined,
     .source = "ref.fp32_sequential in four slices of K"},
});
// clang-format on

// Products that are added exactly before their scales multiply them.
inline constexpr int kSumGroup = 16;

constexpr int find_accumulator(std::string_view name) {
  for (std::size_t id = 0; id < kAccumulators.size(); ++id)
    if (kAccumulators[id].name == name) return int(id);
  return -1;
}

}  // namespace halfulp

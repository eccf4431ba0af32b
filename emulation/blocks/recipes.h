#pragma once
// Every named recipe: a row. There is no code for a single recipe: a new one is a row here and nothing else.

#include <array>
#include <string_view>

#include "emulation/blocks/recipe.h"

namespace halfulp {
namespace detail {

inline constexpr Policy kCast{.rounding = Rounding::nearest_even, .overflow = Overflow::to_special};
inline constexpr Policy kSaturate{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate};
inline constexpr Policy kTiesTowardZero{
    .rounding = Rounding::nearest_zero, .overflow = Overflow::saturate, .zero = ZeroResult::positive};
inline constexpr Policy kStochastic{.rounding = Rounding::stochastic, .overflow = Overflow::saturate};
inline constexpr Policy kUp{.rounding = Rounding::up, .overflow = Overflow::saturate};

// Each element by itself.
consteval Recipe elementwise(std::string_view name, FormatName element, std::string_view summary,
                             std::string_view source) {
  return {.name = name, .element = element, .policy = kCast, .summary = summary, .source = source};
}

// 32 elements under a power of two.
struct Mx {
  std::string_view name;
  FormatName element;
  Formula unrounded;
  Policy scale_policy = kSaturate;
  AmaxNan amax_nan = AmaxNan::propagates;
  Formula factor = "1 / s";
  Formula scaled = "x * m";
  Formula value = "c * s";
  Policy policy = kSaturate;
  std::string_view summary;
  std::string_view source;
};

consteval Recipe mx(const Mx& row) {
  return {.name = row.name,
          .element = row.element,
          .policy = row.policy,
          .block = {1, 32},
          .scale = "e8m0",
          .scale_policy = row.scale_policy,
          .amax_nan = row.amax_nan,
          .unrounded = row.unrounded,
          .factor = row.factor,
          .scaled = row.scaled,
          .value = row.value,
          .summary = row.summary,
          .source = row.source};
}

// 16 elements of E2M1 under an E4M3 scale, under one FP32 scale of the tensor.
struct Nvfp4 {
  std::string_view name;
  Extent block{1, 16};
  AmaxNan amax_nan = AmaxNan::ignored;
  Formula encode = "A == 0 ? 1 : 2688 / A == 0 ? 1 : min(2688 / A, FLT_MAX)";
  Formula decode = "1 / S_enc";
  Formula unrounded = "min(a * (S_enc * (1 / 6)), FLT_MAX)";
  Formula factor = "min(1 / (s * S_dec), FLT_MAX)";
  Formula scaled = "x * m";
  Formula value = "c * (s * A * (1 / 2688))";
  Choice choice{};
  Correction correction{};
  Policy policy = kSaturate;
  Policy scale_policy = kSaturate;
  std::string_view summary;
  std::string_view source;
};

consteval Recipe nvfp4(const Nvfp4& row) {
  return {.name = row.name,
          .element = "e2m1",
          .policy = row.policy,
          .block = row.block,
          .scale = "ue4m3",
          .scale_policy = row.scale_policy,
          .amax_nan = row.amax_nan,
          .encode = row.encode,
          .decode = row.decode,
          .unrounded = row.unrounded,
          .factor = row.factor,
          .scaled = row.scaled,
          .value = row.value,
          .choice = row.choice,
          .correction = row.correction,
          .summary = row.summary,
          .source = row.source};
}

inline constexpr std::string_view kOcp =
    "OCP MX v1.0 §6.3; pytorch/ao torchao/prototype/mx_formats/mx_tensor.py, FLOOR";
inline constexpr std::string_view kTeMx =
    "NVIDIA/TransformerEngine common/cast/mxfp8/quantize_mxfp8.cuh, common/util/ptx.cuh";
inline constexpr std::string_view kTeNvfp4 =
    "NVIDIA/TransformerEngine common/cast/nvfp4/core_nvfp4.cuh, quantize_transpose_nvfp4.cuh, dequantize_nvfp4.cuh";
inline constexpr std::string_view kTe4over6 =
    "NVIDIA/TransformerEngine common/cast/nvfp4/quantize_4over6_nvfp4.cuh; Cook et al., arXiv:2512.02010";

// E4M3 under a scale that is a 448th of the block's largest magnitude.
consteval Recipe deepseek(std::string_view name, Extent block, FormatName scale, Formula unrounded,
                          std::string_view summary) {
  return {.name = name,
          .element = "e4m3",
          .policy = kSaturate,
          .block = block,
          .scale = scale,
          .scale_policy = kCast,
          .amax_nan = AmaxNan::propagates,
          .edge = Edge::partial,
          .unrounded = unrounded,
          .factor = "1 / s",
          .scaled = "x * m",
          .value = "c * s",
          .summary = summary,
          .source = "deepseek-ai/DeepGEMM deep_gemm/utils/math.py, its division by 448 as PyTorch does it on a GPU"};
}

// Its nearest value of 7 or more is 8, which its code for -0 stands for.
consteval Recipe fouroversix(std::string_view name, Extent block, Formula encode, Formula unrounded, Formula value,
                             const Choice& choice, std::string_view summary) {
  return nvfp4({.name = name,
                .block = block,
                .amax_nan = AmaxNan::propagates,
                .encode = encode,
                .decode = "A == 0 ? 1 : 1 / S_enc",
                .unrounded = unrounded,
                .factor = "s == 0 ? 0 : 1 / (S_dec * s)",
                .scaled = "abs(x * m) < 7 ? x * m + 0 : -0",
                .value = value,
                .choice = choice,
                .summary = summary,
                .source = "fouroversix 1.0.5 quantize/pytorch/reference.py; Cook et al., arXiv:2512.02010"});
}

// torchao 0.18.0: elements over a power of two, which is never below 2^-126 there, and Inf in a block that has a NaN.
consteval Recipe torchao(std::string_view name, FormatName element, Formula unrounded, std::string_view summary) {
  return mx({.name = name,
             .element = element,
             .unrounded = unrounded,
             .factor = "s == s ? max(s, 0x1p-126) : Inf",
             .scaled = "x / m",
             .summary = summary,
             .source = "torchao 0.18.0 prototype/mx_formats/mx_tensor.py, to_mx"});
}

// The same package's RCEIL, which is other code: a block whose scale is 2^-127 is not scaled.
consteval Recipe torchao_rceil(std::string_view name, FormatName element, Formula unrounded) {
  return mx({.name = name,
             .element = element,
             .unrounded = unrounded,
             .factor = "s == 0x1p-127 ? 1 : 1 / s",
             .summary = "the power of two not below amax / max, by way of an FP32 logarithm",
             .source = "torchao 0.18.0 prototype/mx_formats/mx_tensor.py, _to_mx_rceil"});
}

inline constexpr std::string_view kCompressedTensors =
    "compressed-tensors 0.20.1 quantization/utils/helpers.py, lifecycle/forward_helpers.py, compressors/nvfp4; "
    "llmcompressor 0.14.0.1 observers";
inline constexpr std::string_view kTorchaoMain = "pytorch/ao at 36027d8, torchao/prototype/mx_formats/mx_tensor.py";
inline constexpr Policy kUpInfToNan{.rounding = Rounding::up, .overflow = Overflow::saturate, .inf = InfInput::to_nan};
inline constexpr std::string_view kFloor = "the power of two below the largest: it can clip";
inline constexpr std::string_view kCeil = "the power of two not below the largest, less emax";
inline constexpr std::string_view kEven = "the power of two below the largest after that is rounded as an element is";
inline constexpr std::string_view kRceil = "the power of two not below amax / max";

}  // namespace detail

// clang-format off
inline constexpr auto kRecipes = std::to_array<Recipe>({
    detail::elementwise("bf16", "bf16", "each element to the nearest BF16", "PTX ISA 9.0, cvt.rn.bf16.f32"),
    detail::elementwise("f16", "f16", "each element to the nearest FP16; beyond 65504 to Inf",
                        "PTX ISA 9.0, cvt.rn.f16.f32"),

    detail::mx({.name = "mxfp8/ocp", .element = "e4m3", .unrounded = "exp2(floor_log2(a) - 8) + (a - a)",
                .summary = "32 elements of E4M3 share a power of two, rounded down: the largest can clip",
                .source = detail::kOcp}),
    detail::mx({.name = "mxfp8/ocp-e5m2", .element = "e5m2", .unrounded = "exp2(floor_log2(a) - 15) + (a - a)",
                .summary = "32 elements of E5M2 share a power of two, rounded down: the largest can clip",
                .source = detail::kOcp}),
    detail::mx({.name = "mxfp8/te", .element = "e4m3", .unrounded = "a * (1 / 448)", .scale_policy = detail::kUp,
                .amax_nan = AmaxNan::ignored,
                .summary = "32 elements of E4M3 share a power of two, rounded up so that the largest fits",
                .source = detail::kTeMx}),
    detail::mx({.name = "mxfp8/te-e5m2", .element = "e5m2", .unrounded = "a * (1 / 57344)", .scale_policy = detail::kUp,
                .amax_nan = AmaxNan::ignored,
                .summary = "32 elements of E5M2 share a power of two, rounded up so that the largest fits",
                .source = detail::kTeMx}),
    detail::torchao("mxfp8/torchao-floor", "e4m3", "exp2(floor_log2(a) - 8)", detail::kFloor),
    detail::torchao("mxfp8/torchao-ceil", "e4m3", "exp2(ceil_log2(a) - 8)", detail::kCeil),
    detail::torchao("mxfp8/torchao-even", "e4m3", "exp2(even_log2(a, 3) - 8)", detail::kEven),
    detail::torchao_rceil("mxfp8/torchao-rceil", "e4m3",
                          "exp2(maximum(minimum(ceil(log2(a / 448)), 127), -127))"),
    detail::torchao("mxfp8/torchao-floor-e5m2", "e5m2", "exp2(floor_log2(a) - 15)", detail::kFloor),
    detail::torchao("mxfp8/torchao-ceil-e5m2", "e5m2", "exp2(ceil_log2(a) - 15)", detail::kCeil),
    detail::torchao("mxfp8/torchao-even-e5m2", "e5m2", "exp2(even_log2(a, 2) - 15)", detail::kEven),
    detail::torchao_rceil("mxfp8/torchao-rceil-e5m2", "e5m2",
                          "exp2(maximum(minimum(ceil(log2(a / 57344)), 127), -127))"),
    detail::mx({.name = "mxfp8/torchao-main-ceil", .element = "e4m3",
                .unrounded = "exp2(ceil_log2(a) - 8) + (a - a)", .summary = detail::kCeil,
                .source = detail::kTorchaoMain}),
    detail::mx({.name = "mxfp8/torchao-main-even", .element = "e4m3",
                .unrounded = "exp2(even_log2(a, 3) - 8) + (exp2(even_log2(a, 3)) - exp2(even_log2(a, 3)))",
                .summary = detail::kEven, .source = detail::kTorchaoMain}),
    detail::mx({.name = "mxfp8/torchao-main-rceil", .element = "e4m3", .unrounded = "a * (1 / 448)",
                .scale_policy = detail::kUpInfToNan, .summary = detail::kRceil, .source = detail::kTorchaoMain}),
    detail::mx({.name = "mxfp8/torchao-main-ceil-e5m2", .element = "e5m2",
                .unrounded = "exp2(ceil_log2(a) - 15) + (a - a)", .summary = detail::kCeil,
                .source = detail::kTorchaoMain}),
    detail::mx({.name = "mxfp8/torchao-main-even-e5m2", .element = "e5m2",
                .unrounded = "exp2(even_log2(a, 2) - 15) + (exp2(even_log2(a, 2)) - exp2(even_log2(a, 2)))",
                .summary = detail::kEven, .source = detail::kTorchaoMain}),
    detail::mx({.name = "mxfp8/torchao-main-rceil-e5m2", .element = "e5m2", .unrounded = "a * (1 / 57344)",
                .scale_policy = detail::kUpInfToNan, .summary = detail::kRceil, .source = detail::kTorchaoMain}),
    detail::mx({.name = "mxfp8/modelopt", .element = "e4m3",
                .unrounded = "exp2(max(min(0 < a / 448 ? ceil(log2(a / 448)) : -127, 127), -127))",
                .summary = "the power of two not below amax / 448, by way of an FP32 logarithm; a NaN makes it 2^-127",
                .source = "nvidia-modelopt 0.47.0 torch/quantization/qtensor/mxfp8_tensor.py"}),

    detail::mx({.name = "mxfp8/compressed-tensors", .element = "e4m3",
                .unrounded = "even_log2(a, 1) == 128 ? 1 : exp2(even_log2(a, 1) - 8)", .factor = "even_log2(a, 1) == 128 ? Inf : s", .scaled = "x / m",
                .summary = "the power of two below the largest after that is rounded to one mantissa bit, as for FP4",
                .source = detail::kCompressedTensors}),

    detail::mx({.name = "mxfp6/ocp-e2m3", .element = "e2m3", .unrounded = "exp2(floor_log2(a) - 2) + (a - a)",
                .summary = "32 elements of E2M3 share a power of two, rounded down: the largest can clip",
                .source = detail::kOcp}),
    detail::mx({.name = "mxfp6/ocp-e3m2", .element = "e3m2", .unrounded = "exp2(floor_log2(a) - 4) + (a - a)",
                .summary = "32 elements of E3M2 share a power of two, rounded down: the largest can clip",
                .source = detail::kOcp}),
    detail::torchao("mxfp6/torchao-floor-e2m3", "e2m3", "exp2(floor_log2(a) - 2)", detail::kFloor),
    detail::torchao("mxfp6/torchao-ceil-e2m3", "e2m3", "exp2(ceil_log2(a) - 2)", detail::kCeil),
    detail::torchao("mxfp6/torchao-even-e2m3", "e2m3", "exp2(even_log2(a, 3) - 2)", detail::kEven),
    detail::torchao_rceil("mxfp6/torchao-rceil-e2m3", "e2m3",
                          "exp2(maximum(minimum(ceil(log2(a / 7.5)), 127), -127))"),
    detail::torchao("mxfp6/torchao-floor-e3m2", "e3m2", "exp2(floor_log2(a) - 4)", detail::kFloor),
    detail::torchao("mxfp6/torchao-ceil-e3m2", "e3m2", "exp2(ceil_log2(a) - 4)", detail::kCeil),
    detail::torchao("mxfp6/torchao-even-e3m2", "e3m2", "exp2(even_log2(a, 2) - 4)", detail::kEven),
    detail::torchao_rceil("mxfp6/torchao-rceil-e3m2", "e3m2",
                          "exp2(maximum(minimum(ceil(log2(a / 28)), 127), -127))"),

    detail::mx({.name = "mxfp4/ocp", .element = "e2m1", .unrounded = "exp2(floor_log2(a) - 2) + (a - a)",
                .summary = "32 elements of E2M1 share a power of two, rounded down: the largest can clip",
                .source = detail::kOcp}),
    detail::mx({.name = "mxfp4/round-up", .element = "e2m1", .unrounded = "a * (1 / 6)", .scale_policy = detail::kUp,
                .amax_nan = AmaxNan::ignored,
                .summary = "32 elements of E2M1 share a power of two, rounded up so that the largest fits",
                .source = "the rule of mxfp8/te with the largest E2M1; PTX ISA 9.0, cvt.rp.satfinite.ue8m0x2.f32"}),
    detail::mx({.name = "mxfp4/gpt-oss", .element = "e2m1",
                .unrounded = "a == a ? exp2(ceil_log2(a / 6)) : 0", .scale_policy = detail::kCast, .amax_nan = AmaxNan::propagates_from_all,
                .factor = "s == s ? (s == exp2(-127) ? 0 : 1 / s) : 0",
                .summary = "what gpt-oss quantizes with: a power of two not below a sixth of the largest, none for zeros",
                .source = "openai/gpt-oss gpt_oss/triton/moe.py, quantize_mx4; triton-lang/triton triton_kernels "
                          "numerics_details/mxfp.py, downcast_to_mxfp, ROUND_UP"}),
    detail::torchao("mxfp4/torchao-floor", "e2m1", "exp2(floor_log2(a) - 2)", detail::kFloor),
    detail::torchao("mxfp4/torchao-ceil", "e2m1", "exp2(ceil_log2(a) - 2)", detail::kCeil),
    detail::torchao("mxfp4/torchao-even", "e2m1", "exp2(even_log2(a, 1) - 2)", detail::kEven),
    detail::torchao_rceil("mxfp4/torchao-rceil", "e2m1",
                          "exp2(maximum(minimum(ceil(log2(a / 6)), 127), -127))"),
    detail::mx({.name = "mxfp4/torchao-main-ceil", .element = "e2m1",
                .unrounded = "exp2(ceil_log2(a) - 2) + (a - a)", .summary = detail::kCeil,
                .source = detail::kTorchaoMain}),
    detail::mx({.name = "mxfp4/torchao-main-even", .element = "e2m1",
                .unrounded = "exp2(even_log2(a, 1) - 2) + (exp2(even_log2(a, 1)) - exp2(even_log2(a, 1)))",
                .summary = detail::kEven, .source = detail::kTorchaoMain}),
    detail::mx({.name = "mxfp4/torchao-main-rceil", .element = "e2m1", .unrounded = "a * (1 / 6)",
                .scale_policy = detail::kUpInfToNan, .summary = detail::kRceil, .source = detail::kTorchaoMain}),
    detail::mx({.name = "mxfp4/modelopt", .element = "e2m1",
                .unrounded = "a - a == 0 ? exp2(ceil(max(log2(a / 6), -127))) : 0",
                .factor = "a - a == 0 ? s : Inf", .scaled = "0 < abs(x / m) ? x / m : -0",
                .policy = {.rounding = Rounding::nearest_zero, .overflow = Overflow::saturate},
                .summary = "ties go toward zero, and zeros are negative",
                .source = "nvidia-modelopt 0.47.0 torch/quantization/qtensor/mxfp4_tensor.py"}),
    detail::mx({.name = "mxfp4/ggml", .element = "e2m1",
                .unrounded = "0 < a ? (a == Inf ? 0 : exp2(floor(log2(a)) + (log2(a) < -125 ? 256 : 0) - 2)) : 0",
                .scale_policy = detail::kCast, .factor = "s", .scaled = "search_e2m1(x, m)", .value = "s == s ? c * s : 0",
                .policy = detail::kTiesTowardZero,
                .summary = "the nearest of the format's values, the smaller at a tie; exponents below 2^-127 wrap around",
                .source = "gguf 0.19.0 gguf/quants.py, MXFP4"}),
    detail::mx({.name = "mxfp4/compressed-tensors", .element = "e2m1",
                .unrounded = "even_log2(a, 1) == 128 ? 1 : exp2(even_log2(a, 1) - 2)", .factor = "even_log2(a, 1) == 128 ? Inf : s", .scaled = "x / m + 0",
                .summary = "the power of two below the largest after that is rounded to one mantissa bit",
                .source = detail::kCompressedTensors}),
    detail::mx({.name = "mxfp4/tseng", .element = "e2m1", .unrounded = "exp2(floor_log2(a) - 2) + (a - a)",
                .factor = "4 * s", .scaled = "3 * x / m", .value = "c * (4 * s) / 3",
                .policy = detail::kStochastic,
                .summary = "three quarters of each element, so that none clips, rounded stochastically; values are 4/3",
                .source = "Tseng et al., arXiv:2502.20586; amazon-science/mxfp4-llm microxcaling.patch, dither_scale"}),
    detail::mx({.name = "mxfp4/quartet", .element = "e2m1",
                .unrounded = "exp2(floor_log2(quest(squares / 32 - sum / 32 * (sum / 32))))",
                .scale_policy = detail::kCast, .amax_nan = AmaxNan::ignored, .factor = "s == s ? s : Inf", .scaled = "x / m",
                .summary = "Quartet's forward pass: a power of two from the block's standard deviation; x already rotated",
                .source = "Castro et al., arXiv:2505.14669; IST-DASLab/qutlass fusedQuantizeMx, epilogue_quant.h"}),
    detail::mx({.name = "mxfp4/quartet-absmax", .element = "e2m1", .unrounded = "exp2(floor_log2(a + 1e-8))",
                .scale_policy = detail::kCast, .amax_nan = AmaxNan::ignored, .factor = "s == s ? s : Inf", .scaled = "x / m * 3", .value = "c * s / 3",
                .summary = "Quartet's backward pass: the power of two below the largest, a third of which is the step",
                .source = "Castro et al., arXiv:2505.14669; IST-DASLab/qutlass fusedQuantizeMx, abs_max"}),

    detail::nvfp4({.name = "nvfp4/te",
                   .summary = "16 elements of E2M1 share an E4M3 scale, under one FP32 scale of the tensor",
                   .source = detail::kTeNvfp4}),
    detail::nvfp4({.name = "nvfp4/te-2d", .block = {16, 16},
                   .summary = "tiles of 16 x 16 share a scale, so that a transposed copy has the same codes",
                   .source = detail::kTeNvfp4}),
    detail::nvfp4({.name = "nvfp4/te-fast-math", .factor = "bf16(min(S_enc / s, 0x1.FEp127))",
                   .scaled = "x == 0 ? 0 : x * m",
                   .summary = "nvfp4/te under NVTE_USE_FAST_MATH: the factor is a BF16; for BF16 sources",
                   .source = "NVIDIA/TransformerEngine common/cast/nvfp4/specialized/"
                             "quantize_transpose_nvfp4_tuned_1D.cuh, common/util/ptx_arch_spec.cuh"}),
    detail::nvfp4({.name = "nvfp4/te-4over6-mae", .unrounded = "min(a / 6 * S_enc, 448)",
                   .choice = {.alternative = "min(a / 6 * S_enc * 1.5, 448)", .estimate = "c * s * A / 2688",
                              .loss = "abs(v - x)"},
                   .summary = "the block's largest to 6 or to 4, whichever has the smaller sum of |error|",
                   .source = detail::kTe4over6}),
    detail::nvfp4({.name = "nvfp4/te-4over6-mse", .unrounded = "min(a / 6 * S_enc, 448)",
                   .choice = {.alternative = "min(a / 6 * S_enc * 1.5, 448)", .estimate = "c * s * A / 2688",
                              .loss = "(v - x) * (v - x)"},
                   .summary = "the block's largest to 6 or to 4, whichever has the smaller sum of squared errors",
                   .source = detail::kTe4over6}),
    detail::nvfp4({.name = "nvfp4/te-4over6-mae-256",
                   .encode = "A == 0 ? 1 : 1536 / A == 0 ? 1 : min(1536 / A, FLT_MAX)",
                   .unrounded = "min(a / 6 * S_enc, 448)", .value = "c * (s * A * (1 / 1536))",
                   .choice = {.alternative = "min(a / 6 * S_enc * 1.5, 448)", .estimate = "c * s * A / 1536",
                              .loss = "abs(v - x)"},
                   .summary = "te-4over6-mae with scales up to 256, so that 1.5 times the largest is still E4M3",
                   .source = detail::kTe4over6}),
    detail::nvfp4({.name = "nvfp4/te-4over6-mse-256",
                   .encode = "A == 0 ? 1 : 1536 / A == 0 ? 1 : min(1536 / A, FLT_MAX)",
                   .unrounded = "min(a / 6 * S_enc, 448)", .value = "c * (s * A * (1 / 1536))",
                   .choice = {.alternative = "min(a / 6 * S_enc * 1.5, 448)", .estimate = "c * s * A / 1536",
                              .loss = "(v - x) * (v - x)"},
                   .summary = "te-4over6-mse with scales up to 256, so that 1.5 times the largest is still E4M3",
                   .source = detail::kTe4over6}),
    detail::nvfp4({.name = "nvfp4/torchao", .amax_nan = AmaxNan::propagates, .encode = "", .decode = "A / 2688",
                   .unrounded = "minimum(maximum(a / 6 / S_dec, 0x1p-6), 448)", .factor = "1 / S_dec / s",
                   .value = "c * (S_dec * s)",
                   .summary = "scales are at least 2^-6, E4M3's smallest normal number; an all-zero tensor gives NaN",
                   .source = "torchao 0.18.0 prototype/mx_formats/nvfp4_tensor.py, nvfp4_quantize"}),
    detail::nvfp4({.name = "nvfp4/torchao-one-level", .amax_nan = AmaxNan::propagates, .encode = "", .decode = "",
                   .unrounded = "minimum(maximum(a / 6, 0x1p-6), 448)", .factor = "1 / s", .value = "c * s",
                   .summary = "nvfp4/torchao without a scale of the tensor",
                   .source = "torchao 0.18.0 prototype/mx_formats/nvfp4_tensor.py, nvfp4_quantize"}),
    detail::nvfp4({.name = "nvfp4/modelopt", .amax_nan = AmaxNan::propagates, .encode = "", .decode = "A / 2688",
                   .unrounded = "a / (6 * S_dec) == 0 ? 1 : minimum(maximum(a / (6 * S_dec), 0x1p-9), 448)",
                   .factor = "s * S_dec", .scaled = "x / m + 0", .value = "(c + 0) * (s * S_dec)",
                   .summary = "elements are divided by their scale; a block of zeros has scale 1; "
                              "an all-zero tensor gives NaN",
                   .source = "nvidia-modelopt 0.47.0 torch/quantization/qtensor/nvfp4_tensor.py"}),
    detail::nvfp4({.name = "nvfp4/modelopt-static", .amax_nan = AmaxNan::propagates, .encode = "",
                   .decode = "A / 2688",
                   .unrounded = "minimum(maximum((a / 6 == 0 ? 1 : a / 6) * 448 / (A / 6), 0x1p-9), 448)",
                   .factor = "s * S_dec", .scaled = "x / m + 0", .value = "(c + 0) * (s * S_dec)",
                   .summary = "nvfp4/modelopt with calibrated block scales, whose arithmetic has another order",
                   .source = "nvidia-modelopt 0.47.0 torch/quantization/qtensor/nvfp4_tensor.py, "
                             "get_weights_scaling_factor_from_quantizer"}),
    detail::nvfp4({.name = "nvfp4/compressed-tensors", .amax_nan = AmaxNan::propagates,
                   .encode = "1 / max(A, 0x1p-126) * 2688 == Inf ? 1 : 1 / max(A, 0x1p-126) * 2688",
                   .unrounded = "e4m3(minimum(S_enc * (a / 6), 448)) == 0 ? 0.125 : minimum(S_enc * (a / 6), 448)",
                   .factor = "s / S_enc", .scaled = "x / m + 0", .value = "c * (s / S_enc)",
                   .summary = "the tensor's scale is an encode scale, and no block's is 0; for FP32 weights",
                   .source = detail::kCompressedTensors}),
    detail::nvfp4({.name = "nvfp4/compressed-tensors-bf16", .amax_nan = AmaxNan::propagates,
                   .encode = "bf16(bf16(1 / max(A, 0x1p-126)) * 2688) == Inf ? 1 "
                             ": bf16(bf16(1 / max(A, 0x1p-126)) * 2688)",
                   .unrounded = "e4m3(minimum(S_enc * bf16(a / 6), 448)) == 0 ? 0.125 "
                                ": minimum(S_enc * bf16(a / 6), 448)",
                   .factor = "s / S_enc", .scaled = "x / m + 0", .value = "c * (s / S_enc)",
                   .summary = "nvfp4/compressed-tensors for BF16 weights, whose scales come about in BF16",
                   .source = detail::kCompressedTensors}),
    {.name = "nvfp4/ggml", .element = "e2m1", .policy = detail::kTiesTowardZero, .block = {1, 16}, .scale = "ue4m3",
     .scale_policy = {.rounding = Rounding::nearest_away, .overflow = Overflow::saturate},
     .unrounded = "a / 6 < 0x1p-6 ? min(floor(a / 6 * 512 + 0.5), 7) / 512 : a / 6 < 248 ? a / 6 : 448",
     .factor = "s", .scaled = "search_e2m1(x, m)", .value = "c * s",
     .summary = "no scale of the tensor; scales round halves up and skip 256 to 416; ties go toward zero",
     .source = "ggml 0.25.3 src/ggml-quants.c, quantize_row_nvfp4_ref; src/ggml-impl.h, ggml_fp32_to_ue4m3"},
    detail::nvfp4({.name = "nvfp4/flashinfer", .amax_nan = AmaxNan::propagates_from_all,
                   .unrounded = "a * (S_enc * (1 / 6))",
                   .factor = "a == 0 ? 0 : min(1 / (s * (1 / S_enc)), FLT_MAX)", .value = "c * (s * S_dec)",
                   .summary = "FlashInfer's exact mode, the caller's scale being 2688 / amax",
                   .source = "flashinfer-ai/flashinfer csrc/nv_internal/tensorrt_llm/kernels/quantization_utils.cuh, "
                             "under FLASHINFER_DISABLE_FP4_QUANT_FAST_MATH"}),
    detail::nvfp4({.name = "nvfp4/cutlass", .amax_nan = AmaxNan::propagates, .unrounded = "a * (S_enc * (1 / 6))",
                   .factor = "minimum(S_enc * (1 / s), FLT_MAX)", .value = "c * (s * S_dec)",
                   .summary = "CUTLASS's epilogue for SM100, its norm_constant being 2688 / amax",
                   .source = "NVIDIA/cutlass include/cutlass/epilogue/fusion/"
                             "sm100_visitor_store_tma_warpspecialized.hpp; rcp.approx.ftz is exact there (measured on an "
                             "H200)"}),
    detail::nvfp4({.name = "nvfp4/cublaslt", .unrounded = "a * S_enc / 6", .factor = "min(1 / s, FLT_MAX)",
                   .scaled = "x * S_enc * m", .value = "c * (s * S_dec)",
                   .summary = "cuBLASLt's quantization of D, its scale being 2688 / amax; a scale of 0 is an assumption",
                   .source = "cuBLAS 13 documentation, 3.1.4.4.1, 1D block quantization"}),
    detail::fouroversix("nvfp4/fouroversix-static-6", {1, 16}, "A == 0 ? 0 : 2688 / A", "a / 6 * S_enc",
                        "c * s * A / 2688", {},
                        "the block's largest to 6"),
    detail::fouroversix("nvfp4/fouroversix-static-4", {1, 16}, "A == 0 ? 0 : 1792 / A", "a / 4 * S_enc",
                        "c * s * A / 1792", {},
                        "the block's largest to 4"),
    detail::fouroversix("nvfp4/fouroversix-mse", {1, 16}, "A == 0 ? 0 : 1536 / A", "a / 6 * S_enc",
                        "c * s * A / 1536", {.alternative = "a / 6 * S_enc * 1.5", .estimate = "(abs(x * m) < 7 ? c : x < 0 ? -8 : 8) * s * A / 1536",
                         .loss = "(v - x) * (v - x)", .total = LossTotal::torch},
                        "the block's largest to 6 or to 4, whichever has the smaller sum of squared errors"),
    detail::fouroversix("nvfp4/fouroversix-mae", {1, 16}, "A == 0 ? 0 : 1536 / A", "a / 6 * S_enc",
                        "c * s * A / 1536", {.alternative = "a / 6 * S_enc * 1.5", .estimate = "(abs(x * m) < 7 ? c : x < 0 ? -8 : 8) * s * A / 1536",
                         .loss = "abs(v - x)", .total = LossTotal::torch},
                        "the block's largest to 6 or to 4, whichever has the smaller sum of |error|"),
    detail::fouroversix("nvfp4/fouroversix-abs-max", {1, 16}, "A == 0 ? 0 : 1536 / A", "a / 6 * S_enc",
                        "c * s * A / 1536",
                        {.alternative = "a / 6 * S_enc * 1.5", .estimate = "(abs(x * m) < 7 ? c : x < 0 ? -8 : 8) * s * A / 1536", .loss = "abs(v - x)",
                         .total = LossTotal::largest},
                        "the block's largest to 6 or to 4, whichever has the smaller largest |error|"),
    detail::fouroversix("nvfp4/fouroversix-static-6-2d", {16, 16}, "A == 0 ? 0 : 2688 / A", "a / 6 * S_enc",
                        "c * s * A / 2688", {}, "the largest of tiles of 16 x 16 to 6"),
    detail::fouroversix("nvfp4/fouroversix-mse-2d", {16, 16}, "A == 0 ? 0 : 1536 / A", "a / 6 * S_enc",
                        "c * s * A / 1536",
                        {.alternative = "a / 6 * S_enc * 1.5", .estimate = "(abs(x * m) < 7 ? c : x < 0 ? -8 : 8) * s * A / 1536",
                         .loss = "(v - x) * (v - x)", .total = LossTotal::torch},
                        "the largest of tiles of 16 x 16 to 6 or to 4, whichever has the smaller sum of squared errors"),
    detail::nvfp4({.name = "nvfp4/ms-eden", .encode = "",
                   .decode = "A == 0 ? 1 : A / 255.99 / (6 / (17 / 16 * 0.93))",
                   .unrounded = "a / (6 / (17 / 16 * 0.93)) / S_dec", .factor = "1 / ((s == 0 ? 1 : s) * S_dec)",
                   .value = "c * s * S_dec", .correction = {.group = 128, .scale = "(s == 0 ? 1 : s) * v", .policy = detail::kStochastic},
                   .summary = "Quartet II's backward pass: scales carry the correction of the shrinkage; x already rotated",
                   .source = "Panferov et al., arXiv:2601.22813; IST-DASLab/Quartet-II kernels/csrc, eden_fp4_kernel"}),

    {.name = "fp8/te", .element = "e4m3", .policy = detail::kSaturate,
     .encode = "A * 0 == 0 ? (A == 0 ? 1 : min(448 / A, FLT_MAX)) : 1", .decode = "1 / S_enc", .scaled = "x * S_enc",
     .value = "c * S_dec",
     .summary = "E4M3 under one FP32 scale of the tensor (current scaling)",
     .source = "NVIDIA/TransformerEngine common/recipe/recipe_common.cuh, current_scaling.cu"},
    {.name = "fp8/te-e5m2", .element = "e5m2", .policy = detail::kSaturate,
     .encode = "A * 0 == 0 ? (A == 0 ? 1 : min(57344 / A, FLT_MAX)) : 1", .decode = "1 / S_enc",
     .scaled = "x * S_enc", .value = "c * S_dec",
     .summary = "E5M2 under one FP32 scale of the tensor (current scaling)",
     .source = "NVIDIA/TransformerEngine common/recipe/recipe_common.cuh, current_scaling.cu"},
    {.name = "fp8/torchao-tensorwise", .element = "e4m3", .policy = detail::kSaturate,
     .amax_nan = AmaxNan::propagates, .encode = "reciprocal(A, 448)", .decode = "1 / S_enc",
     .scaled = "x * S_enc", .value = "c / S_enc",
     .summary = "E4M3 under one FP32 scale of the tensor, an encode scale",
     .source = "torchao 0.18.0 float8/float8_utils.py, amax_to_scale"},
    {.name = "fp8/torchao-tensorwise-e5m2", .element = "e5m2", .policy = detail::kSaturate,
     .amax_nan = AmaxNan::propagates, .encode = "reciprocal(A, 57344)", .decode = "1 / S_enc",
     .scaled = "x * S_enc", .value = "c / S_enc",
     .summary = "E5M2 under one FP32 scale of the tensor, an encode scale: gradients",
     .source = "torchao 0.18.0 float8/float8_utils.py, amax_to_scale"},
    {.name = "fp8/torchao-rowwise", .element = "e4m3", .policy = detail::kSaturate, .block = {1, Extent::kWhole},
     .scale = "f32", .scale_policy = detail::kCast, .amax_nan = AmaxNan::propagates,
     .unrounded = "exp2(floor(log2(reciprocal(a, 448))))", .factor = "s", .scaled = "x * m", .value = "c / s",
     .summary = "E4M3 rows, each under a power of two in FP32, an encode scale",
     .source = "torchao 0.18.0 float8/float8_utils.py, amax_to_scale, round_scales_to_power_of_2"},
    detail::deepseek("fp8/deepseek-1x128", {1, 128}, "f32", "maximum(a, 1e-4) * (1 / 448)",
                     "128 elements of E4M3 share an FP32 scale: activations"),
    detail::deepseek("fp8/deepseek-128x128", {128, 128}, "f32", "maximum(a, 1e-4) * (1 / 448)",
                     "tiles of 128 x 128 share an FP32 scale: weights"),
    detail::deepseek("fp8/deepseek-1x128-ue8m0", {1, 128}, "e8m0",
                     "exp2(max(min(ceil_log2(maximum(a, 1e-4) * (1 / 448)), 127), -126))",
                     "128 elements of E4M3 share a power of two: activations"),
    detail::deepseek("fp8/deepseek-128x128-ue8m0", {128, 128}, "e8m0",
                     "exp2(max(min(ceil_log2(maximum(a, 1e-4) * (1 / 448)), 127), -126))",
                     "tiles of 128 x 128 share a power of two: weights"),
});
// clang-format on

// Catalog position by name; -1 if there is none.
constexpr int find_recipe(std::string_view name) {
  for (std::size_t id = 0; id < kRecipes.size(); ++id)
    if (kRecipes[id].name == name) return int(id);
  return -1;
}

// The row of a name that the program text knows.
consteval const Recipe& recipe_named(std::string_view name) {
  const int id = find_recipe(name);
  if (id < 0) throw "no such recipe";
  return kRecipes[std::size_t(id)];
}

namespace detail {
consteval bool recipes_are_sound() {
  for (std::size_t i = 0; i < kRecipes.size(); ++i)
    if (find_recipe(kRecipes[i].name) != int(i) || kRecipes[i].source.empty() || !is_sound(kRecipes[i])) return false;
  return true;
}
static_assert(recipes_are_sound(), "a recipe's name stands twice, or its fields contradict each other");
}  // namespace detail

}  // namespace halfulp

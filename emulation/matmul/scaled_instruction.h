#pragma once
// Blackwell's matrix instructions on FP8, FP6 and FP4 and those of tcgen05 as rows: what they multiply, which targets
// have them, and which accumulator adds them up. How they are issued is cuda/arch/'s; other instructions are
// instruction.h's.

#include <array>
#include <string_view>

#include "emulation/matmul/accumulator.h"

namespace halfulp {

enum class ScaledUnit { mma_sync, tcgen05 };

// D = (A * scales) @ (B * scales)^T + C, of [m, k], [n, k] and [m, n]; C and D in FP32. The first row_scales of a row's
// scales are of its first k / row_scales elements, and so on; 0: no scales.
struct ScaledInstruction {
  ScaledUnit unit;
  std::string_view kind;  // of PTX, with what follows it up to the shape
  std::string_view a, b;  // formats
  int m, n, k;
  int row_scales = 0;
  std::string_view scale = "";  // format
  std::string_view accumulator;
};

namespace detail {
inline constexpr std::string_view kQmmaKind = "kind::f8f6f4", kTensorKind = "kind::f8f6f4",
                                  kMxKind = "kind::mxf8f6f4.block_scale.scale_vec::1X",
                                  kTensorMxKind = "kind::mxf8f6f4.block_scale.block32";

constexpr ScaledInstruction qmma(std::string_view a, std::string_view b) {
  return {.unit = ScaledUnit::mma_sync,
          .kind = kQmmaKind,
          .a = a,
          .b = b,
          .m = 16,
          .n = 8,
          .k = 32,
          .accumulator = "sm120.qmma.f32"};
}
constexpr ScaledInstruction qmma_mx(std::string_view a, std::string_view b) {
  return {.unit = ScaledUnit::mma_sync,
          .kind = kMxKind,
          .a = a,
          .b = b,
          .m = 16,
          .n = 8,
          .k = 32,
          .row_scales = 1,
          .scale = "e8m0",
          .accumulator = "sm120.qmma_mx.f32"};
}
constexpr ScaledInstruction omma(std::string_view kind, int row_scales, std::string_view scale) {
  return {.unit = ScaledUnit::mma_sync,
          .kind = kind,
          .a = "e2m1",
          .b = "e2m1",
          .m = 16,
          .n = 8,
          .k = 64,
          .row_scales = row_scales,
          .scale = scale,
          .accumulator = "sm120.omma.f32"};
}
// N is the least that every kind takes with M = 128 (PTX ISA 9.0, 9.7.16.2.1).
constexpr ScaledInstruction utcmma(std::string_view kind, std::string_view a, std::string_view b, int k,
                                   std::string_view accumulator) {
  return {
      .unit = ScaledUnit::tcgen05, .kind = kind, .a = a, .b = b, .m = 128, .n = 16, .k = k, .accumulator = accumulator};
}
constexpr ScaledInstruction utcmma_scaled(std::string_view kind, std::string_view a, std::string_view b, int k,
                                          int row_scales, std::string_view scale, std::string_view accumulator) {
  ScaledInstruction is = utcmma(kind, a, b, k, accumulator);
  is.row_scales = row_scales, is.scale = scale;
  return is;
}
constexpr ScaledInstruction utcqmma(std::string_view a, std::string_view b) {
  return utcmma(kTensorKind, a, b, 32, "sm100.utcqmma.f32");
}
constexpr ScaledInstruction utcqmma_mx(std::string_view a, std::string_view b) {
  return utcmma_scaled(kTensorMxKind, a, b, 32, 1, "e8m0", "sm100.utcqmma_mx.f32");
}
}  // namespace detail

// Of the 25 pairs of FP8, FP6 and FP4 formats each with itself and two mixed ones: the formats are decoded before they
// meet. PTX ISA 9.0, 9.7.14.3 and 9.7.16.10.
// clang-format off
inline constexpr auto kScaledInstructions = std::to_array<ScaledInstruction>({
    detail::qmma("e4m3", "e4m3"), detail::qmma("e5m2", "e5m2"), detail::qmma("e2m3", "e2m3"),
    detail::qmma("e3m2", "e3m2"), detail::qmma("e2m1", "e2m1"), detail::qmma("e4m3", "e5m2"),
    detail::qmma("e2m1", "e4m3"),
    detail::qmma_mx("e4m3", "e4m3"), detail::qmma_mx("e5m2", "e5m2"), detail::qmma_mx("e2m3", "e2m3"),
    detail::qmma_mx("e3m2", "e3m2"), detail::qmma_mx("e2m1", "e2m1"), detail::qmma_mx("e4m3", "e5m2"),
    detail::qmma_mx("e2m1", "e4m3"),
    detail::omma("kind::mxf4.block_scale.scale_vec::2X", 2, "e8m0"),
    detail::omma("kind::mxf4nvf4.block_scale.scale_vec::2X", 2, "e8m0"),
    detail::omma("kind::mxf4nvf4.block_scale.scale_vec::4X", 4, "ue4m3"),
    detail::utcmma("kind::f16", "f16", "f16", 16, "sm100.utchmma.f32"),
    detail::utcmma("kind::f16", "bf16", "bf16", 16, "sm100.utchmma.f32"),
    detail::utcmma("kind::tf32", "tf32", "tf32", 8, "sm100.utchmma_tf32.f32"),
    detail::utcqmma("e4m3", "e4m3"), detail::utcqmma("e5m2", "e5m2"), detail::utcqmma("e2m3", "e2m3"),
    detail::utcqmma("e3m2", "e3m2"), detail::utcqmma("e2m1", "e2m1"), detail::utcqmma("e4m3", "e5m2"),
    detail::utcqmma("e2m1", "e4m3"),
    detail::utcqmma_mx("e4m3", "e4m3"), detail::utcqmma_mx("e5m2", "e5m2"), detail::utcqmma_mx("e2m3", "e2m3"),
    detail::utcqmma_mx("e3m2", "e3m2"), detail::utcqmma_mx("e2m1", "e2m1"), detail::utcqmma_mx("e4m3", "e5m2"),
    detail::utcqmma_mx("e2m1", "e4m3"),
    detail::utcmma_scaled("kind::mxf4.block_scale.block32", "e2m1", "e2m1", 64, 2, "e8m0", "sm100.omma.f32"),
    detail::utcmma_scaled("kind::mxf4nvf4.block_scale.block16", "e2m1", "e2m1", 64, 4, "ue4m3", "sm100.omma.f32"),
});
// clang-format on

}  // namespace halfulp

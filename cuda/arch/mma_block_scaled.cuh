#pragma once
// mma.sync of sm_120 and sm_121 on FP8, FP6 and FP4, with scales of blocks and without: the instruction where the
// target has it, else its model behind the same registers. A warp calls these together. The instructions have been
// compiled and never run: no such GPU was at hand.

#include <array>
#include <cstdint>
#include <string_view>

#include "cuda/arch/capability.h"
#include "cuda/arch/joined_name.cuh"
#include "cuda/arch/model.cuh"
#include "formats/catalog.h"

namespace halfulp::arch {

// PTX ISA 9.0, 9.7.14.3, table 36, and 9.7.14.5.14. All are 16 x 8 outputs of 32 bytes of a row.
enum class ScaledMma { f8f6f4, mxf8f6f4, mxf4, mxf4nvf4_2x, mxf4nvf4_4x };

struct ScaledMmaEntry {
  std::string_view before, after;  // the names of the operands' formats
  int k;
  int row_scales;          // of a row's k elements; 0: none
  std::string_view scale;  // their format
  std::string_view accumulator;
};

// clang-format off
inline constexpr auto kScaledMmas = std::to_array<ScaledMmaEntry>({
    {.before = "kind::f8f6f4.m16n8k32.row.col.f32.", .after = ".f32", .k = 32, .row_scales = 0, .scale = "",
     .accumulator = "sm120.qmma.f32"},
    {.before = "kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.", .after = ".f32.ue8m0", .k = 32,
     .row_scales = 1, .scale = "e8m0", .accumulator = "sm120.qmma_mx.f32"},
    {.before = "kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.", .after = ".f32.ue8m0", .k = 64,
     .row_scales = 2, .scale = "e8m0", .accumulator = "sm120.omma.f32"},
    {.before = "kind::mxf4nvf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.", .after = ".f32.ue8m0", .k = 64,
     .row_scales = 2, .scale = "e8m0", .accumulator = "sm120.omma.f32"},
    {.before = "kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.", .after = ".f32.ue4m3", .k = 64,
     .row_scales = 4, .scale = "ue4m3", .accumulator = "sm120.omma.f32"},
});
// clang-format on

__host__ __device__ constexpr bool is_block_scaled(ScaledMma mma) { return mma != ScaledMma::f8f6f4; }

// The one whose spelling begins with a kind; a compile error where there is none.
consteval ScaledMma find_scaled_mma(std::string_view kind) {
  for (std::size_t i = 0; i < kScaledMmas.size(); ++i)
    if (kScaledMmas[i].before.substr(0, kind.size()) == kind && kScaledMmas[i].before[kind.size()] == '.' &&
        kScaledMmas[i].before[kind.size() + 1] == 'm')
      return ScaledMma(i);
  throw "no such kind";
}

// Registers of a lane, of which g = lane / 4 and t = lane % 4: row g of A in a[0] and a[2], row g + 8 in a[1] and a[3],
// column g of B in b[0] and b[1], each at bytes 4t and 16 + 4t of the row's 32. In the accumulator, of FP32, d[0] and
// d[1] are row g, columns 2t and 2t + 1; d[2] and d[3] are row g + 8. An element of k = 32 has a byte: E2M1's bits are
// the byte's bits 2 to 5, those of the other formats its lowest. PTX ISA 9.0, 9.7.14.5.8 and 9.7.14.5.11;
// NVIDIA/cutlass cute/atom/mma_traits_sm120.hpp.
struct ScaledMmaRegisters {
  uint32_t a[4], b[2];
  uint32_t a_scales = 0, b_scales = 0;
};

// Which scales are meant. Lanes 2 * a_lanes and 2 * a_lanes + 1 of a quad have those of rows g and g + 8, and lane
// b_lane has column g's. The bytes from a_byte and b_byte on are those of a row's blocks in order. PTX
// ISA 9.0, 9.7.14.3.
struct ScaleSelectors {
  int a_byte, a_lanes, b_byte, b_lane;
};

namespace detail {
// Variables, because device code may not call what constant expressions may.
inline constexpr bool kHasScaledMma = has_target("120a 120f 121a 121f", kTarget.name());

template <ScaledMma mma>
inline constexpr ScaledMmaEntry kScaledMma = kScaledMmas[std::size_t(mma)];
template <ScaledMma mma>
inline constexpr Accumulator kScaledMmaSum = kAccumulators[std::size_t(find_accumulator(kScaledMma<mma>.accumulator))];
template <ScaledMma mma>
inline constexpr Format kScaledMmaScale = is_block_scaled(mma)
                                              ? kFormats[std::size_t(find_format(kScaledMma<mma>.scale))].format
                                              : Format{};

inline constexpr std::string_view kMmaSync = "mma.sync.aligned.";

template <ScaledMma mma, int a_format, int b_format>
struct ScaledMmaName {
  static constexpr std::string_view a = kFormats[a_format].name, b = kFormats[b_format].name;
  static constexpr JoinedName<kMmaSync.size() + kScaledMma<mma>.before.size() + a.size() + 1 + b.size() +
                              kScaledMma<mma>.after.size()>
      value{kMmaSync, kScaledMma<mma>.before, a, ".", b, kScaledMma<mma>.after};
};

template <ScaledMma mma, int a_format, int b_format, int a_byte, int a_lanes, int b_byte, int b_lane>
__device__ __forceinline__ void mma_natively(const ScaledMmaRegisters& x, uint32_t (&d)[4]) {
  using Text = AsmText<ScaledMmaName<mma, a_format, b_format>>;
  if constexpr (is_block_scaled(mma)) {
    asm("%16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {%12, %13}, {%11}, {%14, %15};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(x.a[0]), "r"(x.a[1]), "r"(x.a[2]), "r"(x.a[3]), "r"(x.b[0]), "r"(x.b[1]), "r"(x.a_scales),
          "r"(x.b_scales), "n"(a_byte), "n"(a_lanes), "n"(b_byte), "n"(b_lane), "C"(Text::text));
  } else {
    asm("%10 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(x.a[0]), "r"(x.a[1]), "r"(x.a[2]), "r"(x.a[3]), "r"(x.b[0]), "r"(x.b[1]), "C"(Text::text));
  }
}

// Words of other lanes' registers that make up 32 bytes of a row, and its scales.
struct MmaRow {
  uint32_t words[8], scales;
};

constexpr unsigned kWholeWarp = 0xffff'ffff;

// Row g of the half of A, or column g of B, of a quad: word w is in register w / 4 of its lane w % 4.
__device__ __forceinline__ MmaRow gather_row(uint32_t first, uint32_t second, uint32_t scales, int quad,
                                             int scale_lane) {
  MmaRow row;
  for (int word = 0; word < 4; ++word) {
    row.words[word] = __shfl_sync(kWholeWarp, first, quad * 4 + word);
    row.words[word + 4] = __shfl_sync(kWholeWarp, second, quad * 4 + word);
  }
  row.scales = __shfl_sync(kWholeWarp, scales, quad * 4 + scale_lane);
  return row;
}

// One to a word, as dot_product() takes them.
struct MmaCodes {
  uint32_t codes[64], scales[4];

  __device__ void take(const MmaRow& row, const Format& is, int k, int row_scales, int first_byte) {
    const int bits = 256 / k, shift = bits == 8 && is.bits() == 4 ? 2 : 0;
    for (int i = 0; i < k; ++i) codes[i] = row.words[i * bits / 32] >> (i * bits % 32 + shift) & is.code_mask();
    for (int i = 0; i < row_scales; ++i) scales[i] = row.scales >> (first_byte + i) * 8 & 0xff;
  }
};

// What the kinds have in common, so that code for a GPU without them has their model once.
struct MmaModel {
  Accumulator sum;
  Format a, b, scale;
  int k, row_scales;
};
template <ScaledMma mma, int a_format, int b_format>
static __constant__ const MmaModel kMmaModel{kScaledMmaSum<mma>,        kFormats[a_format].format,
                                             kFormats[b_format].format, kScaledMmaScale<mma>,
                                             kScaledMma<mma>.k,         kScaledMma<mma>.row_scales};

static_assert(have_modelled_sums(kScaledMmas));

static __device__ __noinline__ void mma_by_model(const MmaModel* is, ScaleSelectors at, ScaledMmaRegisters x,
                                                 uint32_t* d) {
  const int lane = int(threadIdx.x % 32), scaled = is->row_scales == 0 ? 0 : is->k / is->row_scales;
  MmaCodes a_codes, b_codes;
  const DotOperand a{is->a, a_codes.codes, is->scale, a_codes.scales, scaled};
  const DotOperand b{is->b, b_codes.codes, is->scale, b_codes.scales, scaled};
#pragma unroll 1
  for (int i = 0; i < 4; ++i) {
    const int half = i / 2;
    const MmaRow a_row = gather_row(half == 0 ? x.a[0] : x.a[1], half == 0 ? x.a[2] : x.a[3], x.a_scales, lane / 4,
                                    at.a_lanes * 2 + half);
    const MmaRow b_row = gather_row(x.b[0], x.b[1], x.b_scales, lane % 4 * 2 + i % 2, at.b_lane);
    a_codes.take(a_row, is->a, is->k, is->row_scales, at.a_byte);
    b_codes.take(b_row, is->b, is->k, is->row_scales, at.b_byte);
    d[i] = modelled_sum(&is->sum, &a, &b, is->k, d[i]);
  }
}

}  // namespace detail

__host__ __device__ constexpr bool has_scaled_mma() { return detail::kHasScaledMma; }

// D = A @ B^T + D. The formats are positions in kFormats.
template <ScaledMma mma, int a_format, int b_format, int a_byte = 0, int a_lanes = 0, int b_byte = 0, int b_lane = 0>
__device__ __forceinline__ void mma_sync(const ScaledMmaRegisters& x, uint32_t (&d)[4]) {
  if constexpr (has_scaled_mma()) {
    detail::mma_natively<mma, a_format, b_format, a_byte, a_lanes, b_byte, b_lane>(x, d);
  } else {
    detail::mma_by_model(&detail::kMmaModel<mma, a_format, b_format>, {a_byte, a_lanes, b_byte, b_lane}, x, d);
  }
}

}  // namespace halfulp::arch

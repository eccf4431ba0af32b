#pragma once
// What tcgen05 instructions are told of their operands: kinds of multiplication, descriptors of matrices in shared
// memory and of an instruction, and where they say that an element lies. Plain C++; the instructions are in
// tcgen05.cuh.

#include <array>
#include <cstdint>
#include <string_view>

#include "emulation/matmul/accumulator.h"
#include "formats/catalog.h"
#include "lib/host_device.h"

namespace halfulp::arch {

// PTX ISA 9.0, 9.7.16.2.1, dense forms. An instruction takes 32 bytes of a row whatever the kind: two chunks of 16.
enum class Tcgen05Kind { f16, tf32, f8f6f4, mxf8f6f4, mxf4, mxf4nvf4 };

struct Tcgen05KindEntry {
  std::string_view name;  // as it follows tcgen05.mma.cta_group::1
  int k;
  int chunk_elements;      // in 16 bytes; narrower elements are packed at the start of their chunk
  int row_scales;          // of a row's k elements; 0: none
  std::string_view scale;  // their format
  std::string_view accumulator;
};

// .block32 is scale_vec::1X of mxf8f6f4 and 2X of FP4, .block16 is 4X; ptxas 13.0 takes the older names for sm_100a and
// its like, but not for sm_100f.
// clang-format off
inline constexpr auto kTcgen05Kinds = std::to_array<Tcgen05KindEntry>({
    {.name = "kind::f16", .k = 16, .chunk_elements = 8, .row_scales = 0, .scale = "",
     .accumulator = "sm100.utchmma.f32"},
    {.name = "kind::tf32", .k = 8, .chunk_elements = 4, .row_scales = 0, .scale = "",
     .accumulator = "sm100.utchmma_tf32.f32"},
    {.name = "kind::f8f6f4", .k = 32, .chunk_elements = 16, .row_scales = 0, .scale = "",
     .accumulator = "sm100.utcqmma.f32"},
    {.name = "kind::mxf8f6f4.block_scale.block32", .k = 32, .chunk_elements = 16, .row_scales = 1, .scale = "e8m0",
     .accumulator = "sm100.utcqmma_mx.f32"},
    {.name = "kind::mxf4.block_scale.block32", .k = 64, .chunk_elements = 32, .row_scales = 2, .scale = "e8m0",
     .accumulator = "sm100.omma.f32"},
    {.name = "kind::mxf4nvf4.block_scale.block16", .k = 64, .chunk_elements = 32, .row_scales = 4, .scale = "ue4m3",
     .accumulator = "sm100.omma.f32"},
});
// clang-format on

// Throws where there is none.
constexpr Tcgen05Kind find_tcgen05_kind(std::string_view name) {
  for (std::size_t i = 0; i < kTcgen05Kinds.size(); ++i)
    if (kTcgen05Kinds[i].name == name) return Tcgen05Kind(i);
  throw "no such kind";
}

HOST_DEVICE constexpr bool is_block_scaled(Tcgen05Kind kind) { return kind >= Tcgen05Kind::mxf8f6f4; }

// What an instruction descriptor calls a format, and what it means by a number.
struct Tcgen05Format {
  Tcgen05Kind kind;  // those of f8f6f4 are mxf8f6f4's, and mxf4's mxf4nvf4's
  std::string_view format;
  uint32_t number;
};

// PTX ISA 9.0, 9.7.16.4.2, tables 42 to 44.
// clang-format off
inline constexpr auto kTcgen05Formats = std::to_array<Tcgen05Format>({
    {.kind = Tcgen05Kind::f16, .format = "f16", .number = 0},
    {.kind = Tcgen05Kind::f16, .format = "bf16", .number = 1},
    {.kind = Tcgen05Kind::tf32, .format = "tf32", .number = 2},
    {.kind = Tcgen05Kind::f8f6f4, .format = "e4m3", .number = 0},
    {.kind = Tcgen05Kind::f8f6f4, .format = "e5m2", .number = 1},
    {.kind = Tcgen05Kind::f8f6f4, .format = "e2m3", .number = 3},
    {.kind = Tcgen05Kind::f8f6f4, .format = "e3m2", .number = 4},
    {.kind = Tcgen05Kind::f8f6f4, .format = "e2m1", .number = 5},
    {.kind = Tcgen05Kind::mxf4, .format = "e2m1", .number = 1},
});
// clang-format on

namespace detail {
HOST_DEVICE constexpr Tcgen05Kind format_kind(Tcgen05Kind kind) {
  return kind == Tcgen05Kind::mxf8f6f4 ? Tcgen05Kind::f8f6f4 : kind == Tcgen05Kind::mxf4nvf4 ? Tcgen05Kind::mxf4 : kind;
}
}  // namespace detail

// -1: the kind does not take the format.
constexpr int tcgen05_format_number(Tcgen05Kind kind, std::string_view format) {
  for (const Tcgen05Format& row : kTcgen05Formats)
    if (row.kind == detail::format_kind(kind) && row.format == format) return int(row.number);
  return -1;
}

// The position in kFormats of what a number means; -1: nothing.
constexpr int tcgen05_format(Tcgen05Kind kind, uint32_t number) {
  for (const Tcgen05Format& row : kTcgen05Formats)
    if (row.kind == detail::format_kind(kind) && row.number == number) return find_format(row.format);
  return -1;
}

// PTX ISA 9.0, 9.7.16.4.1, table 40. The chunks of a swizzled row are in another order; 128-byte swizzling of 32-byte
// chunks is for matrices that are not K-major alone, and left out.
enum class Tcgen05Swizzle : uint32_t { none = 0, bytes128 = 2, bytes64 = 4, bytes32 = 6 };

// A K-major matrix in shared memory, all in bytes and multiples of 16. Eight rows and a chunk of 16 bytes, or the whole
// width of swizzled rows, lie together. PTX ISA 9.0, 9.7.16.3; NVIDIA/cutlass cute/atom/mma_traits_sm100.hpp.
struct SharedMatrix {
  uint32_t start;
  uint32_t leading;  // to the next chunk of a row, unless swizzled: then the next 16 bytes
  uint32_t stride;   // to the next eight rows
  Tcgen05Swizzle swizzle = Tcgen05Swizzle::none;
  friend constexpr bool operator==(const SharedMatrix&, const SharedMatrix&) = default;
};

HOST_DEVICE constexpr uint64_t descriptor_of(const SharedMatrix& matrix) {
  constexpr auto units = [](uint32_t bytes) { return uint64_t{(bytes & 0x3'ffff) >> 4}; };
  constexpr uint64_t kVersion = 0b001;  // bits 46 to 48, fixed
  return units(matrix.start) | units(matrix.leading) << 16 | units(matrix.stride) << 32 | kVersion << 46 |
         uint64_t{uint32_t(matrix.swizzle)} << 61;
}

HOST_DEVICE constexpr SharedMatrix decode_shared_matrix(uint64_t descriptor) {
  const auto bytes = [&](int bit) { return uint32_t(descriptor >> bit & 0x3fff) << 4; };
  return {.start = bytes(0), .leading = bytes(16), .stride = bytes(32), .swizzle = Tcgen05Swizzle(descriptor >> 61)};
}

// The address of the 16 bytes that are a row's chunk.
HOST_DEVICE constexpr uint32_t chunk_address(const SharedMatrix& matrix, uint32_t row, uint32_t chunk) {
  const uint32_t groups = matrix.start + row / 8 * matrix.stride;
  switch (matrix.swizzle) {
    case Tcgen05Swizzle::none: return groups + row % 8 * 16 + chunk * matrix.leading;
    // Address bits 4 up to the width's are XORed with as many from bit 7 on.
    case Tcgen05Swizzle::bytes32: return (groups + row % 8 * 32 + chunk * 16) ^ ((groups + row % 8 * 32) >> 7 & 1) << 4;
    case Tcgen05Swizzle::bytes64: return (groups + row % 8 * 64 + chunk * 16) ^ ((groups + row % 8 * 64) >> 7 & 3) << 4;
    case Tcgen05Swizzle::bytes128:
      return (groups + row % 8 * 128 + chunk * 16) ^ ((groups + row % 8 * 128) >> 7 & 7) << 4;
  }
  return groups;
}

// PTX ISA 9.0, 9.7.16.4.2, tables 42 to 44: dense, nothing negated, both operands K-major, D in FP32.
struct Tcgen05Instruction {
  uint32_t a_format, b_format;  // numbers
  uint32_t m, n;
  // Of block-scaled kinds: which byte of a word of Tensor Memory is the first scale.
  uint32_t a_scale_byte = 0, b_scale_byte = 0;
  friend constexpr bool operator==(const Tcgen05Instruction&, const Tcgen05Instruction&) = default;
};

HOST_DEVICE constexpr uint32_t descriptor_of(Tcgen05Kind kind, const Tcgen05Instruction& is) {
  const uint32_t both = is.a_format << 7 | is.b_format << 10 | is.n >> 3 << 17;
  if (!is_block_scaled(kind)) {
    constexpr uint32_t kF32 = 1;
    return both | kF32 << 4 | is.m >> 4 << 24;
  }
  const uint32_t e8m0 = kind == Tcgen05Kind::mxf4nvf4 ? 0 : 1;
  return both | is.b_scale_byte << 4 | e8m0 << 23 | is.m >> 7 << 27 | is.a_scale_byte << 29;
}

HOST_DEVICE constexpr Tcgen05Instruction decode_instruction(Tcgen05Kind kind, uint32_t bits) {
  const bool scaled = is_block_scaled(kind), fp4 = detail::format_kind(kind) == Tcgen05Kind::mxf4;
  return {.a_format = bits >> 7 & 7,
          .b_format = bits >> 10 & (fp4 ? 3 : 7),
          .m = scaled ? (bits >> 27 & 3) << 7 : (bits >> 24 & 31) << 4,
          .n = (bits >> 17 & 63) << 3,
          .a_scale_byte = scaled ? bits >> 29 & 3 : 0,
          .b_scale_byte = scaled ? bits >> 4 & 3 : 0};
}

// Tensor Memory: 128 lanes of words in columns, of which a power of two from 32 to 512 is allocated. PTX ISA 9.0,
// 9.7.16.1.
inline constexpr int kTensorLanes = 128;

HOST_DEVICE constexpr uint32_t tensor_address(uint32_t base, uint32_t lane, uint32_t column) {
  return base + (lane << 16) + column;
}

}  // namespace halfulp::arch

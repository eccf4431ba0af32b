#pragma once
// mma.sync and wgmma: the instruction where the target has it, else its model behind the same registers. A warp calls
// multiply() together, or the four warps of a warpgroup where that is the instruction's unit.

#include <cstdint>

#include "cuda/arch/capability.h"
#include "cuda/arch/joined_name.cuh"
#include "emulation/matmul/dot_product.h"
#include "emulation/matmul/instruction.h"

namespace halfulp::arch {

// Registers of a lane, of which g = lane / 4 and t = lane % 4, by PTX ISA 9.0, 9.7.14.5 and 9.7.15.5.1. Row g of A has
// bytes 4t to 4t + 3 in a[0] and, of rows of 32 bytes, 16 + 4t to 19 + 4t in a[2]; row g + 8 in a[1] and a[3]. Of wgmma
// a warp has the 16 rows from 16 * warp on. d[0] and d[1] are row g, columns 2t and 2t + 1, d[2] and d[3] row g + 8;
// F16 has both columns in d[0], and those of row g + 8 in d[1].
struct MatrixRegisters {
  uint32_t a[4], d[4];  // d: the accumulator, then the result
};

// B in shared memory, where wgmma takes it from: of column n (a row of B^T) byte i is at 128 * (i / 16) + 16n + i % 16.
// That is the canonical layout without swizzle of one core matrix by one or two (PTX ISA 9.0, 9.7.15.5.1.2).
struct alignas(128) MatrixColumns {
  uint32_t words[64];
};

namespace detail {
template <int id>
inline constexpr MatrixInstruction kMatrix = kMatrixInstructions[id];
template <int id>
inline constexpr bool kHasMatrix = has_target(kMatrix<id>.targets, kTarget.name());
template <int id>
inline constexpr bool kIsF16 = kMatrix<id>.d == "f16";
template <int id>
inline constexpr Format kOfA = kFormats[std::size_t(find_format(kMatrix<id>.a))].format;
template <int id>
inline constexpr Format kOfB = kFormats[std::size_t(find_format(kMatrix<id>.b))].format;
// Bits of an element in a register, and the bytes of a row.
template <int id>
inline constexpr int kElementBits = kFormats[std::size_t(find_format(kMatrix<id>.a))].storage_bits;
template <int id>
inline constexpr int kRowBytes = kMatrix<id>.k* kElementBits<id> / 8;

template <int id>
struct MatrixName {
  static constexpr std::string_view name = kMatrixInstructions[id].ptx;
  static constexpr JoinedName<name.size()> value{name};
};

template <int id>
__device__ __forceinline__ void multiply_by_warp(MatrixRegisters& x, const MatrixColumns& b) {
  using Text = AsmText<MatrixName<id>>;
  const uint32_t lane = threadIdx.x % 32, first = b.words[lane], second = b.words[lane + 32];
  if constexpr (kRowBytes<id> == 32 && !kIsF16<id>) {
    asm("%10 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(x.d[0]), "+r"(x.d[1]), "+r"(x.d[2]), "+r"(x.d[3])
        : "r"(x.a[0]), "r"(x.a[1]), "r"(x.a[2]), "r"(x.a[3]), "r"(first), "r"(second), "C"(Text::text));
  } else if constexpr (kRowBytes<id> == 32) {
    asm("%8 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
        : "+r"(x.d[0]), "+r"(x.d[1])
        : "r"(x.a[0]), "r"(x.a[1]), "r"(x.a[2]), "r"(x.a[3]), "r"(first), "r"(second), "C"(Text::text));
  } else if constexpr (!kIsF16<id>) {
    asm("%7 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+r"(x.d[0]), "+r"(x.d[1]), "+r"(x.d[2]), "+r"(x.d[3])
        : "r"(x.a[0]), "r"(x.a[1]), "r"(first), "C"(Text::text));
  } else {
    asm("%5 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
        : "+r"(x.d[0]), "+r"(x.d[1])
        : "r"(x.a[0]), "r"(x.a[1]), "r"(first), "C"(Text::text));
  }
}

// PTX ISA 9.0, 9.7.15.5.1.2.2: the address and, between the two core matrices of K, the leading dimension's offset, in
// units of 16 bytes.
__device__ __forceinline__ uint64_t descriptor_of(const MatrixColumns& b) {
  constexpr uint64_t kLeading = 128 / 16;
  return uint64_t(__cvta_generic_to_shared(&b)) >> 4 | kLeading << 16;
}

// A is in registers; scale-d, imm-scale-a, imm-scale-b and, of 16-bit elements, imm-trans-b follow.
template <int id>
__device__ __forceinline__ void multiply_by_warpgroup(MatrixRegisters& x, const MatrixColumns& b) {
  using Text = AsmText<MatrixName<id>>;
  static constexpr char kPlain[] = "p, 1, 1;", kTransposable[] = "p, 1, 1, 0;";
  static_assert(kRowBytes<id> == 32);
  const uint64_t descriptor = descriptor_of(b);
  asm volatile("fence.proxy.async.shared::cta; wgmma.fence.sync.aligned;" ::: "memory");
  if constexpr (kIsF16<id> && kElementBits<id> == 16) {
    asm volatile("{ .reg .pred p; setp.eq.b32 p, 0, 0; %7 {%0, %1}, {%2, %3, %4, %5}, %6, %8 }"
                 : "+r"(x.d[0]), "+r"(x.d[1])
                 : "r"(x.a[0]), "r"(x.a[1]), "r"(x.a[2]), "r"(x.a[3]), "l"(descriptor), "C"(Text::text),
                   "C"(kTransposable));
  } else if constexpr (kIsF16<id>) {
    asm volatile("{ .reg .pred p; setp.eq.b32 p, 0, 0; %7 {%0, %1}, {%2, %3, %4, %5}, %6, %8 }"
                 : "+r"(x.d[0]), "+r"(x.d[1])
                 : "r"(x.a[0]), "r"(x.a[1]), "r"(x.a[2]), "r"(x.a[3]), "l"(descriptor), "C"(Text::text), "C"(kPlain));
  } else if constexpr (kElementBits<id> == 16) {
    asm volatile("{ .reg .pred p; setp.eq.b32 p, 0, 0; %9 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, %10 }"
                 : "+r"(x.d[0]), "+r"(x.d[1]), "+r"(x.d[2]), "+r"(x.d[3])
                 : "r"(x.a[0]), "r"(x.a[1]), "r"(x.a[2]), "r"(x.a[3]), "l"(descriptor), "C"(Text::text),
                   "C"(kTransposable));
  } else {
    asm volatile("{ .reg .pred p; setp.eq.b32 p, 0, 0; %9 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, %10 }"
                 : "+r"(x.d[0]), "+r"(x.d[1]), "+r"(x.d[2]), "+r"(x.d[3])
                 : "r"(x.a[0]), "r"(x.a[1]), "r"(x.a[2]), "r"(x.a[3]), "l"(descriptor), "C"(Text::text), "C"(kPlain));
  }
  asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// What instructions have in common, so that code for a GPU without them has their model once.
struct MatrixModel {
  Accumulator sum;
  Format a, b;
  int k, element_bits, storage_shift;
  bool is_f16;
};
constexpr MatrixModel matrix_model(const MatrixInstruction& is) {
  const FormatEntry &a = kFormats[std::size_t(find_format(is.a))], &b = kFormats[std::size_t(find_format(is.b))];
  return {.sum = kAccumulators[std::size_t(accumulator_on(is, 90))],
          .a = a.format,
          .b = b.format,
          .k = is.k,
          .element_bits = a.storage_bits,
          .storage_shift = a.storage_shift,
          .is_f16 = is.d == "f16"};
}
template <int id>
static __constant__ const MatrixModel kMatrixModel = matrix_model(kMatrixInstructions[id]);

constexpr unsigned kWarp = 0xffff'ffff;
constexpr int kMostElements = 32;

__device__ inline void take_codes(const MatrixModel& is, const uint32_t (&words)[8], uint32_t (&codes)[kMostElements]) {
  const uint32_t mask = is.element_bits == 32 ? ~0u : (1u << is.element_bits) - 1;
  for (int i = 0; i < is.k; ++i)
    codes[i] = (words[i * is.element_bits / 32] >> (i * is.element_bits % 32) & mask) >> is.storage_shift;
}

static __device__ __noinline__ void multiply_by_model(const MatrixModel* is, MatrixRegisters& x,
                                                      const MatrixColumns& b) {
  const int lane = int(threadIdx.x % 32), quad = lane / 4, words = is->k * is->element_bits / 32;
  uint32_t d[2][2] = {};
  for (int half = 0; half < 2; ++half) {
    uint32_t row[8] = {}, column[8] = {}, a_codes[kMostElements], b_codes[kMostElements];
    for (int w = 0; w < words; ++w) row[w] = __shfl_sync(kWarp, w < 4 ? x.a[half] : x.a[2 + half], quad * 4 + w % 4);
    take_codes(*is, row, a_codes);
    for (int j = 0; j < 2; ++j) {
      const int n = lane % 4 * 2 + j;
      for (int w = 0; w < words; ++w) column[w] = b.words[w / 4 * 32 + n * 4 + w % 4];
      take_codes(*is, column, b_codes);
      const uint32_t c = is->is_f16 ? x.d[half] >> 16 * j & 0xffff : x.d[2 * half + j];
      d[half][j] = dot_product(is->sum, {is->a, a_codes}, {is->b, b_codes}, is->k, c);
    }
  }
  for (int half = 0; half < 2; ++half) {
    if (is->is_f16) x.d[half] = d[half][0] | d[half][1] << 16;
    for (int j = 0; j < 2 && !is->is_f16; ++j) x.d[2 * half + j] = d[half][j];
  }
}

}  // namespace detail

// Whether multiply<id>() is the instruction in the code being compiled. Else it is the model of Hopper's.
template <int id>
__host__ __device__ constexpr bool has_matrix_instruction() {
  return detail::kHasMatrix<id>;
}

// x.d += A @ B^T, by number `id` of kMatrixInstructions. What is in `b` was written before a barrier.
template <int id>
__device__ __forceinline__ void multiply(MatrixRegisters& x, const MatrixColumns& b) {
  if constexpr (!has_matrix_instruction<id>()) {
    detail::multiply_by_model(&detail::kMatrixModel<id>, x, b);
  } else if constexpr (detail::kMatrix<id>.unit == MatrixUnit::warp) {
    detail::multiply_by_warp<id>(x, b);
  } else {
    detail::multiply_by_warpgroup<id>(x, b);
  }
}

}  // namespace halfulp::arch

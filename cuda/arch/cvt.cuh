#pragma once
// PTX conversions in device code: the instruction where the target has it, else its model, behind the same registers.
// Every row of the catalog has both; asm takes the row's own spelling ("C" operands: arrays of constant characters), so
// that what is left to write here is how operands are passed.

#include <cstdint>
#include <utility>

#include "cuda/arch/capability.h"
#include "formats/ptx_cvt.h"

namespace halfulp::arch {

namespace detail {
// A variable, because device code may not call what constant expressions may.
template <int id>
inline constexpr bool kIsNative = has_target(kSinces[int(kPtxCvts[id].since)].targets, kTarget.name());

template <int id, class = std::make_index_sequence<kPtxCvts[id].name.size()>>
struct Spelling;
template <int id, std::size_t... i>
struct Spelling<id, std::index_sequence<i...>> {
  static constexpr char text[] = {kPtxCvts[id].name[i]..., '\0'};
};

// A PTX register of so many bits: its declaration, and how it is filled from one of 32 bits and widened to one.
template <int bits>
struct Register;
template <>
struct Register<8> {
  static constexpr char type[] = ".b8", fill[] = "cvt.u8.u32", widen[] = "cvt.u32.u8";
};
template <>
struct Register<16> {
  static constexpr char type[] = ".b16", fill[] = "cvt.u16.u32", widen[] = "cvt.u32.u16";
};
template <>
struct Register<32> {
  static constexpr char type[] = ".b32", fill[] = "mov.b32", widen[] = "mov.b32";
};

template <int id>
using Destination = Register<kPtxCvtAt<id>.lanes * kPtxCvtAt<id>.to.storage_bits>;
template <int id>
using PackedSource = Register<kPtxCvtAt<id>.lanes * kPtxCvtAt<id>.from.storage_bits>;

template <int id>
__device__ __forceinline__ uint32_t convert_packed(uint32_t a) {
  uint32_t d;
  asm("{ .reg %1 d; .reg %4 a; %5 a, %6; %2 d, a; %3 %0, d; }"
      : "=r"(d)
      : "C"(Destination<id>::type), "C"(Spelling<id>::text), "C"(Destination<id>::widen), "C"(PackedSource<id>::type),
        "C"(PackedSource<id>::fill), "r"(a));
  return d;
}

template <int id>
__device__ __forceinline__ uint32_t convert_one(uint32_t a) {
  uint32_t d;
  asm("{ .reg %1 d; %2 d, %4; %3 %0, d; }"
      : "=r"(d)
      : "C"(Destination<id>::type), "C"(Spelling<id>::text), "C"(Destination<id>::widen), "r"(a));
  return d;
}

template <int id>
__device__ __forceinline__ uint32_t convert_two(uint32_t a, uint32_t b) {
  uint32_t d;
  asm("{ .reg %1 d; %2 d, %4, %5; %3 %0, d; }"
      : "=r"(d)
      : "C"(Destination<id>::type), "C"(Spelling<id>::text), "C"(Destination<id>::widen), "r"(a), "r"(b));
  return d;
}

template <int id>
__device__ __forceinline__ uint32_t convert_two(uint32_t a, uint32_t b, uint32_t random) {
  uint32_t d;
  asm("{ .reg %1 d; %2 d, %4, %5, %6; %3 %0, d; }"
      : "=r"(d)
      : "C"(Destination<id>::type), "C"(Spelling<id>::text), "C"(Destination<id>::widen), "r"(a), "r"(b), "r"(random));
  return d;
}

template <int id>
__device__ __forceinline__ uint32_t convert_four(uint32_t a, uint32_t b, uint32_t e, uint32_t f, uint32_t random) {
  uint32_t d;
  asm("{ .reg %1 d; %2 d, {%4, %5, %6, %7}, %8; %3 %0, d; }"
      : "=r"(d)
      : "C"(Destination<id>::type), "C"(Spelling<id>::text), "C"(Destination<id>::widen), "r"(a), "r"(b), "r"(e),
        "r"(f), "r"(random));
  return d;
}

// Codes side by side in a register, lowest lane first.
template <int id>
__device__ __forceinline__ uint32_t pack(const uint32_t* sources) {
  constexpr PtxCvt op = kPtxCvtAt<id>;
  uint32_t packed = 0;
  for (int lane = 0; lane < op.lanes; ++lane)
    packed |= (sources[lane] & uint32_t(low_mask(op.from.storage_bits))) << (lane * op.from.storage_bits);
  return packed;
}

template <int id>
__device__ __forceinline__ uint32_t convert_natively(const uint32_t* sources, uint32_t word) {
  constexpr PtxCvt op = kPtxCvtAt<id>;
  if constexpr (op.from.storage_bits < 32) {
    return convert_packed<id>(pack<id>(sources));
  } else if constexpr (op.lanes == 1) {
    return convert_one<id>(sources[0]);
  } else if constexpr (op.lanes == 4) {
    return convert_four<id>(sources[3], sources[2], sources[1], sources[0], word);
  } else if constexpr (op.random == RandomField::none) {
    return convert_two<id>(sources[1], sources[0]);
  } else {
    return convert_two<id>(sources[1], sources[0], word);
  }
}
}  // namespace detail

// Whether convert<id>() is the instruction in the code being compiled.
template <int id>
__host__ __device__ constexpr bool is_native() {
  return detail::kIsNative<id>;
}

// What convert_register() gives: a destination register from op.lanes sources, lowest lane first. A source is the bits
// of an f32 or a code of the source format; `word` is the random operand of .rs forms.
template <int id>
__device__ __forceinline__ uint32_t convert(const uint32_t* sources, uint32_t word = 0) {
  if constexpr (is_native<id>()) {
    return detail::convert_natively<id>(sources, word);
  } else {
    constexpr PtxCvt op = kPtxCvtAt<id>;
    return convert_register(op, sources, word);
  }
}

// Four results of 8 bits side by side in a register, the first lowest. A mov of bytes, because ptxas makes conversions
// that merge into a register of it: 4 instructions for eight f32 to e2m1 on sm_100a, where shifts make 9.
__device__ __forceinline__ uint32_t join_bytes(uint32_t byte0, uint32_t byte1, uint32_t byte2, uint32_t byte3) {
  uint32_t d;
  asm("{ .reg .b8 b<4>; cvt.u8.u32 b0, %1; cvt.u8.u32 b1, %2; cvt.u8.u32 b2, %3; cvt.u8.u32 b3, %4; "
      "mov.b32 %0, {b0, b1, b2, b3}; }"
      : "=r"(d)
      : "r"(byte0), "r"(byte1), "r"(byte2), "r"(byte3));
  return d;
}

}  // namespace halfulp::arch

#pragma once
// PTX conversions in device code: the instruction where the target has it, else its model, behind the same registers.

#include <cstdint>

#include "cuda/arch/capability.h"
#include "formats/ptx_cvt.h"

namespace halfulp::arch {

// The instruction of a catalog position; one specialisation each.
template <int id>
struct NativeCvt {
  static constexpr int since = kNever;  // none is known here
};

template <>
struct NativeCvt<find_ptx_cvt("cvt.rn.satfinite.e4m3x2.f32")> {
  static constexpr int since = 890;  // PTX ISA 9.0, cvt: sm_89 and later
  __device__ static uint32_t convert(const uint32_t* sources, uint32_t) {
    uint16_t codes;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
        : "=h"(codes)
        : "f"(__uint_as_float(sources[1])), "f"(__uint_as_float(sources[0])));
    return codes;
  }
};

// What convert_register() gives: a destination register from op.lanes sources, lowest lane first.
template <int id>
__device__ uint32_t convert(const uint32_t* sources, uint32_t word) {
  if constexpr (compiled_for() >= NativeCvt<id>::since) {
    return NativeCvt<id>::convert(sources, word);
  } else {
    constexpr PtxCvt op = kPtxCvtAt<id>;
    return convert_register(op, sources, word);
  }
}

}  // namespace halfulp::arch

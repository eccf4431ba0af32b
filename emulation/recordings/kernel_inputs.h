#pragma once
// The matrix that kernels of recipes are recorded on: element i of a dtype is a function of i, in integers only, so it
// is the same everywhere. And the checksums of what becomes of it. Knows no recipe.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "emulation/blocks/quantize.h"
#include "lib/dtype.h"

namespace halfulp {

inline constexpr Dtype kKernelDtypes[] = {Dtype::f32, Dtype::f16, Dtype::bf16};

// A chunk of the matrix is so many rows: whole blocks of every recipe that has a kernel, and 4096 of 16 elements. Eight
// chunks have every kind of element.
inline constexpr Matrix kKernelChunk{.rows = 128, .cols = 512};
inline constexpr uint32_t kKernelChunks = 64, kQuickKernelChunks = 8;

// The largest magnitude that the matrix is said to have, and its random bits; the meaning below says so too.
inline constexpr float kKernelAmax = 1000;
inline constexpr Randomness kKernelRandom{.seed = 7, .stream = 9};

// Elements first, first + 1, ... in memory order.
std::vector<std::byte> kernel_elements(Dtype dtype, uint64_t first, uint64_t count);

inline constexpr std::string_view kKernelInputsMeaning =
    "rows of 512 elements, 128 of them a chunk. With E exponent and M mantissa bits, B = 2^(E-1) - 1, r = "
    "splitmix64(i), "
    "g = splitmix64(2^63 + floor(i / 16)), h = splitmix64(2^62 + floor(i / 128)): number(e) is the sign of bit 63 of "
    "r, "
    "the exponent field max(e - z, 0), z the zeros that floor(r / 2^23) mod 2^40 ends with, 40 for 0, and the mantissa "
    "r "
    "mod 2^M, with which it is uniform below 2^(e-B+1); special(w), in bits, is the sign of bit 3 of w and (0, 1, "
    "2^M - 1, 2^M, B * 2^M, (2^E - 1) * 2^M - 1, (2^E - 1) * 2^M, (2^E - 1) * 2^M + 2^(M-1))[w mod 8]: 0, the ends of "
    "the subnormals and normals, 1, Inf, NaN. By floor(i / 2^16) mod 8: 0: number(B + 1). 1: number(B - 8 + g mod 17). "
    "2: the same with all but 3 upper bits of the mantissa zero, and B - 8 + g mod 17 with mantissa 1/2 where i mod 16 "
    "= "
    "0. 3: special(g) where floor(r / 2^40) mod 64 = 0, else as 1. 4: r mod 2^(1+E+M). 5: number(g mod 24). 6: "
    "by h mod 4: special(h / 4); 0 but for special(h / 4) where i mod 128 = h / 64 mod 128; special(r); as 1 but for "
    "that one element. 7: number(2^E - 2 - g mod 8). Quotients are rounded down. The tensor's largest magnitude is "
    "said to be "
    "1000; random bits are of seed 7, stream 9";

// What becomes of a chunk.
struct KernelChunk {
  uint64_t codes;
  uint64_t scales;

  friend bool operator==(const KernelChunk&, const KernelChunk&) = default;
};

// The sum mod 2^64 of splitmix64(k << 32 | word k) over words of 4 bytes, the last filled up with zeros.
uint64_t bytes_checksum(std::span<const std::byte> bytes);

inline constexpr std::string_view kKernelChecksumMeaning =
    "of a chunk's codes, packed, and of its scales: the sum mod 2^64 of splitmix64(k << 32 | word k) over words of 4 "
    "bytes, the lowest first, the last filled up with zeros";

}  // namespace halfulp

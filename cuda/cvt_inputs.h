#pragma once
// Numbered inputs for a conversion of the catalog, the same on CPU and GPU: input i of a kind is a function of i. What
// is made of them is the caller's.

#include <cstdint>

#include "formats/ptx_cvt.h"

namespace halfulp {

enum class CvtInputs {
  every,  // f32 sources: each lane takes each of the 2^32 values, with others beside it. Codes: each combination.
  pairs,  // f32 sources: two lanes take each pair of 2^16 values around ties and limits; random words likewise
};

struct CvtInput {
  uint32_t sources[4];
  uint32_t word;
};

// What the inputs of a conversion depend on.
struct CvtDomain {
  int source_bits;
  int lanes;
};

constexpr CvtDomain domain_of(const PtxCvt& op) { return {op.from.format.bits(), op.lanes}; }

constexpr uint64_t count_inputs(const CvtDomain& domain) {
  return uint64_t{1} << (domain.source_bits == 32 ? 32 : domain.lanes * domain.source_bits);
}

constexpr bool has_pairs(const CvtDomain& domain) { return domain.lanes > 1 && domain.source_bits == 32; }

namespace detail {
// A bijection that looks random: the finaliser of MurmurHash3 (Appleby).
HOST_DEVICE constexpr uint32_t scramble(uint32_t x) {
  x = (x ^ x >> 16) * 0x85eb'ca6b;
  x = (x ^ x >> 13) * 0xc2b2'ae35;
  return x ^ x >> 16;
}

// An f32 of every sign, exponent and four upper bits of the mantissa. Below those: nothing, all, the tie of a format
// with four bits, of bf16, and of f16 and tf32, and an ulp beside ties.
HOST_DEVICE constexpr uint32_t float_near_ties(uint32_t number) {
  constexpr uint32_t kTails[8] = {0, 1, 0x7'ffff, 0x4'0000, 0x4'0001, 0x3'ffff, 0x8000, 0x1000};
  return (number & 0xfff8) << 16 | kTails[number & 7];
}

// 16 random bits: three in four times none, one, all but one, all, or those about the middle.
HOST_DEVICE constexpr uint32_t half_word(uint32_t number) {
  constexpr uint32_t kHalves[6] = {0, 1, 0xfffe, 0xffff, 0x7fff, 0x8000};
  const uint32_t choice = number & 7;
  return choice < 6 ? kHalves[choice] : number >> 16;
}
}  // namespace detail

// Lane k has every value when lane 0 has: a multiple by an odd number is a bijection.
HOST_DEVICE constexpr CvtInput every_float(uint32_t i) {
  return {{i, i * 0x9e37'79b1 + 0x3039, ~i, i * 0x85eb'ca77 + 0x1234'5678}, detail::scramble(i)};
}

HOST_DEVICE constexpr CvtInput pairs_of_floats(uint32_t i) {
  const uint32_t other = detail::scramble(i), word = detail::scramble(other);
  return {{detail::float_near_ties(i & 0xffff), detail::float_near_ties(i >> 16),
           detail::float_near_ties(other & 0xffff), detail::float_near_ties(other >> 16)},
          detail::half_word(word) << 16 | detail::half_word(detail::scramble(word))};
}

// Lane 0 in the low bits.
HOST_DEVICE constexpr CvtInput every_code(const CvtDomain& domain, uint32_t i) {
  CvtInput input{};
  for (int lane = 0; lane < domain.lanes; ++lane)
    input.sources[lane] = i >> (lane * domain.source_bits) & uint32_t(low_mask(domain.source_bits));
  return input;
}

// Input number i < count_inputs(domain). Codes have the kind `every` only.
HOST_DEVICE constexpr CvtInput cvt_input(const CvtDomain& domain, CvtInputs kind, uint32_t i) {
  if (domain.source_bits < 32) return every_code(domain, i);
  return kind == CvtInputs::every ? every_float(i) : pairs_of_floats(i);
}

static_assert(cvt_input({.source_bits = 8, .lanes = 2}, CvtInputs::every, 0x1234).sources[1] == 0x12);
static_assert(cvt_input({.source_bits = 32, .lanes = 2}, CvtInputs::pairs, 0x1fc8'0003).sources[1] == 0x1fc8'0000);

}  // namespace halfulp

#pragma once
// Numbered inputs for a conversion of the catalog, the same on CPU and GPU, and the checksums of what is answered to
// them. Input i of a kind is a function of i. What is made of the answers is the caller's.

#include <array>
#include <cstdint>
#include <string_view>

#include "formats/ptx_cvt.h"
#include "lib/splitmix.h"

namespace halfulp {

enum class CvtInputs { equal, every, pairs };

struct CvtInputsEntry {
  std::string_view name;
  std::string_view meaning;
};

// The definitions that recordings state: whoever reads one needs no code of this project.
inline constexpr auto kCvtInputs = std::to_array<CvtInputsEntry>({
    {.name = "equal", .meaning = "i in every lane; the answer is lane 0. Not of .rs forms"},
    {.name = "every",
     .meaning = "f32 sources: lane 0 is i, lane 1 i * 0x9e3779b1 + 0x3039, lane 2 ~i, lane 3 i * 0x85ebca77 + "
                "0x12345678, the random word mix(i). Narrower sources: every register, lane 0 in the low bits of i. "
                "The answer is the destination register"},
    {.name = "pairs",
     .meaning = "lane 0 is near(i), lane 1 near(i >> 16), lane 2 near(mix(i)), lane 3 near(mix(i) >> 16), the random "
                "word half(w) << 16 | half(mix(w)) with w = mix(mix(i)); near(n) = (n & 0xfff8) << 16 | (0, 1, "
                "0x7fffff, 0x400000, 0x400001, 0x3fffff, 0x8000, 0x1000)[n & 7]; half(n) = n >> 16 where (n & 7) > 5, "
                "else (0, 1, 0xfffe, 0xffff, 0x7fff, 0x8000)[n & 7]. The answer is the destination register"},
});

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

constexpr uint64_t count_inputs(const CvtDomain& domain, CvtInputs kind) {
  const bool each_value = domain.source_bits == 32 || kind == CvtInputs::equal;
  return uint64_t{1} << (each_value ? domain.source_bits : domain.lanes * domain.source_bits);
}

// Whether a conversion has inputs of a kind that no other kind has: of one lane, `every` would be `equal`.
constexpr bool has_inputs(const PtxCvt& op, CvtInputs kind) {
  switch (kind) {
    case CvtInputs::equal: return op.random == RandomField::none;
    case CvtInputs::every: return op.lanes > 1;
    case CvtInputs::pairs: return op.lanes > 1 && op.from.format.bits() == 32;
  }
  return false;
}

// How many bits an answer has.
constexpr int answer_bits(const PtxCvt& op, CvtInputs kind) {
  return kind == CvtInputs::equal ? op.to.storage_bits : op.lanes * op.to.storage_bits;
}

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

// The same value in all lanes.
HOST_DEVICE constexpr CvtInput equal_lanes(const CvtDomain& domain, uint32_t i) {
  const uint32_t source = i & uint32_t(low_mask(domain.source_bits));
  return {{source, source, source, source}, 0};
}

// Input number i modulo count_inputs(domain, kind). Codes have no kind `pairs`.
HOST_DEVICE constexpr CvtInput cvt_input(const CvtDomain& domain, CvtInputs kind, uint32_t i) {
  if (kind == CvtInputs::equal) return equal_lanes(domain, i);
  if (domain.source_bits < 32) return every_code(domain, i);
  return kind == CvtInputs::every ? every_float(i) : pairs_of_floats(i);
}

static_assert(cvt_input({.source_bits = 8, .lanes = 2}, CvtInputs::every, 0x1234).sources[1] == 0x12);
static_assert(cvt_input({.source_bits = 32, .lanes = 2}, CvtInputs::pairs, 0x1fc8'0003).sources[1] == 0x1fc8'0000);

// Inputs come in chunks of consecutive numbers, so that a checksum that differs says about where.
constexpr uint64_t chunk_inputs(const CvtDomain& domain, CvtInputs kind) {
  constexpr uint64_t kMost = uint64_t{1} << 24;
  const uint64_t all = count_inputs(domain, kind);
  return all < kMost ? all : kMost;
}

constexpr uint32_t count_chunks(const CvtDomain& domain, CvtInputs kind) {
  return uint32_t(count_inputs(domain, kind) / chunk_inputs(domain, kind));
}

// A chunk's checksum is the sum of these mod 2^64, which does not depend on their order.
HOST_DEVICE constexpr uint64_t answer_hash(uint32_t input, uint32_t answer) {
  return splitmix64(uint64_t{input} << 32 | answer);
}
inline constexpr std::string_view kChecksumMeaning =
    "one for each chunk of 2^24 consecutive inputs i, or one in all where there are fewer: the sum mod 2^64 of "
    "splitmix64(i << 32 | answer); splitmix64 is one step of the generator of Steele, Lea and Flood (OOPSLA 2014) and "
    "mix the 32-bit finaliser of MurmurHash3";

}  // namespace halfulp

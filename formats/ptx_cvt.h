#pragma once
// PTX cvt between narrow floating-point types as a catalog. A row is an instruction's spelling; its meaning is read
// from the spelling, so name and model cannot disagree. The models are software: what is known of the hardware is in
// the row's evidence.

#include <array>
#include <string_view>

#include "formats/catalog.h"
#include "formats/codec.h"

namespace halfulp {

// The targets that have an instruction, as ptxas 13.0 accepts it (PTX ISA 9.0).
enum class Since { sm_80, sm_89, sm_90, sm_100, sm_100f, sm_100a, ptx_9_1 };

struct SinceEntry {
  std::string_view name;
  std::string_view targets;  // of those that ptxas 13.0 knows, from sm_80 on
};

// Of PTX ISA 9.1 and later nothing is claimed: ptxas 13.0 cannot be asked.
// clang-format off
inline constexpr auto kSinces = std::to_array<SinceEntry>({
    {.name = "sm_80", .targets = "80 86 87 88 89 90 90a 100 100f 100a 103 103f 103a 110 110f 110a 120 120f 120a 121 121f 121a"},
    {.name = "sm_89", .targets = "89 90 90a 100 100f 100a 103 103f 103a 110 110f 110a 120 120f 120a 121 121f 121a"},
    {.name = "sm_90", .targets = "90 90a 100 100f 100a 103 103f 103a 110 110f 110a 120 120f 120a 121 121f 121a"},
    {.name = "sm_100", .targets = "100 100f 100a 103 103f 103a 110 110f 110a 120 120f 120a 121 121f 121a"},
    {.name = "sm_100f, sm_120f", .targets = "100f 100a 103f 103a 110f 110a 120f 120a 121f 121a"},
    {.name = "sm_100a, sm_103a", .targets = "100a 103a"},
    {.name = "PTX ISA 9.1 or later", .targets = ""},
});
// clang-format on

// Whether a target, spelled as in SinceEntry, is one of a list of them.
constexpr bool has_target(std::string_view targets, std::string_view target) {
  while (!targets.empty()) {
    const std::size_t end = targets.find(' ');
    if (targets.substr(0, end) == target) return true;
    targets.remove_prefix(end == std::string_view::npos ? targets.size() : end + 1);
  }
  return false;
}
static_assert(has_target("90 90a 100", "90a") && has_target("90", "90") && !has_target("90a 100f", "100"));

// How a row's model is known.
enum class Evidence {
  measured,  // compared with the instruction on an H200 over its whole domain
  matched,   // reproduces published recordings of a B200 (jinhongyii/TIRx-harness, numsim goldens)
  read,      // written from the PTX ISA and its description of related forms; never compared with hardware
};
inline constexpr std::array<std::string_view, 3> kEvidenceNames{"measured", "matched", "read"};
inline constexpr std::array<std::string_view, 3> kEvidenceTexts{
    "measured on an H200 (sm_90a), every input", "matches published B200 recordings", "read in the PTX ISA only"};

enum class Relu { no, yes };  // negative numbers become +0; NaN stays NaN

// Which bits of the 32-bit operand of a .rs instruction a lane reads.
enum class RandomField {
  none,
  halves,             // x2 of 16-bit results: the lane's half; f16 uses its low 13 bits
  pairs,              // x4 of 8-bit results: one 16-bit half for two lanes, bit-reversed for the upper of them
  pairs_interleaved,  // x4 of e2m1: the same over {byte 3, byte 1} and {byte 2, byte 0}
};

// How four codes of so many bits share a random word.
HOST_DEVICE constexpr RandomField four_lanes(int storage_bits) {
  return storage_bits == 4 ? RandomField::pairs_interleaved : RandomField::pairs;
}

// What an instruction does to one lane, and how lanes are packed.
struct PtxCvt {
  FormatEntry from{};
  FormatEntry to{};
  int lanes = 1;     // results per destination register
  int operands = 1;  // source registers: lanes for .f32 sources, 1 for packed ones
  Policy policy{.rounding = Rounding::nearest_even, .overflow = Overflow::to_special};
  Relu relu = Relu::no;
  RandomField random = RandomField::none;
};

struct PtxCvtRow {
  std::string_view name;
  Since since;
  Evidence evidence;
  NanInput nan = NanInput::all_ones;
};

// clang-format off
inline constexpr auto kPtxCvts = std::to_array<PtxCvtRow>({
    {.name = "cvt.rn.f16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.f16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.bf16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.bf16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.satfinite.f16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.satfinite.f16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.satfinite.bf16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.satfinite.bf16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.relu.f16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.relu.f16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.relu.bf16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.relu.bf16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.relu.satfinite.f16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.relu.satfinite.f16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.relu.satfinite.bf16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rn.relu.satfinite.bf16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.f16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.f16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.bf16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.bf16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.satfinite.f16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.satfinite.f16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.satfinite.bf16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.satfinite.bf16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.relu.f16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.relu.f16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.relu.bf16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.relu.bf16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.relu.satfinite.f16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.relu.satfinite.f16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.relu.satfinite.bf16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rz.relu.satfinite.bf16x2.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rm.f16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rm.bf16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rp.f16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rp.bf16.f32", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.rna.tf32.f32", .since = Since::sm_80, .evidence = Evidence::measured, .nan = NanInput::truncate},
    {.name = "cvt.rna.satfinite.tf32.f32", .since = Since::sm_80, .evidence = Evidence::measured, .nan = NanInput::truncate_minus_ulp},
    {.name = "cvt.f32.f16", .since = Since::sm_80, .evidence = Evidence::measured},
    {.name = "cvt.f32.bf16", .since = Since::sm_80, .evidence = Evidence::measured, .nan = NanInput::truncate},
    {.name = "cvt.rn.satfinite.e4m3x2.f32", .since = Since::sm_89, .evidence = Evidence::measured},
    {.name = "cvt.rn.satfinite.relu.e4m3x2.f32", .since = Since::sm_89, .evidence = Evidence::measured},
    {.name = "cvt.rn.satfinite.e4m3x2.f16x2", .since = Since::sm_89, .evidence = Evidence::measured},
    {.name = "cvt.rn.satfinite.relu.e4m3x2.f16x2", .since = Since::sm_89, .evidence = Evidence::measured},
    {.name = "cvt.rn.f16x2.e4m3x2", .since = Since::sm_89, .evidence = Evidence::measured},
    {.name = "cvt.rn.relu.f16x2.e4m3x2", .since = Since::sm_89, .evidence = Evidence::measured},
    {.name = "cvt.rn.satfinite.e5m2x2.f32", .since = Since::sm_89, .evidence = Evidence::measured},
    {.name = "cvt.rn.satfinite.relu.e5m2x2.f32", .since = Since::sm_89, .evidence = Evidence::measured},
    {.name = "cvt.rn.satfinite.e5m2x2.f16x2", .since = Since::sm_89, .evidence = Evidence::measured},
    {.name = "cvt.rn.satfinite.relu.e5m2x2.f16x2", .since = Since::sm_89, .evidence = Evidence::measured},
    {.name = "cvt.rn.f16x2.e5m2x2", .since = Since::sm_89, .evidence = Evidence::measured},
    {.name = "cvt.rn.relu.f16x2.e5m2x2", .since = Since::sm_89, .evidence = Evidence::measured},
    {.name = "cvt.rn.tf32.f32", .since = Since::sm_90, .evidence = Evidence::measured},
    {.name = "cvt.rn.relu.tf32.f32", .since = Since::sm_90, .evidence = Evidence::measured},
    {.name = "cvt.rz.tf32.f32", .since = Since::sm_90, .evidence = Evidence::measured},
    {.name = "cvt.rz.relu.tf32.f32", .since = Since::sm_90, .evidence = Evidence::measured},
    {.name = "cvt.rn.satfinite.tf32.f32", .since = Since::sm_100, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.relu.tf32.f32", .since = Since::sm_100, .evidence = Evidence::read},
    {.name = "cvt.rz.satfinite.tf32.f32", .since = Since::sm_100, .evidence = Evidence::read},
    {.name = "cvt.rz.satfinite.relu.tf32.f32", .since = Since::sm_100, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.e2m3x2.f32", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.relu.e2m3x2.f32", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rn.f16x2.e2m3x2", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rn.relu.f16x2.e2m3x2", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.e3m2x2.f32", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.relu.e3m2x2.f32", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rn.f16x2.e3m2x2", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rn.relu.f16x2.e3m2x2", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.e2m1x2.f32", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.relu.e2m1x2.f32", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.e2m1x2.f16x2", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.relu.e2m1x2.f16x2", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rn.f16x2.e2m1x2", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rn.relu.f16x2.e2m1x2", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rz.ue8m0x2.f32", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rz.ue8m0x2.bf16x2", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rz.satfinite.ue8m0x2.f32", .since = Since::sm_100f, .evidence = Evidence::matched},
    {.name = "cvt.rz.satfinite.ue8m0x2.bf16x2", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rp.ue8m0x2.f32", .since = Since::sm_100f, .evidence = Evidence::matched},
    {.name = "cvt.rp.ue8m0x2.bf16x2", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rp.satfinite.ue8m0x2.f32", .since = Since::sm_100f, .evidence = Evidence::matched},
    {.name = "cvt.rp.satfinite.ue8m0x2.bf16x2", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rn.bf16x2.ue8m0x2", .since = Since::sm_100f, .evidence = Evidence::read},
    {.name = "cvt.rs.satfinite.e4m3x4.f32", .since = Since::sm_100a, .evidence = Evidence::matched},
    {.name = "cvt.rs.relu.satfinite.e4m3x4.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rs.satfinite.e5m2x4.f32", .since = Since::sm_100a, .evidence = Evidence::matched},
    {.name = "cvt.rs.relu.satfinite.e5m2x4.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rs.satfinite.e2m3x4.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rs.relu.satfinite.e2m3x4.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rs.satfinite.e3m2x4.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rs.relu.satfinite.e3m2x4.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rs.satfinite.e2m1x4.f32", .since = Since::sm_100a, .evidence = Evidence::matched},
    {.name = "cvt.rs.relu.satfinite.e2m1x4.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rs.f16x2.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rs.satfinite.f16x2.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rs.relu.f16x2.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rs.relu.satfinite.f16x2.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rs.bf16x2.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rs.satfinite.bf16x2.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rs.relu.bf16x2.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rs.relu.satfinite.bf16x2.f32", .since = Since::sm_100a, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.e4m3x2.bf16x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.relu.e4m3x2.bf16x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.e5m2x2.bf16x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.relu.e5m2x2.bf16x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.e2m3x2.bf16x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.relu.e2m3x2.bf16x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.e3m2x2.bf16x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.relu.e3m2x2.bf16x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.e2m1x2.bf16x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.relu.e2m1x2.bf16x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.e2m3x2.f16x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.relu.e2m3x2.f16x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.e3m2x2.f16x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.satfinite.relu.e3m2x2.f16x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.bf16x2.e4m3x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.relu.bf16x2.e4m3x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.bf16x2.e5m2x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.relu.bf16x2.e5m2x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.bf16x2.e2m3x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.relu.bf16x2.e2m3x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.bf16x2.e3m2x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.relu.bf16x2.e3m2x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.bf16x2.e2m1x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
    {.name = "cvt.rn.relu.bf16x2.e2m1x2", .since = Since::ptx_9_1, .evidence = Evidence::read},
});
// clang-format on

namespace detail {
// A type as PTX spells it, "e4m3x2": catalog position and lanes.
struct PtxType {
  int format;
  int lanes;
};

constexpr PtxType parse_ptx_type(std::string_view word) {
  int lanes = 1;
  if (word.ends_with("x2") || word.ends_with("x4")) {
    lanes = word.back() - '0';
    word.remove_suffix(2);
  }
  return {find_format(word), lanes};
}

// Applies one modifier between "cvt" and the types; false if there is no such modifier.
constexpr bool apply_modifier(PtxCvt& op, std::string_view word) {
  for (const RoundingEntry& row : kRoundings)
    if (!row.ptx.empty() && row.ptx == word) return op.policy.rounding = row.rounding, true;
  if (word == "satfinite") return op.policy.overflow = Overflow::saturate, true;
  if (word == "relu") return op.relu = Relu::yes, true;
  return false;
}

constexpr RandomField random_field_of(const PtxCvt& op) {
  if (!is_stochastic(op.policy.rounding)) return RandomField::none;
  if (op.lanes == 2) return RandomField::halves;
  return four_lanes(op.to.storage_bits);
}
}  // namespace detail

// Reads the meaning of an instruction from its spelling; is_known() is false where the spelling is not one of cvt
// between the formats of the catalog. What the spelling does not say, the treatment of NaN, is the row's.
constexpr PtxCvt parse_ptx_cvt(std::string_view name, NanInput nan = NanInput::all_ones) {
  PtxCvt op;
  op.policy.nan = nan;
  const std::size_t last = name.rfind('.');
  const std::size_t before = last == std::string_view::npos ? last : name.rfind('.', last - 1);
  if (before == std::string_view::npos || !name.starts_with("cvt.")) return {};
  const detail::PtxType from = detail::parse_ptx_type(name.substr(last + 1));
  const detail::PtxType to = detail::parse_ptx_type(name.substr(before + 1, last - before - 1));
  for (std::size_t at = 4; at < before;) {
    const std::size_t dot = name.find('.', at);
    if (!detail::apply_modifier(op, name.substr(at, dot - at))) return {};
    at = dot + 1;
  }
  if (from.format < 0 || to.format < 0) return {};
  op.from = kFormats[std::size_t(from.format)];
  op.to = kFormats[std::size_t(to.format)];
  op.lanes = to.lanes;
  op.operands = from.lanes == 1 ? to.lanes : 1;
  op.random = detail::random_field_of(op);
  return op;
}

constexpr bool is_known(const PtxCvt& op) { return op.to.storage_bits != 0; }

constexpr PtxCvt ptx_cvt(const PtxCvtRow& row) { return parse_ptx_cvt(row.name, row.nan); }

// Catalog position by spelling; -1 if there is none.
constexpr int find_ptx_cvt(std::string_view name) {
  for (std::size_t id = 0; id < kPtxCvts.size(); ++id)
    if (kPtxCvts[id].name == name) return int(id);
  return -1;
}

template <int id>
inline constexpr PtxCvt kPtxCvtAt = ptx_cvt(kPtxCvts[id]);

// The 16 random bits of lane 0 to 3 of a word for four lanes. Lane 0 is the lowest in the destination: operand b of x2,
// operand f of x4. Measured on a B200 by jinhongyii/TIRx-harness.
HOST_DEVICE constexpr RandomBits random_bits_of_four(RandomField layout, uint32_t word, int lane) {
  uint32_t field = lane < 2 ? word & 0xffff : word >> 16;
  if (layout == RandomField::pairs_interleaved)
    field = lane < 2 ? (word >> 8 & 0xff00) | (word & 0xff) : (word >> 16 & 0xff00) | (word >> 8 & 0xff);
  return {.word = (lane & 1) != 0 ? reverse16(field) : field, .count = 16};
}

// The random bits of one lane. Those of x2 forms are read in the PTX ISA.
HOST_DEVICE constexpr RandomBits random_bits(const PtxCvt& op, uint32_t word, int lane) {
  switch (op.random) {
    case RandomField::none: return {};
    case RandomField::halves: {
      const int kept = op.to.format.mantissa_bits;
      const int count = 23 - kept < 16 ? 23 - kept : 16;
      return {.word = (lane == 0 ? word : word >> 16) & uint32_t(low_mask(count)), .count = count};
    }
    case RandomField::pairs:
    case RandomField::pairs_interleaved: return random_bits_of_four(op.random, word, lane);
  }
  return {};
}

// One lane: `source` is the bits of an f32, or a code of the source format; the result is a code of the result format.
HOST_DEVICE constexpr uint32_t convert_lane(const PtxCvt& op, uint32_t source, uint32_t word, int lane) {
  const Format& to = op.to.format;
  Unpacked u = unpack(decode_bits(op.from.format, source));
  if (op.relu == Relu::yes && u.negative && u.kind != Unpacked::Kind::nan)
    u = {.significand = 0, .exponent = 0, .negative = false, .kind = Unpacked::Kind::finite};
  return encode_unpacked(to, op.policy, u, random_bits(op, word, lane));
}

// A destination register: `sources` holds op.lanes values, lowest lane first.
HOST_DEVICE constexpr uint32_t convert_register(const PtxCvt& op, const uint32_t* sources, uint32_t word) {
  const FormatEntry& to = op.to;
  uint32_t packed = 0;
  for (int lane = 0; lane < op.lanes; ++lane)
    packed |= convert_lane(op, sources[lane], word, lane) << to.storage_shift << (lane * to.storage_bits);
  return packed;
}

namespace detail {
constexpr bool ptx_catalog_is_sound() {
  for (std::size_t i = 0; i < kPtxCvts.size(); ++i)
    if (!is_known(ptx_cvt(kPtxCvts[i])) || find_ptx_cvt(kPtxCvts[i].name) != int(i)) return false;
  return kSinces.size() == std::size_t(Since::ptx_9_1) + 1;
}
static_assert(ptx_catalog_is_sound(), "a row's spelling has no meaning, or stands twice");
static_assert(convert_lane(kPtxCvtAt<find_ptx_cvt("cvt.f32.bf16")>, 0xff81, 0, 0) == 0xff81'0000u,
              "bf16 to f32 is a shift, of NaNs too");
}  // namespace detail

}  // namespace halfulp

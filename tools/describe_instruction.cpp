// What `halfulp formats` says about PTX conversions.

#include "formats/ptx_cvt.h"
#include "tools/catalogs.h"
#include "tools/number_text.h"
#include "tools/policy_text.h"

namespace halfulp {
namespace {

// What was done with hardware, and what is only modelled.
std::string_view evidence_sentence(Evidence evidence) {
  switch (evidence) {
    case Evidence::measured:
      return "measured: the instruction ran on an H200 (sm_90a) over every input, and the model gives the same; other "
             "GPUs are taken to agree";
    case Evidence::matched:
      return "matches published B200 recordings (jinhongyii/TIRx-harness); inputs that were not recorded are modelled";
    case Evidence::read: return "read only: modelled after the PTX ISA and related forms, never compared with hardware";
  }
  return "";
}

Facts list_row(const PtxCvtRow& row) {
  return {{"name", row.name},
          {"since", kSinces[std::size_t(row.since)].name},
          {"evidence", kEvidenceTexts[std::size_t(row.evidence)]}};
}

std::vector<Facts> list_instructions() {
  std::vector<Facts> rows;
  for (const PtxCvtRow& row : kPtxCvts) rows.push_back(list_row(row));
  return rows;
}

// The source operand of a lane; PTX names those of x4 forms a, b, e, f from the top.
std::string operand_of(const PtxCvt& op, int lane) {
  constexpr std::string_view kPair = "ba", kQuad = "feba";
  if (op.operands == 1) return "a";
  return std::string(1, op.operands == 2 ? kPair[std::size_t(lane)] : kQuad[std::size_t(lane)]);
}

std::string syntax_of(const PtxCvt& op, std::string_view name) {
  const std::string_view sources = op.operands == 1 ? "a" : op.operands == 2 ? "a, b" : "{a, b, e, f}";
  return fmt::format("{} d, {}{};", name, sources, op.random == RandomField::none ? "" : ", rbits");
}

// "sm_80, sm_89"
std::string targets_text(std::string_view targets) {
  std::string text;
  for (std::size_t at = 0; at < targets.size();) {
    const std::size_t end = std::min(targets.find(' ', at), targets.size());
    text += fmt::format("{}sm_{}", text.empty() ? "" : ", ", targets.substr(at, end - at));
    at = end + 1;
  }
  return text.empty() ? "none that ptxas 13.0 knows" : text;
}

std::string register_text(const PtxCvt& op) { return fmt::format(".b{}", op.lanes * op.to.storage_bits); }

std::string overflow_text(const PtxCvt& op) {
  if (op.policy.overflow == Overflow::saturate || !(op.to.format.has_inf() || op.to.format.has_nan()))
    return "to the largest finite value";
  return op.to.format.has_inf() ? "to Inf" : "to NaN";
}

Facts instruction_facts(const PtxCvtRow& row) {
  const PtxCvt op = ptx_cvt(row);
  const SinceEntry& since = kSinces[std::size_t(row.since)];
  Facts facts{{"name", row.name},
              {"syntax", syntax_of(op, row.name)},
              {"source", op.from.name},
              {"result", op.to.name},
              {"rounding", kRoundings[std::size_t(op.policy.rounding)].name},
              {"overflow", overflow_text(op)},
              {"nan", kNanInputTexts[std::size_t(op.policy.nan)]},
              {"relu", op.relu == Relu::yes ? "yes: negative numbers become +0, NaN stays NaN" : "no"},
              {"lanes", op.lanes},
              {"destination", register_text(op)},
              {"since", since.name},
              {"targets", targets_text(since.targets)},
              {"evidence", evidence_sentence(row.evidence)}};
  return facts;
}

// "[15:8]"
std::string bit_range(int low, int count) { return fmt::format("[{}:{}]", low + count - 1, low); }

std::string source_bits(const PtxCvt& op, int lane) {
  const int width = op.from.storage_bits;
  return op.operands == 1 ? bit_range(lane * width, op.from.format.bits()) : bit_range(0, width);
}

// Which bit of the random operand each random bit of a lane is, highest first: asked of the model, bit by bit.
std::vector<int> random_positions(const PtxCvt& op, int lane) {
  const int count = random_bits(op, 0, lane).count;
  std::vector<int> positions(std::size_t(count), -1);
  for (int bit = 0; bit < 32; ++bit) {
    const uint32_t word = random_bits(op, uint32_t{1} << bit, lane).word;
    if (word != 0) positions[std::size_t(count - 1 - floor_log2(word))] = bit;
  }
  return positions;
}

// "31..24, 15..8": runs that fall or rise by one.
std::string runs_text(const std::vector<int>& positions) {
  std::string text;
  for (std::size_t at = 0; at < positions.size();) {
    const int step = at + 1 < positions.size() ? positions[at + 1] - positions[at] : 0;
    std::size_t last = at;
    if (step == 1 || step == -1)
      while (last + 1 < positions.size() && positions[last + 1] - positions[last] == step) ++last;
    text += fmt::format("{}{}..{}", text.empty() ? "" : ", ", positions[at], positions[last]);
    at = last + 1;
  }
  return text;
}

std::vector<Facts> lane_rows(const PtxCvt& op) {
  constexpr uint32_t kWord = 0x1234'5678;
  std::vector<Facts> rows;
  for (int lane = 0; lane < op.lanes; ++lane) {
    rows.push_back({{"element", lane},
                    {"operand", operand_of(op, lane)},
                    {"operand_bits", source_bits(op, lane)},
                    {"d_bits", bit_range(lane * op.to.storage_bits + op.to.storage_shift, op.to.format.bits())}});
    if (op.random == RandomField::none) continue;
    const RandomBits random = random_bits(op, kWord, lane);
    rows.back().emplace_back("rbits_high_to_low", runs_text(random_positions(op, lane)));
    rows.back().emplace_back("of_0x12345678", random.word, hex_bits(random.word, random.count));
  }
  return rows;
}

Description describe(std::string_view name) {
  const PtxCvtRow& row = kPtxCvts[std::size_t(find_ptx_cvt(name))];
  const PtxCvt op = ptx_cvt(row);
  return {.title = fmt::format("{}, a PTX conversion", row.name),
          .facts = instruction_facts(row),
          .sections = {{"lanes",
                        fmt::format("Lanes; element 0 is the first of the {} in an array that `halfulp cvt` takes "
                                    "together",
                                    op.lanes),
                        lane_rows(op)}}};
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const PtxCvtRow& row : kPtxCvts) all.emplace_back(row.name);
  return all;
}

}  // namespace

Catalog instruction_catalog() {
  return {.name = "instructions",
          .singular = "instruction",
          .title = "PTX conversions",
          .names = names,
          .list = list_instructions,
          .describe = describe};
}

}  // namespace halfulp

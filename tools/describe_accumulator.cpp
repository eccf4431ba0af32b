// What `halfulp formats` says about accumulators.

#include <algorithm>

#include "emulation/matmul/accumulator.h"
#include "emulation/matmul/instruction.h"
#include "tools/catalogs.h"

namespace halfulp {
namespace {

constexpr std::string_view kEvidence[] = {"measured", "recorded", "published", "defined"};
constexpr std::string_view kScales[] = {"-", "exponents of products", "of sums of 16", "of elements, in FP32"};

std::string sum_text(const Accumulator& row) {
  const int bits = row.sum.format.mantissa_bits - row.sum.unused_bits;
  const std::string format = row.sum.format.bits() == 16 ? "FP16"
                             : row.sum.unused_bits == 0  ? "FP32"
                                                         : fmt::format("FP32 of {} bits", bits);
  return fmt::format("{}, {}", format, row.sum.rounding == Rounding::toward_zero ? "toward zero" : "nearest even");
}

// A number of products or bits; null where it is all of them.
Fact number_or_all(std::string_view key, int number, int all) {
  if (number == all) return {key, Json(nullptr), "all"};
  return {key, number};
}

Facts list_row(const Accumulator& row) {
  return {{"name", row.name},
          {"inputs", row.inputs.empty() ? std::string_view("any") : row.inputs},
          number_or_all("block", row.block, kAllProducts),
          number_or_all("kept_bits", row.kept_bits, kAllBits),
          {"sum", sum_text(row)},
          {"scales", kScales[std::size_t(row.scales)]},
          {"evidence", kEvidence[std::size_t(row.evidence)]},
          {"source", row.source}};
}

std::vector<Facts> list() {
  std::vector<Facts> rows;
  for (const Accumulator& row : kAccumulators) rows.push_back(list_row(row));
  return rows;
}

// Matrix instructions that add up so, each with its targets from which on.
std::vector<Facts> instructions_of(const Accumulator& row) {
  std::vector<Facts> rows;
  for (const MatrixInstruction& is : kMatrixInstructions)
    for (const int capability : {70, 75, 80, 89, 90, 100, 120})
      if (const int id = accumulator_on(is, capability); id >= 0 && kAccumulators[std::size_t(id)].name == row.name) {
        rows.push_back({{"instruction", is.ptx}, {"from", fmt::format("sm_{}", capability)}});
        break;
      }
  return rows;
}

std::string_view order_text(const Accumulator& row) {
  switch (row.order) {
    case SumOrder::ascending: return "blocks of ascending k, the sum of one going into the next";
    case SumOrder::pairs_of_four: return "as F16: k % 4 in {0, 1}, then {2, 3}, from zero; then c is added";
    case SumOrder::halves: return "the sums of both halves, recursively; then c is added";
  }
  return "";
}

Description describe(std::string_view name) {
  const Accumulator& row = kAccumulators[std::size_t(find_accumulator(name))];
  Facts facts = list_row(row);
  facts.insert(facts.end() - 2, {{"order", order_text(row)},
                                 {"least_exponent", row.least_exponent},
                                 {"promoted_every", row.promotion.every},
                                 {"slices", row.slices}});
  return {.title = fmt::format("{}, an accumulator", row.name),
          .facts = facts,
          .sections = {{"instructions", "Matrix instructions that add up so", instructions_of(row)}}};
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Accumulator& row : kAccumulators) all.emplace_back(row.name);
  return all;
}

}  // namespace

Catalog accumulator_catalog() {
  return {.name = "accumulators",
          .singular = "accumulator",
          .title = "Accumulators, for mma; evidence is what their bits were held against",
          .names = names,
          .list = list,
          .describe = describe};
}

}  // namespace halfulp

#include "tools/mma_explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "emulation/analysis/exact_product.h"
#include "emulation/matmul/walk.h"
#include "lib/error.h"
#include "lib/parse_number.h"
#include "lib/utf8.h"
#include "tools/facts.h"
#include "tools/number_text.h"

namespace halfulp {
namespace {

double value_of(const Operand& term) {
  if (term.kind != Unpacked::Kind::finite) return term.kind == Unpacked::Kind::nan ? std::nan("") : HUGE_VAL;
  const double value = std::ldexp(double(term.significand), term.exponent - term.fraction_bits);
  return term.negative ? -value : value;
}

double kept(const WalkedBlock& block, const WalkedTerm& term) { return std::ldexp(double(term.cut), block.unit); }

// What the cuts of a block take off its terms, and what rounding takes off their sum.
struct Losses {
  double cut = 0, rounding = 0;
};
Losses losses_of(const Accumulator& row, const WalkedBlock& block) {
  Losses losses;
  for (const WalkedTerm& term : block.terms) losses.cut += value_of(term.term) - kept(block, term);
  losses.rounding = std::ldexp(double(block.sum), block.unit) - double(decode(row.sum.format, block.result));
  return losses;
}

std::string products_text(int first, int count) {
  return count == 1 ? fmt::format("k = {}", first) : fmt::format("k = {} to {}", first, first + count - 1);
}

// Which products of a block of pairs of four: "k = 0 to 31, k % 4 in {2, 3}".
std::string block_text(const Accumulator& row, const WalkedBlock& block) {
  const std::string all = products_text(block.first, block.count);
  if (row.order != SumOrder::pairs_of_four || block.terms.size() < 2) return all;
  return all + (block.terms[1].first % 4 < 2 ? ", k % 4 in {0, 1}" : ", k % 4 in {2, 3}");
}

std::string step_text(const Accumulator& row, const WalkedStep& step) {
  switch (step.kind) {
    case WalkedStep::Kind::block: return block_text(row, step.block);
    case WalkedStep::Kind::promotion:
      return step.addition.factor == 1 ? "total + sum" : fmt::format("fma({}, sum, total)", step.addition.factor);
    case WalkedStep::Kind::slice: return "total + slice";
    case WalkedStep::Kind::start: return "sum + c";
  }
  return "";
}

Fact number(std::string_view key, double x) { return {key, Json(x), fmt::format("{:.6g}", x)}; }

Facts step_facts(const MmaProduct& product, const WalkedStep& step) {
  const Format& f = product.row.sum.format;
  const uint32_t result = result_of(step);
  Facts facts{{"step", step_text(product.row, step)}};
  if (step.kind == WalkedStep::Kind::block) {
    const Losses losses = losses_of(product.row, step.block);
    facts.emplace_back("largest_exponent", step.block.largest_exponent);
    facts.emplace_back("lowest_kept_bit", Json(step.block.unit), fmt::format("2^{}", step.block.unit));
    facts.push_back(number("cut_off", losses.cut));
    facts.push_back(number("rounded_off", losses.rounding));
  } else {
    for (const char* key : {"largest_exponent", "lowest_kept_bit", "cut_off", "rounded_off"})
      facts.emplace_back(key, Json(), "");
  }
  facts.emplace_back("bits", hex_bits(result, f.bits()));
  facts.emplace_back("value", Json(double(decode(f, result))), value_text(f, result));
  return facts;
}

// Operands of a term: two codes, or a group's.
struct TermOperands {
  std::string a, b;
};
TermOperands operands_of(const GemmJob& job, const OutputPosition& at, const WalkedTerm& term) {
  if (term.count == 0) return {};
  const DotOperand a = dot_operand(job.a, at.row, job.k), b = dot_operand(job.b, at.col, job.k);
  const auto text = [&](const DotOperand& x) {
    std::string words = term.count == 1 ? code_and_value(x.format, x.codes[term.first]) : "";
    if (x.scales == nullptr) return words;
    const uint32_t scale = x.scales[term.first / x.scaled] & x.scale_format.code_mask();
    return words + (words.empty() ? "scale " : " x ") + code_and_value(x.scale_format, scale);
  };
  return {.a = text(a), .b = text(b)};
}

std::vector<Facts> term_rows(const GemmJob& job, const OutputPosition& at, const WalkedBlock& block) {
  std::vector<Facts> rows;
  for (const WalkedTerm& term : block.terms) {
    const TermOperands operands = operands_of(job, at, term);
    const double value = value_of(term.term);
    rows.push_back({{"term", term.count == 0 ? "accumulator" : products_text(term.first, term.count)},
                    {"a", operands.a},
                    {"b", operands.b},
                    {"product", Json(value), decimal(value)},
                    {"kept", Json(kept(block, term)), decimal(kept(block, term))},
                    {"units", Json(term.cut), fmt::format("{}", term.cut)},
                    {"cut_off", Json(value - kept(block, term)), decimal(value - kept(block, term))}});
  }
  return rows;
}

// The block that loses most; the first of several.
const WalkedBlock* telling_block(const Accumulator& row, const std::vector<WalkedStep>& steps) {
  const WalkedBlock* worst = nullptr;
  double most = -1;
  for (const WalkedStep& step : steps) {
    if (step.kind != WalkedStep::Kind::block) continue;
    const Losses losses = losses_of(row, step.block);
    const double lost = std::fabs(losses.cut) + std::fabs(losses.rounding);
    if (lost > most) worst = &step.block, most = lost;
  }
  return worst;
}

struct Output {
  uint32_t sum, d;
  double exact;
};
Output output_of(const MmaProduct& product, const OutputPosition& at, const GemmJob& job,
                 const std::vector<WalkedStep>& steps) {
  const uint32_t start = job.c.empty() ? 0 : job.c[at.row * job.n + at.col];
  const uint32_t sum = steps.empty() ? start : result_of(steps.back());
  const Epilogue epilogue = product.epilogue(at.tile);
  const std::vector<double> a = product.a.values(at.tile, product.row.promotion),
                            b = product.b.values(at.tile, product.row.promotion);
  const ExactProduct exact({std::span(a).subspan(at.row * job.k, job.k), 1, job.k},
                           {std::span(b).subspan(at.col * job.k, job.k), 1, job.k});
  const bool added = !epilogue.c.empty();
  const double c = added ? double(epilogue.c[at.row * job.n + at.col]) : double(decode(job.row.sum.format, start));
  const double factor = added ? double(product.beta) : product.exact_alpha;
  return {.sum = sum,
          .d = epilogue.apply(sum, at.row, at.col, job.n),
          .exact = scaled_sum(exact.element(0, 0), product.exact_alpha, c, factor).nearest};
}

std::string rounding_text(const SumFormat& sum) {
  const std::string bits =
      sum.unused_bits == 0 ? "" : fmt::format(" with {} bits of mantissa", sum.format.mantissa_bits - sum.unused_bits);
  return fmt::format("{}{}, {}", sum.format.bits() == 16 ? "FP16" : "FP32", bits,
                     sum.rounding == Rounding::toward_zero ? "toward zero" : "to nearest even");
}

std::string heading(const MmaProduct& product, const OutputPosition& at) {
  const std::string tile = product.a.rank == 2 ? "" : fmt::format("{}, ", at.tile);
  return fmt::format(
      "D[{}{}, {}] under {}: terms are cut toward zero {} bits below the largest exponent of their block, added\n"
      "exactly, and the sum is rounded to {}.\n",
      tile, at.row, at.col, product.row.name, product.row.kept_bits, rounding_text(product.row.sum));
}

// The steps that a screen has room for.
std::string steps_text(const MmaProduct& product, const std::vector<WalkedStep>& steps, Color color) {
  constexpr std::size_t kShown = 40;
  std::vector<Facts> rows;
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (s < kShown / 2 || s + kShown / 2 >= steps.size()) rows.push_back(step_facts(product, steps[s]));
  const std::string note = steps.size() > kShown ? fmt::format("The first and last {} of {} steps; --json has all.\n",
                                                               kShown / 2, steps.size())
                                                 : "";
  return rows.empty() ? "K is 0: nothing is added.\n" : to_text(to_table(rows), color) + note;
}

std::string terms_text(const GemmJob& job, const OutputPosition& at, const WalkedBlock& block, Color color) {
  return fmt::format(
      "\nThe block that loses most, {}: largest exponent {}, lowest kept bit 2^{}\n\n{}"
      "sum {} units of 2^{} = {}, rounded to {}\n",
      block_text(job.row, block), block.largest_exponent, block.unit,
      to_text(to_table(term_rows(job, at, block)), color), block.sum, block.unit,
      decimal(std::ldexp(double(block.sum), block.unit)), code_and_value(job.row.sum.format, block.result));
}

}  // namespace

OutputPosition position_of(const std::string& text, const MmaProduct& product) {
  std::vector<std::size_t> numbers;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::optional<uint64_t> number = parse_unsigned(std::string(rest.substr(0, comma)));
    if (!number) throw UsageError(fmt::format("--explain: expected I,J or T,I,J, got '{}'", shortened(text)));
    numbers.push_back(std::size_t(*number));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (numbers.size() == 2) numbers.insert(numbers.begin(), 0);
  if (numbers.size() != 3) throw UsageError(fmt::format("--explain: expected I,J or T,I,J, got '{}'", shortened(text)));
  const OutputPosition at{.tile = numbers[0], .row = numbers[1], .col = numbers[2]};
  if (at.tile >= product.tiles || at.row >= product.m || at.col >= product.n)
    throw UsageError(
        fmt::format("--explain: D of shape {} has no output {}", shape_text(product.shape()), shortened(text)));
  if (product.row.kept_bits == kAllBits)
    throw UsageError(
        fmt::format("--explain: {} cuts nothing; rows of matrix instructions are walked through", product.row.name));
  return at;
}

Json explain_json(const MmaProduct& product, const OutputPosition& at) {
  const GemmJob job = product.job(at.tile);
  const std::vector<WalkedStep> steps = walk_element(job, at.row, at.col);
  Json list = Json::array();
  for (const WalkedStep& step : steps) {
    Json json = to_json(step_facts(product, step));
    if (step.kind == WalkedStep::Kind::block) {
      json["terms"] = to_json(term_rows(job, at, step.block));
      json["sum_units"] = step.block.sum;
    }
    list.push_back(std::move(json));
  }
  const Output output = output_of(product, at, job, steps);
  return {{"accumulator", product.row.name},
          {"explained", {{"tile", at.tile}, {"row", at.row}, {"col", at.col}}},
          {"kept_bits", product.row.kept_bits},
          {"steps", list},
          {"sum", hex_bits(output.sum, job.row.sum.format.bits())},
          {"d", hex_bits(output.d, job.row.sum.format.bits())},
          {"exact", output.exact}};
}

std::string explain_text(const MmaProduct& product, const OutputPosition& at, Color color) {
  const GemmJob job = product.job(at.tile);
  const std::vector<WalkedStep> steps = walk_element(job, at.row, at.col);
  const Output output = output_of(product, at, job, steps);
  std::string text = heading(product, at) + "\n" + steps_text(product, steps, color);
  if (const WalkedBlock* block = telling_block(product.row, steps)) text += terms_text(job, at, *block, color);
  const Format& f = job.row.sum.format;
  text += output.d == output.sum ? "" : fmt::format("\nThe epilogue makes of it {}.", code_and_value(f, output.d));
  return text + fmt::format("\nThe exact value is {}; D has {}.\n", decimal(output.exact), code_and_value(f, output.d));
}

}  // namespace halfulp

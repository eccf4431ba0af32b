#include "tools/mma_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/utf8.h"
#include "tools/facts.h"
#include "tools/number_text.h"

namespace halfulp {
namespace {

constexpr std::size_t kMostShown = 64;  // elements of D

constexpr std::string_view kEvidenceWords[] = {"measured on an H200", "recorded on that hardware, as published",
                                               "published, held against no hardware here", "by definition"};

const FormatEntry& sum_format(const MmaProduct& product) {
  return kFormats[std::size_t(find_format(product.row.sum.format.bits() == 16 ? "f16" : "f32"))];
}

std::string scales_text(const MmaOperand& x, const Promotion& promotion) {
  if (x.scale_format != nullptr) return fmt::format(", {} scales of {}", x.scale_format->name, x.scaled);
  if (!x.promotion_scales.empty()) return fmt::format(", scales of {} in the promotions", promotion.every);
  return x.row_factors.empty() ? "" : ", a scale for each row";
}

std::string operand_text(const MmaOperand& x, const Promotion& promotion) {
  return fmt::format("{}: {} {}{}{}", printable(x.spec), x.format->name, shape_text(x.shape), scales_text(x, promotion),
                     x.recipe.empty() ? "" : ", recipe " + x.recipe);
}

Json operand_json(const MmaOperand& x) {
  Json json{{"file", x.spec}, {"format", x.format->name}, {"rows", x.rows}, {"factor", double(x.factor)}};
  if (!x.recipe.empty()) json["recipe"] = x.recipe;
  if (x.scale_format != nullptr) json["scale_format"] = x.scale_format->name, json["scaled"] = x.scaled;
  if (!x.rotation.empty()) json["rotation"] = x.rotation;
  return json;
}

std::string sum_text(const Accumulator& row) {
  std::string text;
  if (row.order == SumOrder::pairs_of_four) {
    text = fmt::format("{} products by two FP16 instructions from zero, cut at {} bits below the largest, and an FADD",
                       row.block, row.kept_bits);
  } else if (row.kept_bits == kAllBits) {
    text = row.block == kAllProducts ? "every product, rounded once" : "one product at a time, in FP32";
  } else {
    text = fmt::format("blocks of {} products, cut at {} bits below the largest", row.block, row.kept_bits);
  }
  if (row.promotion.every != 0)
    text +=
        fmt::format("; {} in FP32 after every {}",
                    row.promotion.step == PromotionStep::scaled ? "scaled and added" : "added", row.promotion.every);
  if (row.slices != 1) text += fmt::format("; {} slices of K", row.slices);
  return text;
}

std::string epilogue_text(const MmaProduct& product) {
  std::string text;
  if (!product.a.row_factors.empty() || !product.b.row_factors.empty()) text = "scale_b * (scale_a * sum)";
  if (!product.c.empty()) {
    text += fmt::format("{}fma({}, sum, {} * C)", text.empty() ? "" : ", then ", decimal(product.alpha),
                        decimal(product.beta));
  } else if (product.scales) {
    text += fmt::format("{}alpha * sum, alpha = {} ({})", text.empty() ? "" : ", then ", decimal(product.alpha),
                        hex_float(double(product.alpha)));
  }
  return text;
}

std::string evidence_text(const Accumulator& row) {
  const std::string_view words = kEvidenceWords[std::size_t(row.evidence)];
  return row.source.starts_with(words) ? std::string(row.source) : fmt::format("{}: {}", words, row.source);
}

Facts facts_of(const MmaProduct& product) {
  const Promotion& promotion = product.row.promotion;
  Facts facts{{"accumulator", fmt::format("{}: {}", product.row.name, sum_text(product.row))},
              {"rests on", evidence_text(product.row)},
              {"a", operand_text(product.a, promotion)},
              {"b", operand_text(product.b, promotion)}};
  if (!product.start.empty()) facts.emplace_back("c", "accumulators start with it");
  if (const std::string text = epilogue_text(product); !text.empty()) facts.emplace_back("epilogue", text);
  facts.emplace_back("d",
                     fmt::format("{} {}, K = {}", sum_format(product).name, shape_text(product.shape()), product.k));
  return facts;
}

std::string position_text(const MmaProduct& product, const ComparedOutput& out) {
  return product.a.rank == 2 ? fmt::format("[{}, {}]", out.row, out.col)
                             : fmt::format("[{}, {}, {}]", out.tile, out.row, out.col);
}

std::string output_text(const MmaProduct& product, const ComparedOutput& out) {
  const Format& f = product.row.sum.format;
  return fmt::format("{} is {}, exactly {}, correctly rounded {}: {:.4g} ulp", position_text(product, out),
                     code_and_value(f, out.d), decimal(out.exact), code_and_value(f, out.correct), out.ulps);
}

Json output_json(const std::optional<ComparedOutput>& out, const Format& f) {
  if (!out) return {};
  return {{"tile", out->tile},
          {"row", out->row},
          {"col", out->col},
          {"d", hex_bits(out->d, f.bits())},
          {"correct", hex_bits(out->correct, f.bits())},
          {"exact", out->exact},
          {"error", out->error},
          {"ulps", out->ulps}};
}

Cell figure_cell(const Json& figure, const char* key, int digits) {
  const double value = figure.is_null() ? std::nan("") : to_double(figure.at(key));
  return std::isnan(value) ? Cell("-", "") : number_cell(value, digits);
}

enum class Zero { tested, impossible };  // whether z says that a figure is not zero
struct FigureRow {
  std::string_view name;
  Zero zero;
  std::string_view meaning;
};
constexpr FigureRow kFigureRows[] = {
    {"rel_mse", Zero::impossible, "sum e^2 / sum x^2, x being exact and e = d - x"},
    {"mean_abs_ulps", Zero::impossible, "mean |e| in ulps of D at x"},
    {"bias_ulps", Zero::tested, "mean e in ulps"},
    {"toward_zero_ulps", Zero::tested, "mean of e toward zero in ulps"},
    {"bias", Zero::tested, "sum e / sum |x|"},
    {"shrinkage", Zero::tested, "1 - sum x d / sum x^2: positive where sums come out too small"},
};

std::vector<Cell> figure_cells(const FigureRow& row, const Json& figure) {
  return {Cell(row.name), figure_cell(figure, "value", 4), figure_cell(figure, "se", 2),
          row.zero == Zero::tested ? figure_cell(figure, "z", 3) : Cell("-", ""), Cell(row.meaning)};
}

std::string figures_text(const MmaReport& report, Color color) {
  const Json json = report.errors.figures();
  Table table{.columns = {{"figure", Align::left}, {"value"}, {"se"}, {"z"}, {"meaning", Align::left}}, .rows = {}};
  for (const FigureRow& row : kFigureRows) table.rows.push_back(figure_cells(row, json.at(std::string(row.name))));
  const uint64_t outputs = report.errors.outputs(), correct = json.at("correctly_rounded").get<uint64_t>();
  std::string text = fmt::format(
      "\nAgainst the exact product of these operands, {} of {} outputs:\n  correctly rounded  {} ({:.4g}%)\n", outputs,
      report.d.size(), correct, outputs == 0 ? 0 : 100 * double(correct) / double(outputs));
  for (const char* key : {"not_finite", "overflowed"})
    if (json.at(key) != 0) text += fmt::format("  {}  {}\n", key, json.at(key).get<uint64_t>());
  if (report.errors.largest_error() && report.errors.largest_error()->error != 0)
    text += fmt::format("  largest error      {}\n", output_text(report.product, *report.errors.largest_error()));
  if (report.errors.largest_ulps() && report.errors.largest_ulps()->ulps != 0)
    text += fmt::format("  most ulps          {}\n", output_text(report.product, *report.errors.largest_ulps()));
  return text + "\n" + to_text(table, color);
}

std::string split_text(const Json& split, Color color) {
  if (split.is_null()) return "";
  Table table{.columns = {{"error of", Align::left}, {"rel_mse"}, {"se"}, {"bias"}, {"se"}, {"z"}}, .rows = {}};
  for (const char* part : {"operands", "accumulator", "crossed", "total"}) {
    const Json &mse = split.at("rel_mse").at(part), bias = split.at("bias").value(part, Json());
    table.rows.push_back({Cell(part), figure_cell(mse, "value", 4), figure_cell(mse, "se", 2),
                          figure_cell(bias, "value", 3), figure_cell(bias, "se", 2), figure_cell(bias, "z", 3)});
  }
  return "\nAgainst the product before quantization, x there: total = operands + accumulator + crossed\n\n" +
         to_text(table, color);
}

std::vector<Facts> element_rows(const MmaReport& report) {
  const MmaProduct& product = report.product;
  const Format& f = product.row.sum.format;
  std::vector<Facts> rows;
  for (std::size_t at = 0; at < report.d.size(); ++at) {
    const std::size_t in_tile = at % (product.m * product.n);
    Facts row;
    if (product.a.rank == 3) row.emplace_back("tile", int(at / (product.m * product.n)));
    row.emplace_back("i", int(in_tile / product.n));
    row.emplace_back("j", int(in_tile % product.n));
    row.emplace_back("bits", hex_bits(report.d[at], f.bits()));
    row.emplace_back("value", Json(double(decode(f, report.d[at]))), value_text(f, report.d[at]));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::size_t comparison_step(const MmaProduct& product, std::optional<uint64_t> outputs) {
  constexpr uint64_t kMultiplyAdds = uint64_t{1} << 31;
  const uint64_t all = uint64_t(product.tiles) * product.m * product.n;
  if (outputs && *outputs == 0) return 0;
  const uint64_t wanted = outputs ? *outputs : std::max<uint64_t>(kMultiplyAdds / std::max<uint64_t>(product.k, 1), 1);
  uint64_t step = std::max<uint64_t>((all + wanted - 1) / wanted, 1);
  while (step > 1 && std::gcd(step, uint64_t(product.m) * product.n) != 1) ++step;  // so that it meets every column
  return std::size_t(step);
}

MmaReport compare(const MmaProduct& product, const std::vector<uint32_t>& d, const std::optional<MmaSources>& sources,
                  std::size_t step, int threads, const std::function<void(uint64_t)>& advance) {
  MmaReport report{.product = product, .d = d, .step = step, .errors = {}};
  const std::size_t size = product.m * product.n;
  for (std::size_t tile = 0; step != 0 && tile < product.tiles; ++tile) {
    const std::vector<double> a = product.a.values(tile, product.row.promotion),
                              b = product.b.values(tile, product.row.promotion);
    const ExactProduct operands({a, product.m, product.k}, {b, product.n, product.k});
    std::optional<ExactProduct> originals;
    if (sources)
      originals.emplace(ExactOperand{std::span(sources->a).subspan(tile * a.size(), a.size()), product.m, product.k},
                        ExactOperand{std::span(sources->b).subspan(tile * b.size(), b.size()), product.n, product.k});
    std::vector<double> c;
    for (std::size_t i = 0; !product.start.empty() && i < size; ++i)
      c.push_back(double(decode(product.row.sum.format, product.start[tile * size + i])));
    for (std::size_t i = 0; !product.c.empty() && i < size; ++i) c.push_back(double(product.c[tile * size + i]));
    report.errors.add({.m = product.m,
                       .n = product.n,
                       .format = product.row.sum.format,
                       .d = std::span(d).subspan(tile * size, size),
                       .operands = operands,
                       .factor = product.exact_alpha,
                       .c = c,
                       .c_factor = product.c.empty() ? product.exact_alpha : double(product.beta),
                       .originals = originals ? &*originals : nullptr},
                      step, threads, advance);
  }
  return report;
}

Json to_json(const MmaReport& report) {
  const MmaProduct& product = report.product;
  const Accumulator& row = product.row;
  Json json{{"accumulator",
             {{"name", row.name},
              {"source", row.source},
              {"evidence", kEvidenceWords[std::size_t(row.evidence)]},
              {"promote_every", row.promotion.every},
              {"slices", row.slices}}},
            {"a", operand_json(product.a)},
            {"b", operand_json(product.b)},
            {"k", product.k},
            {"shape", product.shape()},
            {"format", sum_format(product).name}};
  if (product.scales) json["alpha"] = double(product.alpha);
  if (!product.c.empty()) json["beta"] = double(product.beta);
  json["comparison"] = report.errors.figures();
  json["comparison"]["step"] = report.step;
  json["comparison"]["largest_error"] = output_json(report.errors.largest_error(), row.sum.format);
  json["comparison"]["largest_ulps"] = output_json(report.errors.largest_ulps(), row.sum.format);
  if (const Json split = report.errors.split(); !split.is_null()) json["split"] = split;
  if (report.d.size() <= kMostShown) json["d"] = to_json(element_rows(report));
  return json;
}

std::string to_text(const MmaReport& report, Color color) {
  std::string text = to_lines(facts_of(report.product));
  if (report.d.size() <= kMostShown && !report.d.empty()) text += "\n" + to_text(to_table(element_rows(report)), color);
  if (report.errors.outputs() > 0) text += figures_text(report, color);
  return text + split_text(report.errors.split(), color);
}

Json flat_figures(const MmaReport& report) {
  const Json figures = report.errors.figures();
  Json flat{{"correctly_rounded_share", figures.at("correctly_rounded_share")},
            {"not_finite", figures.at("not_finite")},
            {"overflowed", figures.at("overflowed")}};
  for (const FigureRow& row : kFigureRows) {
    const Json& figure = figures.at(std::string(row.name));
    flat[std::string(row.name)] = figure.is_null() ? Json(std::nan("")) : figure.at("value");
  }
  const auto& largest = report.errors.largest_ulps();
  flat["max_abs_ulps"] = largest ? std::fabs(largest->ulps) : 0.0;
  return flat;
}

}  // namespace halfulp

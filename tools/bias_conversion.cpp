// halfulp bias of a conversion, in closed form.

#include <fmt/format.h>

#include <cmath>
#include <iostream>

#include "emulation/analysis/rounding_bias.h"
#include "lib/error.h"
#include "lib/json.h"
#include "lib/parse_number.h"
#include "lib/table.h"
#include "tools/bias.h"
#include "tools/instruction_name.h"
#include "tools/options.h"
#include "tools/source_number.h"

namespace halfulp {
namespace {

constexpr std::string_view kConvention =
    "E[q(x)] - x over all random words, in ulps: the distance of the neighbours between which x lies; for x > 0";

struct NamedConversion {
  std::string name;
  Conversion conversion;
  bool shares_bits;  // lanes in pairs, of which one reads the other's bits reversed
};

Rounding rounding_of(const Arguments& arguments) {
  std::vector<std::string> names;
  for (const RoundingEntry& row : kRoundings) names.emplace_back(row.name);
  const std::string name = arguments.choice("--rounding", names);
  for (const RoundingEntry& row : kRoundings)
    if (row.name == name) return row.rounding;
  throw std::logic_error("a rounding without a row");
}

NamedConversion conversion_of_format(const Arguments& arguments) {
  const FormatEntry& to = kFormats[std::size_t(format_of(arguments.string("--format")))];
  const Rounding rounding = rounding_of(arguments);
  const bool stochastic = is_stochastic(rounding);
  if (!stochastic && arguments.has("--random-bits")) throw UsageError("--random-bits is for --rounding stochastic");
  const int bits = stochastic ? int(arguments.integer("--random-bits", 1, 32)) : 0;
  const FormatEntry& from = kFormats[std::size_t(format_of(arguments.string("--as")))];
  return {.name = fmt::format("{}, {}{}", to.name, kRoundings[std::size_t(rounding)].name,
                              stochastic ? fmt::format(", {} random bits", bits) : ""),
          .conversion = {.from = from,
                         .to = to,
                         .policy = {.rounding = rounding, .overflow = Overflow::saturate},
                         .random_bits = bits},
          .shares_bits = false};
}

std::vector<NamedConversion> conversions_of(const Arguments& arguments) {
  const std::vector<std::string>& names = arguments.positionals("SUBJECT");
  if (arguments.has("--format")) {
    if (!names.empty()) throw UsageError("--format and " + names.front() + ": one or the other");
    return {conversion_of_format(arguments)};
  }
  for (const char* option : {"--rounding", "--random-bits", "--as"})
    if (arguments.has(option)) throw UsageError(fmt::format("{} is for --format: an instruction has its own", option));
  std::vector<NamedConversion> conversions;
  for (const std::string& name : names) {
    const PtxCvt op = ptx_cvt(kPtxCvts[std::size_t(instruction_named(name))]);
    const bool pairs = op.random == RandomField::pairs || op.random == RandomField::pairs_interleaved;
    conversions.push_back({.name = name, .conversion = conversion_of(op), .shares_bits = pairs});
  }
  return conversions;
}

std::vector<double> values_of(const Arguments& arguments) {
  std::vector<double> values;
  for (const std::string& text : arguments.list("--values"))
    values.push_back(read_source_number(text, SourceType::f64).value);
  return values;
}

Json value_json(const Conversion& c, double x) {
  const Outcomes o = outcomes_of(c, x);
  const double ulp = ulp_at(c.to.format, x), bias = o.mean() - x;
  const bool descending = o.second < o.first;  // of a negative value the first is the one nearer to zero
  return {{"x", x},
          {"below", descending ? o.second : o.first},
          {"above", descending ? o.first : o.second},
          {"probability_above", descending ? 1 - o.share : o.share},
          {"expectation", o.mean()},
          {"bias", bias},
          {"bias_ulp", bias / ulp},
          {"variance", o.variance()}};
}

Json optional_json(const std::optional<double>& x) { return x ? Json(*x) : Json(); }

Json interval_json(const IntervalBias& b) {
  return {{"from", b.from},
          {"to", b.to},
          {"binades", b.binades},
          {"ulp", b.ulp},
          {"uniform", b.uniform},
          {"log_uniform", optional_json(b.log_uniform)},
          {"source", optional_json(b.source)},
          {"largest", b.largest},
          {"largest_sd", b.largest_sd},
          {"tie_share", optional_json(b.tie_share)}};
}

// Of each value with the next as the two lanes of a pair, and of the fractions that correlate most.
Json pair_json(const Conversion& c, const std::vector<double>& values) {
  const PairCorrelation largest = pair_that_correlates();
  Json json = {{"largest",
                {{"first_fraction", largest.first_fraction},
                 {"second_fraction", largest.second_fraction},
                 {"covariance_ulp2", largest.covariance}}},
               {"values", Json::array()}};
  for (std::size_t i = 0; i + 1 < values.size(); i += 2)
    json["values"].push_back(
        {{"x", {values[i], values[i + 1]}},
         {"covariance", covariance_of_pair(outcomes_of(c, values[i]), outcomes_of(c, values[i + 1]))}});
  return json;
}

Json conversion_json(const NamedConversion& named, const std::vector<double>& values) {
  const Conversion& c = named.conversion;
  Json json = {{"name", named.name},
               {"format", std::string(c.to.name)},
               {"source", std::string(c.from.name)},
               {"rounding", std::string(kRoundings[std::size_t(c.policy.rounding)].name)},
               {"random_bits", c.random_bits == 0 ? Json() : Json(c.random_bits)},
               {"convention", std::string(kConvention)},
               {"values", Json::array()},
               {"binades", Json::array()},
               {"pair", named.shares_bits ? pair_json(c, values) : Json()}};
  for (const double x : values) json["values"].push_back(value_json(c, x));
  for (const IntervalBias& bias : interval_biases(c)) json["binades"].push_back(interval_json(bias));
  const BiasCurve curve = bias_curve(c);
  json["curve"] = {{"x", curve.x}, {"bias", curve.bias}, {"bias_ulp", curve.bias_ulp}, {"sd", curve.sd}};
  return json;
}

Cell figure_cell(const Json& value) { return value.is_null() ? Cell("-", "") : number_cell(to_double(value)); }

Table rows_of(const Json& rows, const std::vector<std::pair<const char*, const char*>>& columns) {
  Table table;
  for (const auto& [key, title] : columns) table.columns.push_back({title});
  for (const Json& json : rows) {
    std::vector<Cell> cells;
    for (const auto& [key, title] : columns) cells.push_back(figure_cell(json.at(key)));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table interval_table(const Json& conversion) {
  const std::string source = "over " + conversion.at("source").get<std::string>() + " values";
  return rows_of(conversion.at("binades"), {{"from", "from"},
                                            {"to", "to"},
                                            {"binades", "binades alike"},
                                            {"ulp", "ulp"},
                                            {"uniform", "uniform x"},
                                            {"log_uniform", "log-uniform x"},
                                            {"source", source.c_str()},
                                            {"largest", "largest |bias|"},
                                            {"largest_sd", "largest sd"},
                                            {"tie_share", "ties"}});
}

Table value_table(const Json& conversion) {
  return rows_of(conversion.at("values"), {{"x", "x"},
                                           {"below", "below"},
                                           {"above", "above"},
                                           {"probability_above", "P(above)"},
                                           {"expectation", "E[q(x)]"},
                                           {"bias", "E[q(x)] - x"},
                                           {"bias_ulp", "in ulps"}});
}

std::string pair_text(const Json& pair) {
  const Json& largest = pair.at("largest");
  std::string text = fmt::format(
      "\nTwo lanes of a pair share 16 random bits, one reading them reversed. Their errors correlate most, of those "
      "searched, at fractions "
      "{:.4g} and {:.4g} of an ulp: covariance {:.3g} ulp^2.\n",
      to_double(largest.at("first_fraction")), to_double(largest.at("second_fraction")),
      to_double(largest.at("covariance_ulp2")));
  for (const Json& row : pair.at("values"))
    text += fmt::format("{:.6g} and {:.6g} as such a pair: covariance {:.4g}\n", to_double(row.at("x")[0]),
                        to_double(row.at("x")[1]), to_double(row.at("covariance")));
  return text;
}

void print_text(const Json& conversion, Color color) {
  std::cout << conversion.at("name").get<std::string>() << '\n'
            << kConvention << ".\n\n"
            << to_text(interval_table(conversion), color);
  if (!conversion.at("values").empty()) std::cout << '\n' << to_text(value_table(conversion), color);
  if (!conversion.at("pair").is_null()) std::cout << pair_text(conversion.at("pair"));
}

}  // namespace

ExitCode bias_of_conversion(const Arguments& arguments) {
  const OutputMode mode = output_mode_of(arguments);
  const Color color = color_of(arguments);
  const std::vector<double> values = values_of(arguments);
  Json body = {{"kind", "conversion"}, {"results", Json::array()}};
  for (const NamedConversion& named : conversions_of(arguments))
    body["results"].push_back(conversion_json(named, values));
  if (mode == OutputMode::json) std::cout << dump_result("bias", body);
  for (const Json& conversion : body.at("results")) {
    if (mode == OutputMode::csv)
      std::cout << to_csv(values.empty() ? interval_table(conversion) : value_table(conversion));
    if (mode == OutputMode::text) print_text(conversion, color);
    if (mode == OutputMode::text && &conversion != &body.at("results").back()) std::cout << '\n';
  }
  return ExitCode::good;
}

}  // namespace halfulp

#include "lib/threshold.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "lib/error.h"
#include "lib/parse_number.h"

namespace halfulp {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

struct Operator {
  std::string_view text;
  Comparison comparison;
};
constexpr Operator kOperators[] = {{"<=", Comparison::less_equal},  // before its prefix
                                   {">=", Comparison::greater_equal},
                                   {"<", Comparison::less},
                                   {">", Comparison::greater}};

bool holds(double x, Comparison comparison, double limit) {
  switch (comparison) {
    case Comparison::less: return x < limit;
    case Comparison::less_equal: return x <= limit;
    case Comparison::greater: return x > limit;
    case Comparison::greater_equal: return x >= limit;
  }
  return true;
}

bool is_name(std::string_view text) {
  const auto allowed = [](char c) { return std::isalnum(uint8_t(c)) != 0 || c == '_' || c == '.' || c == '-'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), allowed);
}

std::string keys_of(const Json& object) {
  std::string keys;
  for (const auto& [key, value] : object.items()) keys += (keys.empty() ? "" : ", ") + key;
  return keys;
}

}  // namespace

Threshold parse_threshold(std::string_view text) {
  const auto malformed = [&] {
    return UsageError(
        fmt::format("--fail-on: expected METRIC<NUMBER (or <=, >, >=), such as sqnr_db<20, got '{}'", text));
  };
  const size_t at = text.find_first_of("<>");
  if (at == std::string_view::npos) throw malformed();
  const std::string_view metric = trimmed(text.substr(0, at));
  const std::string_view rest = text.substr(at);
  const Operator sign = *std::find_if(std::begin(kOperators), std::end(kOperators),
                                      [&](const Operator& op) { return rest.starts_with(op.text); });
  const std::optional<double> limit = parse_double(trimmed(rest.substr(sign.text.size())));
  if (!is_name(metric) || !limit || std::isnan(*limit)) throw malformed();
  return {.metric = std::string(metric), .comparison = sign.comparison, .limit = *limit};
}

bool fails(const Threshold& threshold, const Json& metrics) {
  const auto found = metrics.find(threshold.metric);
  if (found == metrics.end()) {
    throw UsageError(fmt::format("--fail-on: no metric '{}'; there are {}", threshold.metric, keys_of(metrics)));
  }
  try {
    const double value = to_double(*found);
    return std::isnan(value) || holds(value, threshold.comparison, threshold.limit);
  } catch (const std::invalid_argument&) {
    throw UsageError(fmt::format("--fail-on: '{}' is not a number: {}", threshold.metric, found->dump()));
  }
}

}  // namespace halfulp

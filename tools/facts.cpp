#include "tools/facts.h"

#include <algorithm>

#include "tools/number_text.h"

namespace halfulp {
namespace {

std::string words_of(const std::string& key) {
  std::string words = key;
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string csv_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return shortest_decimal(value.get<double>());
  return value.is_null() ? "" : value.dump();
}

// Words and codes stand to the left, numbers to the right.
Align alignment(const std::vector<Facts>& rows, std::size_t column) {
  const auto is_word = [&](const Facts& facts) {
    return facts[column].value.is_string() || facts[column].text.starts_with("0x");
  };
  return std::ranges::any_of(rows, is_word) ? Align::left : Align::right;
}

}  // namespace

Fact::Fact(std::string_view name, double number) : key(name), value(number), text(decimal(number)) {}

Json to_json(const Facts& facts) {
  Json object = Json::object();
  for (const Fact& fact : facts) object[fact.key] = fact.value;
  return object;
}

Json to_json(const std::vector<Facts>& rows) {
  Json array = Json::array();
  for (const Facts& facts : rows) array.push_back(to_json(facts));
  return array;
}

Table to_table(const std::vector<Facts>& rows) {
  Table table;
  if (rows.empty()) return table;
  for (std::size_t col = 0; col < rows.front().size(); ++col)
    table.columns.push_back({rows.front()[col].key, alignment(rows, col)});
  for (const Facts& facts : rows) {
    std::vector<Cell>& cells = table.rows.emplace_back();
    for (const Fact& fact : facts) cells.emplace_back(fact.text, csv_of(fact.value));
  }
  return table;
}

std::string to_lines(const Facts& facts) {
  std::size_t width = 0;
  for (const Fact& fact : facts) width = std::max(width, fact.key.size());
  std::string lines;
  for (const Fact& fact : facts) lines += fmt::format("  {:<{}}  {}\n", words_of(fact.key), width, fact.text);
  return lines;
}

}  // namespace halfulp

#include "lib/table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdlib>

#include "lib/json.h"

namespace halfulp {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kReset = "\x1b[0m";

std::string_view escape_of(Style style) {
  switch (style) {
    case Style::plain: return "";
    case Style::dim: return "\x1b[2m";
    case Style::good: return "\x1b[32m";
    case Style::bad: return "\x1b[31m";
  }
  return "";
}

std::vector<size_t> column_widths(const Table& table) {
  std::vector<size_t> widths;
  for (size_t col = 0; col < table.columns.size(); ++col) {
    size_t width = display_width(table.columns[col].title);
    for (const auto& row : table.rows) width = std::max(width, display_width(row[col].text));
    widths.push_back(width);
  }
  return widths;
}

enum class Place { inner, last };

// No spaces after the text at the end of a line.
std::string padded(std::string_view text, std::string_view escape, size_t width, Align align, Place place) {
  const std::string space(width - display_width(text), ' ');
  const std::string colored = escape.empty() ? std::string(text) : fmt::format("{}{}{}", escape, text, kReset);
  if (align == Align::right) return space + colored;
  return place == Place::last ? colored : colored + space;
}

// `cell(col)` gives the text and the escape of a column.
template <class CellOf>
std::string text_line(const Table& table, const std::vector<size_t>& widths, CellOf cell) {
  std::string line;
  for (size_t col = 0; col < widths.size(); ++col) {
    const Place place = col + 1 == widths.size() ? Place::last : Place::inner;
    const auto [text, escape] = cell(col);
    if (col > 0) line += kGap;
    line += padded(text, escape, widths[col], table.columns[col].align, place);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

std::string rule_line(const std::vector<size_t>& widths) {
  std::string line;
  for (const size_t width : widths) line.append(line.empty() ? "" : kGap).append(width, '-');
  return line + '\n';
}

std::string csv_field(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char c : field) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

}  // namespace

Color color_for(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool refused = no_color != nullptr && *no_color != '\0';
  return !refused && isatty(fd) != 0 ? Color::on : Color::off;
}

Cell number_cell(double x, int digits) {
  // A NaN's sign means nothing, and 0/0 sets it on some machines only.
  return {std::isnan(x) ? "nan" : fmt::format("{:.{}g}", x, digits), shortest_decimal(x)};
}

Cell count_cell(uint64_t count) {
  const std::string digits = std::to_string(count);
  std::string grouped;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return {grouped, digits};
}

size_t display_width(std::string_view text) {
  const auto starts_code_point = [](char c) { return (uint8_t(c) & 0b11'000000) != 0b10'000000; };
  return size_t(std::count_if(text.begin(), text.end(), starts_code_point));
}

std::string to_text(const Table& table, Color color) {
  using Shown = std::pair<std::string_view, std::string_view>;
  const std::vector<size_t> widths = column_widths(table);
  const std::string_view title_escape = color == Color::on ? kBold : "";
  std::string text =
      text_line(table, widths, [&](size_t col) { return Shown(table.columns[col].title, title_escape); });
  text += rule_line(widths);
  for (const auto& row : table.rows) {
    assert(row.size() == table.columns.size());
    text += text_line(table, widths, [&](size_t col) {
      return Shown(row[col].text, color == Color::on ? escape_of(row[col].style) : "");
    });
  }
  return text;
}

std::string to_csv(const Table& table) {
  std::string text;
  for (size_t col = 0; col < table.columns.size(); ++col) {
    text.append(col > 0 ? "," : "").append(csv_field(table.columns[col].title));
  }
  text += '\n';
  for (const auto& row : table.rows) {
    assert(row.size() == table.columns.size());
    for (size_t col = 0; col < row.size(); ++col) text.append(col > 0 ? "," : "").append(csv_field(row[col].csv));
    text += '\n';
  }
  return text;
}

}  // namespace halfulp

#pragma once
// One table of results, printed as aligned text or as CSV. Not a widget: no wrapping, no sorting.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/utf8.h"

namespace halfulp {

enum class Align { left, right };
enum class Style { plain, dim, good, bad };  // only where colour is on
enum class Color { off, on };

// On when file descriptor `fd` is a terminal and the environment variable NO_COLOR is unset or empty (no-color.org).
Color color_for(int fd);

// What a person reads, and what a program reads from the CSV.
struct Cell {
  Cell(const char* word) : Cell(std::string(word)) {}  // NOLINT: a row is a list of words
  Cell(std::string word) : text(printable(word)), csv(std::move(word)) {}
  Cell(std::string_view word) : Cell(std::string(word)) {}
  Cell(std::string shown, std::string exact, Style look = Style::plain)
      : text(std::move(shown)), csv(std::move(exact)), style(look) {}
  std::string text;
  std::string csv;
  Style style = Style::plain;
};

// Text with `digits` significant digits, CSV with the shortest decimal that reads back as x.
Cell number_cell(double x, int digits = 4);
// Text with digits grouped by three ("4,194,304"), CSV without.
Cell count_cell(uint64_t count);

struct Column {
  std::string title;
  Align align = Align::right;
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // each as long as columns
};

// Header, rule, rows; columns two spaces apart; no space at the end of a line.
std::string to_text(const Table& table, Color color);

// A header line, then the rows; commas and quotes as RFC 4180 has them, but lines end in LF, which Unix tools expect.
std::string to_csv(const Table& table);

// Columns that UTF-8 text takes on a terminal, one per code point. Combining and double-width characters are not known.
size_t display_width(std::string_view text);

}  // namespace halfulp

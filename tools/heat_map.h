#pragma once
// Positive figures of places in rows and columns, as a table whose shades show where they are large. On a logarithmic
// scale; knows no figure.

#include <string>
#include <utility>
#include <vector>

#include "lib/table.h"

namespace halfulp {

class HeatMap {
 public:
  explicit HeatMap(std::string title) : title_(std::move(title)) {}

  // Places that are added to more than once hold the mean. Rows and columns come in the order of their first mention.
  void add(const std::string& row, const std::string& column, double value);

  friend std::string to_text(const HeatMap& map, Color color);

 private:
  struct Place {
    double sum = 0, count = 0;
    double mean() const { return sum / count; }
  };
  std::string title_;
  std::vector<std::string> rows_, columns_;
  std::vector<std::vector<Place>> cells_;  // [row][column]
};

// A block of one of four shades before each number.
std::string to_text(const HeatMap& map, Color color);

}  // namespace halfulp

#include "tools/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace halfulp {
namespace {

std::size_t index_of(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return std::size_t(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

constexpr const char* kShades[] = {"░", "▒", "▓", "█"};

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = 0;
};

std::string shade_of(double value, const Range& range) {
  if (!(value > 0)) return " ";
  if (range.high <= range.low) return kShades[1];
  const double place = std::log(value / range.low) / std::log(range.high / range.low);
  return kShades[std::clamp(int(place * 4), 0, 3)];
}

}  // namespace

void HeatMap::add(const std::string& row, const std::string& column, double value) {
  const std::size_t i = index_of(rows_, row), j = index_of(columns_, column);
  cells_.resize(rows_.size());
  for (std::vector<Place>& cells : cells_) cells.resize(columns_.size());
  cells_[i][j].sum += value;
  cells_[i][j].count += 1;
}

std::string to_text(const HeatMap& map, Color color) {
  Range range;
  for (const auto& row : map.cells_) {
    for (const HeatMap::Place& cell : row) {
      if (!(cell.mean() > 0)) continue;
      range.low = std::min(range.low, cell.mean());
      range.high = std::max(range.high, cell.mean());
    }
  }
  Table table{.columns = {{"layer", Align::left}}, .rows = {}};
  for (const std::string& column : map.columns_) table.columns.push_back({column});
  for (std::size_t i = 0; i < map.rows_.size(); ++i) {
    std::vector<Cell> cells{map.rows_[i]};
    for (const HeatMap::Place& cell : map.cells_[i]) {
      if (cell.count == 0) {
        cells.emplace_back("");
        continue;
      }
      const bool worst = cell.mean() == range.high && range.high > range.low;
      cells.emplace_back(fmt::format("{} {:.3g}", shade_of(cell.mean(), range), cell.mean()),
                         fmt::format("{}", cell.mean()), worst ? Style::bad : Style::plain);
    }
    table.rows.push_back(std::move(cells));
  }
  return fmt::format("{}, {} to {} of a logarithmic scale:\n{}", map.title_, kShades[0], kShades[3],
                     to_text(table, color));
}

}  // namespace halfulp

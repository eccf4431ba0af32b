#include "tools/number_line.h"

#include <algorithm>
#include <cmath>

namespace halfulp {
namespace {

constexpr int kWidth = 72;
constexpr int kIndent = 2;

std::vector<int> columns_of(const std::vector<Tick>& ticks) {
  const double low = ticks.front().value, high = ticks.back().value;
  std::vector<int> columns;
  for (const Tick& tick : ticks) columns.push_back(int(std::lround((tick.value - low) / (high - low) * (kWidth - 1))));
  const auto gap = [&](std::size_t i) { return ticks[i].value == ticks[i - 1].value ? 0 : 1; };
  for (std::size_t i = 1; i < ticks.size(); ++i) columns[i] = std::max(columns[i], columns[i - 1] + gap(i));
  columns.back() = std::min(columns.back(), kWidth - 1);
  for (std::size_t i = ticks.size() - 1; i > 0; --i) columns[i - 1] = std::min(columns[i - 1], columns[i] - gap(i));
  return columns;
}

// Centred on the column, as far as the line's ends and the labels before it allow.
void put_label(std::string& line, int column, const std::string& label) {
  if (label.empty()) return;
  const int length = int(label.size());
  int start = std::clamp(column - length / 2, 0, std::max(0, kWidth - length));
  if (!line.empty()) start = std::max(start, int(line.size()) + 1);
  line.resize(std::size_t(start), ' ');
  line += label;
}

std::string indented(const std::string& line) {
  return line.empty() ? "" : std::string(std::size_t(kIndent), ' ') + line + '\n';
}

}  // namespace

std::string number_line(const std::vector<Tick>& ticks) {
  const std::vector<int> columns = columns_of(ticks);
  std::string above, line(std::size_t(kWidth), '-');
  std::vector<std::string> below;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    line[std::size_t(columns[i])] = ticks[i].mark;
    put_label(above, columns[i], ticks[i].above);
    below.resize(std::max(below.size(), ticks[i].below.size()));
    for (std::size_t row = 0; row < ticks[i].below.size(); ++row)
      put_label(below[row], columns[i], ticks[i].below[row]);
  }
  std::string picture = indented(above) + indented(line);
  for (const std::string& labels : below) picture += indented(labels);
  return picture;
}

}  // namespace halfulp

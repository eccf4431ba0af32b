#pragma once
// A number line in ASCII: where a value lies between the values of a format.

#include <string>
#include <vector>

namespace halfulp {

struct Tick {
  double value;
  char mark;
  std::string above = {};            // label over the line
  std::vector<std::string> below{};  // labels under it, one a line
};

// Ticks with ascending values that are not all equal. Distances are true to scale, but different values never share a
// column, so a value beside a midpoint stays on its side. Of two ticks with one value the later mark is seen.
std::string number_line(const std::vector<Tick>& ticks);

}  // namespace halfulp

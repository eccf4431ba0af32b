#pragma once
// Figures of a reproduction beside the published ones: printed, kept for tests/run's report, compared.

#include <string>

namespace halfulp::reproduce {

// Prints a line and adds it to the report of the running test suite.
void report(const std::string& line);

struct Published {
  std::string what;
  double value;
  double tolerance;
};

// Reports `got` beside the published value, which it must equal within the tolerance.
void expect_published(const Published& published, double got);

}  // namespace halfulp::reproduce

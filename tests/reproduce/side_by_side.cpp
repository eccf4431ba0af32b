#include "tests/reproduce/side_by_side.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace halfulp::reproduce {
namespace {

// In the build directory, one for each test suite.
std::filesystem::path report_of(const testing::TestInfo& test) {
  std::string name = std::string("reproduce.") + test.test_suite_name() + ".txt";
  std::ranges::replace(name, '/', '.');
  return std::filesystem::path(HALFULP_REPORTS) / name;
}

}  // namespace

// Appends, since each test of a suite may run in a process of its own; tests/run begins without reports.
void report(const std::string& line) {
  std::filesystem::create_directories(HALFULP_REPORTS);
  std::ofstream(report_of(*testing::UnitTest::GetInstance()->current_test_info()), std::ios::app) << line + '\n';
  std::puts(line.c_str());
}

void expect_published(const Published& published, double got) {
  char line[256];
  std::snprintf(line, sizeof line, "%-60s %11.5g  published %9.5g +- %.2g", published.what.c_str(), got,
                published.value, published.tolerance);
  report(line);
  EXPECT_NEAR(got, published.value, published.tolerance) << published.what;
}

}  // namespace halfulp::reproduce

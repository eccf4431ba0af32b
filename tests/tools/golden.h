#pragma once
// Compares text with a file of tests/golden/cli. To write the files anew, run the tests with HALFULP_UPDATE_GOLDEN=1 in
// the environment and read the difference before it is committed.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/lib/test_files.h"

namespace halfulp {

inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(HALFULP_TEST_DATA) + "/cli/" + name;
  if (std::getenv("HALFULP_UPDATE_GOLDEN") != nullptr) write_file(path, text);
  EXPECT_EQ(text, read_file(path)) << path << "; HALFULP_UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace halfulp

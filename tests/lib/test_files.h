#pragma once
// What the file tests share: a directory that goes away, whole-file reads and writes, and the error a call ends with.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "lib/error.h"

namespace halfulp {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "halfulp-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }
  size_t file_count() const {
    const auto begin = std::filesystem::directory_iterator(path_);
    return size_t(std::distance(begin, std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  EXPECT_TRUE(file.good()) << path;
}

inline std::string golden_file(const std::string& name) { return std::string(HALFULP_TEST_DATA) + "/files/" + name; }

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct CaughtError {
  ExitCode code;
  std::string text;
};

// What `call` throws; a failure if it throws nothing.
template <class Call>
CaughtError error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return {.code = error.code(), .text = error.what()};
  }
  ADD_FAILURE() << "no error";
  return {.code = ExitCode::good, .text = ""};
}

}  // namespace halfulp

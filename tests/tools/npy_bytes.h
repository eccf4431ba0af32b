#pragma once
// The bytes of a .npy file, written here by hand so that a test of the program does not rest on its own reader and
// writer.

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace halfulp {

template <class T>
std::string raw_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// As numpy.save writes it, version 1.0: `descr` such as "<f4", `shape` such as "(2, 3)".
inline std::string npy_file(const std::string& descr, const std::string& shape, const std::string& data) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
  constexpr std::size_t kPrefix = 10, kAlignment = 64;
  header.resize((kPrefix + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment - kPrefix - 1, ' ');
  header += '\n';
  const std::string length{char(header.size() & 0xff), char(header.size() >> 8)};
  return std::string("\x93NUMPY\x01\x00", 8) + length + header + data;
}

// A vector.
template <class T>
std::string npy_vector(const std::string& descr, const std::vector<T>& values) {
  return npy_file(descr, fmt::format("({},)", values.size()), raw_bytes(values));
}

}  // namespace halfulp

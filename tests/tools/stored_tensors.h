#pragma once
// Tensors given to the program and read from its files, with their elements moved by the definition of an axis. Knows
// no recipe: what a code means is none of its business.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "lib/philox.h"
#include "lib/safetensors.h"
#include "tests/lib/test_files.h"
#include "tests/tools/npy_bytes.h"
#include "tests/tools/run_program.h"

namespace halfulp {

using Shape = std::vector<uint64_t>;

struct Array {
  Shape shape;
  std::vector<float> x;
};

inline uint64_t product(const Shape& shape, std::size_t begin, std::size_t end) {
  uint64_t count = 1;
  for (std::size_t i = begin; i < end; ++i) count *= shape[i];
  return count;
}

// Numbers whose size changes from element to element, so that no two blocks have the same scale for long.
inline Array uneven_values(const Shape& shape) {
  Array values{.shape = shape, .x = std::vector<float>(product(shape, 0, shape.size()))};
  for (std::size_t i = 0; i < values.x.size(); ++i) {
    const uint32_t word = random_word(3, 0, i);
    values.x[i] = std::ldexp(float(int32_t(word)), int(word % 12) - 37);
  }
  return values;
}

// The elements in the order in which dimension `axis` is the last one.
template <class T>
std::vector<T> axis_last(const std::vector<T>& elements, const Shape& shape, std::size_t axis) {
  const uint64_t outer = product(shape, 0, axis), along = shape[axis], inner = product(shape, axis + 1, shape.size());
  std::vector<T> moved;
  moved.reserve(elements.size());
  for (uint64_t o = 0; o < outer; ++o)
    for (uint64_t i = 0; i < inner; ++i)
      for (uint64_t a = 0; a < along; ++a) moved.push_back(elements[(o * along + a) * inner + i]);
  return moved;
}

inline Shape axis_last(Shape shape, std::size_t axis) {
  const uint64_t along = shape[axis];
  shape.erase(shape.begin() + std::ptrdiff_t(axis));
  shape.push_back(along);
  return shape;
}

inline Array axis_last(const Array& values, std::size_t axis) {
  return {.shape = axis_last(values.shape, axis), .x = axis_last(values.x, values.shape, axis)};
}

inline std::string shape_tuple(const Shape& shape) {
  std::string text = "(";
  for (const uint64_t extent : shape) text += std::to_string(extent) + ",";
  return text + ")";
}

inline std::string npy_of(const Array& values) {
  return npy_file("<f4", shape_tuple(values.shape), raw_bytes(values.x));
}

// The floats of a .npy file that the program wrote, whose header is a multiple of 64 bytes.
inline std::vector<float> npy_floats(const std::string& path) {
  const std::string file = read_file(path);
  const std::size_t header = 10 + uint8_t(file.at(8)) + 256u * uint8_t(file.at(9));
  std::vector<float> values((file.size() - header) / sizeof(float));
  std::memcpy(values.data(), file.data() + header, values.size() * sizeof(float));
  return values;
}

struct StoredTensor {
  Dtype dtype;
  Shape shape;
  std::string bytes;
  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};

struct StoredFile {
  SafetensorsMetadata metadata;
  std::map<std::string, StoredTensor> tensors;
};

inline StoredFile stored_file(const std::string& path) {
  const std::string file = read_file(path);
  const SafetensorsHeader header = parse_safetensors_header(bytes_of(file), path);
  StoredFile stored{.metadata = header.metadata, .tensors = {}};
  for (const SafetensorsEntry& e : header.tensors)
    stored.tensors[e.name] = {.dtype = e.dtype, .shape = e.shape, .bytes = file.substr(e.begin, e.end - e.begin)};
  return stored;
}

inline void write_stored(const std::string& path, const StoredFile& stored) {
  std::vector<TensorData> tensors;
  for (const auto& [name, tensor] : stored.tensors)
    tensors.push_back({{name, tensor.dtype, tensor.shape}, bytes_of(tensor.bytes)});
  write_safetensors(path, tensors, stored.metadata);
}

// Elements of `size` bytes each, as numbers; of half a byte, the low nibble first, where size is 0.
inline std::vector<uint32_t> elements_of(const std::string& bytes, std::size_t size) {
  std::vector<uint32_t> elements(size == 0 ? 2 * bytes.size() : bytes.size() / size);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (size == 0) {
      elements[i] = uint32_t(uint8_t(bytes[i / 2])) >> i % 2 * 4 & 0xf;
    } else {
      std::memcpy(&elements[i], &bytes[i * size], size);
    }
  }
  return elements;
}

using Words = std::vector<std::string>;

inline Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Runs `halfulp quantize` on a tensor 'w', and `halfulp dequantize` on what comes of it.
class Quantization {
 public:
  Quantization(const Array& values, const std::string& recipe, const Words& options = {}) : name_(recipe) {
    write_file(folder_ / "w.npy", npy_of(values));
    const ProgramRun run = run_halfulp(
        joined({"quantize", folder_ / "w.npy", "-r", recipe, "-o", folder_ / "q", "--progress", "none"}, options));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    if (run.exit_code == 0) file = stored_file(folder_ / "q");
  }

  StoredFile file;

  const StoredTensor& codes() const { return file.tensors.at("w.codes"); }
  const StoredTensor& scales() const { return file.tensors.at("w.scales"); }
  bool has_scales() const { return file.tensors.contains("w.scales"); }
  const std::string& recipe() const { return name_; }

  std::vector<float> values(const Words& options = {}) const {
    write_stored(folder_ / "again", file);
    const ProgramRun run =
        run_halfulp(joined({"dequantize", folder_ / "again", "-o", folder_ / "y.npy", "--progress", "none"}, options));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.exit_code == 0 ? npy_floats(folder_ / "y.npy") : std::vector<float>();
  }

 private:
  TemporaryDirectory folder_;
  std::string name_;
};

}  // namespace halfulp

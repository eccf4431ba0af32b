#pragma once
// A file that `halfulp quantize` wrote, checked: its tensors with all that says what their codes mean. Decodes nothing.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "emulation/blocks/layout.h"
#include "emulation/panels.h"
#include "lib/safetensors.h"
#include "lib/tensor_source.h"
#include "tools/quantized.h"

namespace halfulp {

enum class Rotated { back, kept };

// A quantized tensor.
struct QuantizedTensor {
  std::string file;
  std::string name;
  std::vector<uint64_t> shape;
  const Recipe* recipe;
  TensorLayout layout;
  Rotation rotation;          // to be undone
  std::string kept_rotation;  // what the values are rotated by, in words; empty where they are not
  Nibbles nibbles;
  TensorScale scale;
  Tensor codes;
  ScaleAxes scale_axes;
  std::vector<std::byte> scales;  // row-major and not padded
};

// Whether `halfulp quantize` wrote the file, by its metadata.
bool is_quantized_file(const std::string& path);

class QuantizedFile {
 public:
  // With Rotated::kept tensors are as they were quantized, with their padding.
  QuantizedFile(const std::string& path, Rotated rotated);

  // The tensors that have codes, in the order of their names.
  std::vector<QuantizedTensor> tensors() const;

  // What a file of values says of them.
  SafetensorsMetadata metadata_of_values() const;

 private:
  QuantizedTensor tensor(const std::string& name) const;
  Rotation rotation() const;
  uint64_t seed() const;
  template <class Choice>
  Choice option(const char* key, std::string_view text, Choice first, Choice second) const;
  ScaleLayout scale_layout() const;
  Nibbles nibbles(const Recipe& r) const;
  std::vector<std::byte> row_major_scales(const Recipe& r, const TensorLayout& layout, const ScaleLayout& scales,
                                          const Tensor& stored) const;
  const Recipe& recipe(const std::string& name) const;
  int axis(const std::string& name, std::span<const uint64_t> shape) const;
  TensorScale scale(const Recipe& r, const std::string& name, const QuantizedParts& parts) const;
  std::vector<uint64_t> shape(const std::string& name) const;
  const Tensor& part(const TensorSpec& spec) const;
  void check_scales(const Recipe& recipe, const Tensor& stored, std::span<const std::byte> grid) const;
  std::string value(const std::string& key) const;
  [[noreturn]] void fail(const std::string& tensor, const std::string& message) const;

  std::string path_;
  Rotated rotated_;
  SafetensorsMetadata metadata_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace halfulp

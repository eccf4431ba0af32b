#pragma once
// The one way the program opens its inputs: tensors out of .npy and .safetensors files, sharded models, directories.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/dtype.h"
#include "lib/mapped_file.h"

namespace halfulp {

struct Tensor {
  std::string file;
  std::string name;
  Dtype dtype;
  std::vector<uint64_t> shape;
  std::span<const std::byte> bytes;  // little-endian, C order, at any address: read with load_unaligned
  std::shared_ptr<const MappedFile> mapping;
  std::shared_ptr<const std::vector<std::byte>> copy;  // where the file's bytes are in another order

  uint64_t elements() const { return *element_count(shape); }

  // Says that bytes [begin, end) have been read, so that their memory can be given back.
  void release(uint64_t begin, uint64_t end) const;
};

struct OpenOptions {
  std::optional<Dtype> npy_dtype;  // see parse_npy_header
};

// A .npy file (its tensor is named by the file's stem), a .safetensors file, a *.safetensors.index.json, or a
// directory: its index, else all its .safetensors and .npy files by name. Tensors come in the order of their bytes.
// Throws InputError.
std::vector<Tensor> open_tensors(const std::string& path, const OpenOptions& options = {});

struct TensorPlace {
  std::string path;
  std::optional<std::string> tensor;
};

// Splits FILE[:TENSOR]. A path that exists as a whole wins, then the longest FILE that exists.
TensorPlace split_tensor_spec(const std::string& spec);

// open_tensors for FILE[:TENSOR]. Throws InputError where the file has no such tensor.
std::vector<Tensor> open_tensor_spec(const std::string& spec, const OpenOptions& options = {});

template <class T>
T load_unaligned(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

}  // namespace halfulp

#pragma once
// The safetensors file format, strictly: what the reference reader refuses is refused here, and duplicate keys too.
// Sharded models are in lib/tensor_source.h.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "lib/atomic_file.h"
#include "lib/dtype.h"

namespace halfulp {

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsEntry {
  std::string name;
  Dtype dtype;
  std::vector<uint64_t> shape;  // in elements, also where several share a byte
  uint64_t begin;               // in the file
  uint64_t end;
};

struct SafetensorsHeader {
  SafetensorsMetadata metadata;
  std::vector<SafetensorsEntry> tensors;  // in the order of their bytes
  uint64_t data_begin;
};

// Parses and validates. `file` is the whole file; its data bytes are not read. Throws InputError, each ending in the
// reference reader's name for the fault, such as (InvalidOffset).
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& file_name);

struct TensorSpec {
  std::string name;
  Dtype dtype;
  std::vector<uint64_t> shape;
};

struct SafetensorsLayout {
  std::string header;                // length word, JSON, padding
  std::vector<uint64_t> begins;      // in the file, in the order of the specs given
  std::vector<uint64_t> byte_sizes;  // likewise
  uint64_t file_size;
};

// Where the reference writer puts each tensor. Throws Error where a tensor cannot be stored: a name twice, a name that
// is not UTF-8, a row that does not fill whole bytes.
SafetensorsLayout lay_out_safetensors(std::span<const TensorSpec> tensors, const SafetensorsMetadata& metadata);

// Writes tensors piecewise and in any order.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::string& path, std::span<const TensorSpec> tensors, const SafetensorsMetadata& metadata);

  // `tensor` counts in the specs given. Threads may call it at the same time for disjoint ranges.
  void write(size_t tensor, uint64_t byte_offset, std::span<const std::byte> bytes);

  // Throws where not every byte of every tensor was written.
  void commit();

 private:
  AtomicFile file_;
  SafetensorsLayout layout_;
  std::vector<std::string> names_;
  std::vector<std::atomic<uint64_t>> written_;
};

struct TensorData {
  TensorSpec spec;
  std::span<const std::byte> bytes;
};

void write_safetensors(const std::string& path, std::span<const TensorData> tensors,
                       const SafetensorsMetadata& metadata);

}  // namespace halfulp

#pragma once
// numpy's .npy file format, versions 1 to 3, for arrays of numbers. Pickled and structured arrays are refused; .npz is
// not read.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/atomic_file.h"
#include "lib/dtype.h"

namespace halfulp {

enum class AxisOrder { c, fortran };
enum class ByteOrder { little, big };

struct NpyHeader {
  Dtype dtype;
  std::vector<uint64_t> shape;
  AxisOrder axis_order;
  ByteOrder byte_order;
  uint64_t data_begin;  // in the file
};

// Parses and validates. `file` is the whole file; its data bytes are not read. ml_dtypes arrays are saved without their
// type (`<V2`), and codes often as integers: `dtype` says what the elements of such a file are. Throws InputError.
NpyHeader parse_npy_header(std::span<const std::byte> file, const std::string& file_name,
                           std::optional<Dtype> dtype = std::nullopt);

// Whether the bytes from data_begin on are already what npy_elements would give.
bool npy_is_in_place(const NpyHeader& header);

// The elements of `file`, little-endian and in C order.
std::vector<std::byte> npy_elements(const NpyHeader& header, std::span<const std::byte> file);

// Writes an array in C order, piecewise, byte for byte what numpy.save writes.
class NpyWriter {
 public:
  // Throws Error where numpy has no such type; the caller then saves the bits as U8 or U16.
  NpyWriter(const std::string& path, Dtype dtype, std::span<const uint64_t> shape);

  // Threads may call it at the same time for disjoint ranges.
  void write_at(uint64_t byte_offset, std::span<const std::byte> bytes);

  // Throws where not every byte was written.
  void commit();

 private:
  AtomicFile file_;
  uint64_t data_begin_ = 0;
  uint64_t byte_size_ = 0;
  std::atomic<uint64_t> written_ = 0;
};

void write_npy(const std::string& path, Dtype dtype, std::span<const uint64_t> shape, std::span<const std::byte> bytes);

}  // namespace halfulp

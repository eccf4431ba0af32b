// Whatever the reader accepts must be consistent, and its elements must be those of the file.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "lib/error.h"
#include "lib/npy.h"

namespace {

using namespace halfulp;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(std::span<const std::byte> file, std::optional<Dtype> dtype) {
  const NpyHeader header = parse_npy_header(file, "fuzz", dtype);
  require(!dtype || header.dtype == *dtype);
  const unsigned width = unsigned(row(header.dtype).bits) / 8;
  unsigned __int128 bytes = width;
  for (uint64_t dimension : header.shape) {
    bytes *= dimension;
    require(bytes < static_cast<unsigned __int128>(1) << 64);
  }
  require(header.data_begin <= file.size() && bytes == file.size() - header.data_begin);
  const std::span<const std::byte> data = file.subspan(header.data_begin);
  std::vector<std::byte> elements = npy_elements(header, file);
  require(elements.size() == data.size());
  require(!npy_is_in_place(header) || std::equal(elements.begin(), elements.end(), data.begin()));
  // Order and byte order permute the bytes and change none.
  std::vector<std::byte> sorted(data.begin(), data.end());
  std::sort(sorted.begin(), sorted.end());
  std::sort(elements.begin(), elements.end());
  require(elements == sorted);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  for (std::optional<Dtype> dtype : {std::optional<Dtype>(), std::optional(Dtype::bf16), std::optional(Dtype::f4)}) {
    try {
      check(file, dtype);
    } catch (const InputError&) {
      // The only answer that a bad file may get.
    }
  }
  return 0;
}

// Whatever the reader accepts must be consistent, and what the writer makes of it must read the same.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "lib/error.h"
#include "lib/safetensors.h"

namespace {

using namespace halfulp;

void require(bool holds) {
  if (!holds) std::abort();
}

// Independent of the reader's own arithmetic: in 128 bits nothing overflows before the file's size is passed.
unsigned __int128 bits_of(const SafetensorsEntry& entry) {
  unsigned __int128 bits = unsigned(row(entry.dtype).bits);
  for (uint64_t dimension : entry.shape) {
    if (dimension == 0) return 0;
  }
  for (uint64_t dimension : entry.shape) {
    bits *= dimension;
    require(bits < static_cast<unsigned __int128>(1) << 64);
  }
  return bits;
}

void check_invariants(const SafetensorsHeader& header, uint64_t file_size) {
  uint64_t position = header.data_begin;
  for (const SafetensorsEntry& entry : header.tensors) {
    require(entry.begin == position && entry.begin <= entry.end && entry.end <= file_size);
    require(bits_of(entry) == static_cast<unsigned __int128>(entry.end - entry.begin) * 8);
    position = entry.end;
  }
  require(position == file_size);
}

std::vector<TensorSpec> specs_of(const SafetensorsHeader& header) {
  std::vector<TensorSpec> specs;
  for (const SafetensorsEntry& entry : header.tensors) specs.push_back({entry.name, entry.dtype, entry.shape});
  return specs;
}

void check_rewritten(const SafetensorsHeader& header, uint64_t file_size) {
  const std::vector<TensorSpec> specs = specs_of(header);
  const SafetensorsLayout layout = lay_out_safetensors(specs, header.metadata);
  require(layout.file_size - layout.header.size() == file_size - header.data_begin);
  std::string file = layout.header;
  file.resize(layout.file_size);
  const SafetensorsHeader again = parse_safetensors_header(std::as_bytes(std::span(file)), "rewritten");
  check_invariants(again, file.size());
  require(again.metadata == header.metadata && again.tensors.size() == specs.size());
  std::map<std::string, const SafetensorsEntry*> by_name;
  for (const SafetensorsEntry& entry : again.tensors) by_name[entry.name] = &entry;
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto found = by_name.find(specs[i].name);
    require(found != by_name.end() && found->second->dtype == specs[i].dtype && found->second->shape == specs[i].shape);
    require(found->second->begin == layout.begins[i]);
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// Mostly sets the length word to what the mutated header has, so that mutations reach the rules behind it.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (size < 8 || seed % 8 == 0) return size;
  size_t header_end = size;
  while (header_end > 8 && data[header_end - 1] != '}') --header_end;
  for (size_t i = 0; i < 8; ++i) data[i] = uint8_t(uint64_t(header_end - 8) >> (8 * i));
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const SafetensorsHeader header = parse_safetensors_header(std::as_bytes(std::span(data, size)), "fuzz");
    check_invariants(header, size);
    check_rewritten(header, size);
  } catch (const InputError&) {
    // The only answer that a bad file may get.
  }
  return 0;
}

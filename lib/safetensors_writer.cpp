#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "lib/error.h"
#include "lib/safetensors.h"
#include "lib/utf8.h"

namespace halfulp {

namespace {

[[noreturn]] void refuse(std::string_view name, std::string_view reason) {
  throw Error(ExitCode::bad_input, fmt::format("tensor '{}' cannot be stored as safetensors: {}", name, reason));
}

std::string quoted(const std::string& text) {
  if (first_invalid_utf8(text))
    refuse(nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), "the name is not UTF-8");
  return nlohmann::json(text).dump();
}

uint64_t byte_size(const TensorSpec& tensor) {
  const auto bits = bit_count(tensor.dtype, tensor.shape);
  if (!bits) refuse(tensor.name, "its size does not fit 64 bits");
  if (!rows_fill_bytes(tensor.dtype, tensor.shape)) {
    refuse(tensor.name,
           fmt::format("the rows of {} {} do not fill whole bytes", row(tensor.dtype).name, shape_text(tensor.shape)));
  }
  return *bits / 8;
}

void check_names(std::span<const TensorSpec> tensors) {
  std::unordered_set<std::string_view> names;
  for (const TensorSpec& tensor : tensors) {
    if (tensor.name == "__metadata__") refuse(tensor.name, "the format reserves this name");
    if (!names.insert(tensor.name).second) refuse(tensor.name, "there are two of this name");
  }
}

// Descending type, then name: with the header padded to 8 bytes, every tensor is aligned to its elements.
std::vector<size_t> storage_order(std::span<const TensorSpec> tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tie(tensors[b].dtype, tensors[a].name) < std::tie(tensors[a].dtype, tensors[b].name);
  });
  return order;
}

std::string metadata_member(const SafetensorsMetadata& metadata) {
  std::vector<std::string> pairs;
  for (const auto& [key, value] : metadata) pairs.push_back(quoted(key) + ":" + quoted(value));
  return fmt::format(R"("__metadata__":{{{}}})", fmt::join(pairs, ","));
}

std::string with_length_and_padding(std::string json) {
  json.append((8 - json.size() % 8) % 8, ' ');
  std::string header;
  for (int shift = 0; shift < 64; shift += 8) header += char(json.size() >> shift & 0xff);
  return header + json;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

SafetensorsLayout lay_out_safetensors(std::span<const TensorSpec> tensors, const SafetensorsMetadata& metadata) {
  check_names(tensors);
  SafetensorsLayout layout = {
      .header = {}, .begins = std::vector<uint64_t>(tensors.size()), .byte_sizes = {}, .file_size = 0};
  for (const TensorSpec& tensor : tensors) layout.byte_sizes.push_back(byte_size(tensor));
  std::vector<std::string> members;
  if (!metadata.empty()) members.push_back(metadata_member(metadata));
  uint64_t offset = 0;
  for (size_t i : storage_order(tensors)) {
    layout.begins[i] = offset;
    uint64_t end = 0;
    if (__builtin_add_overflow(offset, layout.byte_sizes[i], &end))
      refuse(tensors[i].name, "the file's size does not fit 64 bits");
    members.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quoted(tensors[i].name),
                                  row(tensors[i].dtype).name, fmt::join(tensors[i].shape, ","), offset, end));
    offset = end;
  }
  layout.header = with_length_and_padding(fmt::format("{{{}}}", fmt::join(members, ",")));
  for (uint64_t& begin : layout.begins) begin += layout.header.size();
  layout.file_size = layout.header.size() + offset;
  return layout;
}

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::span<const TensorSpec> tensors,
                                     const SafetensorsMetadata& metadata)
    : file_(path), layout_(lay_out_safetensors(tensors, metadata)), written_(tensors.size()) {
  for (const TensorSpec& tensor : tensors) names_.push_back(tensor.name);
  file_.write_at(0, bytes_of(layout_.header));
}

void SafetensorsWriter::write(size_t tensor, uint64_t byte_offset, std::span<const std::byte> bytes) {
  const uint64_t size = layout_.byte_sizes.at(tensor);
  if (byte_offset > size || bytes.size() > size - byte_offset) {
    throw Error(ExitCode::internal,
                fmt::format("{}: tensor '{}': bytes [{}, {}) written to a tensor of {}", file_.path(), names_[tensor],
                            byte_offset, byte_offset + bytes.size(), size));
  }
  file_.write_at(layout_.begins[tensor] + byte_offset, bytes);
  written_[tensor] += bytes.size();
}

void SafetensorsWriter::commit() {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (written_[i] == layout_.byte_sizes[i]) continue;
    throw Error(ExitCode::internal, fmt::format("{}: tensor '{}': {} of {} bytes were written", file_.path(), names_[i],
                                                written_[i].load(), layout_.byte_sizes[i]));
  }
  file_.commit();
}

void write_safetensors(const std::string& path, std::span<const TensorData> tensors,
                       const SafetensorsMetadata& metadata) {
  std::vector<TensorSpec> specs;
  for (const TensorData& tensor : tensors) specs.push_back(tensor.spec);
  const SafetensorsLayout layout = lay_out_safetensors(specs, metadata);
  AtomicFile file(path);
  file.write(bytes_of(layout.header));
  for (size_t i : storage_order(specs)) {
    if (tensors[i].bytes.size() != layout.byte_sizes[i]) {
      throw Error(ExitCode::internal, fmt::format("{}: tensor '{}': {} bytes given for {}", path, specs[i].name,
                                                  tensors[i].bytes.size(), layout.byte_sizes[i]));
    }
    file.write(tensors[i].bytes);
  }
  file.commit();
}

}  // namespace halfulp

#include "lib/tensor_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "lib/error.h"
#include "lib/npy.h"
#include "lib/safetensors.h"

namespace halfulp {

namespace fs = std::filesystem;

namespace {

using Mapping = std::shared_ptr<const MappedFile>;

constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

[[noreturn]] void fail(const std::string& file, const std::string& message) {
  throw InputError({.file = file, .tensor = {}, .byte = {}}, message);
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool begins_object(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

bool looks_like_safetensors(std::span<const std::byte> file) {
  if (file.size() < 8) return false;
  const auto length = load_unaligned<uint64_t>(file.data());
  return length <= file.size() - 8 && begins_object(as_text(file.subspan(8, length)));
}

struct ForeignKind {
  std::string_view magic;
  std::string_view what;
};

constexpr ForeignKind kForeignKinds[] = {
    {.magic = "GGUF", .what = "a GGUF file"},
    {.magic = "PK\x03\x04", .what = "a zip archive, such as an .npz or a PyTorch checkpoint"},
    {.magic = "\x80\x02", .what = "a Python pickle, such as an old PyTorch checkpoint"},
    {.magic = "\x80\x03", .what = "a Python pickle"},
    {.magic = "\x80\x04", .what = "a Python pickle"},
    {.magic = "\x80\x05", .what = "a Python pickle"},
    {.magic = "\x89HDF", .what = "an HDF5 file"},
    {.magic = "\x1f\x8b", .what = "gzip data"},
    {.magic = "version https://git-lfs", .what = "a Git LFS pointer; fetch the file itself with git lfs pull"},
    {.magic = "<", .what = "an HTML or XML page; was a download page saved?"},
};

// Names the kind of a file that is none of ours.
[[noreturn]] void refuse_foreign(const MappedFile& file, std::string_view what) {
  fail(file.path(), fmt::format("seems to be {}; expected .npy, .safetensors or a {}", what, kIndexSuffix.substr(1)));
}

enum class FileKind { npy, safetensors, index };

// By what the file holds; by its name only where that says nothing, so that the format's own reader names the fault.
FileKind kind_of(const MappedFile& file) {
  const std::string_view text = as_text(file.bytes());
  if (text.empty()) fail(file.path(), "is empty; expected .npy or .safetensors");
  if (text.starts_with("\x93NUMPY")) return FileKind::npy;
  if (looks_like_safetensors(file.bytes())) return FileKind::safetensors;
  for (const ForeignKind& kind : kForeignKinds) {
    if (text.starts_with(kind.magic)) refuse_foreign(file, kind.what);
  }
  const std::string extension = fs::path(file.path()).extension().string();
  if (extension == ".json" && begins_object(text)) return FileKind::index;
  if (extension == ".safetensors") return FileKind::safetensors;
  if (extension == ".npy") return FileKind::npy;
  refuse_foreign(file, begins_object(text) ? "JSON" : "something else");
}

std::vector<Tensor> npy_tensors(const Mapping& file, const OpenOptions& options) {
  NpyHeader header = parse_npy_header(file->bytes(), file->path(), options.npy_dtype);
  Tensor tensor = {.file = file->path(),
                   .name = fs::path(file->path()).stem().string(),
                   .dtype = header.dtype,
                   .shape = header.shape,
                   .bytes = file->bytes().subspan(header.data_begin),
                   .mapping = file,
                   .copy = nullptr};
  if (npy_is_in_place(header)) return {tensor};
  tensor.copy = std::make_shared<const std::vector<std::byte>>(npy_elements(header, file->bytes()));
  tensor.bytes = *tensor.copy;
  tensor.mapping = nullptr;
  return {tensor};
}

std::vector<Tensor> safetensors_tensors(const Mapping& file) {
  SafetensorsHeader header = parse_safetensors_header(file->bytes(), file->path());
  std::vector<Tensor> tensors;
  for (SafetensorsEntry& entry : header.tensors) {
    tensors.push_back({.file = file->path(),
                       .name = std::move(entry.name),
                       .dtype = entry.dtype,
                       .shape = std::move(entry.shape),
                       .bytes = file->bytes().subspan(entry.begin, entry.end - entry.begin),
                       .mapping = file,
                       .copy = nullptr});
  }
  return tensors;
}

// The document, with a key that stands twice in one object refused: the JSON library would keep the last.
nlohmann::json parse_without_duplicates(const MappedFile& file) {
  std::vector<std::set<std::string>> keys;
  const auto check = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (event == nlohmann::json::parse_event_t::object_start) keys.emplace_back();
    if (event == nlohmann::json::parse_event_t::object_end) keys.pop_back();
    if (event == nlohmann::json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      fail(file.path(), fmt::format("the key {} stands twice in one object", parsed.dump()));
    }
    return true;
  };
  try {
    return nlohmann::json::parse(as_text(file.bytes()), check);
  } catch (const nlohmann::json::exception& error) {
    fail(file.path(), fmt::format("is not JSON: {}", error.what()));
  }
}

// A shard lies beside its index. It may be a link (model caches are full of them), but its name is no path.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

// Shard -> the tensors that the index places in it.
using ShardMap = std::map<std::string, std::set<std::string>>;

ShardMap read_index(const MappedFile& file) {
  const nlohmann::json index = parse_without_duplicates(file);
  const auto weight_map = index.find("weight_map");
  if (weight_map == index.end() || !weight_map->is_object()) {
    fail(file.path(), "has no object 'weight_map'; expected the index of a sharded model");
  }
  ShardMap shards;
  for (const auto& [tensor, shard] : weight_map->items()) {
    const Where where = {.file = file.path(), .tensor = tensor, .byte = {}};
    if (!shard.is_string())
      throw InputError(where, fmt::format("expected the name of a shard, got {}", shard.type_name()));
    const auto name = shard.get<std::string>();
    if (!is_plain_name(name))
      throw InputError(where,
                       fmt::format("the shard '{}' is not a plain file name; shards lie beside the index", name));
    shards[name].insert(tensor);
  }
  return shards;
}

void check_shard(const std::string& index, const std::string& shard, const std::set<std::string>& listed,
                 const std::vector<Tensor>& held) {
  std::set<std::string> names;
  for (const Tensor& tensor : held) {
    names.insert(tensor.name);
    if (listed.contains(tensor.name)) continue;
    throw InputError(
        {.file = index, .tensor = tensor.name, .byte = {}},
        fmt::format("stands in the shard {} but not in the index; open the shard itself to read it", shard));
  }
  for (const std::string& name : listed) {
    if (names.contains(name)) continue;
    throw InputError(
        {.file = index, .tensor = name, .byte = {}},
        fmt::format("should be in the shard {}, which does not have it; are index and shards of one model?", shard));
  }
}

std::vector<Tensor> index_tensors(const MappedFile& file) {
  std::vector<Tensor> tensors;
  for (const auto& [shard, listed] : read_index(file)) {
    const std::string path = (fs::path(file.path()).parent_path() / shard).string();
    std::vector<Tensor> held = safetensors_tensors(std::make_shared<const MappedFile>(path));
    check_shard(file.path(), shard, listed, held);
    std::move(held.begin(), held.end(), std::back_inserter(tensors));
  }
  return tensors;
}

std::vector<Tensor> file_tensors(const std::string& path, const OpenOptions& options) {
  const auto file = std::make_shared<const MappedFile>(path);
  switch (kind_of(*file)) {
    case FileKind::npy: return npy_tensors(file, options);
    case FileKind::safetensors: return safetensors_tensors(file);
    case FileKind::index: return index_tensors(*file);
  }
  return {};
}

// What a directory offers: its index, else its tensor files by name.
std::vector<std::string> files_of(const std::string& directory) {
  std::vector<std::string> indices, files;
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  if (error) fail(directory, "cannot be listed: " + error.message());
  for (const fs::directory_entry& entry : entries) {
    const std::string path = entry.path().string();
    const std::string extension = entry.path().extension().string();
    if (path.ends_with(kIndexSuffix)) indices.push_back(path);
    if (extension == ".safetensors" || extension == ".npy") files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  std::sort(indices.begin(), indices.end());
  if (indices.size() > 1)
    fail(directory, fmt::format("has several indices; give one of them: {}", fmt::join(indices, ", ")));
  if (indices.empty() && files.empty()) fail(directory, "has no .npy and no .safetensors file");
  return indices.empty() ? files : indices;
}

std::vector<Tensor> directory_tensors(const std::string& directory, const OpenOptions& options) {
  std::vector<Tensor> tensors;
  for (const std::string& file : files_of(directory)) {
    std::vector<Tensor> held = file_tensors(file, options);
    std::move(held.begin(), held.end(), std::back_inserter(tensors));
  }
  return tensors;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string some_names(const std::vector<Tensor>& tensors) {
  constexpr size_t kShown = 10;
  std::vector<std::string_view> names;
  for (const Tensor& tensor : tensors) {
    if (names.size() < kShown) names.push_back(tensor.name);
  }
  const size_t more = tensors.size() - names.size();
  return fmt::format("{}{}", fmt::join(names, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

void Tensor::release(uint64_t begin, uint64_t end) const {
  if (mapping) mapping->release(uint64_t(bytes.data() - mapping->bytes().data()) + begin, end - begin);
}

std::vector<Tensor> open_tensors(const std::string& path, const OpenOptions& options) {
  std::error_code ignored;  // the file's own reader says what is wrong with the path
  return fs::is_directory(path, ignored) ? directory_tensors(path, options) : file_tensors(path, options);
}

TensorPlace split_tensor_spec(const std::string& spec) {
  if (exists(spec)) return {.path = spec, .tensor = std::nullopt};
  for (size_t colon = spec.rfind(':'); colon != std::string::npos && colon > 0; colon = spec.rfind(':', colon - 1)) {
    if (exists(spec.substr(0, colon))) return {.path = spec.substr(0, colon), .tensor = spec.substr(colon + 1)};
  }
  return {.path = spec, .tensor = std::nullopt};
}

std::vector<Tensor> open_tensor_spec(const std::string& spec, const OpenOptions& options) {
  const TensorPlace place = split_tensor_spec(spec);
  std::vector<Tensor> tensors = open_tensors(place.path, options);
  if (!place.tensor) return tensors;
  std::vector<Tensor> chosen;
  for (const Tensor& tensor : tensors) {
    if (tensor.name == *place.tensor) chosen.push_back(tensor);
  }
  if (chosen.empty())
    fail(place.path, fmt::format("has no tensor '{}'; it has {}", *place.tensor, some_names(tensors)));
  return chosen;
}

}  // namespace halfulp

#include "lib/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "lib/error.h"
#include "lib/utf8.h"

namespace halfulp {

namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the reference reader's limit
constexpr size_t kMaxDepth = 128;                  // likewise
constexpr std::string_view kMetadataKey = "__metadata__";

struct ParsedEntry {
  std::optional<Dtype> dtype;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;
  uint64_t key_byte = 0;
};

// An entry whose begin and end still count from the first data byte, as in the header.
struct PlacedEntry {
  SafetensorsEntry entry;
  uint64_t key_byte;
};

[[noreturn]] void fail(const Where& where, std::string_view rule, const std::string& message) {
  throw InputError(where, fmt::format("{} ({})", message, rule));
}

// Tells how far the JSON parser has read, which its events do not.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** seen_;
};

// What a JSON value of the header stands for.
enum class Place { document, metadata, metadata_value, entry, dtype, shape, dimension, offsets, offset, unknown };

std::string_view expected_at(Place place) {
  switch (place) {
    case Place::document: return "an object";
    case Place::metadata: return "an object of strings";
    case Place::metadata_value: return "a string";
    case Place::entry: return "an object with dtype, shape and data_offsets";
    case Place::dtype: return "the name of an element type";
    case Place::shape: return "an array of dimensions";
    case Place::dimension: return "an integer from 0 to 2^64-1";
    case Place::offsets: return "an array of two offsets";
    case Place::offset: return "an integer from 0 to 2^64-1";
    case Place::unknown: return "anything";
  }
  return "";
}

// Takes the JSON parser's events. Strict where the parser is not: types, duplicate keys, depth.
class HeaderEvents {
 public:
  HeaderEvents(const std::string& file, const char* text) : file_(file), text_(text), seen_(text) {}

  const char** seen() { return &seen_; }
  SafetensorsMetadata& metadata() { return metadata_; }
  std::vector<PlacedEntry>& entries() { return entries_; }

  bool null() { return accept_unknown("null"); }
  bool boolean(bool) { return accept_unknown("a boolean"); }
  bool number_integer(int64_t) { return accept_unknown("a negative number"); }
  bool number_float(double, const std::string&) { return accept_unknown("a number that is no 64-bit integer"); }
  bool binary(const std::vector<uint8_t>&) { return accept_unknown("binary data"); }

  bool number_unsigned(uint64_t value) {
    const Place place = value_place();
    if (place == Place::dimension) {
      entry_.shape->push_back(value);
    } else if (place == Place::offset) {
      entry_.offsets->push_back(value);
    } else {
      return accept_unknown("a number");
    }
    return true;
  }

  bool string(const std::string& value) {
    const Place place = value_place();
    if (place == Place::metadata_value) {
      metadata_[key_] = value;
    } else if (place == Place::dtype) {
      entry_.dtype = dtype_named(value);
      if (!entry_.dtype) fail_here(fmt::format("unknown dtype '{}'", value));
    } else {
      return accept_unknown("a string");
    }
    return true;
  }

  bool start_object(size_t) {
    const Place place = value_place();
    if (place == Place::entry) {
      tensor_ = key_;
      entry_ = {.dtype = {}, .shape = {}, .offsets = {}, .key_byte = key_byte_};
    } else if (place != Place::document && place != Place::metadata) {
      accept_unknown("an object");
    }
    open(place);
    keys_.emplace_back();
    return true;
  }

  bool key(const std::string& key) {
    key_ = key;
    key_byte_ = kLengthBytes + uint64_t(key_begin() - text_);
    if (!keys_.back().insert(key).second) fail_here(fmt::format("the key '{}' stands twice in one object", key));
    return true;
  }

  bool end_object() {
    if (places_.back() == Place::entry) finish_entry();
    places_.pop_back();
    keys_.pop_back();
    return true;
  }

  bool start_array(size_t) {
    const Place place = value_place();
    if (place == Place::shape) {
      entry_.shape.emplace();
    } else if (place == Place::offsets) {
      entry_.offsets.emplace();
    } else {
      accept_unknown("an array");
    }
    open(place);
    return true;
  }

  bool end_array() {
    if (places_.back() == Place::offsets && entry_.offsets->size() != 2) {
      fail_here(fmt::format("data_offsets has {} numbers; expected two", entry_.offsets->size()));
    }
    places_.pop_back();
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& error) {
    const std::string_view words = error.what();
    fail_here(fmt::format("the header is not JSON: {}", words.substr(words.find(']') + 2)));
  }

 private:
  Place value_place() const {
    if (places_.empty()) return Place::document;
    switch (places_.back()) {
      case Place::document: return key_ == kMetadataKey ? Place::metadata : Place::entry;
      case Place::metadata: return Place::metadata_value;
      case Place::entry: return field_place();
      case Place::shape: return Place::dimension;
      case Place::offsets: return Place::offset;
      default: return Place::unknown;
    }
  }

  Place field_place() const {
    if (key_ == "dtype") return Place::dtype;
    if (key_ == "shape") return Place::shape;
    if (key_ == "data_offsets") return Place::offsets;
    return Place::unknown;
  }

  bool accept_unknown(std::string_view got) const {
    const Place place = value_place();
    if (place != Place::unknown) fail_here(fmt::format("{}expected {}, got {}", field(), expected_at(place), got));
    return true;
  }

  void open(Place place) {
    if (places_.size() == kMaxDepth) fail_here(fmt::format("the header is nested deeper than {}", kMaxDepth));
    places_.push_back(place);
  }

  void finish_entry() {
    const char* missing = !entry_.dtype     ? "dtype"
                          : !entry_.shape   ? "shape"
                          : !entry_.offsets ? "data_offsets"
                                            : nullptr;
    if (missing != nullptr) fail_here(fmt::format("the entry has no {}", missing));
    entries_.push_back({.entry = {.name = tensor_,
                                  .dtype = *entry_.dtype,
                                  .shape = std::move(*entry_.shape),
                                  .begin = (*entry_.offsets)[0],
                                  .end = (*entry_.offsets)[1]},
                        .key_byte = entry_.key_byte});
    tensor_.clear();
  }

  // Where the key just read begins. A quote inside a string follows a backslash, the opening one never does.
  const char* key_begin() const {
    const char* at = seen_ - 2;
    while (*at != '"' || at[-1] == '\\') --at;
    return at;
  }

  std::string field() const { return places_.empty() ? "" : fmt::format("'{}': ", key_); }

  [[noreturn]] void fail_here(const std::string& message) const {
    const uint64_t read = uint64_t(seen_ - text_);
    const Where where = {.file = file_, .tensor = tensor_, .byte = kLengthBytes + (read == 0 ? 0 : read - 1)};
    fail(where, "InvalidHeaderDeserialization", message);
  }

  const std::string& file_;
  const char* text_;
  const char* seen_;
  SafetensorsMetadata metadata_;
  std::vector<PlacedEntry> entries_;
  std::vector<Place> places_;                          // of the objects and arrays that are open
  std::vector<std::unordered_set<std::string>> keys_;  // of the objects that are open
  std::string key_;
  uint64_t key_byte_ = 0;
  std::string tensor_;
  ParsedEntry entry_;
};

std::string_view header_text(std::span<const std::byte> file, const std::string& name) {
  const Where start = {.file = name, .tensor = {}, .byte = 0};
  if (file.size() < kLengthBytes) {
    fail(start, "HeaderTooSmall",
         fmt::format("the file has {} bytes; a safetensors file begins with 8 bytes of header length", file.size()));
  }
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) length = length << 8 | uint64_t(file[i]);
  if (length > kMaxHeaderBytes) {
    fail(start, "HeaderTooLarge",
         fmt::format("the header length is {}; at most {} is allowed", length, kMaxHeaderBytes));
  }
  if (length > file.size() - kLengthBytes) {
    fail(start, "InvalidHeaderLength",
         fmt::format("the header length is {}, but only {} bytes follow; is the file cut off?", length,
                     file.size() - kLengthBytes));
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
  if (const auto invalid = first_invalid_utf8(text)) {
    fail({.file = name, .tensor = {}, .byte = kLengthBytes + *invalid}, "InvalidHeader", "the header is not UTF-8");
  }
  return text;
}

// What the JSON parser would let pass: it takes a zero byte for the end, and skips a byte order mark.
void check_no_hidden_bytes(std::string_view text, const std::string& name) {
  const size_t zero = text.find('\0');
  const bool has_mark = text.starts_with("\xef\xbb\xbf");
  if (zero == std::string_view::npos && !has_mark) return;
  fail({.file = name, .tensor = {}, .byte = kLengthBytes + (has_mark ? 0 : zero)}, "InvalidHeaderDeserialization",
       has_mark ? "the header begins with a byte order mark; expected '{'" : "the header has a zero byte");
}

void check_size(const PlacedEntry& placed, const Where& where) {
  const SafetensorsEntry& entry = placed.entry;
  const std::string what = fmt::format("{} {}", row(entry.dtype).name, shape_text(entry.shape));
  const auto bits = bit_count(entry.dtype, entry.shape);
  if (!bits) fail(where, "ValidationOverflow", fmt::format("the size of {} does not fit 64 bits", what));
  if (!rows_fill_bytes(entry.dtype, entry.shape)) {
    fail(where, "MisalignedSlice", fmt::format("the rows of {} do not fill whole bytes", what));
  }
  if (entry.end - entry.begin != *bits / 8) {
    fail(where, "TensorInvalidInfo",
         fmt::format("data_offsets [{}, {}] give {} bytes, {} needs {}", entry.begin, entry.end,
                     entry.end - entry.begin, what, *bits / 8));
  }
}

// The tensors must follow each other without a gap. Returns where the last one ends.
uint64_t check_layout(const std::vector<PlacedEntry>& entries, const std::string& name) {
  uint64_t previous_end = 0;
  for (const PlacedEntry& placed : entries) {
    const SafetensorsEntry& entry = placed.entry;
    const Where where = {.file = name, .tensor = entry.name, .byte = placed.key_byte};
    if (entry.begin != previous_end) {
      fail(where, "InvalidOffset",
           fmt::format("data_offsets [{}, {}] should begin at {}, where the tensor before it ends", entry.begin,
                       entry.end, previous_end));
    }
    if (entry.end < entry.begin) {
      fail(where, "InvalidOffset", fmt::format("data_offsets [{}, {}] end before they begin", entry.begin, entry.end));
    }
    check_size(placed, where);
    previous_end = entry.end;
  }
  return previous_end;
}

void sort_by_offsets(std::vector<PlacedEntry>& entries) {
  std::sort(entries.begin(), entries.end(), [](const PlacedEntry& a, const PlacedEntry& b) {
    return std::tie(a.entry.begin, a.entry.end, a.key_byte) < std::tie(b.entry.begin, b.entry.end, b.key_byte);
  });
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& file_name) {
  const std::string_view text = header_text(file, file_name);
  check_no_hidden_bytes(text, file_name);
  HeaderEvents events(file_name, text.data());
  nlohmann::json::sax_parse(CountingIterator(text.data(), events.seen()),
                            CountingIterator(text.data() + text.size(), events.seen()), &events);
  std::vector<PlacedEntry>& entries = events.entries();
  sort_by_offsets(entries);
  const uint64_t data_end = check_layout(entries, file_name);
  const uint64_t data_begin = kLengthBytes + text.size();
  if (data_end != file.size() - data_begin) {
    fail({.file = file_name, .tensor = {}, .byte = data_begin}, "MetadataIncompleteBuffer",
         fmt::format("the tensors take {} bytes, but {} follow the header", data_end, file.size() - data_begin));
  }
  SafetensorsHeader header = {.metadata = std::move(events.metadata()), .tensors = {}, .data_begin = data_begin};
  for (PlacedEntry& placed : entries) {
    placed.entry.begin += data_begin;
    placed.entry.end += data_begin;
    header.tensors.push_back(std::move(placed.entry));
  }
  return header;
}

}  // namespace halfulp

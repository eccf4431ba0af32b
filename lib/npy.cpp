#include "lib/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "lib/error.h"

namespace halfulp {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeaderChars = 10'000;  // numpy's own limit for a file it does not trust
constexpr size_t kAlignment = 64;
constexpr size_t kGrowthDigits = 21;  // numpy leaves room for the first dimension to grow to

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The header as it stands in the file.
struct RawHeader {
  std::string_view text;
  uint64_t begin;
  uint64_t end() const { return begin + text.size(); }
};

RawHeader raw_header(std::span<const std::byte> file, const std::string& name) {
  const Where start = {.file = name, .tensor = {}, .byte = 0};
  if (!as_text(file).starts_with(kMagic))
    throw InputError(start, "not a .npy file: expected it to begin with \\x93NUMPY");
  if (file.size() < 10) throw InputError(start, "the file is cut off within its first 10 bytes");
  const int major = int(file[6]), minor = int(file[7]);
  if (major < 1 || major > 3 || minor != 0) {
    throw InputError({.file = name, .tensor = {}, .byte = 6},
                     fmt::format("unknown .npy version {}.{}; expected 1.0, 2.0 or 3.0", major, minor));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  const uint64_t begin = 8 + length_bytes;
  uint64_t length = 0;
  for (size_t i = std::min<size_t>(begin, file.size()); i-- > 8;) length = length << 8 | uint64_t(file[i]);
  if (file.size() < begin || length > file.size() - begin) {
    throw InputError(
        {.file = name, .tensor = {}, .byte = 8},
        fmt::format("the header needs {} bytes, but the file has {}; is it cut off?", length, file.size()));
  }
  if (length > kMaxHeaderChars) {
    throw InputError({.file = name, .tensor = {}, .byte = 8},
                     fmt::format("the header has {} bytes; at most {} are allowed", length, kMaxHeaderChars));
  }
  return {.text = as_text(file.subspan(begin, length)), .begin = begin};
}

struct DictValues {
  std::optional<std::string_view> descr;
  std::optional<AxisOrder> axis_order;
  std::optional<std::vector<uint64_t>> shape;
  uint64_t descr_byte = 0;
};

// Reads the header's Python dict: the literals that numpy writes, not Python.
class DictReader {
 public:
  DictReader(const RawHeader& header, const std::string& file) : header_(header), file_(file) {}

  DictValues read() {
    expect('{');
    while (peek() != '}') {
      read_member();
      if (peek() != '}') expect(',');
    }
    expect('}');
    if (peek() != '\0' || at_ != header_.text.size()) fail("expected nothing after the dict");
    check_complete();
    return std::move(values_);
  }

 private:
  // The next character that is no space; '\0' at the end.
  char peek() {
    while (at_ < header_.text.size() && std::string_view(" \t\r\n").find(header_.text[at_]) != std::string_view::npos)
      ++at_;
    return at_ < header_.text.size() ? header_.text[at_] : '\0';
  }

  void expect(char c) {
    if (peek() != c) fail(fmt::format("expected '{}'", c));
    ++at_;
  }

  bool take_word(std::string_view word) {
    peek();
    if (!header_.text.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::string_view string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("expected a string");
    const size_t begin = at_ + 1;
    const size_t end = header_.text.find(quote, begin);
    if (end == std::string_view::npos) fail("the string does not end");
    at_ = end + 1;
    const std::string_view text = header_.text.substr(begin, end - begin);
    if (text.find_first_of("\\\r\n") != std::string_view::npos) fail("unexpected character in a string");
    return text;
  }

  uint64_t integer() {
    peek();
    const std::string_view rest = header_.text.substr(at_);
    uint64_t value = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc()) fail("expected a dimension from 0 to 2^64-1");
    const size_t digits = size_t(stop - rest.data());
    if (digits > 1 && rest.front() == '0') fail("a dimension with a leading zero");
    at_ += digits;
    return value;
  }

  std::vector<uint64_t> shape() {
    std::vector<uint64_t> dimensions;
    expect('(');
    while (peek() != ')') {
      dimensions.push_back(integer());
      // Python reads (3) as a number.
      if (peek() != ')' || dimensions.size() == 1) expect(',');
    }
    expect(')');
    return dimensions;
  }

  AxisOrder axis_order() {
    if (take_word("False")) return AxisOrder::c;
    if (take_word("True")) return AxisOrder::fortran;
    fail("'fortran_order': expected True or False");
  }

  std::string_view descr() {
    if (peek() == '[' || peek() == '(')
      fail("a structured array; expected plain numbers. Save one field of it, as in array['field']");
    values_.descr_byte = header_.begin + at_;
    return string();
  }

  void read_member() {
    const std::string_view key = string();
    expect(':');
    if (key == "descr" && !values_.descr) {
      values_.descr = descr();
    } else if (key == "fortran_order" && !values_.axis_order) {
      values_.axis_order = axis_order();
    } else if (key == "shape" && !values_.shape) {
      values_.shape = shape();
    } else {
      fail(fmt::format("the key '{}'; expected descr, fortran_order and shape, each once", key));
    }
  }

  void check_complete() const {
    const char* missing = !values_.descr        ? "descr"
                          : !values_.axis_order ? "fortran_order"
                          : !values_.shape      ? "shape"
                                                : nullptr;
    if (missing != nullptr) fail(fmt::format("the header has no '{}'", missing));
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw InputError({.file = file_, .tensor = {}, .byte = header_.begin + at_}, message);
  }

  const RawHeader& header_;
  const std::string& file_;
  size_t at_ = 0;
  DictValues values_;
};

// "<f4" taken apart.
struct Descr {
  char order;
  char kind;
  int bytes;
};

std::optional<Descr> parse_descr(std::string_view text) {
  if (text.size() < 3) return std::nullopt;
  Descr descr = {.order = text[0], .kind = text[1], .bytes = 0};
  const auto [stop, error] = std::from_chars(text.data() + 2, text.data() + text.size(), descr.bytes);
  if (error != std::errc() || stop != text.data() + text.size() || descr.bytes < 1) return std::nullopt;
  const bool order_fits =
      descr.order == '<' || descr.order == '>' || (descr.order == '|' && (descr.bytes == 1 || descr.kind == 'V'));
  return order_fits ? std::optional(descr) : std::nullopt;
}

std::optional<Dtype> numpy_dtype(const Descr& descr) {
  // float8_e5m2, the only narrow float that ml_dtypes registers with kind 'f'. numpy writes it and cannot load it.
  if (descr.kind == 'f' && descr.bytes == 1) return Dtype::f8_e5m2;
  const std::string suffix = fmt::format("{}{}", descr.kind, descr.bytes);
  for (const DtypeRow& r : kDtypes) {
    if (!r.npy_descr.empty() && r.npy_descr.substr(1) == suffix) return r.dtype;
  }
  return std::nullopt;
}

// Bits without a meaning may be given one; a declared meaning is never overruled.
bool can_stand_for(const Descr& descr, Dtype dtype) {
  const bool is_raw = descr.kind == 'V' || descr.kind == 'u' || descr.kind == 'i';
  return is_raw && row(dtype).bits == descr.bytes * 8;
}

Dtype element_type(std::string_view text, std::optional<Dtype> given, const Where& where) {
  if (text == "|O")
    throw InputError(where, "an array of Python objects (a pickle), which is never loaded; save an array of numbers");
  const auto descr = parse_descr(text);
  const auto declared = descr ? numpy_dtype(*descr) : std::nullopt;
  if (given && given != declared) {
    if (descr && can_stand_for(*descr, *given)) return *given;
    throw InputError(
        where, fmt::format("elements are '{}', which cannot be read as {} of {} bits; convert the array instead", text,
                           row(*given).name, row(*given).bits));
  }
  if (declared) return *declared;
  if (descr && descr->kind == 'V' && descr->bytes <= 2) {
    throw InputError(
        where,
        fmt::format(
            "elements are '{}': raw bytes whose type numpy did not save; give it with --dtype, such as --dtype {}",
            text, descr->bytes == 2 ? "bf16" : "f8_e4m3"));
  }
  throw InputError(where, fmt::format("elements are '{}'; expected numbers that halfulp knows, such as '<f4'", text));
}

void check_data_size(const NpyHeader& header, uint64_t file_size, const std::string& name) {
  const Where where = {.file = name, .tensor = {}, .byte = header.data_begin};
  const std::string what = fmt::format("{} {}", row(header.dtype).name, shape_text(header.shape));
  const auto bits = bit_count(header.dtype, header.shape);
  if (!bits) throw InputError(where, fmt::format("the size of {} does not fit 64 bits", what));
  const uint64_t got = file_size - header.data_begin;
  if (got == *bits / 8) return;
  throw InputError(where, fmt::format("{} needs {} data bytes, got {}{}", what, *bits / 8, got,
                                      got < *bits / 8 ? "; is the file cut off?" : ""));
}

// What is reversed in a big-endian file: a complex number is two numbers.
size_t swapped_bytes(Dtype dtype) { return dtype == Dtype::c64 ? 4 : size_t(row(dtype).bits) / 8; }

// The distance in elements between neighbours along each axis, in the file.
std::vector<uint64_t> strides(const NpyHeader& header) {
  std::vector<uint64_t> result(header.shape.size());
  uint64_t stride = 1;
  for (size_t i = 0; i < result.size(); ++i) {
    const size_t axis = header.axis_order == AxisOrder::fortran ? i : result.size() - 1 - i;
    result[axis] = stride;
    stride *= header.shape[axis];
  }
  return result;
}

// Steps to the next index in C order and returns its position in the file. Wraps after the last.
uint64_t next_position(std::vector<uint64_t>& index, uint64_t position, std::span<const uint64_t> shape,
                       std::span<const uint64_t> stride) {
  for (size_t axis = index.size(); axis-- > 0;) {
    position += stride[axis];
    if (++index[axis] < shape[axis]) return position;
    position -= stride[axis] * shape[axis];
    index[axis] = 0;
  }
  return position;
}

std::string npy_header(Dtype dtype, std::span<const uint64_t> shape, const std::string& path) {
  const DtypeRow& type = row(dtype);
  if (type.npy_descr.empty()) {
    throw Error(ExitCode::bad_input, fmt::format("{}: numpy has no type for {}; write .safetensors", path, type.name));
  }
  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", type.npy_descr, shape_text(shape));
  if (!shape.empty()) dict.append(kGrowthDigits - fmt::formatted_size("{}", shape[0]), ' ');
  const size_t before_padding = kMagic.size() + 4 + dict.size() + 1;
  dict.append(kAlignment - before_padding % kAlignment, ' ');  // a whole line of 64 where none is needed, as numpy does
  dict += '\n';
  if (dict.size() > 0xffff) throw Error(ExitCode::bad_input, path + ": too many dimensions for a .npy file");
  return fmt::format("{}\x01{}{}{}{}", kMagic, '\0', char(dict.size() & 0xff), char(dict.size() >> 8), dict);
}

uint64_t byte_size(Dtype dtype, std::span<const uint64_t> shape, const std::string& path) {
  const auto bits = bit_count(dtype, shape);
  if (!bits)
    throw Error(ExitCode::bad_input, fmt::format("{}: the size of {} does not fit 64 bits", path, shape_text(shape)));
  return *bits / 8;
}

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> file, const std::string& file_name, std::optional<Dtype> dtype) {
  const RawHeader raw = raw_header(file, file_name);
  DictValues values = DictReader(raw, file_name).read();
  const Where descr_place = {.file = file_name, .tensor = {}, .byte = values.descr_byte};
  NpyHeader header = {.dtype = element_type(*values.descr, dtype, descr_place),
                      .shape = std::move(*values.shape),
                      .axis_order = *values.axis_order,
                      .byte_order = values.descr->front() == '>' ? ByteOrder::big : ByteOrder::little,
                      .data_begin = raw.end()};
  check_data_size(header, file.size(), file_name);
  return header;
}

bool npy_is_in_place(const NpyHeader& header) {
  const bool same_bytes = header.byte_order == ByteOrder::little || swapped_bytes(header.dtype) == 1;
  return same_bytes && (header.axis_order == AxisOrder::c || header.shape.size() < 2);
}

std::vector<std::byte> npy_elements(const NpyHeader& header, std::span<const std::byte> file) {
  const std::span<const std::byte> data = file.subspan(header.data_begin);
  std::vector<std::byte> result(data.size());
  const size_t width = size_t(row(header.dtype).bits) / 8;
  const std::vector<uint64_t> stride = strides(header);
  std::vector<uint64_t> index(header.shape.size());
  uint64_t position = 0;
  for (size_t to = 0; to < result.size(); to += width) {
    std::memcpy(result.data() + to, data.data() + position * width, width);
    position = next_position(index, position, header.shape, stride);
  }
  if (header.byte_order == ByteOrder::little) return result;
  const size_t unit = swapped_bytes(header.dtype);
  for (size_t i = 0; i < result.size(); i += unit)
    std::reverse(result.begin() + ptrdiff_t(i), result.begin() + ptrdiff_t(i + unit));
  return result;
}

NpyWriter::NpyWriter(const std::string& path, Dtype dtype, std::span<const uint64_t> shape)
    : file_(path), byte_size_(byte_size(dtype, shape, path)) {
  const std::string header = npy_header(dtype, shape, path);
  data_begin_ = header.size();
  file_.write_at(0, std::as_bytes(std::span(header)));
}

void NpyWriter::write_at(uint64_t byte_offset, std::span<const std::byte> bytes) {
  if (byte_offset > byte_size_ || bytes.size() > byte_size_ - byte_offset) {
    throw Error(ExitCode::internal, fmt::format("{}: bytes [{}, {}) written to an array of {}", file_.path(),
                                                byte_offset, byte_offset + bytes.size(), byte_size_));
  }
  file_.write_at(data_begin_ + byte_offset, bytes);
  written_ += bytes.size();
}

void NpyWriter::commit() {
  if (written_ != byte_size_) {
    throw Error(ExitCode::internal,
                fmt::format("{}: {} of {} bytes were written", file_.path(), written_.load(), byte_size_));
  }
  file_.commit();
}

void write_npy(const std::string& path, Dtype dtype, std::span<const uint64_t> shape,
               std::span<const std::byte> bytes) {
  if (bytes.size() != byte_size(dtype, shape, path)) {
    throw Error(ExitCode::internal,
                fmt::format("{}: {} bytes given for {} {}", path, bytes.size(), row(dtype).name, shape_text(shape)));
  }
  const std::string header = npy_header(dtype, shape, path);
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(header)));
  file.write(bytes);
  file.commit();
}

}  // namespace halfulp

#include "tools/source_number.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "formats/catalog.h"
#include "lib/error.h"
#include "lib/parse_number.h"
#include "lib/utf8.h"
#include "tools/number_text.h"

namespace halfulp {
namespace {

constexpr Policy kReading{
    .rounding = Rounding::nearest_even, .overflow = Overflow::to_special, .nan = NanInput::payload};

const SourceTypeEntry& row(SourceType type) { return kSourceTypes[std::size_t(type)]; }

// Not for f64.
const Format& format_of(SourceType type) { return kFormats[std::size_t(find_format(row(type).name))].format; }

// The significant digits of a decimal: 0.DIGITS * 10^point, without zeros at either end.
struct Digits {
  std::string digits;
  int64_t point;
};

Digits significant_digits(std::string_view text) {
  const std::size_t mark = std::min(text.find_first_of("eE"), text.size());
  const std::string_view mantissa = text.substr(0, mark);
  Digits result{.digits = "", .point = 0};
  if (mark < text.size()) result.point = parse_integer(text.substr(mark + 1)).value();
  result.point += int64_t(std::min(mantissa.find('.'), mantissa.size()));
  for (const char c : mantissa)
    if (c != '.') result.digits += c;
  const std::size_t zeros = std::min(result.digits.find_first_not_of('0'), result.digits.size());
  result.digits.erase(0, zeros);
  result.digits.erase(result.digits.find_last_not_of('0') + 1);
  result.point -= int64_t(zeros);
  return result;
}

// -1, 0 or 1 as the decimal is below, equal to or above x. Both are positive.
int compare(std::string_view text, double x) {
  constexpr int kMostDigits = 767;  // significant ones of a double
  const Digits a = significant_digits(text), b = significant_digits(fmt::format("{:.{}e}", x, kMostDigits));
  if (a.point != b.point) return a.point < b.point ? -1 : 1;
  const int order = a.digits.compare(b.digits);
  return order < 0 ? -1 : order > 0;
}

// The number that `text` writes rounded to an odd double: rounding that once more, to fewer bits, is as good as
// rounding the text itself (Boldo and Melquiond 2008). `nearest` is the double nearest to it.
double round_to_odd(std::string_view text, double nearest) {
  if (!std::isfinite(nearest) || nearest == 0) return nearest;
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const int order = compare(text, std::fabs(nearest));
  uint64_t magnitude = bit_cast<uint64_t>(std::fabs(nearest));
  if (order != 0 && magnitude % 2 == 0) magnitude += uint64_t(int64_t(order));
  return std::copysign(bit_cast<double>(magnitude), nearest);
}

bool is_hexadecimal(std::string_view text) { return text.find_first_of("xX") != std::string_view::npos; }

// Bits from the first to the last 1 of the hexadecimal digits before the exponent.
int significant_bits(std::string_view text) {
  text = text.substr(text.find_first_of("xX") + 1);
  text = text.substr(0, std::min(text.find_first_of("pP"), text.size()));
  int first = -1, last = -1, position = 0;
  for (const char c : text) {
    if (c == '.') continue;
    const int digit = int(parse_unsigned("0x" + std::string(1, c)).value());
    for (int bit = 3; bit >= 0; --bit, ++position) {
      if ((digit >> bit & 1) == 0) continue;
      if (first < 0) first = position;
      last = position;
    }
  }
  return first < 0 ? 0 : last - first + 1;
}

uint64_t bits_of(const std::string& text, SourceType type) {
  const std::optional<double> nearest = parse_double(text);
  if (!nearest) {
    throw UsageError(
        fmt::format("'{}' is no number within the range of float64; expected such as 3.2, -1e-5, 0x1.8p1, "
                    "inf, nan or bits:0x40400000",
                    shortened(text)));
  }
  if (is_hexadecimal(text) && significant_bits(text) > 53)
    throw UsageError(fmt::format("'{}' has more than 53 significant bits; no source type has", shortened(text)));
  if (type == SourceType::f64) return bit_cast<uint64_t>(*nearest);
  return encode(format_of(type), kReading, is_hexadecimal(text) ? *nearest : round_to_odd(text, *nearest));
}

uint64_t raw_bits(const std::string& text, SourceType type) {
  const std::optional<uint64_t> bits = parse_unsigned(text);
  if (bits && *bits <= low_mask(row(type).bits)) return *bits;
  throw UsageError(fmt::format("bits:{}: expected the {} bits of a {}, such as bits:{}", shortened(text),
                               row(type).bits, row(type).spoken, hex_bits(0x40, row(type).bits)));
}

double value_of(SourceType type, uint64_t bits) {
  return type == SourceType::f64 ? bit_cast<double>(bits) : double(decode_bits(format_of(type), uint32_t(bits)));
}

}  // namespace

SourceNumber read_source_number(const std::string& text, SourceType type) {
  constexpr std::string_view kRaw = "bits:";
  const uint64_t bits = text.starts_with(kRaw) ? raw_bits(text.substr(kRaw.size()), type) : bits_of(text, type);
  return {.text = text, .type = type, .bits = bits, .value = value_of(type, bits)};
}

Unpacked unpack(const SourceNumber& number) {
  if (number.type == SourceType::f64) return unpack(bit_cast<double>(number.bits));
  return unpack(decode_bits(format_of(number.type), uint32_t(number.bits)));
}

std::string decimal(const SourceNumber& number) {
  return number.type == SourceType::f32 ? decimal(float(number.value)) : decimal(number.value);
}

}  // namespace halfulp

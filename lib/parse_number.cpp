#include "lib/parse_number.h"

#include <charconv>
#include <limits>

namespace halfulp {
namespace {

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

enum class Sign { plus, minus };

Sign take_sign(std::string_view& text) {
  if (take_prefix(text, "-")) return Sign::minus;
  take_prefix(text, "+");
  return Sign::plus;
}

bool take_hexadecimal_prefix(std::string_view& text) { return take_prefix(text, "0x") || take_prefix(text, "0X"); }

// std::from_chars with the base or format in `how`, of digits without a sign.
template <class Number, class How>
std::optional<Number> parse_whole(std::string_view digits, How how) {
  if (digits.starts_with('-')) return std::nullopt;
  Number value{};
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, how);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<uint64_t> parse_magnitude(std::string_view digits) {
  const int base = take_hexadecimal_prefix(digits) ? 16 : 10;
  return parse_whole<uint64_t>(digits, base);
}

}  // namespace

std::optional<int64_t> parse_integer(std::string_view text) {
  const Sign sign = take_sign(text);
  const std::optional<uint64_t> magnitude = parse_magnitude(text);
  const uint64_t limit = uint64_t(std::numeric_limits<int64_t>::max()) + (sign == Sign::minus ? 1 : 0);
  if (!magnitude || *magnitude > limit) return std::nullopt;
  return int64_t(sign == Sign::minus ? 0 - *magnitude : *magnitude);
}

std::optional<uint64_t> parse_unsigned(std::string_view text) {
  if (take_sign(text) == Sign::minus) return std::nullopt;
  return parse_magnitude(text);
}

std::optional<double> parse_double(std::string_view text) {
  const Sign sign = take_sign(text);
  const auto format = take_hexadecimal_prefix(text) ? std::chars_format::hex : std::chars_format::general;
  const std::optional<double> magnitude = parse_whole<double>(text, format);
  if (!magnitude) return std::nullopt;
  return sign == Sign::minus ? -*magnitude : *magnitude;
}

}  // namespace halfulp

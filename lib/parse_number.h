#pragma once
// Numbers that a user wrote: the whole text or nothing, whatever the locale. Messages are the caller's.

#include <cstdint>
#include <optional>
#include <string_view>

namespace halfulp {

// Decimal, or hexadecimal after 0x; a sign may stand before. Empty also when the value is out of range.
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<uint64_t> parse_unsigned(std::string_view text);

// The nearest double of "3.2", "-1e-5", "0x1.8p3", "inf", "nan"; a sign may stand before. Empty also where the
// magnitude is beyond the largest or below the smallest double.
std::optional<double> parse_double(std::string_view text);

}  // namespace halfulp

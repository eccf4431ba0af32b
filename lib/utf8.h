#pragma once
// Text from outside: whether its bytes are UTF-8, and how to show it on a terminal.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace halfulp {

// The position of the first sequence that is not UTF-8 by the Unicode standard, table 3-7: overlong forms, surrogates
// and values above U+10FFFF are not.
std::optional<size_t> first_invalid_utf8(std::string_view text);

// The text with control characters as \xNN, other than those of `keep`, so that a name out of a file cannot steer a
// terminal.
std::string printable(std::string_view text, std::string_view keep = "");

// The text, or where it is long its beginning and "...": for messages.
std::string shortened(std::string_view text);

}  // namespace halfulp

#pragma once
// Whether bytes are UTF-8. Converts nothing.

#include <cstddef>
#include <optional>
#include <string_view>

namespace halfulp {

// The position of the first sequence that is not UTF-8 by the Unicode standard, table 3-7: overlong forms, surrogates
// and values above U+10FFFF are not.
std::optional<size_t> first_invalid_utf8(std::string_view text);

}  // namespace halfulp

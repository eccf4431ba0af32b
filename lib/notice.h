#pragma once
// A remark on stderr beside the result.

#include <string_view>

namespace halfulp {

// Prints "halfulp: <message>" as one line, control characters escaped. A stderr that takes nothing costs no result.
void notice(std::string_view message);

}  // namespace halfulp

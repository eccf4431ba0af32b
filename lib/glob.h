#pragma once
// Shell patterns for names (of tensors): *, ? and [...]. Not paths: * matches dots and slashes too.

#include <string_view>

namespace halfulp {

// '?' and '*' stand for one byte and for any number of bytes; '[a-z]' and '[!a-z]' for one byte (not) of the set, where
// ']' standing first is an ordinary member. A '[' that is never closed stands for itself.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace halfulp

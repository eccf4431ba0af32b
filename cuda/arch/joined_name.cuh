#pragma once
// Names put together by the compiler as asm takes them: arrays of constant characters, for "C" operands.

#include <cstddef>
#include <string_view>
#include <utility>

namespace halfulp::arch {

// Requires that the parts have `size` characters between them.
template <std::size_t size_>
struct JoinedName {
  static constexpr std::size_t size = size_;
  char text[size + 1] = {};
  template <class... Part>
  constexpr explicit JoinedName(Part... parts) {
    std::size_t at = 0;
    const auto append = [&](std::string_view part) {
      for (const char c : part) text[at++] = c;
    };
    (append(parts), ...);
  }
};

// Of Name::value, a JoinedName: nvcc takes no array that is a member of a variable.
template <class Name, class = std::make_index_sequence<Name::value.size>>
struct AsmText;
template <class Name, std::size_t... i>
struct AsmText<Name, std::index_sequence<i...>> {
  static constexpr char text[] = {Name::value.text[i]..., '\0'};
};

}  // namespace halfulp::arch

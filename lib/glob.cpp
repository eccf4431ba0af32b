#include "lib/glob.h"

#include <cstddef>

namespace halfulp {
namespace {

constexpr size_t kNone = std::string_view::npos;

// The length of the set that starts at pattern[0] == '[', or kNone if it is not closed.
size_t set_length(std::string_view pattern) {
  const size_t negation = pattern.starts_with("[!") ? 1 : 0;
  const size_t close = pattern.find(']', 2 + negation);  // a first ']' is a member
  return close == kNone ? kNone : close + 1;
}

// `members` is what stands between the brackets.
bool set_matches(std::string_view members, char c) {
  const bool wanted = !members.starts_with('!');
  if (!wanted) members.remove_prefix(1);
  for (size_t i = 0; i < members.size(); ++i) {
    const bool range = i + 2 < members.size() && members[i + 1] == '-';
    const char last = range ? members[i + 2] : members[i];
    if (members[i] <= c && c <= last) return wanted;
    if (range) i += 2;
  }
  return !wanted;
}

// How much of a pattern matches the one byte c at its front, 0 if it does not. pattern[0] is not '*'.
size_t match_one(std::string_view pattern, char c) {
  if (pattern[0] == '?') return 1;
  const size_t length = pattern[0] == '[' ? set_length(pattern) : kNone;
  if (length != kNone) return set_matches(pattern.substr(1, length - 2), c) ? length : 0;
  return pattern[0] == c ? 1 : 0;
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
  // Only the last '*' need be tried again with a longer match: an earlier one that took more would leave less.
  size_t p = 0;
  size_t after_star = kNone;
  size_t star_end = 0;  // in the text
  for (size_t t = 0; t < text.size();) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      star_end = t;
    } else if (const size_t length = p < pattern.size() ? match_one(pattern.substr(p), text[t]) : 0; length > 0) {
      p += length;
      ++t;
    } else if (after_star != kNone) {
      p = after_star;
      t = ++star_end;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace halfulp

#include "lib/utf8.h"

#include <fmt/format.h>

#include <cstdint>

namespace halfulp {

namespace {

bool lies_in(unsigned char x, unsigned char first, unsigned char last) { return first <= x && x <= last; }

// The length of the sequence that begins `text`, or 0. The second byte's range is what excludes overlong forms,
// surrogates and values above U+10FFFF.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : '\0'); };
  const unsigned char lead = byte(0);
  if (lead <= 0x7f) return 1;
  const size_t length = lies_in(lead, 0xc2, 0xdf)   ? 2
                        : lies_in(lead, 0xe0, 0xef) ? 3
                        : lies_in(lead, 0xf0, 0xf4) ? 4
                                                    : 0;
  const unsigned char first = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned char last = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (length == 0 || !lies_in(byte(1), first, last)) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (!lies_in(byte(i), 0x80, 0xbf)) return 0;
  }
  return length;
}

}  // namespace

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = sequence_length(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return std::nullopt;
}

std::string printable(std::string_view text, std::string_view keep) {
  std::string shown;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool control = byte < 0x20 || byte == 0x7f;
    shown += control && keep.find(c) == std::string_view::npos ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return shown;
}

std::string shortened(std::string_view text) {
  constexpr size_t kMost = 80;
  if (text.size() <= kMost) return std::string(text);
  const auto continues = [&](size_t at) { return (uint8_t(text[at]) & 0b11'000000) == 0b10'000000; };
  size_t end = kMost - 3;
  while (end > 0 && continues(end)) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace halfulp

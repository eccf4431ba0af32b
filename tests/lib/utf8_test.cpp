#include "lib/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace halfulp {
namespace {

// The encoding by definition, RFC 3629 section 3: the value's bits split over bytes, the shortest way.
std::string encode(uint32_t value) {
  const auto tail = [&](int shift) { return char(0x80 | (value >> shift & 0x3f)); };
  if (value < 0x80) return {char(value)};
  if (value < 0x800) return {char(0xc0 | value >> 6), tail(0)};
  if (value < 0x10000) return {char(0xe0 | value >> 12), tail(6), tail(0)};
  return {char(0xf0 | value >> 18), tail(12), tail(6), tail(0)};
}

TEST(Utf8, EveryCodePointButSurrogatesIsValid) {
  for (uint32_t value = 0; value < 0x120000; ++value) {
    const bool is_scalar = value <= 0x10ffff && (value < 0xd800 || value > 0xdfff);
    ASSERT_EQ(!first_invalid_utf8(encode(value)), is_scalar) << value;
  }
}

TEST(Utf8, OverlongFormsAreInvalid) {
  for (const char* text :
       {"\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xe0\x9f\xbf", "\xf0\x80\x80\xaf", "\xf0\x8f\xbf\xbf"}) {
    EXPECT_EQ(first_invalid_utf8(text), 0u);
  }
}

TEST(Utf8, CutOffSequencesAreInvalidWhereTheyBegin) {
  for (const char* text : {"ab\xc3", "ab\xe6\xbc", "ab\xf0\x9f\x98", "ab\x80", "ab\xff", "ab\xe6\xbc!"}) {
    EXPECT_EQ(first_invalid_utf8(text), 2u);
  }
}

TEST(Printable, EscapesControlCharactersOnly) {
  EXPECT_EQ(printable("a\x1b[31mb\x7f\n\tλ"), "a\\x1b[31mb\\x7f\\x0a\\x09λ");
  EXPECT_EQ(printable("two\nlines\r", "\n"), "two\nlines\\x0d");
}

TEST(Shortened, CutsLongTextsBetweenCharacters) {
  EXPECT_EQ(shortened("a / 6"), "a / 6");
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "\xc3\xa9";
  for (const std::string& text : {accents, "x" + accents}) {
    const std::string cut = shortened(text);
    EXPECT_LE(cut.size(), 80u);
    EXPECT_TRUE(cut.ends_with("\xc3\xa9...")) << cut;
  }
}

}  // namespace
}  // namespace halfulp

#include "lib/parse_number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace halfulp {
namespace {

TEST(ParseInteger, ReadsDecimalAndHexadecimal) {
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_EQ(parse_integer("+12"), 12);
  EXPECT_EQ(parse_integer("0x1F"), 31);
  EXPECT_EQ(parse_integer("-0x10"), -16);
}

TEST(ParseInteger, ReadsItsWholeRangeAndNoMore) {
  EXPECT_EQ(parse_integer("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse_integer("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(parse_integer("9223372036854775808"), std::nullopt);
  EXPECT_EQ(parse_integer("-9223372036854775809"), std::nullopt);
}

TEST(ParseInteger, RefusesWhatIsNoInteger) {
  for (const char* text : {"", "-", "+", "0x", "1.0", "1e3", " 1", "1 ", "12a", "--1", "+-1", "0x-1"}) {
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
  }
}

TEST(ParseUnsigned, ReadsUpTo64Bits) {
  EXPECT_EQ(parse_unsigned("18446744073709551615"), ~uint64_t{0});
  EXPECT_EQ(parse_unsigned("0xffffffffffffffff"), ~uint64_t{0});
  EXPECT_EQ(parse_unsigned("18446744073709551616"), std::nullopt);
}

TEST(ParseUnsigned, RefusesNegatives) { EXPECT_EQ(parse_unsigned("-1"), std::nullopt); }

TEST(ParseDouble, ReadsDecimalHexadecimalAndSpecials) {
  EXPECT_EQ(parse_double("3.2"), 3.2);
  EXPECT_EQ(parse_double("-1e-5"), -1e-5);
  EXPECT_EQ(parse_double("+.5"), 0.5);
  EXPECT_EQ(parse_double("-0x1.8p3"), -12.0);
  EXPECT_EQ(parse_double("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(parse_double("nan").value()));
}

TEST(ParseDouble, KeepsTheSignOfZero) { EXPECT_TRUE(std::signbit(parse_double("-0").value())); }

TEST(ParseDouble, RefusesWhatIsNoDouble) {
  for (const char* text : {"", "-", "0x", "1,5", "1.5x", " 1", "1e999", "--1", "0x-1"}) {
    EXPECT_EQ(parse_double(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace halfulp

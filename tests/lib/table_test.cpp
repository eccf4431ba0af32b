#include "lib/table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace halfulp {
namespace {

Table example() {
  return {.columns = {{"tensor", Align::left}, {"rel_mse"}, {"note", Align::left}},
          .rows = {{"embed", number_cell(0.000866123), "5 \xc3\x97 \xc2\xb5"},
                   {"w", number_cell(1.0 / 3), Cell("bad", "bad", Style::bad)}}};
}

TEST(ToText, AlignsColumnsUnderARule) {
  EXPECT_EQ(to_text(example(), Color::off),
            "tensor    rel_mse  note\n"
            "------  ---------  -----\n"
            "embed   0.0008661  5 \xc3\x97 \xc2\xb5\n"
            "w          0.3333  bad\n");
}

TEST(ToText, ColorsAddOnlyEscapes) {
  std::string text = to_text(example(), Color::on);
  EXPECT_NE(text.find("\x1b[31mbad\x1b[0m"), std::string::npos);
  for (const std::string escape : {"\x1b[1m", "\x1b[31m", "\x1b[0m"}) {
    for (size_t at = text.find(escape); at != std::string::npos; at = text.find(escape)) text.erase(at, escape.size());
  }
  EXPECT_EQ(text, to_text(example(), Color::off));
}

TEST(ToText, EmptyCellsLeaveNoSpaceAtTheEnd) {
  const Table table{.columns = {{"a", Align::left}, {"b", Align::right}}, .rows = {{"x", ""}}};
  EXPECT_EQ(to_text(table, Color::off), "a  b\n-  -\nx\n");
}

TEST(ToCsv, GivesNumbersThatReadBackExactly) {
  EXPECT_EQ(to_csv(example()),
            "tensor,rel_mse,note\n"
            "embed,0.000866123,5 \xc3\x97 \xc2\xb5\n"
            "w,0.3333333333333333,bad\n");
}

TEST(ToCsv, QuotesCommasQuotesAndLineBreaks) {
  const Table table{.columns = {{"a,b"}, {"c"}, {"d"}}, .rows = {{"say \"x\"", "two\nlines", "plain word"}}};
  EXPECT_EQ(to_csv(table), "\"a,b\",c,d\n\"say \"\"x\"\"\",\"two\nlines\",plain word\n");
}

TEST(CountCell, GroupsDigitsInTextOnly) {
  EXPECT_EQ(count_cell(4194304).text, "4,194,304");
  EXPECT_EQ(count_cell(4194304).csv, "4194304");
  EXPECT_EQ(count_cell(999).text, "999");
  EXPECT_EQ(count_cell(0).text, "0");
}

TEST(NumberCell, NamesSpecials) {
  EXPECT_EQ(number_cell(std::numeric_limits<double>::quiet_NaN()).text, "nan");
  EXPECT_EQ(number_cell(-std::numeric_limits<double>::infinity()).csv, "-inf");
}

// 0/0 is -nan on x86 and nan on ARM.
TEST(NumberCell, DropsTheSignOfANaN) {
  EXPECT_EQ(number_cell(std::copysign(std::numeric_limits<double>::quiet_NaN(), -1)).text, "nan");
}

TEST(DisplayWidth, CountsCodePoints) { EXPECT_EQ(display_width("a\xc3\x97\xe2\x88\x92\xc2\xb5"), 4u); }

TEST(ColorFor, IsOffWhereThereIsNoTerminal) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(color_for(ends[1]), Color::off);
  close(ends[0]);
  close(ends[1]);
}

// A pseudo-terminal, which isatty() takes for a terminal.
TEST(ColorFor, ObeysNoColorOnATerminal) {
  const int terminal = posix_openpt(2);
  if (terminal < 0 || isatty(terminal) == 0) GTEST_SKIP() << "no pseudo-terminal here";
  unsetenv("NO_COLOR");
  EXPECT_EQ(color_for(terminal), Color::on);
  setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(color_for(terminal), Color::off);
  unsetenv("NO_COLOR");
  close(terminal);
}

}  // namespace
}  // namespace halfulp

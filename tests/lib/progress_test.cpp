// Progress with a clock that the test turns: no test waits.

#include "lib/progress.h"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>
#include <vector>

#include "lib/error.h"

namespace halfulp {
namespace {

constexpr std::string_view kErase = "\r\x1b[K";

struct Screen {
  std::ostringstream text;
  double now = 100;
  ProgressOutput output(ProgressOutput::Kind kind) {
    return {.stream = &text, .kind = kind, .seconds = [this] { return now; }};
  }
};

size_t occurrences(const std::string& text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(ProgressLine, ShowsAmountRateAndTimeLeft) {
  EXPECT_EQ(progress_line({.label = "quantize",
                           .done = 12'300'000,
                           .total = 98'400'000,
                           .unit = ProgressUnit::elements,
                           .seconds = 10}),
            "quantize  12.3 M / 98.4 M elements  12 %  1.23 M/s  1:10 left");
}

TEST(ProgressLine, ShowsBytes) {
  EXPECT_EQ(progress_line(
                {.label = "read", .done = 500, .total = 4'000'000'000, .unit = ProgressUnit::bytes, .seconds = 0.5}),
            "read  500 / 4.00 G B  0 %  1.00 kB/s  99:59:59 left");
}

TEST(ProgressLine, WithoutTotalShowsNoShare) {
  EXPECT_EQ(progress_line({.label = "read", .done = 2000, .total = 0, .unit = ProgressUnit::elements, .seconds = 2}),
            "read  2.00 k elements  1.00 k/s");
}

TEST(ProgressLine, KeepsTheEndOfALongLabel) {
  const std::string line = progress_line({.label = "model.layers.17.mlp.experts.gate_up_proj.weight",
                                          .done = 1,
                                          .total = 2,
                                          .unit = ProgressUnit::elements,
                                          .seconds = 1});
  EXPECT_TRUE(line.starts_with("...p.experts.gate_up_proj.weight  1 / 2")) << line;
}

TEST(Progress, IsSilentForShortWork) {
  Screen screen;
  {
    Progress progress("x", 10, ProgressUnit::elements, ProgressMode::automatic,
                      screen.output(ProgressOutput::Kind::terminal));
    screen.now += 0.99;
    progress.advance(10);
  }
  EXPECT_EQ(screen.text.str(), "");
}

TEST(Progress, RewritesATerminalLineTenTimesASecond) {
  Screen screen;
  Progress progress("x", 1000, ProgressUnit::elements, ProgressMode::automatic,
                    screen.output(ProgressOutput::Kind::terminal));
  screen.now += 1;
  for (int i = 0; i < 1000; ++i) {
    progress.advance(1);
    screen.now += 1.0 / 1024;
  }
  EXPECT_EQ(occurrences(screen.text.str(), "x  "), 10u);
  EXPECT_EQ(occurrences(screen.text.str(), "\n"), 0u);
}

TEST(Progress, ErasesTheTerminalLineAtTheEnd) {
  Screen screen;
  {
    Progress progress("x", 10, ProgressUnit::elements, ProgressMode::automatic,
                      screen.output(ProgressOutput::Kind::terminal));
    screen.now += 2;
    progress.advance(5);
  }
  EXPECT_TRUE(screen.text.str().ends_with(kErase));
}

TEST(Progress, WritesAPlainLineEveryTenSeconds) {
  Screen screen;
  {
    Progress progress("x", 1000, ProgressUnit::elements, ProgressMode::automatic,
                      screen.output(ProgressOutput::Kind::log));
    for (int second = 0; second < 25; ++second) {
      screen.now += 1;
      progress.advance(1);
    }
  }
  EXPECT_EQ(occurrences(screen.text.str(), "\n"), 2u);
  EXPECT_EQ(occurrences(screen.text.str(), "\x1b"), 0u);
}

TEST(Progress, PlainModeWritesLinesOnATerminalToo) {
  Screen screen;
  Progress progress("x", 10, ProgressUnit::elements, ProgressMode::plain,
                    screen.output(ProgressOutput::Kind::terminal));
  screen.now += 10;
  progress.advance(1);
  EXPECT_EQ(screen.text.str(), "x  1 / 10 elements  10 %  0.10/s  1:30 left\n");
}

TEST(Progress, NoneModeIsSilent) {
  Screen screen;
  Progress progress("x", 10, ProgressUnit::elements, ProgressMode::none, screen.output(ProgressOutput::Kind::terminal));
  screen.now += 100;
  progress.advance(1);
  EXPECT_EQ(screen.text.str(), "");
}

TEST(Progress, CountsFromAllThreads) {
  Screen screen;
  Progress progress("x", 0, ProgressUnit::elements, ProgressMode::plain, screen.output(ProgressOutput::Kind::log));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250'000; ++i) progress.advance(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  screen.now += 10;
  progress.advance(0);
  EXPECT_EQ(screen.text.str(), "x  1.00 M elements  100 k/s\n");
}

TEST(ParseProgressMode, KnowsThreeWords) {
  EXPECT_EQ(parse_progress_mode("auto"), ProgressMode::automatic);
  EXPECT_EQ(parse_progress_mode("plain"), ProgressMode::plain);
  EXPECT_EQ(parse_progress_mode("none"), ProgressMode::none);
  EXPECT_THROW(parse_progress_mode("fancy"), UsageError);
}

}  // namespace
}  // namespace halfulp

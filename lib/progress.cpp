#include "lib/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <iostream>

#include "lib/error.h"

namespace halfulp {
namespace {

constexpr double kSilentSeconds = 1;
constexpr double kTerminalInterval = 0.1;
constexpr double kLogInterval = 10;
constexpr std::string_view kEraseLine = "\r\x1b[K";

// Three significant digits and an SI prefix: "99.9", "12.3 k", "1.20 G".
std::string scaled(double x) {
  constexpr std::string_view kPrefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  size_t i = 0;
  for (; x >= 999.5 && i + 1 < std::size(kPrefixes); ++i) x /= 1000;
  const int decimals = x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}{}", x, decimals, kPrefixes[i]);
}

std::string scaled_count(uint64_t count) { return count < 1000 ? std::to_string(count) : scaled(double(count)); }

// "1:02:03" or "2:03"
std::string clock_time(double seconds) {
  constexpr double kLongest = 359'999;  // 99:59:59
  const auto total = uint64_t(seconds < kLongest ? seconds + 0.5 : kLongest);
  if (total < 3600) return fmt::format("{}:{:02}", total / 60, total % 60);
  return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
}

// The end of a long label: names of tensors differ there. Lines must not wrap on a terminal.
std::string shortened(const std::string& label) {
  constexpr size_t kLongest = 32;
  if (label.size() <= kLongest) return label;
  size_t start = label.size() - (kLongest - 3);
  while (start < label.size() && (uint8_t(label[start]) & 0b11'000000) == 0b10'000000) ++start;
  return "..." + label.substr(start);
}

ProgressOutput::Kind kind_of(ProgressMode mode, const ProgressOutput& output) {
  return mode == ProgressMode::plain ? ProgressOutput::Kind::log : output.kind;
}

}  // namespace

ProgressMode parse_progress_mode(std::string_view text) {
  if (text == "auto") return ProgressMode::automatic;
  if (text == "plain") return ProgressMode::plain;
  if (text == "none") return ProgressMode::none;
  throw UsageError(fmt::format("--progress: expected auto, plain or none, got '{}'", text));
}

std::string progress_line(const ProgressState& state) {
  constexpr std::string_view kUnits[] = {"elements", "B", "draws"};
  const std::string_view unit = kUnits[std::size_t(state.unit)];
  const double rate = state.seconds > 0 ? double(state.done) / state.seconds : 0;
  std::string line = shortened(state.label) + "  " + scaled_count(state.done);
  if (state.total > 0) line += " / " + scaled_count(state.total);
  line += fmt::format(" {}", unit);
  if (state.total > 0) line += fmt::format("  {:.0f} %", 100 * double(state.done) / double(state.total));
  line += fmt::format("  {}{}/s", scaled(rate), state.unit == ProgressUnit::bytes ? "B" : "");
  if (rate > 0 && state.done < state.total)
    line += "  " + clock_time(double(state.total - state.done) / rate) + " left";
  return line;
}

ProgressOutput stderr_output() {
  const auto seconds = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  const auto kind = isatty(STDERR_FILENO) != 0 ? ProgressOutput::Kind::terminal : ProgressOutput::Kind::log;
  return {.stream = &std::cerr, .kind = kind, .seconds = seconds};
}

Progress::Progress(std::string label, uint64_t total, ProgressUnit unit, ProgressMode mode, ProgressOutput output)
    : label_(std::move(label)),
      total_(total),
      unit_(unit),
      mode_(mode),
      kind_(kind_of(mode, output)),
      output_(std::move(output)),
      start_(output_.seconds()),
      next_(start_ + (kind_ == ProgressOutput::Kind::terminal ? kSilentSeconds : kLogInterval)) {}

Progress::~Progress() {
  if (shown_) *output_.stream << kEraseLine << std::flush;
}

void Progress::advance(uint64_t count) {
  done_ += count;
  if (mode_ == ProgressMode::none) return;
  const std::unique_lock lock(printing_, std::try_to_lock);
  if (lock.owns_lock()) print_if_due();  // otherwise another thread is at it
}

void Progress::print_if_due() {
  const double now = output_.seconds();
  if (now < next_) return;
  const std::string line =
      progress_line({.label = label_, .done = done_, .total = total_, .unit = unit_, .seconds = now - start_});
  if (kind_ == ProgressOutput::Kind::terminal) {
    *output_.stream << kEraseLine << line << std::flush;
    next_ = now + kTerminalInterval;
    shown_ = true;
  } else {
    *output_.stream << line << std::endl;
    next_ = now + kLogInterval;
  }
}

}  // namespace halfulp

#pragma once
// Progress of long work on stderr: label, done of total, rate, time left. Never on stdout, and nothing for work under a
// second.

#include <atomic>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <mutex>
#include <string>
#include <string_view>

namespace halfulp {

enum class ProgressMode { automatic, plain, none };
enum class ProgressUnit { elements, bytes, draws };

// "auto", "plain" or "none"; otherwise a UsageError that names the option --progress.
ProgressMode parse_progress_mode(std::string_view text);

struct ProgressState {
  std::string label;
  uint64_t done;
  uint64_t total;  // 0: not known
  ProgressUnit unit;
  double seconds;  // since the start
};

// "quantize  12.3 M / 98.4 M elements  12 %  1.20 M/s  1:12 left"; a long label is cut at its front.
std::string progress_line(const ProgressState& state);

// Where the lines go and what time it is; tests put their own in.
struct ProgressOutput {
  enum class Kind { terminal, log };
  std::ostream* stream;
  Kind kind;
  std::function<double()> seconds;  // monotonic
};
ProgressOutput stderr_output();

// On a terminal one line, rewritten at most ten times a second and erased at the end; elsewhere a line every ten
// seconds.
class Progress {
 public:
  Progress(std::string label, uint64_t total, ProgressUnit unit, ProgressMode mode,
           ProgressOutput output = stderr_output());
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Any thread may call it.
  void advance(uint64_t count);

 private:
  void print_if_due();

  const std::string label_;
  const uint64_t total_;
  const ProgressUnit unit_;
  const ProgressMode mode_;
  const ProgressOutput::Kind kind_;
  const ProgressOutput output_;
  const double start_;
  std::atomic<uint64_t> done_ = 0;
  std::mutex printing_;  // guards next_ and shown_
  double next_;          // when the next line is due
  bool shown_ = false;   // there is a line to erase
};

}  // namespace halfulp

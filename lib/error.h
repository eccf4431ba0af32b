#pragma once
// What halfulp throws when a user can do something about it. Caught once, in main.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace halfulp {

// Exit codes of the program. An Error carries the one it ends with.
enum class ExitCode {
  good = 0,
  check_failed = 1,  // a mismatch, or a threshold of --fail-on passed
  usage = 2,
  bad_input = 3,
  environment = 4,  // no such GPU, no such library
  internal = 5,
  interrupted = 130,
};

// Where in the input the fault lies. Empty fields are not printed.
struct Where {
  std::string file = {};
  std::string tensor = {};
  std::optional<uint64_t> byte = {};
};

class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(ExitCode::usage, message) {}
};

class InputError : public Error {
 public:
  InputError(const Where& where, const std::string& message)
      : Error(ExitCode::bad_input, prefix(where) + message), message_(message) {}
  // The message without its place, for a caller that knows a better place.
  const std::string& bare_message() const { return message_; }

 private:
  static std::string prefix(const Where& where) {
    std::string text = where.file;
    if (!where.tensor.empty()) text += (text.empty() ? "" : ": ") + ("tensor '" + where.tensor + "'");
    if (where.byte) text += (text.empty() ? "" : ": ") + ("byte " + std::to_string(*where.byte));
    return text.empty() ? text : text + ": ";
  }
  std::string message_;
};

class EnvironmentError : public Error {
 public:
  explicit EnvironmentError(const std::string& message) : Error(ExitCode::environment, message) {}
};

}  // namespace halfulp

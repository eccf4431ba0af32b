#pragma once
// The command line of a program with verbs: one table of options for all verbs, help that starts with examples, typed
// getters, errors that suggest. It knows no verb and no option; tools/ has both.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/error.h"

namespace halfulp {

struct Option {
  std::string_view names;            // "--recipe,-r": the long name first; verbs and getters use the long name
  std::string_view value_name = {};  // "NAME"; empty for a flag
  std::string_view help = {};
  std::string_view group = "Options";   // the heading in --help
  std::string_view default_value = {};  // what the getters read when the option is absent; empty: none
};

struct Positional {
  enum class Count { one, optional, any, at_least_one };
  std::string_view name;
  std::string_view help;
  Count count = Count::one;
};

struct Example {
  std::string_view command;
  std::string_view explanation;
};

// The values of one command line. An option is named by its long name; naming one that the verb does not list is a
// std::logic_error. A missing or malformed value is a UsageError that names the option.
class Arguments {
 public:
  struct Value {
    std::string default_value;
    std::vector<std::string> given;
  };
  using Options = std::map<std::string, Value, std::less<>>;
  using Positionals = std::map<std::string, std::vector<std::string>, std::less<>>;
  Arguments(Options options, Positionals positionals)
      : options_(std::move(options)), positionals_(std::move(positionals)) {}

  bool has(std::string_view option) const;    // given on the command line
  bool lists(std::string_view option) const;  // whether the verb does
  bool flag(std::string_view option) const { return has(option); }
  std::string string(std::string_view option) const;
  // One of `words`; the error suggests the nearest and lists them all.
  std::string choice(std::string_view option, const std::vector<std::string>& words) const;
  // All occurrences of the option, each split at commas: "-r a,b -r c" gives a, b, c. Empty if absent without default.
  std::vector<std::string> list(std::string_view option) const;
  int64_t integer(std::string_view option, int64_t min, int64_t max) const;  // decimal, or hexadecimal after 0x
  uint64_t unsigned_integer(std::string_view option, uint64_t min = 0,
                            uint64_t max = std::numeric_limits<uint64_t>::max()) const;
  double number(std::string_view option) const;  // decimal or hexadecimal floating point, inf, nan
  std::filesystem::path path(std::string_view option) const;

  // By the positional's name: the values, or the only one.
  const std::vector<std::string>& positionals(std::string_view name) const;
  const std::string& positional(std::string_view name) const;

 private:
  const Value& find(std::string_view option) const;

  Options options_;
  Positionals positionals_;
};

struct Verb {
  std::string_view name;
  std::string_view summary = {};  // one line, no full stop
  std::vector<Example> examples = {};
  std::vector<Positional> positionals = {};
  std::vector<std::string_view> options = {};  // long names of rows of the table
  std::function<ExitCode(const Arguments&)> run = {};
  std::string_view notes = {};  // the end of --help
};

struct Program {
  std::string_view name;
  std::string_view version = {};
  std::string_view summary = {};
  std::span<const Option> options = {};
  std::span<const Verb> verbs = {};
};

// The whole of main: parses, runs the verb, turns exceptions into a message and an exit code. Help goes to out, errors
// to err. Verbs write their result to std::cout.
int run_program(const Program& program, int argc, const char* const* argv, std::ostream& out, std::ostream& err);

// The values of a verb's command line, `words` being what follows the verb.
Arguments parse_arguments(const Verb& verb, std::span<const Option> table, const std::vector<std::string>& words);

// Examples come first; then usage, arguments, options under their groups.
std::string program_help(const Program& program);
std::string verb_help(const Program& program, const Verb& verb);

// "; did you mean 'e4m3'?" with the nearest of the candidates by edit distance, or "" if none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace halfulp

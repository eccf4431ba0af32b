#include "lib/cli.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <optional>
#include <stdexcept>

#include "lib/parse_number.h"
#include "lib/table.h"
#include "lib/utf8.h"

namespace halfulp {
namespace {

using Words = std::vector<std::string>;

bool is_flag(const Option& option) { return option.value_name.empty(); }

std::string long_name(const Option& option) { return std::string(option.names.substr(0, option.names.find(','))); }

Words split_at_commas(std::string_view text) {
  Words parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

const Option& row_of(std::span<const Option> table, std::string_view name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Option& option) { return long_name(option) == name; });
  if (found == table.end()) throw std::logic_error(fmt::format("the table of options has no {}", name));
  return *found;
}

std::vector<Option> options_of(const Verb& verb, std::span<const Option> table) {
  std::vector<Option> rows;
  for (const std::string_view name : verb.options) rows.push_back(row_of(table, name));
  return rows;
}

// Insertions, deletions, substitutions and swaps of neighbours that turn a into b.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, substituted});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

UsageError malformed(std::string_view option, std::string_view expected, std::string_view got) {
  return UsageError(fmt::format("{}: expected {}, got '{}'", option, expected, shortened(got)));
}

template <class Number>
std::string range_text(Number min, Number max) {
  const bool no_upper = max == std::numeric_limits<Number>::max();
  return no_upper ? fmt::format("an integer from {} up", min) : fmt::format("an integer from {} to {}", min, max);
}

template <class Number>
Number in_range(std::string_view option, const std::string& text, std::optional<Number> value, Number min, Number max) {
  if (!value || *value < min || *value > max) throw malformed(option, range_text(min, max), text);
  return *value;
}

// CLI11 takes the next word for the value of "--name=", and any word at all for the value of "--name".
void check_values(const std::vector<Option>& rows, const Words& words) {
  Words names;
  for (const Option& row : rows) {
    for (const std::string& name : split_at_commas(row.names)) names.push_back(name);
  }
  const auto is_name = [&](const std::string& word) {
    return std::find(names.begin(), names.end(), word) != names.end();
  };
  for (const Option& row : rows) {
    if (is_flag(row)) continue;
    const Words own = split_at_commas(row.names);
    for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
      const bool bare = std::find(own.begin(), own.end(), words[i]) != own.end();
      const bool lacking = bare && (i + 1 == words.size() || is_name(words[i + 1]));
      if (lacking || words[i] == own[0] + "=") {
        throw UsageError(fmt::format("{} needs a value {}", own[0], row.value_name));
      }
    }
  }
}

// What CLI11 left: positionals, the mark "--", and words that look like options but are none of this verb's.
Words positional_words(const Words& remaining, const std::vector<Option>& rows) {
  Words names;
  for (const Option& row : rows) names.push_back(long_name(row));
  Words positionals;
  bool only_positionals = false;
  for (const std::string& word : remaining) {
    const bool is_option = word.starts_with('-') && word != "-" && !parse_double(word);
    if (only_positionals || !is_option) {
      positionals.push_back(word);
    } else if (word == "--") {
      only_positionals = true;
    } else {
      const std::string name = word.substr(0, word.find('='));
      throw UsageError(fmt::format("unknown option {}{}", shortened(name), did_you_mean(name, names)));
    }
  }
  return positionals;
}

struct Bounds {
  size_t min;
  size_t max;
};

Bounds bounds_of(Positional::Count count) {
  constexpr size_t kAny = std::numeric_limits<size_t>::max();
  switch (count) {
    case Positional::Count::one: return {1, 1};
    case Positional::Count::optional: return {0, 1};
    case Positional::Count::any: return {0, kAny};
    case Positional::Count::at_least_one: return {1, kAny};
  }
  return {0, kAny};
}

// Each positional in turn takes as many words as it may, but leaves the later ones what they need.
Arguments::Positionals distribute(const std::vector<Positional>& positionals, const Words& words) {
  size_t needed = 0;
  for (const Positional& positional : positionals) needed += bounds_of(positional.count).min;
  Arguments::Positionals values;
  auto next = words.begin();
  for (const Positional& positional : positionals) {
    const Bounds bounds = bounds_of(positional.count);
    const auto left = size_t(words.end() - next);
    if (left < bounds.min) {
      throw UsageError(fmt::format("missing argument {}: {}", positional.name, positional.help));
    }
    needed -= bounds.min;
    const size_t taken = std::clamp(left > needed ? left - needed : 0, bounds.min, bounds.max);
    values[std::string(positional.name)] = Words(next, next + ptrdiff_t(taken));
    next += ptrdiff_t(taken);
  }
  if (next != words.end()) throw UsageError(fmt::format("unexpected argument '{}'", shortened(*next)));
  return values;
}

// Breaks at spaces; the lines after the first are indented.
std::string wrapped(std::string_view text, size_t indent) {
  constexpr size_t kWidth = 100;
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t length = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (column > indent && column + 1 + display_width(word) > kWidth) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    }
    out += (column > indent ? " " : "") + std::string(word);
    column += (column > indent ? 1 : 0) + display_width(word);
  }
  return out;
}

struct HelpLine {
  std::string term;
  std::string text;
};

std::string help_section(std::string_view title, const std::vector<HelpLine>& lines) {
  constexpr size_t kWidest = 26;
  size_t width = 0;
  for (const HelpLine& line : lines) {
    if (display_width(line.term) <= kWidest) width = std::max(width, display_width(line.term));
  }
  std::string out = fmt::format("\n{}:\n", title);
  for (const HelpLine& line : lines) {
    const size_t used = display_width(line.term);
    const std::string gap = used <= width ? std::string(width - used + 2, ' ') : '\n' + std::string(width + 4, ' ');
    out += "  " + line.term + gap + wrapped(line.text, width + 4) + '\n';
  }
  return out;
}

HelpLine option_line(const Option& option) {
  HelpLine line{.term = fmt::format("{}", fmt::join(split_at_commas(option.names), ", ")),
                .text = std::string(option.help)};
  if (!is_flag(option)) line.term += fmt::format(" {}", option.value_name);
  if (!option.default_value.empty()) line.text += fmt::format(" [{}]", option.default_value);
  return line;
}

std::string option_sections(const std::vector<Option>& rows) {
  std::vector<std::string_view> groups;
  for (const Option& row : rows) {
    if (std::find(groups.begin(), groups.end(), row.group) == groups.end()) groups.push_back(row.group);
  }
  std::string out;
  for (const std::string_view group : groups) {
    std::vector<HelpLine> lines;
    for (const Option& row : rows) {
      if (row.group == group) lines.push_back(option_line(row));
    }
    out += help_section(group, lines);
  }
  return out;
}

std::string usage_line(const Program& program, const Verb& verb) {
  std::string line = fmt::format("{} {}", program.name, verb.name);
  for (const Positional& positional : verb.positionals) {
    switch (positional.count) {
      case Positional::Count::one: line += fmt::format(" {}", positional.name); break;
      case Positional::Count::optional: line += fmt::format(" [{}]", positional.name); break;
      case Positional::Count::any: line += fmt::format(" [{}...]", positional.name); break;
      case Positional::Count::at_least_one: line += fmt::format(" {}...", positional.name); break;
    }
  }
  return verb.options.empty() ? line : line + " [options]";
}

bool asks_for_help(const Words& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::any_of(words.begin(), end, [](const std::string& word) { return word == "--help" || word == "-h"; });
}

const Verb& find_verb(const Program& program, const std::string& name) {
  Words names;
  for (const Verb& verb : program.verbs) {
    if (verb.name == name) return verb;
    names.emplace_back(verb.name);
  }
  const std::string_view kind = name.starts_with('-') ? "option" : "verb";
  throw UsageError(fmt::format("unknown {} '{}'{}", kind, shortened(name), did_you_mean(name, names)));
}

ExitCode run_verb(const Program& program, const Verb& verb, const Words& words, std::ostream& out) {
  if (asks_for_help(words)) {
    out << verb_help(program, verb);
    return ExitCode::good;
  }
  return verb.run(parse_arguments(verb, program.options, words));
}

ExitCode dispatch(const Program& program, const Words& words, std::ostream& out) {
  if (words.empty()) throw UsageError("no verb given");
  if (words[0] == "--version") {
    out << program.name << ' ' << program.version << '\n';
    return ExitCode::good;
  }
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    out << (words.size() > 1 ? verb_help(program, find_verb(program, words[1])) : program_help(program));
    return ExitCode::good;
  }
  return run_verb(program, find_verb(program, words[0]), Words(words.begin() + 1, words.end()), out);
}

// "halfulp error", or "halfulp" where there is no such verb.
std::string command_of(const Program& program, const Words& words) {
  const bool known = !words.empty() && std::any_of(program.verbs.begin(), program.verbs.end(),
                                                   [&](const Verb& verb) { return verb.name == words[0]; });
  return known ? fmt::format("{} {}", program.name, words[0]) : std::string(program.name);
}

// A full disk or a closed pipe behind stdout must not look like success.
void check_output(std::ostream& out) {
  out.flush();
  if (!out) throw EnvironmentError("cannot write to the standard output");
}

}  // namespace

const Arguments::Value& Arguments::find(std::string_view option) const {
  const auto found = options_.find(option);
  if (found == options_.end()) throw std::logic_error(fmt::format("the verb does not list {}", option));
  return found->second;
}

bool Arguments::has(std::string_view option) const { return !find(option).given.empty(); }

bool Arguments::lists(std::string_view option) const { return options_.contains(option); }

std::string Arguments::string(std::string_view option) const {
  const Value& value = find(option);
  if (value.given.size() > 1) throw UsageError(fmt::format("{} is given {} times", option, value.given.size()));
  if (!value.given.empty()) return value.given[0];
  if (value.default_value.empty()) throw UsageError(fmt::format("{} is required", option));
  return value.default_value;
}

std::string Arguments::choice(std::string_view option, const std::vector<std::string>& words) const {
  std::string word = string(option);
  if (std::find(words.begin(), words.end(), word) != words.end()) return word;
  throw UsageError(fmt::format("{}: unknown '{}'{}; known: {}", option, shortened(word), did_you_mean(word, words),
                               fmt::join(words, ", ")));
}

std::vector<std::string> Arguments::list(std::string_view option) const {
  const Value& value = find(option);
  Words occurrences = value.given;
  if (occurrences.empty() && !value.default_value.empty()) occurrences.push_back(value.default_value);
  Words items;
  for (const std::string& occurrence : occurrences) {
    for (const std::string& item : split_at_commas(occurrence)) {
      if (item.empty()) throw malformed(option, "a list without empty items", occurrence);
      items.push_back(item);
    }
  }
  return items;
}

int64_t Arguments::integer(std::string_view option, int64_t min, int64_t max) const {
  const std::string text = string(option);
  return in_range(option, text, parse_integer(text), min, max);
}

uint64_t Arguments::unsigned_integer(std::string_view option, uint64_t min, uint64_t max) const {
  const std::string text = string(option);
  return in_range(option, text, parse_unsigned(text), min, max);
}

double Arguments::number(std::string_view option) const {
  const std::string text = string(option);
  const std::optional<double> value = parse_double(text);
  if (!value) throw malformed(option, "a number", text);
  return *value;
}

std::filesystem::path Arguments::path(std::string_view option) const {
  const std::string text = string(option);
  if (text.empty()) throw malformed(option, "a path", text);
  return text;
}

const std::vector<std::string>& Arguments::positionals(std::string_view name) const {
  const auto found = positionals_.find(name);
  if (found == positionals_.end()) throw std::logic_error(fmt::format("the verb has no argument {}", name));
  return found->second;
}

const std::string& Arguments::positional(std::string_view name) const {
  const Words& words = positionals(name);
  if (words.size() != 1) throw UsageError(fmt::format("expected one {}, got {}", name, words.size()));
  return words[0];
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const size_t near = 1 + word.size() / 4;
  const std::string* best = nullptr;
  size_t best_distance = near + 1;
  for (const std::string& candidate : candidates) {
    const bool begins = word.size() >= 2 && candidate.starts_with(word);
    if (!begins && std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size()) > near) continue;
    const size_t distance = begins ? std::min(near, edit_distance(word, candidate)) : edit_distance(word, candidate);
    if (distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best == nullptr ? "" : fmt::format("; did you mean '{}'?", *best);
}

Arguments parse_arguments(const Verb& verb, std::span<const Option> table, const std::vector<std::string>& words) {
  const std::vector<Option> rows = options_of(verb, table);
  check_values(rows, words);
  CLI::App app;
  app.set_help_flag("");
  app.allow_extras();
  std::vector<CLI::Option*> parsed;
  for (const Option& row : rows) {
    const std::string names(row.names);
    parsed.push_back(is_flag(row) ? app.add_flag(names)->disable_flag_override() : app.add_option(names));
    parsed.back()->take_all();
  }
  try {
    app.parse(Words(words.rbegin(), words.rend()));  // CLI11 wants them reversed
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  Arguments::Options options;
  for (size_t i = 0; i < rows.size(); ++i) {
    options[long_name(rows[i])] = {.default_value = std::string(rows[i].default_value), .given = parsed[i]->results()};
  }
  return {std::move(options), distribute(verb.positionals, positional_words(app.remaining(), rows))};
}

std::string verb_help(const Program& program, const Verb& verb) {
  std::string out = "Examples:\n";
  for (const Example& example : verb.examples) {
    out += fmt::format("  {}\n      {}\n", example.command, wrapped(example.explanation, 6));
  }
  out += fmt::format("\nUsage: {}\n  {}.\n", usage_line(program, verb), wrapped(verb.summary, 2));
  std::vector<HelpLine> lines;
  for (const Positional& positional : verb.positionals) {
    lines.push_back({.term = std::string(positional.name), .text = std::string(positional.help)});
  }
  if (!lines.empty()) out += help_section("Arguments", lines);
  out += option_sections(options_of(verb, program.options));
  if (!verb.notes.empty()) out += fmt::format("\n{}\n", verb.notes);
  return out;
}

std::string program_help(const Program& program) {
  std::string out = fmt::format("{} {}: {}\n\nUsage: {} VERB [arguments] [options]\n", program.name, program.version,
                                program.summary, program.name);
  std::vector<HelpLine> lines;
  for (const Verb& verb : program.verbs) {
    lines.push_back({.term = std::string(verb.name), .text = std::string(verb.summary)});
  }
  out += help_section("Verbs", lines);
  return out + fmt::format("\n'{} VERB --help' starts with examples.\n", program.name);
}

int run_program(const Program& program, int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  const Words words(argv + std::min(argc, 1), argv + argc);
  const std::string command = command_of(program, words);
  ExitCode code = ExitCode::internal;
  try {
    code = dispatch(program, words, out);
    check_output(out);
  } catch (const UsageError& error) {
    err << command << ": " << printable(error.what(), "\n") << "\ntry '" << command << " --help'\n";
    code = error.code();
  } catch (const Error& error) {
    err << command << ": " << printable(error.what()) << '\n';
    code = error.code();
  } catch (const std::bad_alloc&) {
    err << command << ": out of memory\n";
    code = ExitCode::environment;
  } catch (const std::exception& error) {
    err << command << ": internal error: " << error.what() << '\n';
  }
  return int(code);
}

}  // namespace halfulp

// The mechanism of the command line, on a made-up program.

#include "lib/cli.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <new>
#include <sstream>

namespace halfulp {
namespace {

using Words = std::vector<std::string>;

constexpr Option kOptions[] = {
    {.names = "--recipe,-r", .value_name = "NAME", .help = "how to brew"},
    {.names = "--cups,-c", .value_name = "N", .help = "how many", .default_value = "2"},
    {.names = "--heat", .value_name = "X", .help = "degrees", .group = "Kettle"},
    {.names = "--out,-o", .value_name = "FILE", .help = "where to"},
    {.names = "--quiet,-q", .help = "no whistle", .group = "Kettle"},
    {.names = "--milk", .help = "of another verb"},
};

Verb brew(std::function<ExitCode(const Arguments&)> run = {}) {
  return {.name = "brew",
          .summary = "makes tea",
          .examples = {{"pot brew leaves -r green", "A cup of green tea."}},
          .positionals = {{"LEAVES", "what to brew", Positional::Count::at_least_one}},
          .options = {"--recipe", "--cups", "--heat", "--out", "--quiet"},
          .run = std::move(run)};
}

Arguments parse(const Words& words) { return parse_arguments(brew(), kOptions, words); }

std::string usage_error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no UsageError";
}

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome run(const std::vector<const char*>& words, const std::function<ExitCode(const Arguments&)>& body) {
  const Verb verbs[] = {brew(body), {.name = "pour", .summary = "pours"}};
  const Program program{.name = "pot", .version = "1.2", .summary = "a teapot", .options = kOptions, .verbs = verbs};
  std::vector<const char*> argv = {"pot"};
  argv.insert(argv.end(), words.begin(), words.end());
  std::ostringstream out;
  std::ostringstream err;
  const int code = run_program(program, int(argv.size()), argv.data(), out, err);
  return {code, out.str(), err.str()};
}

ExitCode succeed(const Arguments&) { return ExitCode::good; }

TEST(Arguments, ReadsLongShortAndJoinedForms) {
  for (const Words& words :
       {Words{"x", "--recipe", "green"}, {"x", "--recipe=green"}, {"x", "-r", "green"}, {"-rgreen", "x"}}) {
    EXPECT_EQ(parse(words).string("--recipe"), "green");
  }
}

TEST(Arguments, FlagsAreOnlyThereWhenGiven) {
  EXPECT_FALSE(parse({"x"}).flag("--quiet"));
  EXPECT_TRUE(parse({"x", "-q"}).flag("--quiet"));
}

TEST(Arguments, FlagsTakeNoValue) { EXPECT_THROW(parse({"x", "--quiet=false"}), UsageError); }

TEST(Arguments, DefaultsComeFromTheTable) {
  EXPECT_EQ(parse({"x"}).integer("--cups", 1, 9), 2);
  EXPECT_FALSE(parse({"x"}).has("--cups"));
}

TEST(Arguments, MissingRequiredOptionIsNamed) {
  EXPECT_EQ(usage_error_of([] { parse({"x"}).string("--recipe"); }), "--recipe is required");
}

TEST(Arguments, OptionGivenTwiceIsNamed) {
  EXPECT_EQ(usage_error_of([] { parse({"x", "-r", "a", "-r", "b"}).string("--recipe"); }), "--recipe is given 2 times");
}

TEST(Arguments, OptionWithoutValueIsNamed) {
  for (const Words& words :
       {Words{"x", "--recipe"}, {"x", "-r"}, {"x", "--recipe", "--quiet"}, {"x", "--recipe=", "y"}}) {
    EXPECT_EQ(usage_error_of([&] { parse(words); }), "--recipe needs a value NAME");
  }
}

TEST(Arguments, ListsSplitAtCommasAndJoinOccurrences) {
  EXPECT_EQ(parse({"x", "-r", "a,b", "--recipe=c"}).list("--recipe"), (Words{"a", "b", "c"}));
}

TEST(Arguments, ListsKeepBrackets) { EXPECT_EQ(parse({"x", "-r", "[a-c]"}).list("--recipe"), (Words{"[a-c]"})); }

TEST(Arguments, ListsRefuseEmptyItems) {
  EXPECT_EQ(usage_error_of([] {
              parse({"x", "-r", "a,,b"}).list("--recipe");
            }),
            "--recipe: expected a list without empty items, got 'a,,b'");
}

TEST(Arguments, AbsentListIsEmpty) { EXPECT_EQ(parse({"x"}).list("--recipe"), Words{}); }

TEST(Arguments, IntegersHaveARange) {
  EXPECT_EQ(parse({"x", "-c", "0x9"}).integer("--cups", 1, 9), 9);
  EXPECT_EQ(usage_error_of([] {
              parse({"x", "-c", "10"}).integer("--cups", 1, 9);
            }),
            "--cups: expected an integer from 1 to 9, got '10'");
  EXPECT_EQ(usage_error_of([] {
              parse({"x", "-c", "two"}).integer("--cups", 1, 9);
            }),
            "--cups: expected an integer from 1 to 9, got 'two'");
}

TEST(Arguments, UnsignedIntegersReach64Bits) {
  EXPECT_EQ(parse({"x", "-c", "18446744073709551615"}).unsigned_integer("--cups"), ~uint64_t{0});
  EXPECT_EQ(usage_error_of([] {
              parse({"x", "-c", "-1"}).unsigned_integer("--cups");
            }),
            "--cups: expected an integer from 0 up, got '-1'");
}

TEST(Arguments, NumbersMayBeNegative) {
  EXPECT_EQ(parse({"x", "--heat", "-3.5"}).number("--heat"), -3.5);
  EXPECT_EQ(usage_error_of([] {
              parse({"x", "--heat", "hot"}).number("--heat");
            }),
            "--heat: expected a number, got 'hot'");
}

TEST(Arguments, PathsAreNotEmpty) {
  EXPECT_EQ(parse({"x", "-o", "a/b"}).path("--out"), std::filesystem::path("a/b"));
  EXPECT_THROW(parse({"x", "-o", ""}).path("--out"), UsageError);
}

TEST(Arguments, ChoiceSuggestsAndListsTheWords) {
  const Words recipes = {"black", "green"};
  EXPECT_EQ(parse({"x", "-r", "green"}).choice("--recipe", recipes), "green");
  EXPECT_EQ(usage_error_of([&] {
              parse({"x", "-r", "gren"}).choice("--recipe", recipes);
            }),
            "--recipe: unknown 'gren'; did you mean 'green'?; known: black, green");
}

TEST(Arguments, OptionThatTheVerbDoesNotListIsAProgrammingError) {
  EXPECT_THROW(parse({"x"}).flag("--milk"), std::logic_error);
}

TEST(Arguments, PositionalsMixWithOptions) {
  EXPECT_EQ(parse({"a", "-q", "b", "-r", "green", "c"}).positionals("LEAVES"), (Words{"a", "b", "c"}));
}

TEST(Arguments, NegativeNumbersArePositionals) {
  const Words words = {"-3.2", "-inf", "-nan", "-0x1p3", "-.5", "-"};
  EXPECT_EQ(parse(words).positionals("LEAVES"), words);
}

TEST(Arguments, AfterTheMarkEverythingIsPositional) {
  EXPECT_EQ(parse({"a", "--", "--quiet", "-z", "--"}).positionals("LEAVES"), (Words{"a", "--quiet", "-z", "--"}));
}

TEST(Arguments, BracketedPositionalIsOneWord) { EXPECT_EQ(parse({"[a,b]"}).positionals("LEAVES"), (Words{"[a,b]"})); }

TEST(Arguments, MissingPositionalIsNamed) {
  EXPECT_EQ(usage_error_of([] { parse({}); }), "missing argument LEAVES: what to brew");
}

TEST(Arguments, UnknownOptionGetsASuggestion) {
  EXPECT_EQ(usage_error_of([] {
              parse({"x", "--recpie", "green"});
            }),
            "unknown option --recpie; did you mean '--recipe'?");
  EXPECT_EQ(usage_error_of([] {
              parse({"x", "--reciep=green"});
            }),
            "unknown option --reciep; did you mean '--recipe'?");
  EXPECT_EQ(usage_error_of([] { parse({"x", "--zzzzzz"}); }), "unknown option --zzzzzz");
}

TEST(Arguments, OptionOfAnotherVerbIsUnknown) {
  EXPECT_EQ(usage_error_of([] { parse({"x", "--milk"}); }), "unknown option --milk");
}

Arguments parse_three(const Words& words) {
  const Verb verb{.name = "v", .positionals = {{"A", "a"}, {"B", "b", Positional::Count::any}, {"C", "c"}}};
  return parse_arguments(verb, kOptions, words);
}

TEST(Arguments, LaterPositionalsGetWhatTheyNeed) {
  const Arguments arguments = parse_three({"1", "2", "3", "4"});
  EXPECT_EQ(arguments.positional("A"), "1");
  EXPECT_EQ(arguments.positionals("B"), (Words{"2", "3"}));
  EXPECT_EQ(arguments.positional("C"), "4");
  EXPECT_EQ(usage_error_of([] { parse_three({"1"}); }), "missing argument C: c");
}

TEST(Arguments, SurplusPositionalIsNamed) {
  const Verb verb{.name = "v", .positionals = {{"A", "a", Positional::Count::optional}}};
  EXPECT_EQ(usage_error_of([&] { parse_arguments(verb, kOptions, {"1", "2"}); }), "unexpected argument '2'");
}

TEST(DidYouMean, FindsTheNearest) {
  const Words words = {"e2m1", "e4m3", "mma", "nvfp4/te", "nvfp4/modelopt"};
  EXPECT_EQ(did_you_mean("mam", words), "; did you mean 'mma'?");
  EXPECT_EQ(did_you_mean("e4m4", words), "; did you mean 'e4m3'?");
  EXPECT_EQ(did_you_mean("nvpf4/te", words), "; did you mean 'nvfp4/te'?");
  EXPECT_EQ(did_you_mean("nvfp4", words), "; did you mean 'nvfp4/te'?");
  EXPECT_EQ(did_you_mean("posit", words), "");
}

TEST(VerbHelp, StartsWithExamplesAndListsOptionsByGroup) {
  EXPECT_EQ(run({"brew", "--help"}, succeed).out, R"(Examples:
  pot brew leaves -r green
      A cup of green tea.

Usage: pot brew LEAVES... [options]
  makes tea.

Arguments:
  LEAVES  what to brew

Options:
  --recipe, -r NAME  how to brew
  --cups, -c N       how many [2]
  --out, -o FILE     where to

Kettle:
  --heat X     degrees
  --quiet, -q  no whistle
)");
}

TEST(VerbHelp, WrapsLongText) {
  const Option options[] = {{.names = "--long",
                             .value_name = "X",
                             .help = std::string_view("one two three four five six seven eight nine ten eleven twelve "
                                                      "thirteen fourteen fifteen sixteen seventeen")}};
  const Verb verb{.name = "v", .options = {"--long"}};
  const std::string help = verb_help({.name = "p", .options = options}, verb);
  EXPECT_NE(help.find("fifteen\n            sixteen seventeen\n"), std::string::npos) << help;
}

TEST(RunProgram, HelpListsTheVerbs) {
  const Outcome outcome = run({"--help"}, succeed);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("  brew  makes tea\n  pour  pours\n"), std::string::npos) << outcome.out;
}

TEST(RunProgram, HelpVerbShowsTheVerbsHelp) {
  EXPECT_EQ(run({"help", "brew"}, succeed).out, run({"brew", "-h"}, succeed).out);
}

TEST(RunProgram, PrintsItsVersion) { EXPECT_EQ(run({"--version"}, succeed).out, "pot 1.2\n"); }

TEST(RunProgram, UnknownVerbIsAUsageErrorWithSuggestion) {
  const Outcome outcome = run({"brwe"}, succeed);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "pot: unknown verb 'brwe'; did you mean 'brew'?\ntry 'pot --help'\n");
}

TEST(RunProgram, NoVerbIsAUsageError) { EXPECT_EQ(run({}, succeed).code, 2); }

TEST(RunProgram, UsageErrorNamesTheVerbAndItsHelp) {
  const Outcome outcome = run({"brew", "x", "--zzzzzz"}, succeed);
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "pot brew: unknown option --zzzzzz\ntry 'pot brew --help'\n");
}

TEST(RunProgram, ReturnsTheVerbsExitCode) {
  EXPECT_EQ(run({"brew", "x"}, [](const Arguments&) { return ExitCode::check_failed; }).code, 1);
}

TEST(RunProgram, InputErrorEndsWith3) {
  const Outcome outcome =
      run({"brew", "x"}, [](const Arguments&) -> ExitCode { throw InputError({.file = "f"}, "stale leaves"); });
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err, "pot brew: f: stale leaves\n");
}

TEST(RunProgram, OtherExceptionsEndWith5) {
  EXPECT_EQ(run({"brew", "x"}, [](const Arguments&) -> ExitCode { throw std::logic_error("oops"); }).code, 5);
}

TEST(RunProgram, OutOfMemoryEndsWith4) {
  EXPECT_EQ(run({"brew", "x"}, [](const Arguments&) -> ExitCode { throw std::bad_alloc(); }).code, 4);
}

TEST(RunProgram, OutputThatCannotBeWrittenIsAnError) {
  const Verb verbs[] = {brew(succeed)};
  const Program program{.name = "pot", .options = kOptions, .verbs = verbs};
  const char* argv[] = {"pot", "--help"};
  std::ostream broken(nullptr);
  std::ostringstream err;
  EXPECT_EQ(run_program(program, 2, argv, broken, err), 4);
}

}  // namespace
}  // namespace halfulp

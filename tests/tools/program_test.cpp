#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

#include "tests/lib/test_files.h"
#include "tests/tools/run_program.h"

namespace halfulp {
namespace {

TEST(Program, PrintsItsVersion) {
  const ProgramRun run = run_halfulp({"--version"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_TRUE(run.out.starts_with("halfulp ")) << run.out;
}

TEST(Program, WithoutAVerbIsAUsageError) { EXPECT_EQ(run_halfulp({}).exit_code, 2); }

TEST(Program, SuggestsAVerb) {
  const ProgramRun run = run_halfulp({"formts"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("did you mean 'formats'?"), std::string::npos) << run.err;
}

TEST(Program, FailsWhereItsOutputCannotBeWritten) {
  const ProgramRun run = run_halfulp({"--help"}, {.stdout_file = "/dev/full"});
  EXPECT_EQ(run.exit_code, 4);
}

// The commands under "Examples:", two spaces before each.
std::vector<std::string> examples(const std::string& help) {
  std::vector<std::string> commands;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line) && !line.empty();)
    if (line.starts_with("  halfulp ")) commands.push_back(line.substr(2));
  return commands;
}

class ExamplesOfHelp : public testing::TestWithParam<const char*> {};

TEST_P(ExamplesOfHelp, Run) {
  const TemporaryDirectory folder;
  const std::filesystem::path tests = std::filesystem::path(HALFULP_TEST_DATA).parent_path();
  std::filesystem::create_directory_symlink(tests, folder / "tests");  // as in the root of a checkout
  const std::string path =
      fmt::format("PATH={}:{}", std::filesystem::path(HALFULP_PROGRAM).parent_path().string(), std::getenv("PATH"));
  const std::vector<std::string> commands = examples(run_halfulp({GetParam(), "--help"}).out);
  EXPECT_FALSE(commands.empty());
  for (const std::string& command : commands) {
    const ProgramRun run = run_command({"sh", "-c", command}, {.folder = folder.path(), .environment = {path}});
    EXPECT_EQ(run.exit_code, 0) << command << "\n" << run.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Verbs, ExamplesOfHelp,
                         testing::Values("formats", "explain", "cvt", "mma", "identify", "doctor"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace halfulp

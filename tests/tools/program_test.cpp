#include <gtest/gtest.h>

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

}  // namespace
}  // namespace halfulp

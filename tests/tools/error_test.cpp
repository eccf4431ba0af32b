#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "lib/json.h"
#include "lib/random_values.h"
#include "tests/lib/test_files.h"
#include "tests/tools/npy_bytes.h"
#include "tests/tools/run_program.h"

namespace halfulp {
namespace {

std::vector<float> normals(std::size_t count, uint64_t seed = 1) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = float(normal(seed, 0, i));
  return x;
}

// A folder with tensors 'a' (64 rows of 64), 'b' (32 rows of 64) and 'ids' (integers).
class ErrorVerb : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "a.npy", npy_file("<f4", "(64, 64)", raw_bytes(normals(64 * 64))));
    write_file(folder_ / "b.npy", npy_file("<f4", "(32, 64)", raw_bytes(normals(32 * 64, 2))));
    write_file(folder_ / "ids.npy", npy_vector<int32_t>("<i4", {1, 2, 3}));
  }

  ProgramRun error(std::vector<std::string> words) {
    words.insert(words.begin(), "error");
    return run_halfulp(words);
  }

  Json json(std::vector<std::string> words) {
    words.insert(words.end(), {"--json", "--progress", "none"});
    const ProgramRun run = error(words);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return Json::parse(run.out);
  }

  TemporaryDirectory folder_;
};

TEST_F(ErrorVerb, JsonHasTheFiguresOfItsContract) {
  const Json result = json({folder_ / "a.npy", "-r", "nvfp4/te"});
  EXPECT_EQ(result.at("schema"), "halfulp.error/1");
  for (const char* key :
       {"tensor", "shape", "dtype", "recipe", "elements", "rel_mse", "sqnr_db", "rate_bits", "shrinkage", "mean_error",
        "max_abs_error", "clipped", "dead_zone", "scale_min", "scale_max", "se"})
    EXPECT_TRUE(result.at("results").at(0).contains(key)) << key;
}

TEST_F(ErrorVerb, GivesAResultForEachTensorAndRecipe) {
  const Json result = json({folder_ / "a.npy", folder_ / "b.npy", "-r", "bf16,nvfp4/te"});
  std::vector<std::string> got;
  for (const Json& r : result.at("results"))
    got.push_back(r.at("tensor").get<std::string>() + " " + r.at("recipe").get<std::string>());
  EXPECT_EQ(got, (std::vector<std::string>{"a bf16", "a nvfp4/te", "b bf16", "b nvfp4/te"}));
}

// The tensors' sums, not the mean of their figures: a tensor of another recipe scale counts by its energy.
TEST_F(ErrorVerb, TotalIsOverTheElementsOfAllTensors) {
  const Json result = json({folder_ / "a.npy", folder_ / "b.npy", "-r", "mxfp8/te"});
  std::vector<float> x = normals(64 * 64), b = normals(32 * 64, 2);
  x.insert(x.end(), b.begin(), b.end());
  write_file(folder_ / "both.npy", npy_file("<f4", "(96, 64)", raw_bytes(x)));
  const Json both = json({folder_ / "both.npy", "-r", "mxfp8/te"});
  EXPECT_EQ(result.at("totals").at(0).at("rel_mse"), both.at("results").at(0).at("rel_mse"));
  EXPECT_EQ(result.at("totals").at(0).at("se"), both.at("results").at(0).at("se"));
}

TEST_F(ErrorVerb, ListsWhatARecipeCannotTake) {
  const Json result = json({folder_ / "a.npy", folder_ / "ids.npy", "-r", "nvfp4/te"});
  ASSERT_EQ(result.at("skipped").size(), 1u);
  EXPECT_EQ(result.at("skipped").at(0).at("tensor"), "ids");
}

TEST_F(ErrorVerb, IsABadInputWhereNothingCanBeMeasured) {
  const ProgramRun run = error({folder_ / "ids.npy", "-r", "nvfp4/te"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("tensor 'ids'"), std::string::npos) << run.err;
}

TEST_F(ErrorVerb, IncludeAndExcludeChooseTensors) {
  const Json result = json({folder_.path(), "-r", "bf16", "--include", "[ab]", "--exclude", "a"});
  ASSERT_EQ(result.at("results").size(), 1u);
  EXPECT_EQ(result.at("results").at(0).at("tensor"), "b");
}

TEST_F(ErrorVerb, LeavingNoTensorIsAUsageError) {
  EXPECT_EQ(error({folder_.path(), "-r", "bf16", "--include", "zz*"}).exit_code, 2);
}

// Several chunks, and a last one that is not whole.
TEST_F(ErrorVerb, BytesDoNotDependOnTheNumberOfThreads) {
  write_file(folder_ / "a.npy", npy_file("<f4", "(1000, 1024)", raw_bytes(normals(1000 * 1024))));
  const std::string one =
      error({folder_ / "a.npy", "-r", "bf16,mxfp8/ocp,nvfp4/te", "--json", "--detail", "-j", "1"}).out;
  EXPECT_NE(one, "");
  for (const std::string threads : {"2", "3", "7", "16"})
    EXPECT_EQ(error({folder_ / "a.npy", "-r", "bf16,mxfp8/ocp,nvfp4/te", "--json", "--detail", "-j", threads}).out, one)
        << threads << " threads";
}

TEST_F(ErrorVerb, AThresholdThatIsPassedExitsWithOne) {
  const ProgramRun run = error({folder_ / "a.npy", "-r", "nvfp4/te", "--fail-on", "sqnr_db<30"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.err.find("a under nvfp4/te: sqnr_db is 20."), std::string::npos) << run.err;
}

TEST_F(ErrorVerb, AThresholdThatIsNotPassedExitsWithZero) {
  EXPECT_EQ(error({folder_ / "a.npy", "-r", "nvfp4/te", "--fail-on", "sqnr_db<10"}).exit_code, 0);
}

TEST_F(ErrorVerb, AThresholdOnNoMetricIsAUsageError) {
  EXPECT_EQ(error({folder_ / "a.npy", "-r", "nvfp4/te", "--fail-on", "beauty<10"}).exit_code, 2);
}

TEST_F(ErrorVerb, ZerosHaveNoError) {
  write_file(folder_ / "z.npy", npy_file("<f4", "(4, 64)", std::string(1024, '\0')));
  const ProgramRun run = error({folder_ / "z.npy", "-r", "bf16,nvfp4/te"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out.find("nan"), std::string::npos) << run.out;
  EXPECT_EQ(error({folder_ / "z.npy", "-r", "nvfp4/te", "--fail-on", "sqnr_db<20"}).exit_code, 0);
}

TEST_F(ErrorVerb, AFigureThatARecipeDoesNotHaveFailsNoTest) {
  EXPECT_EQ(error({folder_ / "a.npy", "-r", "bf16,nvfp4/te", "--fail-on", "scale_max>500"}).exit_code, 0);
}

TEST_F(ErrorVerb, OptionsThatMeanNothingAreRefusedBeforeTheWork) {
  EXPECT_EQ(error({folder_ / "a.npy", "-r", "bf16", "--json", "--csv"}).exit_code, 2);
  EXPECT_EQ(error({folder_ / "a.npy", "-r", "bf16", "--detail"}).exit_code, 2);
  EXPECT_EQ(error({folder_ / "a.npy", "-r", "bf16", "--color", "silly"}).exit_code, 2);
}

TEST_F(ErrorVerb, NaNAndInfAreCounted) {
  std::vector<float> x = normals(64);
  x[0] = std::nanf(""), x[1] = HUGE_VALF;
  write_file(folder_ / "n.npy", npy_vector("<f4", x));
  EXPECT_EQ(json({folder_ / "n.npy", "-r", "mxfp8/te"}).at("results").at(0).at("nonfinite_in"), 2);
}

TEST_F(ErrorVerb, CsvHasALineForEachResult) {
  const ProgramRun run = error({folder_ / "a.npy", "-r", "bf16,nvfp4/te", "--csv"});
  EXPECT_EQ(std::ranges::count(run.out, '\n'), 3) << run.out;
}

TEST_F(ErrorVerb, RefusesAmaxWhereNoRecipeHasATensorScale) {
  EXPECT_EQ(error({folder_ / "a.npy", "-r", "bf16,mxfp8/te", "--amax", "1"}).exit_code, 2);
}

}  // namespace
}  // namespace halfulp

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

std::vector<float> normals(std::size_t count, uint64_t seed) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = float(normal(seed, 0, i));
  return x;
}

// A folder with x [128, 64], w [32, 64], dy [128, 32] and a vector.
class BiasVerb : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "x.npy", npy_file("<f4", "(128, 64)", raw_bytes(normals(128 * 64, 1))));
    write_file(folder_ / "w.npy", npy_file("<f4", "(32, 64)", raw_bytes(normals(32 * 64, 2))));
    write_file(folder_ / "dy.npy", npy_file("<f4", "(128, 32)", raw_bytes(normals(128 * 32, 3))));
    write_file(folder_ / "v.npy", npy_vector<float>("<f4", {1, 2, 3}));
  }

  ProgramRun bias(std::vector<std::string> words) {
    words.insert(words.begin(), "bias");
    return run_halfulp(words, {.folder = folder_.path()});
  }

  Json json(std::vector<std::string> words) {
    words.insert(words.end(), {"--json", "--progress", "none"});
    const ProgramRun run = bias(words);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return Json::parse(run.out);
  }

  void expect_refusal(const std::vector<std::string>& words, int exit_code, const std::string& says) {
    const ProgramRun run = bias(words);
    EXPECT_EQ(run.exit_code, exit_code) << run.err;
    EXPECT_NE(run.err.find(says), std::string::npos) << run.err;
    EXPECT_EQ(run.out, "");
  }

  TemporaryDirectory folder_;
};

const std::vector<std::string> kLayer{"--x", "x.npy", "--w", "w.npy", "--dy", "dy.npy"};

std::vector<std::string> layer_with(std::vector<std::string> more) {
  more.insert(more.begin(), kLayer.begin(), kLayer.end());
  return more;
}

TEST_F(BiasVerb, TakesAnErrorApart) {
  const Json result = json({"x.npy", "-r", "mxfp4/ocp"}).at("results").at(0);
  const Json& parts = result.at("decomposition").at("rel_mse");
  EXPECT_GT(parts.at("grid").get<double>(), 0);
  EXPECT_GT(parts.at("clip").get<double>(), 0);
  EXPECT_EQ(result.at("bias").at("shrinkage").at("verdict"), "biased");
  EXPECT_EQ(result.at("worst_blocks").at(0).at("x").size(), 32u);
}

TEST_F(BiasVerb, GivesTheSameForAnyNumberOfThreads) {
  for (const std::vector<std::string>& subject :
       {std::vector<std::string>{"x.npy", "w.npy", "-r", "nvfp4/te,mxfp8/te", "--detail"},
        layer_with({"-r", "nvfp4/te+rounding=stochastic", "--draws", "32"})}) {
    std::vector<std::string> one = subject, seven = subject;
    one.insert(one.end(), {"--json", "--threads", "1"});
    seven.insert(seven.end(), {"--json", "--threads", "7"});
    EXPECT_EQ(bias(one).out, bias(seven).out);
  }
}

TEST_F(BiasVerb, NeedsNoSeedForWhatIsKnownInClosedForm) {
  const auto bias_of = [&](const char* seed) {
    return json({"x.npy", "-r", "nvfp4/te+rounding=stochastic", "--seed", seed}).at("results").at(0).at("bias");
  };
  EXPECT_EQ(bias_of("1"), bias_of("2"));
  EXPECT_EQ(bias_of("1"), json({"x.npy", "-r", "nvfp4/te+rounding=stochastic"}).at("results").at(0).at("bias"));
}

TEST_F(BiasVerb, TellsUnbiasedFromBiasedRounding) {
  const auto verdict = [&](const char* recipe) {
    return json(layer_with({"-r", recipe, "--draws", "256"})).at("results").at(0).at("squared_bias").at("verdict");
  };
  EXPECT_EQ(verdict("mxfp4/tseng"), "not detected");
  EXPECT_EQ(verdict("nvfp4/te+rounding=stochastic"), "biased");
  EXPECT_EQ(verdict("nvfp4/te"), "exact");
}

TEST_F(BiasVerb, ProvesStreamsBeforeAVerdict) {
  const Json streams = json(layer_with({"-r", "mxfp4/tseng", "--draws", "8"})).at("streams");
  EXPECT_EQ(streams.at("independent"), true);
  EXPECT_GT(streams.at("pairs").get<int>(), 0);
}

TEST_F(BiasVerb, HasThreeProductsOfALayer) {
  const Json results = json(layer_with({"-r", "nvfp4/te+rounding=stochastic", "--draws", "32"})).at("results");
  std::vector<std::string> products;
  for (const Json& result : results) products.push_back(result.at("product").get<std::string>());
  EXPECT_EQ(products, (std::vector<std::string>{"fprop", "dgrad", "wgrad"}));
  EXPECT_EQ(results.at(2).at("shape"), (Json{32, 64, 128}));
  EXPECT_FALSE(results.at(2).at("batch_noise_share").is_null());
  EXPECT_FALSE(results.at(2).at("population").is_null());
  EXPECT_TRUE(results.at(0).at("population").is_null());
}

TEST_F(BiasVerb, FailsWhereTold) {
  EXPECT_EQ(bias({"x.npy", "-r", "nvfp4/te", "--fail-on", "rel_mse>1e-3"}).exit_code, 1);
  EXPECT_EQ(bias({"x.npy", "-r", "nvfp4/te", "--fail-on", "rel_mse>1"}).exit_code, 0);
}

TEST_F(BiasVerb, ShowsAConversionInClosedForm) {
  const Json result = json({"cvt.rs.satfinite.e2m1x4.f32", "--values", "0.3,-1.7,nan"}).at("results").at(0);
  EXPECT_EQ(result.at("random_bits"), 16);
  EXPECT_EQ(result.at("values").at(0).at("below"), 0);
  EXPECT_EQ(result.at("values").at(0).at("above"), 0.5);
  EXPECT_EQ(result.at("values").at(1).at("below"), -2);
  EXPECT_NEAR(result.at("values").at(1).at("probability_above").get<double>(), 0.6, 1e-4);
  EXPECT_EQ(result.at("values").at(2).at("expectation"), 6);  // a NaN, as PTX has it
  EXPECT_GT(result.at("curve").at("x").size(), 100u);
  EXPECT_EQ(result.at("pair").at("values").size(), 1u);
}

TEST_F(BiasVerb, PrintsAsCsvWhatWasAskedFor) {
  EXPECT_EQ(bias({"--format", "e2m1", "--values", "0.25", "--csv"}).out.substr(0, 8), "x,below,");
  EXPECT_EQ(bias({"--format", "e2m1", "--csv"}).out.substr(0, 8), "from,to,");
}

TEST_F(BiasVerb, ShowsARoundingOfAFormat) {
  const Json result =
      json({"--format", "e5m2", "--rounding", "stochastic", "--random-bits", "3", "--as", "bf16"}).at("results").at(0);
  EXPECT_EQ(result.at("binades").at(1).at("source"), -0.046875);
}

TEST_F(BiasVerb, RefusesWhatMakesNoSense) {
  expect_refusal({"cvt.rs.satfinite.e2m1x4.f33"}, 2, "did you mean");
  expect_refusal({"--format", "e4m4"}, 2, "did you mean");
  expect_refusal({"--format", "e4m3", "--rounding", "nearest"}, 2, "nearest-even");
  expect_refusal({"--format", "e4m3", "--random-bits", "3"}, 2, "--rounding stochastic");
  expect_refusal({"cvt.rn.satfinite.e4m3x2.f32", "--rounding", "up"}, 2, "an instruction has its own");
  expect_refusal({"--x", "x.npy", "-r", "nvfp4/te"}, 2, "--w is needed");
  expect_refusal({"--x", "x.npy", "--w", "dy.npy", "-r", "nvfp4/te"}, 3, "does not fit");
  expect_refusal({"--x", "v.npy", "--w", "w.npy", "-r", "nvfp4/te"}, 3, "an operand is a matrix");
  expect_refusal(layer_with({"-r", "nvfp4/te,bf16"}), 2, "one recipe");
  expect_refusal(layer_with({"-r", "nvfp4/te", "--fresh-signs"}), 2, "--hadamard");
  expect_refusal(layer_with({"-r", "nvfp4/te", "--draws", "3"}), 2, "--draws");
  expect_refusal(layer_with({"-r", "fp8/deepseek-128x128+edge=refused"}), 3, "rows of");
  expect_refusal({"x.npy"}, 2, "--recipe is needed");
  expect_refusal({"x.npy", "-r", "nvfp4/te", "--fail-on", "biass>1"}, 2, "biass");
}

}  // namespace
}  // namespace halfulp

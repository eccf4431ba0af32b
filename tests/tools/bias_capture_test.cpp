// halfulp bias of a capture: which recipe each tensor gets, along which dimension, and what is said of all of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/json.h"
#include "lib/random_values.h"
#include "tests/lib/test_files.h"
#include "tests/tools/run_program.h"
#include "tests/tools/stored_tensors.h"

namespace halfulp {
namespace {

Array normals_of(const Shape& shape, const std::string& name) {
  Array values{.shape = shape, .x = std::vector<float>(product(shape, 0, shape.size()))};
  for (std::size_t i = 0; i < values.x.size(); ++i) values.x[i] = float(normal(7, stream_of(name), i));
  return values;
}

StoredTensor stored(const Array& values) {
  return {.dtype = Dtype::f32, .shape = values.shape, .bytes = raw_bytes(values.x)};
}

constexpr int kLayers = 12;
const std::vector<std::string> kForward{"pretrain_fwd/x_fprop", "pretrain_fwd/w_fprop"},
    kBackward{"pretrain_bwd/dy_dgrad", "pretrain_bwd/dy_wgrad", "pretrain_bwd/x_wgrad"};

StoredFile layers_of(const std::vector<std::string>& places) {
  StoredFile file;
  for (const std::string& place : places)
    for (int layer = 0; layer < kLayers; ++layer) {
      const std::string name = place + "/blocks." + std::to_string(layer) + ".fc1";
      file.tensors[name] = stored(normals_of({64, 64}, name));
    }
  return file;
}

constexpr const char* kPolicy = R"(
  name = "mixed"
  base = "bf16"
  [quantizers]
  random = { recipe = "nvfp4/te+rounding=stochastic", clip_ok = true }
  [phases.pretrain_fwd]
  x_fprop = "nvfp4/te"
  w_fprop = "nvfp4/te-2d"
  [phases.pretrain_bwd]
  dy_wgrad = { use = "random", rht = { size = 16, signs = "per_step", id = "wgrad" } }
  x_wgrad = { use = "mxfp8/te", rht = { size = 16, signs = "per_step", id = "wgrad" } }
  [layers]
  high = { first = 1, last = 2, as = "f16" }
)";

// What that says of each tensor of the capture, in words of its own.
std::string expected_recipe(const std::string& role, int layer) {
  if (role == "dy_dgrad") return "bf16";
  if (layer < 1 || layer >= kLayers - 2) return "f16";
  static const std::map<std::string, std::string> kRecipes{{"x_fprop", "nvfp4/te"},
                                                           {"w_fprop", "nvfp4/te-2d"},
                                                           {"dy_wgrad", "nvfp4/te+rounding=stochastic"},
                                                           {"x_wgrad", "mxfp8/te"}};
  return kRecipes.at(role);
}

// A folder with a capture of 60 tensors in two files, and a policy.
class BiasOfACapture : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryDirectory;
    std::filesystem::create_directory(*folder_ / "run");
    write_stored(*folder_ / "run/forward.safetensors", layers_of(kForward));
    write_stored(*folder_ / "run/backward.safetensors", layers_of(kBackward));
    write_file(*folder_ / "policy.toml", kPolicy);
  }
  static void TearDownTestSuite() { delete folder_; }

  static Words under_policy() { return {*folder_ / "run", "--policy", *folder_ / "policy.toml"}; }

  static ProgramRun bias(const Words& words) { return run_halfulp(joined({"bias", "--progress", "none"}, words)); }

  static Json json(const Words& words) {
    const ProgramRun run = bias(joined(words, {"--json"}));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.exit_code == 0 ? Json::parse(run.out) : Json();
  }

  static inline TemporaryDirectory* folder_ = nullptr;
};

TEST_F(BiasOfACapture, HasAResultForEachTensor) {
  const Json results = json(under_policy()).at("results");
  std::set<std::string> names;
  for (const Json& result : results) names.insert(result.at("tensor").get<std::string>());
  EXPECT_EQ(names.size(), 60u);
  EXPECT_EQ(results.size(), 60u);
}

TEST_F(BiasOfACapture, EachTensorHasTheRecipeOfItsRoleAndLayer) {
  const Json results = json(under_policy()).at("results");
  for (const Json& result : results) {
    const std::string layer = result.at("layer");
    EXPECT_EQ(result.at("recipe"), expected_recipe(result.at("role"), std::stoi(layer.substr(layer.find('.') + 1))))
        << result.at("tensor");
  }
}

TEST_F(BiasOfACapture, ResultsAreInTheOrderOfPhaseRoleAndNumberOfTheLayer) {
  const Json results = json(under_policy()).at("results");
  EXPECT_EQ(results.at(0).at("tensor"), "pretrain_fwd/x_fprop/blocks.0.fc1");
  EXPECT_EQ(results.at(2).at("tensor"), "pretrain_fwd/x_fprop/blocks.2.fc1");
  EXPECT_EQ(results.at(10).at("tensor"), "pretrain_fwd/x_fprop/blocks.10.fc1");
  EXPECT_EQ(results.at(12).at("tensor"), "pretrain_fwd/w_fprop/blocks.0.fc1");
  EXPECT_EQ(results.at(24).at("tensor"), "pretrain_bwd/dy_dgrad/blocks.0.fc1");
}

TEST_F(BiasOfACapture, JsonHasTheKeysOfItsContract) {
  const Json result = json(under_policy());
  EXPECT_EQ(result.at("schema"), "halfulp.bias/1");
  EXPECT_EQ(result.at("kind"), "capture");
  EXPECT_EQ(result.at("policy"), "mixed");
  for (const char* key : {"results", "skipped", "ranking", "products", "streams"}) EXPECT_TRUE(result.contains(key));
  for (const char* key : {"file", "tensor", "dtype", "shape", "phase", "role", "layer", "step", "recipe", "rel_mse",
                          "bias", "decomposition"})
    EXPECT_TRUE(result.at("results").at(0).contains(key)) << key;
}

// The figures of one tensor do not depend on what else there is.
TEST_F(BiasOfACapture, FiguresAreThoseOfTheTensorAlone) {
  const std::string name = "pretrain_fwd/x_fprop/blocks.5.fc1";
  const ProgramRun alone = run_halfulp({"error", *folder_ / "run/forward.safetensors", "-r", "nvfp4/te", "--include",
                                        name, "--json", "--progress", "none"});
  const Json error = Json::parse(alone.out).at("results").at(0), all = json(under_policy()).at("results");
  const auto found = std::ranges::find_if(all, [&](const Json& result) { return result.at("tensor") == name; });
  ASSERT_NE(found, all.end());
  EXPECT_EQ(found->at("rel_mse"), error.at("rel_mse"));
  EXPECT_EQ(found->at("shrinkage"), error.at("shrinkage"));
}

TEST_F(BiasOfACapture, BytesDoNotDependOnTheNumberOfThreads) {
  const Words words = joined(under_policy(), {"--json", "--detail", "--products", "--draws", "4"});
  const std::string one = bias(joined(words, {"-j", "1"})).out;
  EXPECT_NE(one, "");
  for (const std::string threads : {"2", "5"}) EXPECT_EQ(bias(joined(words, {"-j", threads})).out, one) << threads;
}

// Of several chunks, the last not whole.
TEST_F(BiasOfACapture, BytesOfALargeTensorDoNotDependOnTheNumberOfThreads) {
  const std::string name = "pretrain_bwd/dy_wgrad/blocks.0";
  write_stored(*folder_ / "large.safetensors",
               {.metadata = {}, .tensors = {{name, stored(normals_of({1008, 1000}, name))}}});
  const Words words{*folder_ / "large.safetensors", "-r", "nvfp4/te+rounding=stochastic", "--json"};
  const std::string one = bias(joined(words, {"-j", "1"})).out;
  EXPECT_NE(one, "");
  for (const std::string threads : {"2", "5"}) EXPECT_EQ(bias(joined(words, {"-j", threads})).out, one) << threads;
}

TEST_F(BiasOfACapture, TheSeedChangesWhatIsRandomAndNothingElse) {
  const Json first = json(joined(under_policy(), {"--seed", "1"})).at("results"),
             second = json(joined(under_policy(), {"--seed", "2"})).at("results");
  std::set<std::string> changed;
  for (std::size_t i = 0; i < first.size(); ++i)
    if (first.at(i) != second.at(i)) changed.insert(first.at(i).at("role"));
  EXPECT_EQ(changed, (std::set<std::string>{"dy_wgrad", "x_wgrad"}));  // rotated by signs of that seed
}

TEST_F(BiasOfACapture, TheTableHasARowForEachTensor) {
  const std::string csv = bias(joined(under_policy(), {"--csv"})).out;
  EXPECT_EQ(csv.substr(0, csv.find('\n')).find("phase,role,layer,step,recipe,rel_mse"), 0u) << csv;
  EXPECT_EQ(std::ranges::count(csv, '\n'), 61);
}

TEST_F(BiasOfACapture, TheTextHasTheRankingsAndTheMap) {
  const std::string text = bias(joined(under_policy(), {"--color", "never"})).out;
  for (const char* part :
       {"What loses most, by rel_mse:", "What is most biased", "rel_mse, mean over steps", "pretrain_bwd/dy_wgrad"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
}

TEST_F(BiasOfACapture, TheTextHasColorsWhereTheyAreAskedFor) {
  EXPECT_EQ(bias(joined(under_policy(), {"--color", "never"})).out.find('\033'), std::string::npos);
  EXPECT_NE(bias(joined(under_policy(), {"--color", "always"})).out.find('\033'), std::string::npos);
}

TEST_F(BiasOfACapture, AThresholdThatIsPassedExitsWithOne) {
  EXPECT_EQ(bias(joined(under_policy(), {"--fail-on", "rel_mse>0.005"})).exit_code, 1);
  EXPECT_EQ(bias(joined(under_policy(), {"--fail-on", "rel_mse>0.05"})).exit_code, 0);
}

TEST_F(BiasOfACapture, ProductsAreThoseWhoseOperandsAreThere) {
  std::map<std::string, int> products;
  const Json all = json(joined(under_policy(), {"--products", "--draws", "4"})).at("products");
  for (const Json& product : all) ++products[product.at("product").get<std::string>()];
  EXPECT_EQ(products, (std::map<std::string, int>{{"fprop", kLayers}, {"dgrad", kLayers}, {"wgrad", kLayers}}));
}

TEST_F(BiasOfACapture, ThePresetIsNamed) {
  EXPECT_EQ(json({*folder_ / "run", "--policy", "nvidia-nvfp4"}).at("policy"), "nvidia-nvfp4");
}

// Captures of one or a few tensors, made for the question.
class SmallCapture : public BiasOfACapture {
 protected:
  // The results of a capture of these tensors.
  static Json results(const std::map<std::string, Array>& tensors, const Words& words) {
    return json(joined({written(tensors)}, words)).at("results");
  }

  static std::string written(const std::map<std::string, Array>& tensors) {
    StoredFile file;
    for (const auto& [name, values] : tensors) file.tensors[name] = stored(values);
    write_stored(*folder_ / "small.safetensors", file);
    return *folder_ / "small.safetensors";
  }

  static std::string policy(const std::string& toml) {
    write_file(*folder_ / "small.toml", "name = \"small\"\n" + toml);
    return *folder_ / "small.toml";
  }

  static double rel_mse(const Json& result) { return to_double(result.at("rel_mse")); }
};

// Rows alternate between 1 and 2^-20: a block of equal magnitudes loses nothing in MXFP8, one across the rows does.
Array with_equal_rows() {
  Array values{.shape = {64, 64}, .x = std::vector<float>(64 * 64)};
  for (std::size_t i = 0; i < values.x.size(); ++i) values.x[i] = i / 64 % 2 == 0 ? 1.0f : 0x1p-20f;
  return values;
}

// The dimension that a product sums over is that of the operand's blocks.
TEST_F(SmallCapture, BlocksOfFpropAndDgradsGradientsLieAlongRows) {
  for (const char* role : {"x_fprop", "w_fprop", "dy_dgrad"})
    EXPECT_EQ(
        rel_mse(results({{"pretrain_fwd/" + std::string(role) + "/0", with_equal_rows()}}, {"-r", "mxfp8/te"}).at(0)),
        0)
        << role;
}

TEST_F(SmallCapture, BlocksOfDgradsWeightsAndOfWgradLieAlongColumns) {
  for (const char* role : {"w_dgrad", "dy_wgrad", "x_wgrad"}) {
    const std::string name = "pretrain_bwd/" + std::string(role) + "/0";
    EXPECT_GT(rel_mse(results({{name, with_equal_rows()}}, {"-r", "mxfp8/te"}).at(0)), 0) << role;
    EXPECT_EQ(rel_mse(results({{name, axis_last(with_equal_rows(), 0)}}, {"-r", "mxfp8/te"}).at(0)), 0) << role;
  }
}

// Along the tokens, (1 +- 2^-6) / 4 with the signs of the transform's second row: it takes them to 1 and 2^-6 and
// zeros, which E4M3 holds; 1 +- 2^-6 it does not.
TEST_F(SmallCapture, WgradsOperandsAreRotatedAlongTokens) {
  Array values{.shape = {32, 16}, .x = std::vector<float>(32 * 16)};
  for (std::size_t i = 0; i < values.x.size(); ++i) values.x[i] = (i / 16 % 2 == 0 ? 1 + 0x1p-6f : 1 - 0x1p-6f) / 4;
  const std::string rht = R"({ use = "mxfp8/te", rht = { size = 16, signs = "none", id = "r" } })";
  const std::string rotated =
      policy("[phases.pretrain_bwd]\nx_wgrad = " + rht + "\ndy_wgrad = " + rht + "\nw_dgrad = \"mxfp8/te\"");
  EXPECT_EQ(rel_mse(results({{"pretrain_bwd/x_wgrad/0", values}}, {"--policy", rotated}).at(0)), 0);
  EXPECT_GT(rel_mse(results({{"pretrain_bwd/w_dgrad/0", values}}, {"--policy", rotated}).at(0)), 0);
}

// Blocks of a 6 and of numbers between 4.5 and 4.9, all of which become 4.
Array with_one_large_value_to_a_block() {
  Array values{.shape = {64, 64}, .x = std::vector<float>(64 * 64)};
  for (std::size_t i = 0; i < values.x.size(); ++i)
    values.x[i] = i % 16 == 0 ? 6.0f : 4.5f + 0.4f * float(unit_interval(random_bits64(1, 0, i)));
  return values;
}

std::map<std::string, Array> one_bad_among_good() {
  std::map<std::string, Array> tensors;
  for (int layer = 0; layer < 6; ++layer) {
    const std::string name = "pretrain_fwd/x_fprop/" + std::to_string(layer);
    tensors[name] = normals_of({64, 64}, name);
  }
  tensors["pretrain_fwd/x_fprop/3"] = with_one_large_value_to_a_block();
  return tensors;
}

TEST_F(SmallCapture, TheTensorThatLosesMostIsFirstOfTheRanking) {
  const Json ranking = json({written(one_bad_among_good()), "-r", "nvfp4/te"}).at("ranking");
  EXPECT_EQ(ranking.at(0).at("by"), "error");
  EXPECT_EQ(ranking.at(0).at("tensor"), "pretrain_fwd/x_fprop/3");
}

TEST_F(SmallCapture, TheMostBiasedTensorIsFirstOfTheRankingByBias) {
  const Json ranking = json({written(one_bad_among_good()), "-r", "nvfp4/te"}).at("ranking");
  const auto first = std::ranges::find_if(ranking, [](const Json& entry) { return entry.at("by") == "bias"; });
  ASSERT_NE(first, ranking.end());
  EXPECT_EQ(first->at("tensor"), "pretrain_fwd/x_fprop/3");
}

TEST_F(SmallCapture, SharesOfTheErrorAddUpToOne) {
  double sum = 0, last = 1;
  int entries = 0;
  const Json ranking = json({written(one_bad_among_good()), "-r", "nvfp4/te"}).at("ranking");
  for (const Json& entry : ranking) {
    if (entry.at("by") != "error") continue;
    const double share = to_double(entry.at("share"));
    EXPECT_LE(share, last);
    last = share;
    sum += share;
    ++entries;
  }
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_EQ(entries, 6);
}

TEST_F(SmallCapture, StepsAreResultsOfTheirOwn) {
  const Json found = results({{"rl_sampler/samp_w/3/200", normals_of({16, 32}, "a")},
                              {"rl_sampler/samp_w/3/30", normals_of({16, 32}, "b")},
                              {"rl_sampler/samp_w/3", normals_of({16, 32}, "c")}},
                             {"-r", "mxfp8/te"});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found.at(0).at("step"), nullptr);
  EXPECT_EQ(found.at(1).at("step"), 30);
  EXPECT_EQ(found.at(2).at("step"), 200);
}

TEST_F(SmallCapture, WhatIsNotQuantizedIsSkippedWithTheReason) {
  const Json result = json({written({{"pretrain_fwd/x_fprop/0", normals_of({16, 32}, "x")},
                                     {"pretrain_fwd/residual/0", normals_of({16, 32}, "r")}}),
                            "--policy", policy("[phases.pretrain_fwd]\nx_fprop = \"mxfp8/te\"")});
  ASSERT_EQ(result.at("results").size(), 1u);
  ASSERT_EQ(result.at("skipped").size(), 1u);
  EXPECT_EQ(result.at("skipped").at(0).at("tensor"), "pretrain_fwd/residual/0");
  EXPECT_EQ(result.at("skipped").at(0).at("reason"), "not quantized");
}

TEST_F(SmallCapture, ANormsGainsAreOneRow) {
  const Json found = results({{"pretrain_fwd/norm_affine/0", normals_of({64}, "g")}}, {"-r", "mxfp8/ocp"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.at(0).at("elements"), 64);
}

struct BadName {
  std::string name, tensor, said;
  friend void PrintTo(const BadName& bad, std::ostream* out) { *out << bad.name; }
};

class WrongName : public SmallCapture, public testing::WithParamInterface<BadName> {};

TEST_P(WrongName, IsABadInputThatNamesTheFileAndTheTensor) {
  const ProgramRun run = bias(
      {written({{"pretrain_fwd/x_fprop/0", normals_of({16, 32}, "x")}, {GetParam().tensor, normals_of({16, 32}, "y")}}),
       "--policy", "mxfp8"});
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("small.safetensors"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find(GetParam().tensor), std::string::npos) << run.err;
  EXPECT_NE(run.err.find(GetParam().said), std::string::npos) << run.err;
}

INSTANTIATE_TEST_SUITE_P(OfACapture, WrongName,
                         testing::Values(BadName{"phase", "pretrain_fwt/x_fprop/0", "the phase 'pretrain_fwt'"},
                                         BadName{"role", "pretrain_fwd/x_fprob/0", "the role 'x_fprob'"},
                                         BadName{"step", "pretrain_fwd/x_fprop/0/1k", "the step '1k'"},
                                         BadName{"two_parts", "pretrain_fwd/x_fprop", "PHASE/ROLE/LAYER"},
                                         BadName{"five_parts", "pretrain_fwd/x_fprop/0/1/2", "PHASE/ROLE/LAYER"}),
                         [](const auto& instance) { return instance.param.name; });

TEST_F(SmallCapture, ALayerWithoutANumberIsABadInputWhereNumbersCount) {
  const std::string capture = written({{"pretrain_fwd/x_fprop/head", normals_of({16, 32}, "x")}});
  const ProgramRun run = bias({capture, "--policy", "nvidia-nvfp4"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("pretrain_fwd/x_fprop/head"), std::string::npos) << run.err;
  EXPECT_EQ(bias({capture, "--policy", "mxfp8"}).exit_code, 0);
}

// Of another layer or step, an operand would not fit.
TEST_F(SmallCapture, ProductsAreOfOperandsOfOneLayerAndStep) {
  std::map<std::string, Array> tensors;
  uint64_t in = 0;
  for (const std::string place : {"0/1", "0/2", "1/1"}) {
    in += 32;
    tensors["pretrain_fwd/x_fprop/" + place] = normals_of({16, in}, "x");
    tensors["pretrain_fwd/w_fprop/" + place] = normals_of({16, in}, "w");
  }
  const Json products = json({written(tensors), "--policy", "mxfp8", "--products", "--draws", "4"}).at("products");
  std::vector<Json> shapes;
  for (const Json& product : products) shapes.push_back(product.at("shape"));
  EXPECT_EQ(shapes, (std::vector<Json>{{16, 16, 32}, {16, 16, 64}, {16, 16, 96}}));
}

TEST_F(SmallCapture, OperandsThatDoNotFitAreABadInput) {
  const ProgramRun run = bias({written({{"pretrain_fwd/x_fprop/0", normals_of({16, 32}, "x")},
                                        {"pretrain_fwd/w_fprop/0", normals_of({16, 64}, "w")}}),
                               "--policy", "mxfp8", "--products"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("pretrain_fwd/w_fprop/0"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("fprop"), std::string::npos) << run.err;
}

TEST_F(SmallCapture, APolicyFileThatIsWrongIsABadInputOfItsLine) {
  const ProgramRun run = bias({*folder_ / "run", "--policy", policy("bases = \"bf16\"")});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("small.toml: line 2: unknown key 'bases'"), std::string::npos) << run.err;
}

TEST_F(BiasOfACapture, APolicyThatThereIsNotIsAUsageErrorWithASuggestion) {
  const ProgramRun run = bias({*folder_ / "run", "--policy", "nvidia-nvpf4"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("did you mean 'nvidia-nvfp4'"), std::string::npos) << run.err;
}

TEST_F(BiasOfACapture, APolicyAndARecipeAreAUsageError) {
  EXPECT_EQ(bias(joined(under_policy(), {"-r", "bf16"})).exit_code, 2);
}

TEST_F(BiasOfACapture, TwoRecipesAreAUsageError) {
  EXPECT_EQ(bias({*folder_ / "run", "-r", "bf16,mxfp8/te"}).exit_code, 2);
}

TEST_F(BiasOfACapture, NeitherPolicyNorRecipeIsAUsageError) { EXPECT_EQ(bias({*folder_ / "run"}).exit_code, 2); }

}  // namespace
}  // namespace halfulp

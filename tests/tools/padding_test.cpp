// `halfulp error` and `halfulp explain` under --pad: what the added zeros may change, and what they may not. The
// figures are taken, by their definitions, from the values that quantize and dequantize give back.

#include "lib/json.h"
#include "tests/tools/stored_tensors.h"

namespace halfulp {
namespace {

Json json_of(const Words& words) {
  const ProgramRun run = run_halfulp(words);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.exit_code == 0 ? Json::parse(run.out) : Json();
}

Json error_of(const Array& w, const std::string& recipe, const Words& options) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", npy_of(w));
  const Words words{"error", folder / "w.npy", "-r", recipe, "--pad", "--json", "--progress", "none"};
  return json_of(joined(words, options)).at("results").at(0);
}

// With zeros behind the ends of a matrix.
Array extended(const Array& w, const Shape& shape) {
  Array large{.shape = shape, .x = std::vector<float>(product(shape, 0, 2))};
  for (std::size_t i = 0; i < w.x.size(); ++i) large.x[i / w.shape[1] * shape[1] + i % w.shape[1]] = w.x[i];
  return large;
}

Array cropped(const Array& large, const Shape& shape) {
  Array w{.shape = shape, .x = std::vector<float>(product(shape, 0, 2))};
  for (std::size_t i = 0; i < w.x.size(); ++i) w.x[i] = large.x[i / shape[1] * large.shape[1] + i % shape[1]];
  return w;
}

struct Case {
  std::string recipe;
  Shape shape;
  Words options = {};
  friend void PrintTo(const Case& test, std::ostream* out) { *out << test.recipe << " " << shape_tuple(test.shape); }
};

const std::vector<Case> kCases{{"mxfp8/te", {50}},
                               {"nvfp4/te", {5, 50}},
                               {"nvfp4/te", {5, 50}, {"--axis", "0"}},
                               {"nvfp4/te-2d", {5, 50}},
                               {"nvfp4/te-2d", {21, 50}, {"--axis", "0"}},
                               {"mxfp8/te", {3, 5, 7}, {"--axis", "1"}},
                               {"fp8/deepseek-128x128", {130, 3}, {"--axis", "0"}},
                               {"nvfp4/ms-eden", {2, 130}, {"--seed", "9"}},
                               {"fp8/te", {5, 7}},
                               {"mxfp8/te", {4, 64}}};

class ErrorPad : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Tensors, ErrorPad, testing::ValuesIn(kCases));

// Sums of at most 2^11 terms, each of them rounded to a double: a relative error below 2^-41.
void expect_figures(const Json& got, const std::vector<float>& x, const std::vector<float>& q) {
  long double squares = 0, errors = 0, products = 0, sum = 0, largest = 0;
  uint64_t dead = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double e = (long double)(q[i]) - x[i];
    squares += (long double)(x[i]) * x[i];
    errors += e * e;
    products += (long double)(x[i]) * q[i];
    sum += e;
    largest = std::max(largest, std::fabs(e));
    dead += q[i] == 0 && x[i] != 0;
  }
  const auto near = [&](const char* name, long double expected) {
    EXPECT_NEAR(got.at(name).get<double>(), double(expected), 0x1p-40) << name;
  };
  const long double n = (long double)(x.size());
  EXPECT_EQ(got.at("elements"), x.size());
  near("rel_mse", errors / squares);
  near("shrinkage", 1 - products / squares);
  near("dead_zone", dead / n);
  EXPECT_NEAR(got.at("mean_error").get<double>(), double(sum / n), double(largest) * 0x1p-40);
  EXPECT_NEAR(got.at("max_abs_error").get<double>(), double(largest), double(largest) * 0x1p-52);
}

TEST_P(ErrorPad, CountsTheTensorsElementsAlone) {
  const Case& test = GetParam();
  const Array w = uneven_values(test.shape);
  const Quantization q(w, test.recipe, joined({"--pad"}, test.options));
  expect_figures(error_of(w, test.recipe, test.options), w.x, q.values());
}

TEST(ErrorPadding, EntersNoCodesAndNoCrests) {
  // All of the tensor is 1: one code, and a crest of 1. A zero would be another code, and make the crest larger.
  const Array ones{.shape = {3, 5}, .x = std::vector<float>(15, 1)};
  for (const std::string recipe : {"mxfp8/te", "nvfp4/te-2d"}) {
    const Json got = error_of(ones, recipe, {});
    EXPECT_EQ(got.at("codes").at("used"), 1u);
    EXPECT_EQ(got.at("codes").at("entropy_bits"), 0);
    EXPECT_EQ(got.at("crest").at("max"), 1);
    EXPECT_EQ(got.at("by_sign").at("positive").at("elements"), 15u);
  }
}

TEST(ErrorPadding, BlocksOfZerosAloneHaveNoScaleThatCounts) {
  const Json got = error_of(uneven_values({2, 130}), "nvfp4/ms-eden", {"--seed", "9"});
  EXPECT_GT(got.at("scale_min").get<double>(), 0);
  EXPECT_EQ(got.at("scales").at("at_min"), 0);
  EXPECT_EQ(got.at("clusters"), 2u * 9);
}

// Rows of 40 are filled up to 64, of which 48 hold values once groups of 16 are rotated.
TEST(ErrorPadding, CountsWhereARotationHasMixedItIn) {
  const Array w = uneven_values({3, 40});
  const Words rotation{"--hadamard", "16"};
  const std::vector<float> x = Quantization(extended(w, {3, 48}), "bf16", rotation).values({"--keep-rotated"});
  const Array q{.shape = {3, 64},
                .x = Quantization(w, "mxfp8/te", joined({"--pad"}, rotation)).values({"--keep-rotated"})};
  expect_figures(error_of(w, "mxfp8/te", rotation), x, cropped(q, {3, 48}).x);
}

// Of 33 columns a row of 4-bit codes would end in half a byte; but nothing is stored.
TEST(ErrorAlongAnAxis, TakesAnOddNumberOfColumns) {
  const Array w = uneven_values({48, 33});
  const Quantization q(axis_last(w, 0), "nvfp4/te");
  expect_figures(error_of(w, "nvfp4/te", {"--axis", "0"}), axis_last(w, 0).x, q.values());
}

TEST(ErrorPadding, IsSuggestedWhereATensorIsSkipped) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", npy_of(uneven_values({3, 5})));
  const ProgramRun run = run_halfulp({"error", folder / "w.npy", "-r", "nvfp4/te,bf16"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.err.find("(--pad adds zeros)"), std::string::npos) << run.err;
}

// Zeros make no tile of a vector.
TEST(ErrorPadding, IsNotSuggestedWhereItDoesNotHelp) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", npy_of(uneven_values({32})));
  const ProgramRun run = run_halfulp({"error", folder / "w.npy", "-r", "nvfp4/te-2d,bf16"});
  EXPECT_NE(run.err.find("1 rows are not a multiple of 16"), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("--pad"), std::string::npos) << run.err;
}

TEST(ExplainPad, IsSuggestedForATensor) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", npy_of(uneven_values({3, 5})));
  const ProgramRun run = run_halfulp({"explain", folder / "w.npy", "-r", "nvfp4/te", "--block", "0"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("(--pad adds zeros)"), std::string::npos) << run.err;
}

TEST(ExplainPad, FillsValuesUpWithZeros) {
  Words all{"explain", "-r", "nvfp4/te", "3", "-2.5", "0.1"};
  const Words some = joined(all, {"--pad", "--json"});
  all = joined(all, Words(13, "0"));
  EXPECT_EQ(json_of(some), json_of(joined(all, {"--json"})));
}

TEST(ExplainPad, RefusesMoreThanABlock) {
  const ProgramRun run = run_halfulp(joined({"explain", "-r", "nvfp4/te", "--pad"}, Words(17, "1")));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("17 values are given"), std::string::npos) << run.err;
}

TEST(ExplainPad, GoesWithARecipe) {
  const ProgramRun run = run_halfulp({"explain", "-f", "e2m1", "1", "--pad"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("--pad goes with --recipe"), std::string::npos) << run.err;
}

// Every block of the padded tensor is that of the tensor with zeros added.
TEST(ExplainPad, TakesAnyBlockOfATensor) {
  const TemporaryDirectory folder;
  const Array w = uneven_values({5, 40});
  const std::vector<std::pair<std::string, Shape>> cases{
      {"nvfp4/te", {5, 48}}, {"nvfp4/te-2d", {16, 48}}, {"mxfp8/te", {5, 64}}};
  write_file(folder / "w.npy", npy_of(w));
  for (const auto& [recipe, padded] : cases) {
    write_file(folder / "large.npy", npy_of(extended(w, padded)));
    const uint64_t blocks = recipe == "nvfp4/te" ? 15 : recipe == "mxfp8/te" ? 10 : 3;
    for (uint64_t block = 0; block < blocks; ++block) {
      const Words options{"-r", recipe, "--json", "--block", std::to_string(block)};
      Json got = json_of(joined({"explain", folder / "w.npy", "--pad"}, options));
      Json expected = json_of(joined({"explain", folder / "large.npy"}, options));
      const uint64_t row = block / (recipe == "mxfp8/te" ? 2 : 3), width = recipe == "mxfp8/te" ? 32 : 16;
      const std::string from =
          "from element " + std::to_string(row * 40 + block % (recipe == "mxfp8/te" ? 2 : 3) * width);
      EXPECT_NE(got.at("origin").get<std::string>().find(from), std::string::npos) << got.at("origin");
      got.erase("origin"), expected.erase("origin");
      EXPECT_EQ(got, expected) << recipe << " block " << block;
    }
  }
}

TEST(ExplainPad, TellsHowMuchOfABlockIsPadding) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", npy_of(uneven_values({5, 40})));
  const Words words{"explain", folder / "w.npy", "-r", "nvfp4/te-2d", "--pad", "--json", "--block"};
  const auto origin = [&](const std::string& block) {
    return json_of(joined(words, {block})).at("origin").get<std::string>();
  };
  EXPECT_NE(origin("0").find("; 176 of its elements are added zeros."), std::string::npos) << origin("0");
  EXPECT_NE(origin("2").find("; 216 of its elements are added zeros."), std::string::npos) << origin("2");
}

}  // namespace
}  // namespace halfulp

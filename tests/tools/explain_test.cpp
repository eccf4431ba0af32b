// halfulp explain end to end.

#include <gtest/gtest.h>

#include <cmath>

#include "lib/json.h"
#include "tests/lib/test_files.h"
#include "tests/tools/golden.h"
#include "tests/tools/npy_bytes.h"
#include "tests/tools/run_program.h"
#include "tests/tools/stored_tensors.h"

namespace halfulp {
namespace {

std::string text(std::vector<std::string> words) {
  words.insert(words.begin(), "explain");
  const ProgramRun run = run_halfulp(words);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.out;
}

Json json(std::vector<std::string> words) {
  words.emplace_back("--json");
  return Json::parse(text(words));
}

// Of one value and one format.
Json value_json(const std::string& value, const std::string& format, const std::vector<std::string>& options = {}) {
  std::vector<std::string> words{value, "--format", format};
  words.insert(words.end(), options.begin(), options.end());
  return json(words).at("values").at(0);
}

std::string bits(const std::string& value, const std::string& type) {
  return value_json(value, "f32", {"--as", type}).at("input").at("bits").get<std::string>();
}

void expect_failure(const ProgramRun& run, const std::vector<std::string>& parts) {
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  for (const std::string& part : parts) EXPECT_NE(run.err.find(part), std::string::npos) << part << "\nin: " << run.err;
}

// What a lecture shows.

struct GoldenCase {
  const char* file;
  std::vector<std::string> words;
  friend void PrintTo(const GoldenCase& test, std::ostream* out) { *out << test.file; }
};

class ExplainGolden : public testing::TestWithParam<GoldenCase> {};

TEST_P(ExplainGolden, PrintsAsRecorded) { expect_golden(GetParam().file, text(GetParam().words)); }

const std::vector<std::string> kBlock{
    "1",          "-1",         ".9140625", ".75",        ".66796875",  ".58203125", ".5",          ".416015625",
    ".333984375", ".291015625", ".25",      ".208984375", ".166015625", ".125",      ".0830078125", ".041748046875"};

std::vector<std::string> with_block(std::vector<std::string> words) {
  words.insert(words.end(), kBlock.begin(), kBlock.end());
  return words;
}

INSTANTIATE_TEST_SUITE_P(Cases, ExplainGolden,
                         testing::Values(GoldenCase{"explain_between.txt", {"3.2", "-f", "e2m1"}},
                                         GoldenCase{"explain_tie.txt", {"-2.5", "-f", "e2m1"}},
                                         GoldenCase{"explain_exact.txt", {"448", "-f", "e4m3"}},
                                         GoldenCase{"explain_overflow.txt", {"465", "-f", "e4m3"}},
                                         GoldenCase{"explain_beyond.txt", {"-1000", "-f", "e4m3"}},
                                         GoldenCase{"explain_unsigned.txt", {"-3", "-f", "e8m0"}},
                                         GoldenCase{"explain_nan.txt", {"-nan", "-f", "e5m2"}},
                                         GoldenCase{"explain_block.txt",
                                                    with_block({"-r", "nvfp4/te", "--amax", "3"})}),
                         [](const auto& test) {
                           const std::string name = test.param.file;
                           return name.substr(0, name.find('.'));
                         });

// How a value is read.

TEST(Explain, RoundsTheDecimalItself) {
  EXPECT_EQ(bits("16777217", "f32"), "0x4b800000");  // a tie
  EXPECT_EQ(bits("16777217.00000000000000000000001", "f32"), "0x4b800001");
  EXPECT_EQ(bits("16777216.99999999999999999999999", "f32"), "0x4b800000");
}

TEST(Explain, RoundsADecimalToHalfOnce) {
  EXPECT_EQ(bits("1.00048828125", "f16"), "0x3c00");  // a tie
  EXPECT_EQ(bits("1.00048828125000000000000001", "f16"), "0x3c01");
}

TEST(Explain, TakesDoubles) { EXPECT_EQ(bits("0.1", "f64"), "0x3fb999999999999a"); }

TEST(Explain, TakesHexadecimalNumbers) { EXPECT_EQ(bits("-0x1.8p1", "bf16"), "0xc040"); }

TEST(Explain, TakesBits) { EXPECT_EQ(value_json("bits:0x404ccccd", "e2m1").at("input").at("value"), 0x1.99999ap+1); }

TEST(Explain, TakesNegativeZero) { EXPECT_EQ(bits("-0", "f32"), "0x80000000"); }

TEST(Explain, RefusesBitsThatAreTooWide) {
  expect_failure(run_halfulp({"explain", "bits:0x10000", "-f", "e2m1", "--as", "f16"}), {"16 bits"});
}

TEST(Explain, RefusesWhatIsNoNumber) {
  expect_failure(run_halfulp({"explain", "3,2", "-f", "e2m1"}), {"'3,2'", "no number"});
}

TEST(Explain, RefusesHexadecimalNumbersThatNoTypeHolds) {
  expect_failure(run_halfulp({"explain", "0x1.00000000000008p0", "-f", "e2m1", "--as", "f64"}), {"53"});
}

// What it says.

TEST(Explain, GivesTheIntervalOfTheLargestE4M3) {
  // 432 and 464 are ties, and 0x7e is even.
  const Json interval = value_json("448", "e4m3").at("intervals").at(1);
  EXPECT_EQ(interval.at("overflow"), "to-special");
  EXPECT_EQ(interval.at("interval"), "[432, 464]");
}

TEST(Explain, OpensTheIntervalOfAnOddCode) {
  EXPECT_EQ(value_json("416", "e4m3").at("intervals").at(0).at("interval"), "(400, 432)");
}

TEST(Explain, MirrorsTheIntervalOfANegativeCode) {
  EXPECT_EQ(value_json("-3.5", "e2m1").at("intervals").at(0).at("interval"), "[-5, -3.5]");
}

TEST(Explain, JoinsBothSidesOfTheOnlyZero) {
  EXPECT_EQ(value_json("0", "e4m3fnuz").at("intervals").at(0).at("interval"), "[-0.00048828125, 0.00048828125]");
}

TEST(Explain, CountsTheRandomWordsThatRoundAway) {
  // The fraction of an ulp is 0.3.
  const Json odds = value_json("2.3", "e3m2", {"--random-bits", "4"}).at("stochastic");
  EXPECT_EQ(odds.at("away_words"), 9);  // floor(0.6 * 16): e3m2 has 2 and 2.5 here
  EXPECT_EQ(odds.at("probability_away"), 0.5625);
}

TEST(Explain, TellsThatFractionsBelowTheRandomBitsAreCut) {
  const Json value = value_json("1e-30", "e4m3");
  EXPECT_EQ(value.at("stochastic").at("away_words"), 0);
  const std::string why = value.at("answers").at("saturate").at(7).at("why");
  EXPECT_NE(why.find("0 of 65536 random words"), std::string::npos) << why;
}

TEST(Explain, AnswersAsTheCodecOverAllRoundings) {
  std::vector<int> codes;
  const Json value = value_json("-1.1", "e2m1");
  for (const Json& answer : value.at("answers").at("saturate"))
    codes.push_back(answer.at("code").is_array() ? answer.at("code").at(1).get<int>() : answer.at("code").get<int>());
  EXPECT_EQ(codes, (std::vector<int>{0xa, 0xa, 0xa, 0xa, 0xa, 0xb, 0xb, 0xb}));  // rn rna rnz rz up down odd rs
}

TEST(Explain, TellsTheFormatsWithoutEvenCodes) {
  const Json answer = value_json("3", "e8m0").at("answers").at("saturate").at(0);
  EXPECT_EQ(answer.at("code"), 0x81);
  EXPECT_NE(answer.at("why").get<std::string>().find("both significands are odd"), std::string::npos);
}

// The block X of case T100: codes, scale and multiplier of Transformer Engine's kernel at a tensor amax of 3.
TEST(Explain, WalksTheBlockOfT100) {
  const Json walk = json(with_block({"-r", "nvfp4/te", "--amax", "3"}));
  std::string codes;
  for (const Json& element : walk.at("elements")) codes += "0123456789abcdef"[element.at("code").get<int>()];
  EXPECT_EQ(codes, "7f76665544332211");
  EXPECT_EQ(walk.at("steps").at(5).at("code"), 0x71);
  EXPECT_EQ(walk.at("steps").at(6).at("bits"), "0x40c71c71");
}

TEST(Explain, WalksABlockOfMxfp8) {
  std::vector<std::string> words{"-r", "mxfp8/ocp", "1.9375", "1.75", "-1.9375"};
  words.insert(words.end(), 29, "0");
  const Json walk = json(words);
  EXPECT_EQ(walk.at("steps").at(2).at("code"), 0x77);  // T137
  EXPECT_EQ(walk.at("elements").at(0).at("code"), 0x7e);
  EXPECT_EQ(walk.at("elements").at(0).at("note"), "saturated at 448");
  EXPECT_EQ(walk.at("elements").at(2).at("code"), 0xfe);
}

TEST(Explain, SumsUpTheBlock) {
  std::vector<std::string> words{"-r", "mxfp8/te", "1", "1.0625"};  // 1.0625 is a tie and becomes 1
  words.insert(words.end(), 30, "0");
  const Json walk = json(words);
  EXPECT_DOUBLE_EQ(walk.at("rel_mse").get<double>(), 0.0625 * 0.0625 / (1 + 1.0625 * 1.0625));
  EXPECT_DOUBLE_EQ(walk.at("shrinkage").get<double>(), 1 - (1 + 1.0625) / (1 + 1.0625 * 1.0625));
  EXPECT_EQ(walk.at("elements").at(1).at("note"), "tie");
}

// 6 goes to 6 without loss, and the others with it: 4.5 and 3.3 are no multiples of E2M1's values. 4 under a scale 1.5
// times as large has 3 and 4.5. A tensor of 2688 makes both tensor scales 1.
TEST(Explain, TellsWhichOfTwoScalesIsTakenAndWhy) {
  std::vector<std::string> words{"-r", "nvfp4/te-4over6-mae", "--amax", "2688", "6", "4.5"};
  words.insert(words.end(), 14, "3");
  const Json walk = json(words);
  const Json& candidates = walk.at("candidates");
  ASSERT_EQ(candidates.size(), 2u);
  EXPECT_EQ(candidates.at(0).at("s"), 1);
  EXPECT_EQ(candidates.at(0).at("loss"), 0.5) << "4.5 becomes 4";
  EXPECT_EQ(candidates.at(1).at("s"), 1.5);
  EXPECT_EQ(candidates.at(1).at("loss"), 0) << "all are multiples of 1.5";
  EXPECT_EQ(candidates.at(0).at("taken"), false);
  EXPECT_EQ(candidates.at(1).at("taken"), true);
  EXPECT_EQ(walk.at("steps").at(6).at("value"), 1.5) << "s, of the scale that is taken";
  EXPECT_NE(text(words).find("sum of abs(v - x)"), std::string::npos);
}

TEST(Explain, TakesTheFirstScaleAtATie) {
  std::vector<std::string> words{"-r", "nvfp4/te-4over6-mse", "--amax", "2688"};
  words.insert(words.end(), 16, "6");  // 6 * 1, and 4 * 1.5
  const Json candidates = json(words).at("candidates");
  EXPECT_EQ(candidates.at(0).at("loss"), 0);
  EXPECT_EQ(candidates.at(1).at("loss"), 0);
  EXPECT_EQ(candidates.at(0).at("taken"), true);
}

// What is said to be taken is what quantize stores.
TEST(Explain, TellsTheChoiceThatIsStored) {
  const TemporaryDirectory folder;
  const Array x = uneven_values({4, 16});
  write_file(folder / "x.npy", npy_of(x));
  int seconds = 0;
  for (const std::string recipe : {"nvfp4/te-4over6-mae", "nvfp4/te-4over6-mse-256", "nvfp4/fouroversix-mse",
                                   "nvfp4/fouroversix-mae", "nvfp4/fouroversix-abs-max"}) {
    const Quantization stored(x, recipe);
    for (std::size_t block = 0; block < 4; ++block) {
      const Json candidates = json({"-r", recipe, folder / "x.npy", "--block", std::to_string(block)}).at("candidates");
      const bool second = candidates.at(1).at("taken");
      EXPECT_NE(candidates.at(0).at("taken").get<bool>(), second);
      EXPECT_EQ(candidates.at(second).at("code"), int(uint8_t(stored.scales().bytes[block]))) << recipe << block;
      seconds += second;
    }
  }
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 20);
}

// Scales of a correction's other blocks are their own: the first block's is no function of them.
TEST(Explain, ShowsTheFirstBlockOfACorrection) {
  std::vector<std::string> words{"-r", "nvfp4/ms-eden", "--seed", "1"};
  words.insert(words.end(), 16, "1");
  words.insert(words.end(), 112, "5");
  const Json walk = json(words);
  EXPECT_EQ(walk.at("elements").size(), 16u);
  EXPECT_EQ(walk.at("steps").at(0).at("value"), 5) << "A";
  EXPECT_EQ(walk.at("steps").at(2).at("value"), 1) << "a";
}

// The choice is made before, of the block alone.
TEST(Explain, TellsTheChoiceOfABlockThatIsCorrectedLater) {
  const std::string recipe = "nvfp4/te-4over6-mae";
  std::vector<std::string> block, group;
  for (int i = 0; i < 16; ++i) block.push_back(std::to_string(i * 0.37 - 2));
  group = block;
  group.insert(group.end(), 16, "1");
  block.insert(block.end(), {"--amax", "5", "-r", recipe});
  group.insert(group.end(), {"--amax", "5", "-r", recipe + "+correction-group=32+s2=s * v"});
  EXPECT_EQ(json(group).at("candidates"), json(block).at("candidates"));
}

// The scale that is stored is a neighbour of s times the correction, which is near 1.
TEST(Explain, TellsTheCorrectionOfAScale) {
  std::vector<std::string> words{"-r", "nvfp4/ms-eden", "--seed", "1"};
  for (int i = 0; i < 128; ++i) words.push_back(std::to_string(i % 16 * 0.37 - 2));
  const Json steps = json(words).at("steps");
  const double s = steps.at(4).at("value"), v = steps.at(6).at("value"), corrected = steps.at(7).at("value");
  EXPECT_EQ(steps.at(6).at("step"), "v");
  EXPECT_NEAR(v, 1, 0.1);
  EXPECT_NE(v, 1);
  EXPECT_NEAR(corrected, s * v, s / 8) << "within a step of E4M3";
}

// The first block takes its first scale, the second its other one; all elements are multiples of what they take.
TEST(Explain, CorrectsWithTheScalesThatAreTaken) {
  std::vector<std::string> words{"-r", "nvfp4/te-4over6-mae+correction-group=32+s2=s * v", "--amax", "2688", "6"};
  words.insert(words.end(), 15, "2");
  words.insert(words.end(), {"6", "4.5"});
  words.insert(words.end(), 14, "3");
  const Json walk = json(words);
  EXPECT_EQ(walk.at("candidates").at(0).at("taken"), true);
  EXPECT_EQ(walk.at("steps").at(8).at("step"), "v");
  EXPECT_EQ(walk.at("steps").at(8).at("value"), 1);
}

TEST(Explain, TakesABlockOfATensor) {
  TemporaryDirectory folder;
  std::vector<float> values(32, 1);
  values[16] = 6;
  write_file(folder / "x.npy", npy_vector("<f4", values));
  const Json walk = json({"-r", "nvfp4/te", folder / "x.npy", "--block", "0"});
  EXPECT_EQ(walk.at("steps").at(0).at("value"), 6) << "the tensor's amax, not the block's";
  EXPECT_EQ(walk.at("steps").at(3).at("value"), 1);
}

TEST(Explain, RefusesABlockOfAnotherSize) {
  expect_failure(run_halfulp({"explain", "1", "2", "3", "-r", "nvfp4/te"}), {"blocks of 16", "3 values"});
}

TEST(Explain, RefusesAnAmaxWhereNoTensorScaleIs) {
  std::vector<std::string> words{"explain", "-r", "mxfp8/te", "--amax", "3"};
  words.insert(words.end(), 32, "1");
  expect_failure(run_halfulp(words), {"--amax"});
}

TEST(Explain, RefusesAnOptionOfTheOtherKind) {
  expect_failure(run_halfulp({"explain", "1", "-f", "e2m1", "--amax", "3"}), {"--amax", "--recipe"});
  expect_failure(run_halfulp({"explain", "1", "-r", "bf16", "--random-bits", "3"}), {"--random-bits", "--format"});
}

// A message repeats the beginning of what it is about.
TEST(Explain, RepeatsNoMoreThanTheBeginningOfALongNumber) {
  for (const std::string& number : {"1e" + std::string(100000, '9'), "bits:" + std::string(100000, '1'),
                                    "0x" + std::string(100000, 'f'), "0x1." + std::string(100000, 'f')}) {
    const ProgramRun run = run_halfulp({"explain", number, "-f", "e2m1"});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_LT(run.err.size(), 400u);
  }
}

TEST(Explain, NeedsAFormatOrARecipe) { expect_failure(run_halfulp({"explain", "1"}), {"--format", "--recipe"}); }

TEST(Explain, SuggestsAFormat) {
  expect_failure(run_halfulp({"explain", "1", "-f", "e4m4"}), {"did you mean 'e4m3'?"});
}

}  // namespace
}  // namespace halfulp

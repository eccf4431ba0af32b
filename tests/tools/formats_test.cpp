// halfulp formats end to end.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "emulation/blocks/hadamard.h"
#include "emulation/blocks/layout.h"
#include "emulation/blocks/recipe_fields.h"
#include "emulation/matmul/accumulator.h"
#include "lib/json.h"
#include "tests/tools/golden.h"
#include "tests/tools/run_program.h"

namespace halfulp {
namespace {

std::string text(std::vector<std::string> words) {
  words.insert(words.begin(), "formats");
  const ProgramRun run = run_halfulp(words);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.out;
}

Json json(std::vector<std::string> words) {
  words.emplace_back("--json");
  return Json::parse(text(words));
}

// The first row of that name.
Json found(const std::string& name) { return json({name}).at("found").at(0); }

struct GoldenCase {
  const char* file;
  std::vector<std::string> words;
  friend void PrintTo(const GoldenCase& test, std::ostream* out) { *out << test.file; }
};

class FormatsGolden : public testing::TestWithParam<GoldenCase> {};

TEST_P(FormatsGolden, PrintsAsRecorded) { expect_golden(GetParam().file, text(GetParam().words)); }

INSTANTIATE_TEST_SUITE_P(
    Cases, FormatsGolden,
    testing::Values(GoldenCase{"formats_format.txt", {"e2m1"}}, GoldenCase{"formats_rounding.txt", {"rna"}},
                    GoldenCase{"formats_recipe.txt", {"nvfp4/te"}}, GoldenCase{"formats_fields.txt", {"recipe-fields"}},
                    GoldenCase{"formats_formula.txt", {"formula"}}, GoldenCase{"formats_field.txt", {"amax-nan"}},
                    GoldenCase{"formats_instruction.txt", {"cvt.rs.satfinite.e2m1x4.f32"}},
                    GoldenCase{"formats_catalog.csv", {"roundings", "--csv"}},
                    GoldenCase{"formats_diff_order.txt", {"nvfp4/te", "--diff", "nvfp4/modelopt"}},
                    GoldenCase{"formats_diff_scale.txt", {"mxfp8/te", "--diff", "mxfp8/ocp"}}),
    [](const auto& test) {
      const std::string name = test.param.file;
      return name.substr(0, name.find('.'));
    });

// Each catalog's name and what a row's description says that it is.
const std::vector<std::pair<std::string, std::string>> kCatalogs{{"formats", "format"},
                                                                 {"roundings", "rounding"},
                                                                 {"recipes", "recipe"},
                                                                 {"recipe-fields", "recipe-field"},
                                                                 {"formula", "formula-term"},
                                                                 {"scale-layouts", "scale-layout"},
                                                                 {"nibble-orders", "nibble-order"},
                                                                 {"hadamard-signs", "hadamard-sign"},
                                                                 {"instructions", "instruction"},
                                                                 {"accumulators", "accumulator"},
                                                                 {"policies", "policy"}};

TEST(Formats, DescribesEverythingThatItLists) {
  const Json catalogs = json({});
  EXPECT_EQ(catalogs.size(), kCatalogs.size() + 1) << "a catalog is missing here, or there";
  for (const auto& [catalog, kind] : kCatalogs) {
    EXPECT_FALSE(catalogs.at(catalog).empty()) << catalog;
    for (const Json& row : catalogs.at(catalog)) {
      const std::string name = row.at("name").get<std::string>();
      const Json rows = json({name}).at("found");
      const auto is_row = [&, &described = kind](const Json& description) {
        return description.at("name") == name && description.at("kind") == described;
      };
      EXPECT_EQ(std::ranges::count_if(rows, is_row), 1) << catalog << " " << name;
    }
  }
}

TEST(Formats, HelpOfQuantizeStatesTheDefaultSigns) {
  const ProgramRun run = run_halfulp({"quantize", "--help"});
  EXPECT_NE(run.out.find("else none"), std::string::npos) << run.out;
}

TEST(Formats, HelpNamesEveryCatalog) {
  const std::string help = text({"--help"});
  for (const auto& [catalog, kind] : kCatalogs) EXPECT_NE(help.find(catalog), std::string::npos) << catalog;
}

// What a user can state is listed: every name of the tables that a recipe and quantize are read by.
template <class Rows>
void expect_listed(const std::string& catalog, const Rows& rows) {
  std::vector<std::string> listed;
  const Json json_rows = json({catalog}).at(catalog);
  for (const Json& row : json_rows) listed.push_back(row.at("name").get<std::string>());
  for (const auto& row : rows) EXPECT_EQ(std::ranges::count(listed, row.name), 1) << catalog << " " << row.name;
}

TEST(Formats, ListsWhatAFormulaMayHave) {
  expect_listed("formula", kSymbols);
  expect_listed("formula", kFunctions);
  expect_listed("formula", kConstants);
  expect_listed("formula", kOperators);
}

TEST(Formats, ListsAccumulators) { expect_listed("accumulators", kAccumulators); }

TEST(Formats, ListsWhatARecipeStates) { expect_listed("recipe-fields", recipe_fields()); }

TEST(Formats, ListsWhatQuantizeTakes) {
  expect_listed("scale-layouts", kScaleLayouts);
  expect_listed("nibble-orders", kNibbleOrders);
  expect_listed("hadamard-signs", kHadamardSigns);
}

// The defaults, as a file makes a recipe of them, are those of a file that states nothing.
TEST(Formats, DefaultsOfFieldsAreThoseOfAnEmptyFile) {
  const TemporaryDirectory folder;
  std::string toml;
  for (const Json& row : json({"recipe-fields"}).at("recipe-fields"))
    if (const std::string text = row.at("default"); !text.empty())
      toml += row.at("name").get<std::string>() + " = '" + text + "'\n";
  write_file(folder / "defaults.toml", toml);
  write_file(folder / "empty.toml", "");
  EXPECT_TRUE(json({folder / "empty.toml", "--diff", folder / "defaults.toml"}).at("fields").empty());
}

TEST(Formats, TellsTheChoicesOfAField) {
  const Json field = found("edge");
  EXPECT_EQ(field.at("default"), "refused");
  ASSERT_EQ(field.at("choices").size(), 2u);
  EXPECT_EQ(field.at("choices").at(1).at("choice"), "partial");
  EXPECT_NE(field.dump().find("fp8/deepseek-1x128"), std::string::npos) << "whose last block may be partial";
}

TEST(Formats, TellsTheSymbolsOfAFormula) {
  const Json symbols = found("loss").at("symbols");
  ASSERT_EQ(symbols.size(), 2u);
  EXPECT_EQ(symbols.at(0).at("symbol"), "x");
  EXPECT_EQ(symbols.at(1).at("symbol"), "v");
}

TEST(Formats, TellsWhereASymbolMayBeNamed) {
  std::vector<std::string> fields;
  const Json symbol = json({"squares"}).at("found").at(0);
  for (const Json& row : symbol.at("fields")) fields.push_back(row.at("field").get<std::string>());
  EXPECT_EQ(fields, (std::vector<std::string>{"d", "m", "d2"}));
  EXPECT_NE(symbol.at("uses").dump().find("mxfp4/quartet"), std::string::npos);
}

// Words within a longer word are not its uses.
TEST(Formats, FindsUsesByWholeWords) {
  for (const Json& use : json({"max"}).at("found").at(0).at("uses"))
    EXPECT_NE(use.at("formula").get<std::string>().find("max("), std::string::npos) << use;
}

TEST(Formats, GivesEveryValueOfANarrowFormat) {
  const Json values = found("e4m3").at("values");
  ASSERT_EQ(values.size(), 256u);
  const double subnormals[] = {0.0,         0.001953125, 0.00390625,  0.005859375, 0.0078125,
                               0.009765625, 0.01171875,  0.013671875, 0.015625};  // OFP8 v1.0: m * 2^-9
  for (std::size_t code = 0; code < std::size(subnormals); ++code)
    EXPECT_EQ(values[code].at("value"), subnormals[code]) << code;
  EXPECT_EQ(values[0x7e].at("value"), 448);
  EXPECT_EQ(values[0x7f].at("value"), "nan");
  EXPECT_EQ(values[0xfe].at("fields"), "1|1111|110");
}

TEST(Formats, FindsAnAlias) { EXPECT_EQ(found("bfloat16").at("name"), "bf16"); }

TEST(Formats, DescribesAllOfOneName) {
  const Json all = json({"bf16"}).at("found");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].at("kind"), "format");
  EXPECT_EQ(all[1].at("kind"), "recipe");
  EXPECT_EQ(all[2].at("kind"), "formula-term");
}

TEST(Formats, ShowsOneCatalog) { EXPECT_EQ(json({"recipes"}).size(), 2u) << "recipes and the schema"; }

TEST(Formats, TellsLanesAndRandomBits) {
  const Json lanes = found("cvt.rs.satfinite.e4m3x4.f32").at("lanes");
  ASSERT_EQ(lanes.size(), 4u);
  EXPECT_EQ(lanes[3].at("operand"), "a");
  EXPECT_EQ(lanes[3].at("d_bits"), "[31:24]");
  EXPECT_EQ(lanes[3].at("of_0x12345678"), 0x2c48);  // T075
  EXPECT_EQ(lanes[0].at("of_0x12345678"), 0x5678);
}

class FormatsSuggestion : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(FormatsSuggestion, IsNear) {
  const ProgramRun run = run_halfulp({"formats", GetParam().first});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find(std::string("did you mean '") + GetParam().second + "'?"), std::string::npos) << run.err;
}

INSTANTIATE_TEST_SUITE_P(Catalogs, FormatsSuggestion,
                         testing::Values(std::pair{"e4m4", "e4m3"}, std::pair{"nearest-evn", "nearest-even"},
                                         std::pair{"nvfp4te", "nvfp4/te"}, std::pair{"recipe", "recipes"},
                                         std::pair{"recipe-field", "recipe-fields"},
                                         std::pair{"swizzled", "swizzled-128x4"}, std::pair{"even_log", "even_log2"},
                                         std::pair{"cvt.rn.satfinite.e4m3x2.f23", "cvt.rn.satfinite.e4m3x2.f32"}));

TEST(Formats, RepeatsNoMoreThanTheBeginningOfALongName) {
  const ProgramRun run = run_halfulp({"formats", std::string(50000, 'x')});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_LT(run.err.size(), 400u);
}

// e4m3 is a format, and a function of formulas; d is a field of recipes and a symbol of formulas.
TEST(Formats, PointsToAFunctionThatHasAFormatsName) {
  const std::string e4m3 = text({"e4m3"});
  EXPECT_NE(e4m3.find("e4m3(p)"), std::string::npos);
  EXPECT_EQ(e4m3.find("Formulas of recipes that have it"), std::string::npos);
  EXPECT_NE(text({"d"}).find("d, a symbol of formulas"), std::string::npos);
}

// Two recipes by what --diff says of them.
Json difference(const std::string& first, const std::string& second) { return json({first, "--diff", second}); }

TEST(FormatsDiff, ListsTheFieldsThatDiffer) {
  const Json fields = difference("mxfp8/te", "mxfp8/te+block=1x16+amax-nan=propagates").at("fields");
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[0].at("field"), "block");
  EXPECT_EQ(fields[0].at("first"), "1x32");
  EXPECT_EQ(fields[0].at("second"), "1x16");
  EXPECT_EQ(fields[1].at("field"), "amax-nan");
}

TEST(FormatsDiff, NamesBoth) {
  const Json diff = difference("bf16", "bf16+rounding=toward-zero");
  EXPECT_EQ(diff.at("first"), "bf16");
  EXPECT_EQ(diff.at("second"), "bf16+rounding=toward-zero");
}

// BF16 with 8 significant bits: toward zero is the value itself or the one below, to nearest one of both.
TEST(FormatsDiff, ShowsElementsThatDiffer) {
  const Json elements = difference("bf16", "bf16+rounding=toward-zero").at("elements");
  ASSERT_FALSE(elements.empty());
  for (const Json& element : elements) {
    const double x = element.at("x"), nearest = element.at("first_value"), cut = element.at("second_value");
    EXPECT_LE(std::abs(cut), std::abs(x));
    EXPECT_GT(std::abs(nearest), std::abs(x));
    EXPECT_LE(std::abs(nearest - x), std::abs(cut - x));
    EXPECT_EQ(element.at("first_code").get<int>(), element.at("second_code").get<int>() + 1);
  }
}

// Recipes that part at special blocks only.
TEST(FormatsDiff, FindsRareBlocks) {
  for (const std::string second : {"mxfp8/te+amax-nan=propagates", "mxfp8/te+zero=positive", "mxfp8/te+inf=to-nan"})
    EXPECT_FALSE(difference("mxfp8/te", second).at("elements").empty()) << second;
}

// A scale's fields say nothing about a recipe without one.
TEST(FormatsDiff, ShowsNoTextOfAFieldThatSaysNothing) {
  const Json fields = difference("bf16", "fp8/torchao-rowwise").at("fields");
  const auto row = std::ranges::find_if(fields, [](const Json& f) { return f.at("field") == "scale-overflow"; });
  ASSERT_NE(row, fields.end());
  EXPECT_EQ(row->at("first"), "-");
  EXPECT_EQ(row->at("second"), "to-special");
}

TEST(FormatsDiff, ShowsWhatBytesDifferInBeforeValues) {
  const Json diff = difference("nvfp4/te", "nvfp4/flashinfer");  // both ignore a NaN among numbers
  EXPECT_NE(diff.at("example").get<std::string>().find("NaN only"), std::string::npos) << diff.at("example");
  EXPECT_NE(diff.at("first_scales"), diff.at("second_scales"));
}

TEST(FormatsDiff, SaysThatEdgesAreNoMatterOfABlock) {
  const std::string example = difference("mxfp8/te", "mxfp8/te+edge=partial").at("example");
  EXPECT_NE(example.find("not whole blocks"), std::string::npos) << example;
}

TEST(FormatsDiff, NamesTheSeedOfRandomBits) {
  const std::string example = difference("bf16", "bf16+rounding=stochastic").at("example");
  EXPECT_NE(example.find("seed 1"), std::string::npos) << example;
}

TEST(FormatsDiff, ListsAsManyElementsAsAPersonReads) {
  const std::vector<std::string> words{"fp8/deepseek-1x128", "--diff", "fp8/deepseek-128x128"};
  const std::string shown = text(words);
  EXPECT_LT(std::ranges::count(shown, '\n'), 50);
  const std::size_t all = json(words).at("elements").size();
  EXPECT_NE(shown.find("and " + std::to_string(all - 32) + " more"), std::string::npos) << shown;
}

TEST(FormatsDiff, TakesFiles) {
  const TemporaryDirectory folder;
  write_file(folder / "a.toml", "base = 'mxfp8/te'\n");
  write_file(folder / "b.toml", "base = 'mxfp8/te'\nname = 'mine'\nblock = '1x16'\n");
  const Json diff = difference(folder / "a.toml", folder / "b.toml");
  EXPECT_EQ(diff.at("first"), folder / "a.toml");
  EXPECT_EQ(diff.at("second"), "mine");
  ASSERT_EQ(diff.at("fields").size(), 1u);
  EXPECT_EQ(diff.at("fields").at(0).at("second"), "1x16");
}

TEST(FormatsDiff, SaysThatNothingDiffers) {
  const Json diff = difference("nvfp4/te", "nvfp4/te");
  EXPECT_TRUE(diff.at("fields").empty());
  EXPECT_TRUE(diff.at("elements").empty());
  const std::string words = text({"nvfp4/te", "--diff", "nvfp4/te"});
  EXPECT_NE(words.find("No field differs."), std::string::npos) << words;
  EXPECT_EQ(words.find("Elements that differ"), std::string::npos) << words;
}

// A field may differ and no block: twice the same number.
TEST(FormatsDiff, SaysWhereOnlyWordsDiffer) {
  const Json diff = difference("mxfp8/te", "mxfp8/te+q=s * c");
  EXPECT_EQ(diff.at("fields").size(), 1u);
  EXPECT_TRUE(diff.at("elements").empty());
}

// A group that is no multiple of the other's block, tiles of whole rows, and none.
TEST(FormatsDiff, TakesAnyTwoBlocks) {
  for (const std::string second : {"mxfp8/te+block=1x200", "mxfp8/te+block=4xrow", "bf16"})
    EXPECT_FALSE(difference("nvfp4/ms-eden", second).at("fields").empty()) << second;
}

TEST(FormatsDiff, PrintsTheFieldsAsCsv) {
  const std::string csv = text({"mxfp8/te", "--diff", "mxfp8/te+block=1x16", "--csv"});
  EXPECT_EQ(csv.substr(0, csv.find("1x32")), "field,first,second,meaning\nblock,") << csv;
}

struct BadDiff {
  std::vector<std::string> words;
  int exit_code;
  std::string says;
};

class FormatsBadDiff : public testing::TestWithParam<BadDiff> {};

TEST_P(FormatsBadDiff, IsRefused) {
  std::vector<std::string> words = GetParam().words;
  words.insert(words.begin(), "formats");
  const ProgramRun run = run_halfulp(words);
  EXPECT_EQ(run.exit_code, GetParam().exit_code) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find(GetParam().says), std::string::npos) << run.err;
}

INSTANTIATE_TEST_SUITE_P(
    Words, FormatsBadDiff,
    testing::Values(BadDiff{{"--diff", "bf16"}, 2, "--diff"}, BadDiff{{"e4m3", "--diff", "bf16"}, 2, "'e4m3'"},
                    BadDiff{{"bf16", "--diff", "e4m3"}, 2, "'e4m3'"},
                    BadDiff{{"nvfp4/te", "--diff", "nvfp4/tee"}, 2, "did you mean 'nvfp4/te'?"},
                    BadDiff{{"nvfp4/te", "--diff", "nvfp4/te+foo=1"}, 2, "no field 'foo'"},
                    BadDiff{{"bf16", "--diff", "nowhere.toml"}, 3, "nowhere.toml"},
                    BadDiff{{"bf16", "--diff", "f16", "--csv", "--json"}, 2, "--json and --csv"},
                    BadDiff{{"mxfp8/te", "--diff", "mxfp8/te+block=1x1048576"}, 2, "--diff"},
                    BadDiff{{"mxfp8/te", "--diff", "mxfp8/te+block=1048576x1048576"}, 2, "--diff"}));

}  // namespace
}  // namespace halfulp

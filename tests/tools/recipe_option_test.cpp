// Recipes that a user states, on the command line or in a TOML file, through the verbs that take one.

#include <algorithm>

#include "emulation/blocks/recipe_fields.h"
#include "emulation/blocks/recipes.h"
#include "lib/json.h"
#include "tests/tools/stored_tensors.h"

namespace halfulp {
namespace {

// mxfp8/te-e5m2, by what it changes of mxfp8/te, and whole.
constexpr char kE5m2OnTheLine[] = "mxfp8/te+element=e5m2+d=a * (1 / 57344)";
constexpr char kE5m2OnABase[] = "base = 'mxfp8/te'\nelement = 'e5m2'\nd = 'a * (1 / 57344)'\n";
constexpr char kE5m2Whole[] = R"toml(name = "mine"
element = "e5m2"
rounding = "nearest-even"
overflow = "saturate"
block = "1x32"
scale = "e8m0"
scale-rounding = "up"
scale-overflow = "saturate"
d = "a * (1 / 57344)"  # of the largest magnitude
m = "1 / s"
y = "x * m"
q = "c * s"
)toml";

const Array& tensor() {
  static const Array kTensor = uneven_values({16, 128});
  return kTensor;
}

void expect_same_result(const Quantization& got, const Quantization& expected) {
  EXPECT_EQ(got.file.tensors, expected.file.tensors);
  EXPECT_EQ(raw_bytes(got.values()), raw_bytes(expected.values()));
}

// A stated recipe's tensors, and its values by way of its file alone, are those of the catalog's row.
void expect_row(const std::string& stated, const std::string& row) {
  expect_same_result(Quantization(tensor(), stated), Quantization(tensor(), row));
}

// What comes of a recipe in a TOML file that is gone before the quantized file is read.
Quantization by_toml(const std::string& toml) {
  const TemporaryDirectory folder;
  write_file(folder / "r.toml", toml);
  return Quantization(tensor(), folder / "r.toml");
}

TEST(StatedRecipe, ChangesTheFieldsThatItNames) { expect_row(kE5m2OnTheLine, "mxfp8/te-e5m2"); }

TEST(StatedRecipe, HasItsOwnBlock) {
  const Quantization q(tensor(), "mxfp8/te+block=2x64");
  EXPECT_EQ(q.scales().shape, (Shape{8, 2}));
}

TEST(StatedRecipe, MayHaveAPlusInAFormula) {
  expect_row("mxfp8/te+d=a * (1 / 448)+0+m=1 / s+0", "mxfp8/te");
  expect_row("mxfp8/te+q=0+c * s", "mxfp8/te");
}

// A field's name, + before it and = after it, but in a comparison.
TEST(StatedRecipe, MayCompareASumInAFormula) { expect_row("mxfp8/te+y=x+m==1 ? x * m : x * m", "mxfp8/te"); }

TEST(StatedRecipe, MayHaveCommasInParentheses) {
  expect_row("mxfp8/te+d=min(max(a * (1 / 448), 0), FLT_MAX)", "mxfp8/te");
}

TEST(StatedRecipe, InAFileChangesItsBase) {
  expect_same_result(by_toml(kE5m2OnABase), Quantization(tensor(), "mxfp8/te-e5m2"));
}

TEST(StatedRecipe, InAFileNeedsNoBase) {
  expect_same_result(by_toml(kE5m2Whole), Quantization(tensor(), "mxfp8/te-e5m2"));
}

TEST(StatedRecipe, WithoutFieldsAndBaseIsBf16) {
  expect_same_result(by_toml("# nothing\n"), Quantization(tensor(), "bf16"));
}

TEST(StatedRecipe, FileIsReadBackThoughItsNameIsAnothers) {
  const Quantization q = by_toml(std::string(kE5m2OnABase) + "name = 'nvfp4/te'\n");
  expect_same_result(q, Quantization(tensor(), "mxfp8/te-e5m2"));
}

// What TOML escapes, and what it may hold as it is.
TEST(StatedRecipe, FileIsReadBackWhateverItsName) {
  for (const std::string name : {R"(quote \" and \\)", R"(a\nb\tc\u0001\u007f)", "\xc3\xa9", ""})
    expect_same_result(by_toml(std::string(kE5m2OnABase) + "name = \"" + name + "\"\n"),
                       Quantization(tensor(), "mxfp8/te-e5m2"));
}

TEST(StatedRecipe, MetadataHasItsNameAndDefinition) {
  const SafetensorsMetadata metadata = by_toml(kE5m2Whole).file.metadata;
  EXPECT_EQ(metadata.at("recipe"), "mine");
  EXPECT_NE(metadata.at("recipe_definition").find("d = \"a * (1 / 57344)\"\n"), std::string::npos);
  EXPECT_FALSE(Quantization(tensor(), "mxfp8/te").file.metadata.contains("recipe_definition"));
}

// Each row of the catalog, stated as itself with one field that it has anyway.
TEST(StatedRecipe, FileIsReadBackForEveryRow) {
  for (const Recipe& row : kRecipes) {
    std::string stated(row.name);
    for (const RecipeField& field : recipe_fields())
      if (field.name == "edge") stated += "+edge=" + field.text(row);
    SCOPED_TRACE(stated);
    const Words seed = is_random(row) ? Words{"--seed", "1"} : Words{};
    const Quantization named(tensor(), std::string(row.name), seed), got(tensor(), stated, seed);
    expect_same_result(got, named);
    EXPECT_TRUE(got.file.metadata.contains("recipe_definition"));
  }
}

Json json_of(const Words& words) {
  const ProgramRun run = run_halfulp(words);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.exit_code == 0 ? Json::parse(run.out) : Json();
}

class StatedRecipeVerbs : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ / "w.npy", npy_of(tensor()));
    write_file(folder_ / "r.toml", kE5m2Whole);
  }

  std::vector<std::string> names_in_error(const Words& recipes) {
    Words words{"error", folder_ / "w.npy", "--json", "--progress", "none"};
    for (const std::string& recipe : recipes) words.insert(words.end(), {"-r", recipe});
    std::vector<std::string> names;
    const Json json = json_of(words);
    for (const Json& result : json.at("results")) names.push_back(result.at("recipe").get<std::string>());
    return names;
  }

  TemporaryDirectory folder_;
};

TEST_F(StatedRecipeVerbs, ErrorNamesThemAsStated) {
  EXPECT_EQ(names_in_error({"mxfp8/te+block=1x16", folder_ / "r.toml"}), (Words{"mxfp8/te+block=1x16", "mine"}));
}

TEST_F(StatedRecipeVerbs, CommasPartRecipesOutsideOfParentheses) {
  EXPECT_EQ(names_in_error({"mxfp8/te+d=min(a,max(a,1)),bf16,mxfp8/te+d=(a)", "f16"}),
            (Words{"mxfp8/te+d=min(a,max(a,1))", "bf16", "mxfp8/te+d=(a)", "f16"}));
}

TEST_F(StatedRecipeVerbs, ErrorMeasuresThem) {
  const Json stated = json_of({"error", folder_ / "w.npy", "--json", "-r", kE5m2OnTheLine});
  const Json row = json_of({"error", folder_ / "w.npy", "--json", "-r", "mxfp8/te-e5m2"});
  EXPECT_EQ(stated.at("results").at(0).at("rel_mse"), row.at("results").at(0).at("rel_mse"));
}

TEST_F(StatedRecipeVerbs, FormatsDescribesThem) {
  const Json line = json_of({"formats", "mxfp8/te+block=1x16", "--json"}).at("found").at(0);
  EXPECT_EQ(line.at("name"), "mxfp8/te+block=1x16");
  EXPECT_EQ(line.at("block"), "1 x 16");
  EXPECT_EQ(json_of({"formats", folder_ / "r.toml", "--json"}).at("found").at(0).at("name"), "mine");
}

TEST_F(StatedRecipeVerbs, ExplainWalksThroughThem) {
  const Json json = json_of({"explain", "-r", "mxfp8/te+block=1x2", "1", "448", "--json"});
  EXPECT_EQ(json.at("elements").size(), 2u);
  EXPECT_NE(json.dump().find("mxfp8/te+block=1x2"), std::string::npos);
}

// A recipe that cannot be, and words of the message.
struct BadRecipe {
  std::string name;
  std::string recipe;
  std::vector<std::string> says;
  friend void PrintTo(const BadRecipe& test, std::ostream* out) { *out << test.recipe.substr(0, 80); }
};

const std::string kDeep(100000, '(');

const std::vector<BadRecipe> kBadRecipes{
    {"UnknownBase", "mxfp8/t+d=a", {"no recipe is called 'mxfp8/t'", "did you mean 'mxfp8/te'?"}},
    {"NoBase", "+d=a", {"no recipe is called ''"}},
    {"UnknownField",
     "mxfp8/te+foo=3",
     {"mxfp8/te+foo=3", "no field 'foo'", "element, rounding,", "'halfulp formats recipe-fields'"}},
    {"FieldOfTheWrongCase", "mxfp8/te+D=a", {"no field 'D'", "did you mean 'd'?"}},
    {"FieldWithoutText", "mxfp8/te+d=", {"mxfp8/te+d=", "not stated: d "}},
    {"FieldWithoutEquals", "mxfp8/te+block", {"expected FIELD=TEXT", "got 'block'"}},
    {"NothingAfterThePlus", "mxfp8/te+", {"expected FIELD=TEXT", "got ''"}},
    {"FieldTwice", "mxfp8/te+block=1x32+block=1x16", {"block is given twice"}},
    {"UnknownChoice", "mxfp8/te+rounding=sideways", {"rounding = 'sideways'", "nearest-even, "}},
    {"UnknownFormat", "mxfp8/te+scale=e9m9", {"scale = 'e9m9'", "the name of a format"}},
    {"FormatOfTheWrongCase", "mxfp8/te+element=E4M3", {"did you mean 'e4m3'?"}},
    {"BlockOfNoRows", "mxfp8/te+block=0x32", {"block = '0x32'", "from 1 to 2^20"}},
    {"BlockWithoutColumns", "mxfp8/te+block=1x", {"block = '1x'"}},
    {"BlockThatIsNoShape", "mxfp8/te+block=32", {"block = '32'", "ROWSxCOLUMNS"}},
    {"BlockOfOne", "mxfp8/te+block=1x1", {"a scale needs a block"}},
    {"BlockWithoutScale", "bf16+block=1x32", {"a block needs a scale"}},
    {"OddBlockOfFourBits", "nvfp4/te+block=1x3", {"4-bit codes", "even number of columns"}},
    {"ScaleOfSixteenBits", "mxfp8/te+scale=bf16", {"8 or 32 bits"}},
    {"StochasticScale", "mxfp8/te+scale-rounding=stochastic", {"scale-rounding"}},
    {"OneOfTwoFormulas", "mxfp8/te+S_enc=A", {"S_enc needs S_dec"}},
    {"ChoiceWithoutLoss", "mxfp8/te+d2=a", {"d2 needs v and loss"}},
    {"CorrectionWithoutScale", "mxfp8/te+correction-group=64", {"correction-group needs s2"}},
    {"CorrectionOfPartialBlocks", "mxfp8/te+correction-group=48+s2=s", {"correction-group"}},
    {"CorrectionOfTiles", "mxfp8/te+block=2x32+correction-group=64+s2=s", {"correction-group"}},
    {"CorrectionOfWholeRows", "nvfp4/ms-eden+block=1xrow", {"correction-group"}},
    {"WordsForNoFours", "mxfp8/te+block=1x6+random=te", {"random = te"}},
    {"SymbolWithoutValue",
     "mxfp8/te+d=a * m",
     {"d = 'a * m'", "m, factor of the block's elements, has no value there", "expected a formula of A"}},
    {"UnknownSymbol", "mxfp8/te+d=a + foo", {"d = 'a + foo'", "position 5", "'foo'"}},
    {"ParenthesisNotClosed", "mxfp8/te+d=min(a", {"d = 'min(a'", "position 6", "expected ','"}},
    {"TooManyArguments", "mxfp8/te+d=min(a,a,a)", {"position 8", "expected ')'"}},
    {"NoOperand", "mxfp8/te+d=a *", {"d = 'a *'", "expected a number, a name or '('"}},
    {"NumberOutOfRange", "mxfp8/te+d=1e400", {"d = '1e400'", "power of ten is at most 22"}},
    {"LongFormula", "mxfp8/te+d=a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a+a", {"the formula is too long"}},
    {"DeepFormula", "mxfp8/te+d=" + kDeep, {"d = '((", "(...', position 65", "nested too deep"}},
    {"ManySigns", "mxfp8/te+d=" + std::string(100000, '-') + "a", {"nested too deep"}},
    {"Empty", "", {"--recipe"}},
};

class BadRecipes : public testing::TestWithParam<BadRecipe> {};

INSTANTIATE_TEST_SUITE_P(All, BadRecipes, testing::ValuesIn(kBadRecipes),
                         [](const auto& instance) { return instance.param.name; });

void expect_says(const ProgramRun& run, int exit_code, const std::vector<std::string>& says) {
  EXPECT_EQ(run.exit_code, exit_code) << run.err.substr(0, 1000);
  EXPECT_EQ(run.out, "");
  for (const std::string& words : says)
    EXPECT_NE(run.err.find(words), std::string::npos) << "'" << words << "' is not in: " << run.err.substr(0, 1000);
}

TEST_P(BadRecipes, AreRefused) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", npy_of(tensor()));
  expect_says(run_halfulp({"quantize", folder / "w.npy", "-r", GetParam().recipe, "-o", folder / "q"}), 2,
              GetParam().says);
  EXPECT_EQ(folder.file_count(), 1u) << "something was left behind";
}

const std::vector<BadRecipe> kBadTomls{
    {"NotToml", "d = ", {"line 1, column 5"}},
    {"NotTomlLater", "base = 'mxfp8/te'\nd = 'a\n", {"line 2, column "}},
    {"KeyTwice", "d = 'a'\nd = 'a'\n", {"line 2", "'d'"}},
    {"NotUtf8", "name = '\xff'", {"line 1", "utf-8"}},
    {"UnknownBase", "base = 'mxfp8/t'", {"line 1: base = 'mxfp8/t'", "did you mean 'mxfp8/te'?"}},
    {"BaseThatIsStated", "base = 'mxfp8/te+d=a'", {"base = 'mxfp8/te+d=a'"}},
    {"BaseThatIsNoString", "base = 3", {"base"}},
    {"NameThatIsNoString", "name = 3", {"name"}},
    {"UnknownField", "base = 'mxfp8/te'\nfoo = 'a'", {"line 2: ", "no field 'foo'"}},
    {"FieldThatIsNoString", "base = 'mxfp8/te'\nblock = 32", {"block is no string"}},
    {"Table", "[mxfp8]\nd = 'a'", {"mxfp8 is no string"}},
    {"Formula", "base = 'mxfp8/te'\n\nd = 'a + foo'", {"line 3: d = 'a + foo', position 5"}},
    {"DeepFormula", "base = 'mxfp8/te'\nd = '" + kDeep + "'", {"nested too deep"}},
    {"DeepTable", "d = " + std::string(100000, '['), {"line 1"}},
    {"Contradiction", "block = '1x32'", {"a block needs a scale"}},
};

class BadTomls : public testing::TestWithParam<BadRecipe> {};

INSTANTIATE_TEST_SUITE_P(All, BadTomls, testing::ValuesIn(kBadTomls),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(BadTomls, AreRefusedByTheFilesName) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", npy_of(tensor()));
  write_file(folder / "r.toml", GetParam().recipe);
  std::vector<std::string> says = GetParam().says;
  says.emplace_back("r.toml: ");
  expect_says(run_halfulp({"quantize", folder / "w.npy", "-r", folder / "r.toml", "-o", folder / "q"}), 3, says);
  EXPECT_EQ(folder.file_count(), 2u) << "something was left behind";
}

// The same texts as the definition in a file that claims to be quantized.
TEST_P(BadTomls, AreRefusedAsAFilesDefinition) {
  if (GetParam().name == "NotUtf8") GTEST_SKIP() << "SKIPPED: metadata are UTF-8";
  const TemporaryDirectory folder;
  StoredFile file = Quantization(tensor(), kE5m2OnTheLine).file;
  file.metadata["recipe_definition"] = GetParam().recipe;
  write_stored(folder / "q.safetensors", file);
  std::vector<std::string> says = GetParam().says;
  says.emplace_back("q.safetensors: ");
  expect_says(run_halfulp({"dequantize", folder / "q.safetensors", "-o", folder / "y.npy"}), 3, says);
  EXPECT_EQ(folder.file_count(), 1u) << "something was left behind";
}

TEST(BadToml, ThatIsMissingIsNamed) {
  expect_says(run_halfulp({"formats", "nowhere.toml"}), 3, {"nowhere.toml: cannot be opened"});
}

TEST(BadRecipeVerbs, IsNamedByEveryVerb) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", npy_of(tensor()));
  for (const Words& words : {Words{"error", folder / "w.npy", "-r"}, Words{"explain", "1", "-r"}, Words{"formats"}})
    expect_says(run_halfulp(joined(words, {"mxfp8/te+block=1x0"})), 2, {"mxfp8/te+block=1x0", "block = '1x0'"});
}

// A hint of padding and one of choosing tensors.
TEST(BadRecipeVerbs, TwoHintsStandInOneParenthesisAtMost) {
  const TemporaryDirectory folder;
  for (const char* name : {"v.npy", "w.npy"}) write_file(folder / name, npy_of(uneven_values({3, 30})));
  const ProgramRun run =
      run_halfulp({"quantize", folder / "v.npy", folder / "w.npy", "-r", "mxfp8/te", "-o", folder / "q"});
  expect_says(run, 3, {"--pad", "--include and --exclude"});
  EXPECT_EQ(run.err.find(") ("), std::string::npos) << run.err;
}

TEST(BadRecipeVerbs, WithoutASeedIsNamed) {
  expect_says(run_halfulp({"explain", "1", "-r", "bf16+rounding=stochastic"}), 2,
              {"--seed is needed", "bf16+rounding=stochastic"});
}

}  // namespace
}  // namespace halfulp

// Recipes as text: every field there and back, and what is said of a field that is wrong.

#include "emulation/blocks/recipe_fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulation/blocks/recipes.h"
#include "tests/emulation/quantized.h"

namespace halfulp {
namespace {

const Recipe kBlank{.name = "blank", .element = "f32", .policy = {}, .summary = "", .source = ""};

// All that a recipe computes with.
bool computes_alike(const Recipe& p, const Recipe& q) {
  return p.element == q.element && p.policy == q.policy && p.block == q.block && p.scale == q.scale &&
         p.scale_policy == q.scale_policy && p.amax_nan == q.amax_nan && p.edge == q.edge && p.random == q.random &&
         p.encode == q.encode && p.decode == q.decode && p.unrounded == q.unrounded && p.factor == q.factor &&
         p.scaled == q.scaled && p.value == q.value && p.choice.alternative == q.choice.alternative &&
         p.choice.estimate == q.choice.estimate && p.choice.loss == q.choice.loss && p.choice.total == q.choice.total &&
         p.correction.group == q.correction.group && p.correction.scale == q.correction.scale &&
         p.correction.policy == q.correction.policy;
}

class RowFields : public testing::TestWithParam<std::size_t> {
 protected:
  const Recipe& recipe_ = kRecipes[GetParam()];
};

TEST_P(RowFields, AsTextAreTheWholeRecipe) {
  Recipe copy = kBlank;
  for (const RecipeField& field : recipe_fields()) set_field(copy, field.name, field.text(recipe_));
  EXPECT_TRUE(computes_alike(copy, recipe_));
}

TEST_P(RowFields, DoNotContradictEachOther) { EXPECT_EQ(contradiction(recipe_), ""); }

// A summary warns of it, where it is so and nowhere else.
TEST_P(RowFields, SayWhetherAnAllZeroTensorGivesNaN) {
  const Matrix shape{.rows = 128, .cols = 128};  // whole blocks of every row
  const std::vector<float> zeros(shape.elements()),
      values = quantized(recipe_, tensor_scale_of(recipe_, zeros), shape, zeros).values();
  const bool nan = std::ranges::any_of(values, [](float value) { return std::isnan(value); });
  EXPECT_EQ(recipe_.summary.find("all-zero tensor gives NaN") != std::string_view::npos, nan) << recipe_.summary;
}

INSTANTIATE_TEST_SUITE_P(Catalog, RowFields, testing::Range<std::size_t>(0, kRecipes.size()),
                         [](const auto& instance) { return test_name(kRecipes[instance.param].name); });

// A row of another recipe differs in a field, or two names stand for one recipe.
TEST(RecipeFields, TellEveryTwoRowsApart) {
  std::set<std::string> texts;
  for (const Recipe& recipe : kRecipes) {
    std::string text;
    for (const RecipeField& field : recipe_fields()) text += field.text(recipe) + '\n';
    EXPECT_TRUE(texts.insert(text).second) << recipe.name << " is another row too";
  }
}

TEST(RecipeFields, HaveNamesOfTheirOwnAndMeanings) {
  std::set<std::string_view> names;
  for (const RecipeField& field : recipe_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_FALSE(field.meaning.empty()) << field.name;
    EXPECT_FALSE(field.takes.empty()) << field.name;
  }
}

TEST(RecipeFields, TakeEveryChoiceTheyList) {
  for (const RecipeField& field : recipe_fields()) {
    for (const FieldChoice& choice : field.choices) {
      EXPECT_FALSE(choice.meaning.empty()) << field.name << " " << choice.name;
      Recipe recipe = recipe_named("nvfp4/te-4over6-mse");
      set_field(recipe, field.name, choice.name);
      EXPECT_EQ(field.text(recipe), choice.name) << field.name;
    }
  }
}

TEST(RecipeFields, ChangeNothingElse) {
  for (const RecipeField& field : recipe_fields()) {
    if (field.choices.empty()) continue;
    Recipe recipe = recipe_named("nvfp4/ms-eden");
    const std::string before = field.text(recipe);
    set_field(recipe, field.name, field.choices.back().name);
    set_field(recipe, field.name, before);
    EXPECT_TRUE(computes_alike(recipe, recipe_named("nvfp4/ms-eden"))) << field.name;
  }
}

// The text that a recipe was made of may go away.
TEST(RecipeFields, KeepTheirText) {
  Recipe recipe = recipe_named("nvfp4/te");
  {
    std::string text = "a / 6 * S_enc";
    set_field(recipe, "d", text);
    std::ranges::fill(text, '#');
  }
  EXPECT_EQ(recipe.unrounded.text(), "a / 6 * S_enc");
}

TEST(Kept, IsOneCopyOfATextThatOutlivesIt) {
  std::string text = "some text of a test";
  const std::string_view copy = kept(text);
  EXPECT_EQ(kept("some text of a test").data(), copy.data());
  text.assign(text.size(), '#');
  EXPECT_EQ(copy, "some text of a test");
}

std::string message_of(std::string_view name, std::string_view text) {
  Recipe recipe = recipe_named("nvfp4/te");
  try {
    set_field(recipe, name, text);
    return "no error";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

struct WrongText {
  std::string_view field, text, message;
};

const std::vector<WrongText> kWrongTexts{
    {"element", "e4m4", "element = 'e4m4': expected the name of a format; did you mean 'e4m3'?"},
    {"scale", "int12", "scale = 'int12': expected the name of a format"},
    {"rounding", "nearest",
     "rounding = 'nearest': expected nearest-even, nearest-away, nearest-zero, toward-zero, up, down, to-odd, "
     "stochastic; did you mean 'nearest-even'?"},
    {"overflow", "", "overflow = '': expected saturate, to-special"},
    {"amax-nan", "propagate",
     "amax-nan = 'propagate': expected ignored, propagates, propagates-from-all; did you mean "
     "'propagates'?"},
    {"edge", "pad", "edge = 'pad': expected refused, partial"},
    {"random", "philox", "random = 'philox': expected ideal, te"},
    {"loss-total", "sum", "loss-total = 'sum': expected sequential, torch, largest"},
    {"block", "16", "block = '16': expected ROWSxCOLUMNS, such as 1x32, or 1xrow"},
    {"block", "1x0", "block = '1x0': expected a number from 1 to 2^20"},
    {"block", "0x16", "block = '0x16': expected a number from 1 to 2^20"},
    {"block", "1x16x", "block = '1x16x': expected a number from 1 to 2^20"},
    {"block", "1x1048577", "block = '1x1048577': expected a number from 1 to 2^20"},
    {"block", "-1x16", "block = '-1x16': expected a number from 1 to 2^20"},
    {"block", "1x99999999999999999999", "block = '1x99999999999999999999': expected a number from 1 to 2^20"},
    {"correction-group", "many", "correction-group = 'many': expected a number from 1 to 2^20"},
    {"d", "a / 6 *", "d = 'a / 6 *', position 8: expected a number, a name or '('"},
    {"loss", "abs(v - x", "loss = 'abs(v - x', position 10: expected ')'"},
};

class WrongField : public testing::TestWithParam<WrongText> {};
TEST_P(WrongField, IsNamedWithWhatWasExpected) {
  EXPECT_EQ(message_of(GetParam().field, GetParam().text), GetParam().message);
}
INSTANTIATE_TEST_SUITE_P(Texts, WrongField, testing::ValuesIn(kWrongTexts));

TEST(RecipeFields, ListTheFieldsThatThereAre) {
  const std::string message = message_of("block-size", "16");
  EXPECT_TRUE(message.starts_with("a recipe has no field 'block-size'; its fields are element, rounding, ")) << message;
  for (const RecipeField& field : recipe_fields()) EXPECT_NE(message.find(field.name), std::string::npos) << field.name;
}

// A field that is wrong leaves the recipe as it was.
TEST(RecipeFields, ThatAreWrongChangeNothing) {
  for (const auto& [field, text, message] : kWrongTexts) {
    Recipe recipe = recipe_named("nvfp4/te");
    EXPECT_THROW(set_field(recipe, field, text), std::invalid_argument);
    EXPECT_TRUE(computes_alike(recipe, recipe_named("nvfp4/te"))) << field;
  }
}

// Fields of a recipe that are good each by themselves, and what is said of them together: a part of it.
struct Contradiction {
  const Recipe* like;
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  std::string_view reason;
};

constexpr const Recipe& kTe = recipe_named("nvfp4/te");
constexpr const Recipe& kMx = recipe_named("mxfp8/te");
constexpr const Recipe& kBf16 = recipe_named("bf16");
constexpr const Recipe& k4over6 = recipe_named("nvfp4/te-4over6-mse");
constexpr const Recipe& kEden = recipe_named("nvfp4/ms-eden");

const std::vector<Contradiction> kContradictions{
    {&kTe, {{"S_enc", "2688 / a"}}, "S_enc = '2688 / a': a, "},
    {&kTe, {{"S_enc", "1 / S_dec"}}, "S_enc = '1 / S_dec': S_dec, "},
    {&kTe, {{"S_dec", "1 / s"}}, "S_dec = '1 / s': s, "},
    {&kTe, {{"d", "a * s"}}, "d = 'a * s': s, "},
    {&kTe, {{"d", "d"}}, "d = 'd': d, "},
    {&kTe, {{"m", "1 / x"}}, "m = '1 / x': x, "},
    {&kTe, {{"y", "x / s"}}, "y = 'x / s': s, "},
    {&kTe, {{"q", "c * m"}}, "q = 'c * m': m, "},
    {&kTe, {{"q", "x"}}, "q = 'x': x, "},
    {&k4over6, {{"d2", "v"}}, "d2 = 'v': v, "},
    {&k4over6, {{"loss", "c - x"}}, "loss = 'c - x': c, "},
    {&kEden, {{"s2", "s * a"}}, "s2 = 's * a': a, "},
    {&kTe, {{"block", "1x15"}}, "a block of 4-bit codes has an even number of columns"},
    {&kTe, {{"scale", "bf16"}}, "scales are stored in 8 or 32 bits"},
    {&kMx, {{"random", "te"}, {"block", "1x30"}}, "random = te gives one word to four elements"},
    {&kBf16, {{"random", "te"}, {"rounding", "stochastic"}}, "random = te gives one word to four elements"},
    {&kTe, {{"scale-rounding", "stochastic"}}, "scale-rounding = stochastic: scales are rounded so by s2"},
    {&kEden, {{"correction-group", "24"}}, "correction-group = 24: expected a multiple of 16"},
    {&kEden,
     {{"correction-group", "1024"}},
     "correction-group = 1024: expected a multiple of 16, the block, up to 512"},
    {&kEden, {{"block", "16x16"}}, "correction-group is for blocks that are a part of one row"},
    {&kEden, {{"block", "1xrow"}}, "correction-group is for blocks that are a part of one row"},
    {&kMx, {{"block", "1x1"}}, "a scale needs a block, and scale is e8m0 but block is 1x1"},
    {&kBf16, {{"block", "1x32"}}, "a block needs a scale"},
    {&kBf16, {{"scale", "e8m0"}}, "a scale needs a block"},
    {&kMx, {{"scale", ""}}, "a block needs a scale"},
    {&kMx, {{"d", ""}}, "a scale needs d, m, y and q; not stated: d"},
    {&kMx, {{"m", ""}}, "a scale needs d, m, y and q; not stated: m"},
    {&kMx, {{"y", ""}}, "a scale needs d, m, y and q; not stated: y"},
    {&kMx, {{"q", ""}}, "a scale needs d, m, y and q; not stated: q"},
    {&kBf16, {{"element", ""}}, "a recipe needs the format of its codes"},
    {&kTe, {{"S_dec", ""}}, "S_enc needs S_dec"},
    {&k4over6, {{"v", ""}}, "d2 needs v and loss"},
    {&k4over6, {{"loss", ""}}, "d2 needs v and loss"},
    {&k4over6, {{"v", ""}, {"loss", ""}}, "not stated: v, loss"},
    {&kBf16, {{"correction-group", "16"}, {"s2", "s"}}, "correction-group is for recipes with a scale"},
    {&kEden, {{"s2", ""}}, "correction-group needs s2"},
};

class ContradictoryFields : public testing::TestWithParam<Contradiction> {};

TEST_P(ContradictoryFields, AreNamed) {
  Recipe recipe = *GetParam().like;
  for (const auto& [name, text] : GetParam().fields) set_field(recipe, name, text);
  const std::string reason = contradiction(recipe);
  EXPECT_NE(reason.find(GetParam().reason), std::string::npos) << "'" << reason << "'";
}

INSTANTIATE_TEST_SUITE_P(Fields, ContradictoryFields, testing::ValuesIn(kContradictions));

}  // namespace
}  // namespace halfulp

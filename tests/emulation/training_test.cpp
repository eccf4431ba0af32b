// Names of a capture, the layers of a policy, and which recipes leave room for unbiased stochastic rounding.

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulation/blocks/recipe_fields.h"
#include "emulation/blocks/recipes.h"
#include "emulation/training/capture.h"

namespace halfulp {
namespace {

TEST(CapturedName, HasPhaseRoleAndLayer) {
  const CapturedName name = parse_captured_name("pretrain_bwd/dy_wgrad/blocks.3.mlp");
  EXPECT_EQ(name.place.phase, Phase::pretrain_bwd);
  EXPECT_EQ(kRoles[std::size_t(name.place.role)].name, "dy_wgrad");
  EXPECT_EQ(name.layer, "blocks.3.mlp");
  EXPECT_EQ(name.step, std::nullopt);
}

TEST(CapturedName, MayHaveAStep) { EXPECT_EQ(parse_captured_name("rl_sampler/samp_w/0/20000").step, 20000u); }

TEST(CapturedName, StepsAreOf64Bits) {
  EXPECT_EQ(parse_captured_name("rl_sampler/samp_w/0/18446744073709551615").step, 18446744073709551615u);
}

class NoCapturedName : public testing::TestWithParam<std::string> {};

TEST_P(NoCapturedName, IsRefused) { EXPECT_THROW(parse_captured_name(GetParam()), std::invalid_argument); }

INSTANTIATE_TEST_SUITE_P(Text, NoCapturedName,
                         testing::Values("", "/", "//", "pretrain_fwd", "pretrain_fwd/x_fprop", "pretrain_fwd/x_fprop/",
                                         "pretrain_fwd/x_fprop//5", "pretrain_fwd/x_fprop/0/",
                                         "pretrain_fwd/x_fprop/0/-1", "pretrain_fwd/x_fprop/0/1.5",
                                         "pretrain_fwd/x_fprop/0/1/2", "pretrain_fwd/x_fprop/0/18446744073709551616",
                                         "/x_fprop/0", "pretrain_fwd//0", "PRETRAIN_FWD/x_fprop/0"),
                         [](const auto& instance) { return "text_" + std::to_string(instance.index); });

TEST(LayerNumber, IsTheFirstPartBetweenDotsThatIsANumber) {
  EXPECT_EQ(layer_number("7"), 7);
  EXPECT_EQ(layer_number("blocks.12.experts.3"), 12);
  EXPECT_EQ(layer_number("h.0"), 0);
}

TEST(LayerNumber, IsNoneWhereNoPartIsANumber) {
  for (const char* layer : {"head", "layer7", "blocks.7b", "blocks.-7", ".", "99999999999"})
    EXPECT_EQ(layer_number(layer), std::nullopt) << layer;
}

// Rules for x_fprop and residual, with the first and the last layer left in BF16.
TrainingPolicy policy() {
  const RolePlace product{.phase = Phase::pretrain_fwd, .role = find_role("x_fprop")},
      stream{.phase = Phase::pretrain_fwd, .role = find_role("residual")};
  return {.name = "p",
          .title = "",
          .source = "",
          .base = {.quantizer = "base"},
          .rules = {{product, {.quantizer = "product"}}, {stream, {.quantizer = "stream"}}},
          .high = {.first = 1, .last = 1, .as = {.quantizer = "high"}},
          .schedule = {},
          .settings = {}};
}

std::string rule(std::string_view role, int layer, int layers) {
  return rule_of(policy(), {.phase = Phase::pretrain_fwd, .role = find_role(role)}, layer, layers).quantizer;
}

TEST(RuleOf, AnOperandIsItsOwnInTheMiddle) { EXPECT_EQ(rule("x_fprop", 1, 3), "product"); }
TEST(RuleOf, AnOperandIsThatOfHighLayersAtTheBeginning) { EXPECT_EQ(rule("x_fprop", 0, 3), "high"); }
TEST(RuleOf, AnOperandIsThatOfHighLayersAtTheEnd) { EXPECT_EQ(rule("x_fprop", 2, 3), "high"); }
TEST(RuleOf, AnOperandOfALayerBeyondTheLastIsItsOwnWhereNoLayersAreHigh) {
  TrainingPolicy without = policy();
  without.high = {};
  const RolePlace place{.phase = Phase::pretrain_fwd, .role = find_role("x_fprop")};
  EXPECT_EQ(rule_of(without, place, 0, 0).quantizer, "product");
}

TEST(RuleOf, WhatIsNoOperandIsTheSameInAllLayers) { EXPECT_EQ(rule("residual", 0, 3), "stream"); }
TEST(RuleOf, WhatIsNotMentionedIsTheBaseInAllLayers) { EXPECT_EQ(rule("w_fprop", 0, 3), "base"); }

struct Room {
  std::string name;
  std::string_view recipe;
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  bool expected;
  friend void PrintTo(const Room& room, std::ostream* out) { *out << room.name; }
};

class Headroom : public testing::TestWithParam<Room> {};

TEST_P(Headroom, IsSaidRight) {
  Recipe recipe = kRecipes[std::size_t(find_recipe(GetParam().recipe))];
  for (const auto& [field, text] : GetParam().fields) set_field(recipe, field, text);
  EXPECT_EQ(has_headroom(recipe), GetParam().expected);
}

// E4M3 scales to nearest can be 1/17 too small; 17/16 makes up for that, and 33/32 does not.
const Room kRooms[] = {
    {"nvfp4", "nvfp4/te", {}, false},
    {"nvfp4_in_tiles", "nvfp4/te-2d", {}, false},
    {"nvfp4_with_17_16", "nvfp4/te", {{"S_enc", "2688 / A * (16 / 17)"}, {"d", "a * (S_enc * (17 / 16 / 6))"}}, true},
    {"nvfp4_with_33_32", "nvfp4/te", {{"S_enc", "2688 / A * (16 / 17)"}, {"d", "a * (S_enc * (33 / 32 / 6))"}}, false},
    {"mxfp8_rounded_up", "mxfp8/te", {}, true},
    {"mxfp8_rounded_down", "mxfp8/ocp", {}, false},
    {"mxfp4_rounded_up", "mxfp4/round-up", {}, true},
    {"mxfp4_rounded_down", "mxfp4/ocp", {}, false},
    {"mxfp4_three_quarters", "mxfp4/tseng", {}, true},
    {"mxfp4_by_the_standard_deviation", "mxfp4/quartet", {}, false},
    {"no_scales", "bf16", {}, true},
};
INSTANTIATE_TEST_SUITE_P(Of, Headroom, testing::ValuesIn(kRooms),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace halfulp

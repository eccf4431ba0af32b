// Policies as files: each preset, and each way in which a file can be wrong.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/blocks/recipes.h"
#include "tests/lib/test_files.h"
#include "tools/policy_file.h"

namespace halfulp {
namespace {

// A policy that holds something of everything, and that nothing is wrong with.
constexpr std::string_view kGood = R"(name = "good"
title = "a title"
source = "a source"
base = "bf16"

[quantizers]
nv = { recipe = "nvfp4/te", outer = { delayed = 16 } }
tiles = { recipe = "nvfp4/te-2d" }
gradients = { recipe = "nvfp4/te+rounding=stochastic", clip_ok = true }

[phases.pretrain_fwd]
x_fprop = "nv"
w_fprop = "tiles"

[phases.pretrain_bwd]
dy_dgrad = "gradients"
w_dgrad = { use = "tiles", source = "reuse:w_fprop" }
x_wgrad = { use = "nv", rht = { size = 16, signs = "fixed", id = "r" } }
dy_wgrad = { use = "gradients", rht = { size = 16, signs = "fixed", id = "r" } }

[phases.rl_sampler]
samp_w = "nvfp4/torchao"

[gemm.dgrad]
post = 1.5

[layers]
high = { first = 2, last = 3, as = "fp32" }

[state]
opt_m = "bf16"

[attention]
delta = "dO_dot_O"

[oscillation]
window = 50

[sampler]
batch_invariant = true

[trainer]
ste = true

[[schedule]]
at = { tokens_frac = 0.5 }
set = { pretrain_fwd = { x_fprop = "bf16" } }
)";

TrainingPolicy loaded(std::string_view toml) { return policy_of_toml(toml, "good.toml"); }

const RoleRule& rule_in(const TrainingPolicy& policy, Phase phase, std::string_view role, int layer = 5) {
  return rule_of(policy, {.phase = phase, .role = find_role(role)}, layer, 10);
}

TEST(PolicyFile, NamesTitleAndSourceAreTheFiles) {
  const TrainingPolicy policy = loaded(kGood);
  EXPECT_EQ(policy.name, "good");
  EXPECT_EQ(policy.title, "a title");
  EXPECT_EQ(policy.source, "a source");
}

TEST(PolicyFile, ARoleHasTheRecipeOfItsQuantizer) {
  EXPECT_EQ(rule_in(loaded(kGood), Phase::pretrain_fwd, "w_fprop").recipe, &recipe_named("nvfp4/te-2d"));
}

TEST(PolicyFile, ARoleMayNameARecipeInstead) {
  EXPECT_EQ(rule_in(loaded(kGood), Phase::rl_sampler, "samp_w").recipe, &recipe_named("nvfp4/torchao"));
}

TEST(PolicyFile, ARoleThatIsNotMentionedHasTheBase) {
  EXPECT_EQ(rule_in(loaded(kGood), Phase::rl_trainer, "w_fprop").recipe, &recipe_named("bf16"));
}

TEST(PolicyFile, WithoutABaseARoleThatIsNotMentionedIsNotQuantized) {
  const TrainingPolicy policy = loaded("name = \"empty\"");
  for (const PhaseEntry& phase : kPhases)
    for (const RoleEntry& role : kRoles)
      EXPECT_EQ(rule_in(policy, Phase(find_phase(phase.name)), role.name).recipe, nullptr) << role.name;
}

TEST(PolicyFile, TheFirstAndLastLayersHaveTheOtherRule) {
  const TrainingPolicy policy = loaded(kGood);
  std::string quantized;
  for (int layer = 0; layer < 10; ++layer)
    quantized += rule_in(policy, Phase::pretrain_fwd, "x_fprop", layer).recipe == nullptr ? '-' : 'q';
  EXPECT_EQ(quantized, "--qqqqq---");
}

TEST(PolicyFile, SourceAndRotationAreTheRoles) {
  const TrainingPolicy policy = loaded(kGood);
  EXPECT_EQ(rule_in(policy, Phase::pretrain_bwd, "w_dgrad").source, OperandSource::reuse_w_fprop);
  EXPECT_EQ(rule_in(policy, Phase::pretrain_bwd, "x_wgrad").rotation,
            (RuleRotation{.size = 16, .signs = HadamardSigns::seeded, .of = SignsOf::run, .id = "r"}));
  EXPECT_FALSE(rule_in(policy, Phase::pretrain_bwd, "dy_dgrad").rotation);
}

TEST(PolicyFile, AScheduledChangeHasItsConditionAndRules) {
  const TrainingPolicy policy = loaded(kGood);
  ASSERT_EQ(policy.schedule.size(), 1u);
  EXPECT_EQ(policy.schedule[0].condition, "tokens_frac");
  EXPECT_EQ(policy.schedule[0].threshold, 0.5);
  ASSERT_EQ(policy.schedule[0].rules.size(), 1u);
  EXPECT_EQ(policy.schedule[0].rules.begin()->second.recipe, &recipe_named("bf16"));
}

TEST(PolicyFile, WhatNothingReadsYetIsKept) {
  const TrainingPolicy policy = loaded(kGood);
  EXPECT_EQ(policy.settings.at("gemm.dgrad.post"), "1.5");
  EXPECT_EQ(policy.settings.at("state.opt_m"), "'bf16'");
  EXPECT_EQ(policy.settings.at("attention.delta"), "'dO_dot_O'");
  EXPECT_EQ(policy.settings.at("oscillation.window"), "50");
  EXPECT_EQ(policy.settings.at("sampler.batch_invariant"), "true");
  EXPECT_EQ(policy.settings.at("trainer.ste"), "true");
}

TEST(PolicyFile, WhatExtendsAPresetHasItsRulesButForThoseOfItsOwn) {
  const TrainingPolicy policy = loaded(R"(
    name = "mine"
    extends = "mxfp8"
    [phases.pretrain_fwd]
    x_fprop = "nvfp4/te"
  )");
  EXPECT_EQ(policy.name, "mine");
  EXPECT_EQ(rule_in(policy, Phase::pretrain_fwd, "x_fprop").recipe, &recipe_named("nvfp4/te"));
  EXPECT_EQ(rule_in(policy, Phase::pretrain_fwd, "w_fprop").recipe, &recipe_named("mxfp8/te"));
  EXPECT_EQ(rule_in(policy, Phase::rl_sampler, "samp_w").recipe, &recipe_named("bf16"));
}

// The good file with one thing replaced, and what is said of that.
struct Violation {
  std::string name, replaced, by;
  std::vector<std::string> said;
  bool of_its_line = true;

  friend void PrintTo(const Violation& violation, std::ostream* out) { *out << violation.name; }
};

std::string with(const Violation& violation) {
  std::string text(kGood);
  const std::size_t at = text.find(violation.replaced);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, violation.replaced.size(), violation.by);
}

std::string line_of(const Violation& violation) {
  const auto begin = kGood.begin();
  return "line " + std::to_string(1 + std::count(begin, begin + std::ptrdiff_t(kGood.find(violation.replaced)), '\n'));
}

class Refused : public testing::TestWithParam<Violation> {};

TEST_P(Refused, SaysWhatIsWrongAndWhere) {
  const Violation& violation = GetParam();
  const CaughtError error = error_of([&] { loaded(with(violation)); });
  EXPECT_EQ(error.code, ExitCode::bad_input);
  EXPECT_NE(error.text.find("good.toml"), std::string::npos) << error.text;
  for (const std::string& text : violation.said) EXPECT_NE(error.text.find(text), std::string::npos) << error.text;
  const std::string line = violation.of_its_line ? line_of(violation) : "";
  EXPECT_NE(error.text.find(line), std::string::npos) << error.text << ", not of " << line;
}

std::string name_of(const testing::TestParamInfo<Violation>& instance) { return instance.param.name; }

const Violation kUnknownKeys[] = {
    {"in_the_file", "base = \"bf16\"", "bases = \"bf16\"", {"unknown key 'bases'", "did you mean 'base'"}},
    {"of_a_quantizer", "clip_ok = true", "clip_oke = true", {"'clip_oke'", "did you mean 'clip_ok'"}},
    {"of_a_rule", "source = \"reuse:w_fprop\"", "sourc = \"reuse:w_fprop\"", {"'sourc'", "did you mean 'source'"}},
    {"of_a_rotation", "signs = \"fixed\"", "sings = \"te\"", {"'sings'", "did you mean 'signs'"}},
    {"of_products", "[gemm.dgrad]", "[gemm.dgrat]", {"'dgrat'", "did you mean 'dgrad'"}},
    {"of_a_product", "post = 1.5", "pots = 1.5", {"'pots'", "did you mean 'post'"}},
    {"of_layers", "high = {", "hihg = {", {"'hihg'", "did you mean 'high'"}},
    {"of_high_layers", "last = 3", "lats = 3", {"'lats'", "did you mean 'last'"}},
    {"of_state", "opt_m = ", "opt_n = ", {"'opt_n'", "did you mean 'opt_m'"}},
    {"of_attention", "delta = ", "deltas = ", {"'deltas'", "did you mean 'delta'"}},
    {"of_oscillation", "window = 50", "windows = 50", {"'windows'", "did you mean 'window'"}},
    {"of_the_sampler", "batch_invariant", "batch_invariants", {"'batch_invariants'", "did you mean 'batch_invariant'"}},
    {"of_the_trainer", "ste = true", "stee = true", {"'stee'", "did you mean 'ste'"}},
    {"of_a_change", "set = {", "sets = {", {"'sets'", "did you mean 'set'"}},
    {"of_a_condition", "tokens_frac", "token_frac", {"'token_frac'", "did you mean 'tokens_frac'"}},
};
INSTANTIATE_TEST_SUITE_P(UnknownKey, Refused, testing::ValuesIn(kUnknownKeys), name_of);

const Violation kUnknownNames[] = {
    {"phase", "[phases.pretrain_fwd]", "[phases.pretrain_fwb]", {"'pretrain_fwb'", "did you mean 'pretrain_fwd'"}},
    {"phase_of_a_change", "set = { pretrain_fwd", "set = { pretrain_fwb", {"'pretrain_fwb'", "'pretrain_fwd'"}},
    {"role", "x_fprop = \"nv\"", "x_fprob = \"nv\"", {"no role 'x_fprob'", "did you mean 'x_fprop'"}},
    {"quantizer", "w_fprop = \"tiles\"", "w_fprop = \"tile\"", {"'tile'", "did you mean 'tiles'"}},
    {"quantizer_of_a_rule", "use = \"tiles\"", "use = \"tile\"", {"'tile'", "did you mean 'tiles'"}},
    {"quantizer_of_high_layers", "as = \"fp32\"", "as = \"gradient\"", {"'gradient'", "did you mean 'gradients'"}},
    {"base", "base = \"bf16\"", "base = \"bf61\"", {"'bf61'", "did you mean 'bf16'"}},
    {"recipe", "recipe = \"nvfp4/te\"", "recipe = \"nvfp4/tee\"", {"'nvfp4/tee'", "did you mean 'nvfp4/te'"}},
    {"field_of_a_recipe", "+rounding=", "+roundings=", {"'roundings'"}},
    {"source", "\"reuse:w_fprop\"", "\"reuse:w_fprob\"", {"'reuse:w_fprob'", "did you mean 'reuse:w_fprop'"}},
    {"signs", "signs = \"fixed\"", "signs = \"per_stepp\"", {"'per_stepp'", "did you mean 'per_step'"}},
    {"quantizer_of_state", "opt_m = \"bf16\"", "opt_m = \"gradient\"", {"'gradient'", "did you mean 'gradients'"}},
    {"word_of_a_setting", "\"dO_dot_O\"", "\"dO_dot_0\"", {"delta is 'dO_dot_0'", "did you mean 'dO_dot_O'"}},
    {"preset", "base = \"bf16\"", "extends = \"mxfp9\"", {"'mxfp9'", "did you mean 'mxfp8'"}},
};
INSTANTIATE_TEST_SUITE_P(UnknownName, Refused, testing::ValuesIn(kUnknownNames), name_of);

const Violation kBadValues[] = {
    {"name_is_a_number", "name = \"good\"", "name = 1", {"name is no string"}},
    {"quantizers_are_no_table",
     "nv = { recipe = \"nvfp4/te\", outer = { delayed = 16 } }",
     "nv = 3",
     {"nv is no table"}},
    {"quantizer_without_recipe", "recipe = \"nvfp4/te-2d\"", "clip_ok = true", {"quantizers.tiles has no recipe"}},
    {"flag_is_a_word", "clip_ok = true", "clip_ok = \"yes\"", {"clip_ok is neither true nor false"}},
    {"rule_is_a_number", "x_fprop = \"nv\"", "x_fprop = 4", {"is no table"}},
    {"count_is_negative", "first = 2", "first = -2", {"first is no whole number"}},
    {"count_is_a_fraction", "first = 2", "first = 2.5", {"first is no whole number"}},
    {"factor_is_a_word", "post = 1.5", "post = \"16/9\"", {"post is no number"}},
    {"rotation_without_id", ", id = \"r\"", "", {"rht needs size and id"}},
    {"rotation_of_a_size_there_is_not", "size = 16", "size = 12", {"12"}},
    {"schedule_is_a_table", "[[schedule]]", "[schedule]", {"schedule is no array of tables"}},
    {"change_without_a_condition", "at = { tokens_frac = 0.5 }", "", {"schedule needs at and set"}, false},
    {"metric_without_a_threshold", "tokens_frac = 0.5", "metric = \"m\"", {"a metric needs below"}},
    {"metric_and_another_condition",
     "tokens_frac = 0.5",
     "metric = \"m\", below = 1, step = 3",
     {"a metric needs below"}},
    {"threshold_without_a_metric", "tokens_frac = 0.5", "below = 0.5", {"at has one of"}},
    {"high_layers_without_a_quantizer", ", as = \"fp32\"", "", {"layers.high needs as"}},
    {"window_is_a_fraction", "window = 50", "window = 0.5", {"window is no whole number"}},
    {"switch_is_a_word", "ste = true", "ste = \"on\"", {"ste is neither true nor false"}},
    {"two_conditions", "tokens_frac = 0.5", "tokens_frac = 0.5, step = 3", {"at has one of"}},
    {"no_name", "name = \"good\"", "", {"the policy has no name"}, false},
    {"no_toml", "base = \"bf16\"", "base = bf16\"", {"column"}},
};
INSTANTIATE_TEST_SUITE_P(BadValue, Refused, testing::ValuesIn(kBadValues), name_of);

// What is true of each line and false of the whole: roles, not lines, are named.
const Violation kContradictions[] = {
    {"rotation_of_one_operand",
     "dy_wgrad = { use = \"gradients\", rht = { size = 16, signs = \"fixed\", id = \"r\" } }",
     "dy_wgrad = \"gradients\"",
     {"pretrain_bwd.x_wgrad is rotated (rht) and the other operand, dy_wgrad, is not"},
     false},
    {"rotation_of_an_operand_whose_partner_is_not_mentioned",
     "dy_wgrad = { use = \"gradients\", rht = { size = 16, signs = \"fixed\", id = \"r\" } }",
     "",
     {"pretrain_bwd.x_wgrad is rotated (rht) and the other operand, dy_wgrad, is not"},
     false},
    {"rotations_with_two_ids", "id = \"r\"", "id = \"s\"", {"dy_wgrad", "x_wgrad", "rotated differently"}, false},
    {"rotations_of_two_sizes", "size = 16", "size = 8", {"dy_wgrad", "x_wgrad", "rotated differently"}, false},
    {"rotations_with_two_kinds_of_signs", "signs = \"fixed\"", "signs = \"none\"", {"rotated differently"}, false},
    {"rotations_with_signs_that_change_at_other_times",
     "signs = \"fixed\", id = \"r\" } }\ndy_wgrad = { use = \"gradients\", rht = { size = 16, signs = \"fixed\"",
     "signs = \"per_step\", id = \"r\" } }\ndy_wgrad = { use = \"gradients\", rht = { size = 16, signs = \"per_layer\"",
     {"rotated differently"},
     false},
    {"rotation_of_what_is_no_operand",
     "samp_w = \"nvfp4/torchao\"",
     "samp_w = { use = \"nv\", rht = { size = 16, id = \"s\" } }",
     {"rl_sampler.samp_w is rotated and is no operand of a product"},
     false},
    {"stochastic_without_headroom",
     ", clip_ok = true",
     "",
     {"pretrain_bwd.dy_dgrad rounds stochastically and its largest elements saturate", "17/16", "clip_ok = true"},
     false},
    {"stochastic_without_headroom_in_a_scheduled_change",
     "x_fprop = \"bf16\" }",
     "x_fprop = \"nvfp4/te+rounding=stochastic\" }",
     {"after tokens_frac", "pretrain_fwd.x_fprop rounds stochastically"},
     false},
    {"choice_of_scales_after_stochastic_rounding",
     "x_fprop = \"nv\"",
     "x_fprop = \"nvfp4/te-4over6-mse-256+rounding=stochastic\"",
     {"pretrain_fwd.x_fprop chooses between two scales after stochastic rounding", "bias_ok = true"},
     false},
    {"reuse_of_weights_in_rows",
     "w_fprop = \"tiles\"",
     "w_fprop = \"nv\"",
     {"pretrain_bwd.w_dgrad reuses w_fprop, which needs square blocks"},
     false},
    {"reuse_of_weights_that_a_change_leaves_in_rows",
     "{ x_fprop = \"bf16\" }",
     "{ w_fprop = \"bf16\" }",
     {"after tokens_frac", "pretrain_bwd.w_dgrad reuses w_fprop"},
     false},
};
INSTANTIATE_TEST_SUITE_P(Contradiction, Refused, testing::ValuesIn(kContradictions), name_of);

class Allowed : public testing::TestWithParam<Violation> {};

TEST_P(Allowed, IsLoaded) { EXPECT_EQ(loaded(with(GetParam())).name, "good"); }

const Violation kAllowed[] = {
    {"nothing_changed", "", "", {}},
    {"stochastic_with_headroom",
     "recipe = \"nvfp4/te+rounding=stochastic\", clip_ok = true",
     "recipe = \"nvfp4/te+rounding=stochastic+S_enc=2688 / A * (16 / 17)+d=a * (S_enc * (17 / 16 / 6))\"",
     {}},
    {"stochastic_by_three_quarters",
     "recipe = \"nvfp4/te+rounding=stochastic\", clip_ok = true",
     "recipe = \"mxfp4/tseng\"",
     {}},
    {"stochastic_without_scales", "samp_w = \"nvfp4/torchao\"", "samp_w = \"bf16+rounding=stochastic\"", {}},
    {"clip_ok_of_a_rule",
     "x_fprop = \"nv\"",
     "x_fprop = { use = \"nvfp4/te+rounding=stochastic\", clip_ok = true }",
     {}},
    {"choice_of_scales_with_bias_ok",
     "x_fprop = \"nv\"",
     "x_fprop = { use = \"nvfp4/te-4over6-mse-256+rounding=stochastic\", bias_ok = true }",
     {}},
    {"choice_of_scales_rounded_to_nearest", "x_fprop = \"nv\"", "x_fprop = \"nvfp4/te-4over6-mse-256\"", {}},
    {"weights_in_rows_quantized_twice", "source = \"reuse:w_fprop\"", "source = \"requantize\"", {}},
};
INSTANTIATE_TEST_SUITE_P(Policy, Allowed, testing::ValuesIn(kAllowed), name_of);

TEST(PolicyName, ThatThereIsNotHasASuggestion) {
  const CaughtError error = error_of([] { policy_of("nvidia-nvfp5"); });
  EXPECT_EQ(error.code, ExitCode::usage);
  EXPECT_NE(error.text.find("did you mean 'nvidia-nvfp4'"), std::string::npos) << error.text;
}

TEST(PolicyName, ThatEndsInTomlIsAFile) {
  TemporaryDirectory folder;
  write_file(folder / "p.toml", std::string(kGood));
  EXPECT_EQ(policy_of(folder / "p.toml").name, "good");
}

TEST(PolicyName, OfAFileThatThereIsNotIsABadInput) {
  EXPECT_EQ(error_of([] { policy_of("no-such.toml"); }).code, ExitCode::bad_input);
}

class Preset : public testing::TestWithParam<std::size_t> {
 protected:
  const PolicyPreset& preset_ = policy_presets()[GetParam()];
};

TEST_P(Preset, IsNamedAsItsFile) { EXPECT_EQ(policy_of(std::string(preset_.name)).name, preset_.name); }

TEST_P(Preset, HasATitleAndASourceOfItsOwn) {
  EXPECT_NE(preset_.toml.find("\ntitle = \""), std::string_view::npos);
  EXPECT_NE(preset_.toml.find("\nsource = \""), std::string_view::npos);
}

// What a source does not mention is BF16 or better there; FP16 in the policy that is about it.
TEST_P(Preset, LeavesOthersInSixteenBits) {
  const Recipe* base = policy_of(std::string(preset_.name)).base.recipe;
  EXPECT_EQ(base, preset_.name == "fp16-rl" ? &recipe_named("f16") : &recipe_named("bf16"));
}

INSTANTIATE_TEST_SUITE_P(All, Preset, testing::Range<std::size_t>(0, policy_presets().size()),
                         [](const auto& instance) {
                           std::string name(policy_presets()[instance.param].name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(Presets, AreThoseOfTheFolder) {
  std::set<std::string> files, names;
  for (const auto& file : std::filesystem::directory_iterator(HALFULP_POLICIES)) files.insert(file.path().stem());
  for (const PolicyPreset& preset : policy_presets()) names.insert(std::string(preset.name));
  EXPECT_EQ(names, files);
}

// What a policy quantizes, as "phase.role recipe" of a layer in the middle.
std::vector<std::string> quantized_by(const std::string& name) {
  const TrainingPolicy policy = policy_of(name);
  std::vector<std::string> all;
  for (const auto& [place, rule] : policy.rules)
    all.push_back(std::string(kPhases[std::size_t(place.phase)].name) + "." +
                  std::string(kRoles[std::size_t(place.role)].name) + " " +
                  std::string(rule.recipe == nullptr ? "fp32" : rule.recipe->name));
  return all;
}

using Lines = std::vector<std::string>;

// arXiv:2509.25149, section 4: tiles for weights, stochastic rounding for gradients alone.
TEST(Presets, NvidiasNvfp4IsAsPublished) {
  EXPECT_EQ(quantized_by("nvidia-nvfp4"),
            (Lines{"pretrain_fwd.x_fprop nvfp4/te", "pretrain_fwd.w_fprop nvfp4/te-2d",
                   "pretrain_bwd.dy_dgrad nvfp4/te+rounding=stochastic", "pretrain_bwd.w_dgrad nvfp4/te-2d",
                   "pretrain_bwd.dy_wgrad nvfp4/te+rounding=stochastic", "pretrain_bwd.x_wgrad nvfp4/te"}));
}

// The same, figure of the ablation: operands of wgrad are rotated, of fprop and dgrad they are not.
TEST(Presets, NvidiasNvfp4RotatesTheOperandsOfWgradAlone) {
  std::string rotated;
  for (const auto& [place, rule] : policy_of("nvidia-nvfp4").rules)
    if (rule.rotation) rotated += std::string(kRoles[std::size_t(place.role)].name) + " ";
  EXPECT_EQ(rotated, "dy_wgrad x_wgrad ");
}

// arXiv:2509.25149, appendix: 62 blocks, of which the first 2 and the last 8 stay in BF16.
TEST(Presets, NvidiasNvfp4KeepsTenLayersOf62) {
  const TrainingPolicy policy = policy_of("nvidia-nvfp4");
  int kept = 0;
  for (int layer = 0; layer < 62; ++layer)
    kept += rule_of(policy, {.phase = Phase::pretrain_fwd, .role = find_role("x_fprop")}, layer, 62).recipe ==
            &recipe_named("bf16");
  EXPECT_EQ(kept, 10);
}

// arXiv:2502.20586: only the backward pass is in MXFP4.
TEST(Presets, TsengsMxfp4IsOfTheBackwardPassAlone) {
  for (const auto& [place, rule] : policy_of("tseng-mxfp4").rules) EXPECT_EQ(place.phase, Phase::pretrain_bwd);
}

// arXiv:2506.20752: a fix differs from the failure in what it is named for.
TEST(Presets, AFixOfKempnersFailureIsOneChange) {
  const RoleRules failure = policy_of("kempner-failure").rules;
  std::string changed;
  for (const auto& [place, rule] : policy_of("kempner-fix-norm").rules)
    if (rule.recipe != failure.at(place).recipe) changed += std::string(kRoles[std::size_t(place.role)].name) + " ";
  EXPECT_EQ(changed, "norm_affine ");
}

}  // namespace
}  // namespace halfulp

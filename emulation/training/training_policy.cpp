#include "emulation/training/training_policy.h"

#include <cmath>

#include "emulation/blocks/block.h"

namespace halfulp {
namespace {

std::string text_of(const RolePlace& place) {
  return std::string(kPhases[std::size_t(place.phase)].name) + "." + std::string(kRoles[std::size_t(place.role)].name);
}

const RoleRule* find(const RoleRules& rules, Phase phase, std::string_view role) {
  const auto found = rules.find({.phase = phase, .role = find_role(role)});
  return found == rules.end() ? nullptr : &found->second;
}

// Both operands of a product are rotated alike, or neither is.
void check_rotation(const RolePlace& place, const RoleRule& rule, const RoleRules& rules,
                    std::vector<std::string>& wrong) {
  const RoleEntry& role = kRoles[std::size_t(place.role)];
  if (!rule.rotation) return;
  if (role.product == LinearProduct::none)
    return void(wrong.push_back(text_of(place) + " is rotated and is no operand of a product"));
  const RoleRule* partner = find(rules, place.phase, role.partner);
  if (partner == nullptr || !partner->rotation)
    return void(wrong.push_back(text_of(place) + " is rotated (rht) and the other operand, " +
                                std::string(role.partner) + ", is not"));
  if (*partner->rotation != *rule.rotation && find_role(role.partner) > place.role)
    wrong.push_back(text_of(place) + " and " + std::string(role.partner) +
                    " are rotated differently: size, signs and id of rht must be the same");
}

void check_randomness(const RolePlace& place, const RoleRule& rule, std::vector<std::string>& wrong) {
  if (rule.recipe == nullptr || !is_stochastic(rule.recipe->policy.rounding)) return;
  if (has_choice(*rule.recipe) && !rule.bias_ok)
    wrong.push_back(text_of(place) +
                    " chooses between two scales after stochastic rounding, which is biased; say bias_ok = true");
  if (!has_choice(*rule.recipe) && !rule.clip_ok && !has_headroom(*rule.recipe))
    wrong.push_back(text_of(place) +
                    " rounds stochastically and its largest elements saturate, which is biased: leave a headroom of "
                    "17/16, or say clip_ok = true");
}

void check_source(const RolePlace& place, const RoleRule& rule, const RoleRules& rules,
                  std::vector<std::string>& wrong) {
  const std::string_view source = kOperandSourceNames[std::size_t(rule.source)],
                         of = source.substr(source.find(':') + 1);
  if (rule.source != OperandSource::requantize && kRoles[std::size_t(place.role)].same_as != of)
    wrong.push_back(text_of(place) + " has the source " + std::string(source) + ", and is not the same tensor as " +
                    std::string(of));
  if (rule.source != OperandSource::reuse_w_fprop) return;
  const Phase forward = place.phase == Phase::pretrain_bwd ? Phase::pretrain_fwd : place.phase;
  const RoleRule* weights = find(rules, forward, "w_fprop");
  const Recipe* recipe = weights == nullptr ? nullptr : weights->recipe;
  if (recipe == nullptr || recipe->block.rows != recipe->block.cols || recipe->block.rows <= 1)
    wrong.push_back(text_of(place) +
                    " reuses w_fprop, which needs square blocks of more than one row: a transposed copy has others");
}

void check_rules(const RoleRules& rules, std::vector<std::string>& wrong) {
  for (const auto& [place, rule] : rules) {
    check_rotation(place, rule, rules, wrong);
    check_randomness(place, rule, wrong);
    check_source(place, rule, rules, wrong);
  }
}

}  // namespace

const RoleRule& rule_of(const TrainingPolicy& policy, RolePlace place, int layer, int layers) {
  const auto found = policy.rules.find(place);
  if (found == policy.rules.end()) return policy.base;
  const bool last = policy.high.last > 0 && layer >= layers - policy.high.last;
  const bool high = layer < policy.high.first || last;
  return high && kRoles[std::size_t(place.role)].of_layers ? policy.high.as : found->second;
}

// The tensor's largest magnitude is as far above the block's as scales of blocks usually are below the tensor's.
bool has_headroom(const Recipe& recipe) {
  if (!has_scale(recipe) && !has_outer_scale(recipe)) return true;
  const float max = max_value(recipe.element.format());
  for (const float tensor_amax : {1.0f, 1.37f, 1.93f}) {
    const TensorScale tensor = tensor_scale(recipe, tensor_amax);
    for (int i = 0; i < 1 << 14; ++i) {
      const float amax = tensor_amax * std::ldexp(1 - float(i % 4096) / 8192, -(i / 4096));
      BlockStatistics block{.amax = amax, .sum = amax, .squares = amax * amax};
      const BlockScale scale = has_scale(recipe) ? block_scale(recipe, tensor, block, recipe.unrounded) : BlockScale{};
      if (scaled_element(recipe, tensor, scale.factor, amax) > max) return false;
    }
  }
  return true;
}

std::vector<std::string> contradictions(const TrainingPolicy& policy) {
  std::vector<std::string> wrong;
  check_rules(policy.rules, wrong);
  for (const ScheduledChange& change : policy.schedule) {
    RoleRules rules = policy.rules;
    for (const auto& [place, rule] : change.rules) rules[place] = rule;
    std::vector<std::string> then;
    check_rules(rules, then);
    for (const std::string& text : then) wrong.push_back("after " + change.condition + ": " + text);
  }
  return wrong;
}

}  // namespace halfulp

// What `halfulp formats` says about policies of training.

#include <fmt/format.h>

#include "tools/catalogs.h"
#include "tools/policy_file.h"

namespace halfulp {
namespace {

std::string text_of(const RuleRotation& rotation) {
  return fmt::format("Hadamard {}, id {}", rotation.size, rotation.id);
}

Facts rule_row(std::string_view phase, std::string_view role, const RoleRule& rule) {
  std::string more;
  const auto add = [&](const std::string& text) { more += (more.empty() ? "" : "; ") + text; };
  if (rule.rotation) add(text_of(*rule.rotation));
  if (rule.source != OperandSource::requantize) add(std::string(kOperandSourceNames[std::size_t(rule.source)]));
  if (rule.clip_ok) add("may clip");
  if (rule.bias_ok) add("may be biased");
  for (const auto& [option, value] : rule.options) add(option + " = " + value);
  return {{"phase", phase},
          {"role", role},
          {"recipe", rule.recipe == nullptr ? "fp32" : std::string(rule.recipe->name)},
          {"more", more}};
}

std::vector<Facts> rule_rows(const TrainingPolicy& policy) {
  std::vector<Facts> rows;
  for (const auto& [place, rule] : policy.rules)
    rows.push_back(rule_row(kPhases[std::size_t(place.phase)].name, kRoles[std::size_t(place.role)].name, rule));
  rows.push_back(rule_row("all", "all others", policy.base));
  return rows;
}

std::vector<Facts> setting_rows(const TrainingPolicy& policy) {
  std::vector<Facts> rows;
  if (policy.high.first > 0 || policy.high.last > 0)
    rows.push_back({{"setting", "layers.high"},
                    {"value", fmt::format("first {}, last {} as {}", policy.high.first, policy.high.last,
                                          policy.high.as.quantizer)}});
  for (const auto& [key, value] : policy.settings) rows.push_back({{"setting", key}, {"value", value}});
  for (const ScheduledChange& change : policy.schedule)
    for (const auto& [place, rule] : change.rules)
      rows.push_back(
          {{"setting", fmt::format("at {} {}: {}.{}", change.condition, change.threshold,
                                   kPhases[std::size_t(place.phase)].name, kRoles[std::size_t(place.role)].name)},
           {"value", rule.quantizer}});
  return rows;
}

Facts list_row(const PolicyPreset& preset) {
  const TrainingPolicy policy = policy_of(std::string(preset.name));
  return {{"name", preset.name}, {"base", policy.base.quantizer}, {"title", policy.title}, {"source", policy.source}};
}

std::vector<Facts> list_policies() {
  std::vector<Facts> rows;
  for (const PolicyPreset& preset : policy_presets()) rows.push_back(list_row(preset));
  return rows;
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const PolicyPreset& preset : policy_presets()) names.emplace_back(preset.name);
  return names;
}

Description describe(std::string_view name) {
  const TrainingPolicy policy = policy_of(std::string(name));
  Description description{.title = fmt::format("{}, a policy of training", name),
                          .facts = {{"name", name}, {"title", policy.title}, {"source", policy.source}},
                          .sections = {{"rules", "Recipes by phase and role", rule_rows(policy)}}};
  if (const std::vector<Facts> rows = setting_rows(policy); !rows.empty())
    description.sections.push_back({"settings", "Settings", rows});
  return description;
}

}  // namespace

Catalog policy_catalog() {
  return {.name = "policies",
          .singular = "policy",
          .title = "Policies of training",
          .names = names,
          .list = list_policies,
          .describe = describe};
}

}  // namespace halfulp

#include "tools/policy_file.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <filesystem>
#include <span>
#include <stdexcept>

#include "lib/cli.h"
#include "lib/error.h"
#include "lib/mapped_file.h"
#include "lib/utf8.h"
#include "tools/policies_text.h"
#include "tools/recipe_option.h"

namespace halfulp {
namespace {

// What the value of a setting is: of those that nothing reads yet, so that no other code checks it.
enum class Takes { anything, quantizer, word, whole_number, number, flag };

// The keys of each table, "*" of any name.
struct PolicyKey {
  std::string_view table, key;
  Takes takes = Takes::anything;
  std::span<const std::string_view> words = {};  // of Takes::word
};
constexpr std::string_view kWeightUpdates[] = {"rne", "sr", "kahan", "collage2"}, kDeltas[] = {"dO_dot_O", "dP_dot_P"},
                           kOscillationActions[] = {"reset_to_quantized"};
constexpr PolicyKey kKeys[] = {
    {"", "name"},
    {"", "title"},
    {"", "source"},
    {"", "base"},
    {"", "extends"},
    {"", "quantizers"},
    {"", "phases"},
    {"", "gemm"},
    {"", "layers"},
    {"", "state"},
    {"", "attention"},
    {"", "oscillation"},
    {"", "sampler"},
    {"", "trainer"},
    {"", "schedule"},
    {"quantizers.*", "recipe"},
    {"quantizers.*", "clip_ok"},
    {"quantizers.*", "bias_ok"},
    {"quantizers.*", "outer"},
    {"rule", "use"},
    {"rule", "source"},
    {"rule", "rht"},
    {"rule", "clip_ok"},
    {"rule", "bias_ok"},
    {"rule", "clip"},
    {"rule", "outliers"},
    {"rule", "calibration"},
    {"rht", "size"},
    {"rht", "signs"},
    {"rht", "id"},
    {"gemm", "fprop"},
    {"gemm", "dgrad"},
    {"gemm", "wgrad"},
    {"gemm.*", "post", Takes::number},
    {"gemm.*", "accumulator"},
    {"layers", "high"},
    {"layers", "never"},
    {"layers", "select"},
    {"layers.high", "first"},
    {"layers.high", "last"},
    {"layers.high", "as"},
    {"state", "master_weight", Takes::quantizer},
    {"state", "main_grad", Takes::quantizer},
    {"state", "grad_comm", Takes::quantizer},
    {"state", "opt_m", Takes::quantizer},
    {"state", "opt_v", Takes::quantizer},
    {"state", "weight_update", Takes::word, kWeightUpdates},
    {"attention", "delta", Takes::word, kDeltas},
    {"attention", "max_shift"},
    {"oscillation", "window", Takes::whole_number},
    {"oscillation", "risk", Takes::number},
    {"oscillation", "action", Takes::word, kOscillationActions},
    {"oscillation", "start", Takes::whole_number},
    {"oscillation", "period", Takes::whole_number},
    {"sampler", "batch_invariant", Takes::flag},
    {"sampler", "refit"},
    {"sampler", "noise"},
    {"sampler", "kv_scale_step"},
    {"trainer", "correction"},
    {"trainer", "ste", Takes::flag},
    {"trainer", "replay_router", Takes::flag},
    {"trainer", "loss_scale"},
    {"trainer", "logprob_source"},
    {"trainer", "share_kernels_with"},
    {"trainer", "expect_kl", Takes::number},
    {"trainer", "lora_rank", Takes::whole_number},
    {"schedule", "at"},
    {"schedule", "set"},
    {"at", "tokens_frac"},
    {"at", "step"},
    {"at", "lr_frac"},
    {"at", "metric"},
    {"at", "below"},
};

template <class Rows, class Name>
std::string suggestion(std::string_view word, const Rows& rows, Name&& name) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(name(row));
  return did_you_mean(word, names);
}
template <class Rows>
std::string suggestion(std::string_view word, const Rows& rows) {
  return suggestion(word, rows, [](const auto& row) { return row.name; });
}

// What is wrong, and in which line.
std::invalid_argument wrong(const toml::node& node, const std::string& what) {
  return std::invalid_argument(fmt::format("line {}: {}", node.source().begin.line, what));
}

const toml::table& table_of(const toml::node& node, std::string_view what) {
  if (const toml::table* table = node.as_table()) return *table;
  throw wrong(node, fmt::format("{} is no table", what));
}

void check_keys(const toml::table& table, std::string_view of) {
  std::vector<std::string> known;
  for (const PolicyKey& key : kKeys)
    if (key.table == of) known.emplace_back(key.key);
  for (const auto& [key, node] : table) {
    if (std::ranges::find(known, key.str()) != known.end()) continue;
    throw wrong(node, fmt::format("unknown key '{}'{}{}", shortened(key.str()),
                                  of.empty() ? "" : fmt::format(" of {}", of), did_you_mean(key.str(), known)));
  }
}

std::string string_of(const toml::node& node, std::string_view what) {
  if (const auto text = node.value<std::string>(); text && node.is_string()) return *text;
  throw wrong(node, fmt::format("{} is no string", what));
}

bool bool_of(const toml::node& node, std::string_view what) {
  if (node.is_boolean()) return *node.value<bool>();
  throw wrong(node, fmt::format("{} is neither true nor false", what));
}

double number_of(const toml::node& node, std::string_view what) {
  if (node.is_number()) return *node.value<double>();
  throw wrong(node, fmt::format("{} is no number", what));
}

int count_of(const toml::node& node, std::string_view what) {
  const auto count = node.value<int64_t>();
  if (node.is_integer() && *count >= 0 && *count <= 1 << 20) return int(*count);
  throw wrong(node, fmt::format("{} is no whole number from 0 on", what));
}

std::string as_written(const toml::node& node) {
  std::string text;
  node.visit([&](const auto& value) {
    std::ostringstream stream;
    stream << value;
    text = stream.str();
  });
  return text;
}

// One of `names`, by position.
template <class Rows, class Name>
int choice_of(const toml::node& node, std::string_view what, const Rows& rows, Name&& name) {
  const std::string word = string_of(node, what);
  for (std::size_t i = 0; i < std::size(rows); ++i)
    if (name(rows[i]) == word) return int(i);
  throw wrong(node, fmt::format("{} is '{}'{}", what, shortened(word), suggestion(word, rows, name)));
}

struct SignsWord {
  std::string_view name;
  HadamardSigns signs;
  SignsOf of;
};
constexpr SignsWord kSignsWords[] = {{"none", HadamardSigns::none, SignsOf::run},
                                     {"te", HadamardSigns::te, SignsOf::run},
                                     {"fixed", HadamardSigns::seeded, SignsOf::run},
                                     {"per_layer", HadamardSigns::seeded, SignsOf::layer},
                                     {"per_step", HadamardSigns::seeded, SignsOf::step}};

class PolicyReader {
 public:
  PolicyReader(TrainingPolicy base, std::map<std::string, RoleRule> quantizers)
      : policy_(std::move(base)), quantizers_(std::move(quantizers)) {}

  void read(const toml::table& file) {
    check_keys(file, "");
    if (const toml::node* node = file.get("name")) policy_.name = string_of(*node, "name");
    if (const toml::node* node = file.get("title")) policy_.title = string_of(*node, "title");
    if (const toml::node* node = file.get("source")) policy_.source = string_of(*node, "source");
    if (const toml::node* node = file.get("quantizers")) read_quantizers(table_of(*node, "quantizers"));
    if (const toml::node* node = file.get("base")) policy_.base = named_rule(*node);
    if (const toml::node* node = file.get("phases")) read_phases(table_of(*node, "phases"), policy_.rules);
    if (const toml::node* node = file.get("layers")) read_layers(table_of(*node, "layers"));
    if (const toml::node* node = file.get("gemm")) read_gemm(table_of(*node, "gemm"));
    for (const char* section : {"state", "attention", "oscillation", "sampler", "trainer"})
      if (const toml::node* node = file.get(section)) read_settings(section, table_of(*node, section), section);
    if (const toml::node* node = file.get("schedule")) read_schedule(*node);
  }

  TrainingPolicy policy() const { return policy_; }
  const std::map<std::string, RoleRule>& quantizers() const { return quantizers_; }

 private:
  void read_quantizers(const toml::table& table) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      const toml::table& row = table_of(node, "quantizers." + name);
      check_keys(row, "quantizers.*");
      const toml::node* recipe = row.get("recipe");
      if (recipe == nullptr) throw wrong(node, fmt::format("quantizers.{} has no recipe", name));
      RoleRule rule = rule_of_recipe(*recipe);
      rule.quantizer = name;
      read_flags(row, rule);
      if (const toml::node* outer = row.get("outer")) rule.options["outer"] = as_written(*outer);
      quantizers_[name] = rule;
    }
  }

  static void read_flags(const toml::table& row, RoleRule& rule) {
    if (const toml::node* node = row.get("clip_ok")) rule.clip_ok = bool_of(*node, "clip_ok");
    if (const toml::node* node = row.get("bias_ok")) rule.bias_ok = bool_of(*node, "bias_ok");
  }

  static RoleRule rule_of_recipe(const toml::node& node) {
    const std::string text = string_of(node, "a recipe");
    if (text == "fp32") return {.quantizer = text};
    try {
      return {.quantizer = text, .recipe = &recipe_of(text)};
    } catch (const UsageError& error) {
      throw wrong(node, error.what());
    }
  }

  // A quantizer of the policy, or a recipe.
  RoleRule named_rule(const toml::node& node) const {
    const std::string name = string_of(node, "a quantizer");
    if (const auto found = quantizers_.find(name); found != quantizers_.end()) return found->second;
    try {
      return rule_of_recipe(node);
    } catch (const std::invalid_argument&) {
      const std::string near = suggestion(name, quantizers_, [](const auto& row) { return row.first; });
      if (near.empty()) throw;
      throw wrong(node,
                  fmt::format("no quantizer of the policy, and no recipe, is called '{}'{}", shortened(name), near));
    }
  }

  RoleRule rule_of(const toml::node& node) const {
    if (node.is_string()) return named_rule(node);
    const toml::table& table = table_of(node, "a role's rule");
    check_keys(table, "rule");
    const toml::node* use = table.get("use");
    RoleRule rule = use == nullptr ? policy_.base : named_rule(*use);
    read_flags(table, rule);
    if (const toml::node* source = table.get("source"))
      rule.source =
          OperandSource(choice_of(*source, "source", kOperandSourceNames, [](std::string_view name) { return name; }));
    if (const toml::node* rht = table.get("rht")) rule.rotation = rotation_of(table_of(*rht, "rht"));
    for (const char* option : {"clip", "outliers", "calibration"})
      if (const toml::node* value = table.get(option)) rule.options[option] = as_written(*value);
    return rule;
  }

  static RuleRotation rotation_of(const toml::table& table) {
    check_keys(table, "rht");
    const toml::node *size = table.get("size"), *signs = table.get("signs"), *id = table.get("id");
    if (size == nullptr || id == nullptr) throw wrong(table, "rht needs size and id");
    const SignsWord& word =
        signs == nullptr
            ? kSignsWords[0]
            : kSignsWords[choice_of(*signs, "signs", kSignsWords, [](const auto& row) { return row.name; })];
    RuleRotation rotation{
        .size = count_of(*size, "size"), .signs = word.signs, .of = word.of, .id = string_of(*id, "id")};
    try {
      check_hadamard({.size = rotation.size, .signs = rotation.signs}, uint64_t(std::max(rotation.size, 1)));
    } catch (const Error& error) {
      throw wrong(*size, error.what());
    }
    return rotation;
  }

  void read_phases(const toml::table& phases, RoleRules& rules) const {
    for (const auto& [key, node] : phases) {
      const int phase = find_phase(key.str());
      if (phase < 0)
        throw wrong(node,
                    fmt::format("there is no phase '{}'{}", shortened(key.str()), suggestion(key.str(), kPhases)));
      for (const auto& [name, rule] : table_of(node, key.str())) {
        const int role = find_role(name.str());
        if (role < 0)
          throw wrong(rule,
                      fmt::format("there is no role '{}'{}", shortened(name.str()), suggestion(name.str(), kRoles)));
        rules[{.phase = Phase(phase), .role = role}] = rule_of(rule);
      }
    }
  }

  void read_layers(const toml::table& layers) {
    check_keys(layers, "layers");
    for (const char* key : {"never", "select"})
      if (const toml::node* node = layers.get(key)) policy_.settings[fmt::format("layers.{}", key)] = as_written(*node);
    const toml::node* node = layers.get("high");
    if (node == nullptr) return;
    const toml::table& high = table_of(*node, "layers.high");
    check_keys(high, "layers.high");
    if (const toml::node* first = high.get("first")) policy_.high.first = count_of(*first, "first");
    if (const toml::node* last = high.get("last")) policy_.high.last = count_of(*last, "last");
    const toml::node* as = high.get("as");
    if (as == nullptr) throw wrong(*node, "layers.high needs as: the quantizer of those layers");
    policy_.high.as = named_rule(*as);
  }

  void read_gemm(const toml::table& products) {
    check_keys(products, "gemm");
    for (const auto& [key, node] : products)
      read_settings(fmt::format("gemm.{}", key.str()), table_of(node, key.str()), "gemm.*");
  }

  void read_settings(const std::string& section, const toml::table& table, std::string_view of) {
    check_keys(table, of);
    for (const PolicyKey& key : kKeys) {
      const toml::node* node = key.table == of ? table.get(key.key) : nullptr;
      if (node == nullptr) continue;
      check_value(*node, key);
      policy_.settings[fmt::format("{}.{}", section, key.key)] = as_written(*node);
    }
  }

  void check_value(const toml::node& node, const PolicyKey& key) const {
    switch (key.takes) {
      case Takes::anything: break;
      case Takes::quantizer: named_rule(node); break;
      case Takes::word: choice_of(node, key.key, key.words, [](std::string_view word) { return word; }); break;
      case Takes::whole_number: count_of(node, key.key); break;
      case Takes::number: number_of(node, key.key); break;
      case Takes::flag: bool_of(node, key.key); break;
    }
  }

  void read_schedule(const toml::node& node) {
    const toml::array* changes = node.as_array();
    if (changes == nullptr) throw wrong(node, "schedule is no array of tables: [[schedule]]");
    policy_.schedule.clear();
    for (const toml::node& change : *changes) policy_.schedule.push_back(change_of(table_of(change, "schedule")));
  }

  ScheduledChange change_of(const toml::table& table) const {
    check_keys(table, "schedule");
    const toml::node *at = table.get("at"), *set = table.get("set");
    if (at == nullptr || set == nullptr) throw wrong(table, "schedule needs at and set");
    const toml::table& when = table_of(*at, "at");
    check_keys(when, "at");
    ScheduledChange change{.condition = {}, .threshold = 0, .rules = {}};
    if (const toml::node* metric = when.get("metric")) {
      const toml::node* below = when.get("below");
      if (below == nullptr || when.size() != 2) throw wrong(*at, "a metric needs below, and nothing else");
      change.condition = string_of(*metric, "metric");
      change.threshold = number_of(*below, "below");
    } else {
      if (when.size() != 1 || when.contains("below"))
        throw wrong(*at, "at has one of tokens_frac, step, lr_frac, or metric and below");
      change.condition = std::string(when.begin()->first.str());
      change.threshold = number_of(when.begin()->second, change.condition);
    }
    read_phases(table_of(*set, "set"), change.rules);
    return change;
  }

  TrainingPolicy policy_;
  std::map<std::string, RoleRule> quantizers_;
};

const PolicyPreset* preset_named(std::string_view name) {
  for (const PolicyPreset& preset : policy_presets())
    if (preset.name == name) return &preset;
  return nullptr;
}

// What a file says after what it extends, a preset.
PolicyReader read_all(const toml::table& file, int depth = 0) {
  PolicyReader reader({}, {});
  if (const toml::node* node = file.get("extends")) {
    const std::string name = string_of(*node, "extends");
    const PolicyPreset* preset = preset_named(name);
    if (preset == nullptr)
      throw wrong(*node, fmt::format("extends '{}', and no preset is called so{}", shortened(name),
                                     suggestion(name, policy_presets())));
    if (depth > 8) throw wrong(*node, "policies extend each other in a circle");
    const PolicyReader base = read_all(toml::parse(preset->toml, std::string(preset->name)), depth + 1);
    reader = PolicyReader(base.policy(), base.quantizers());
  }
  reader.read(file);
  return reader;
}

}  // namespace

const std::vector<PolicyPreset>& policy_presets() {
  static const std::vector<PolicyPreset> kPresets(std::begin(kPolicyTexts), std::end(kPolicyTexts));
  return kPresets;
}

TrainingPolicy policy_of_toml(std::string_view text, const std::string& where) {
  const Where place{.file = where, .tensor = {}, .byte = {}};
  try {
    const TrainingPolicy policy = read_all(toml::parse(text, where)).policy();
    if (policy.name.empty()) throw std::invalid_argument("the policy has no name");
    if (const std::vector<std::string> wrong = contradictions(policy); !wrong.empty())
      throw std::invalid_argument(fmt::format("{}", fmt::join(wrong, "; ")));
    return policy;
  } catch (const toml::parse_error& error) {
    throw InputError(place, fmt::format("line {}, column {}: {}", error.source().begin.line,
                                        error.source().begin.column, error.description()));
  } catch (const std::invalid_argument& error) {
    throw InputError(place, error.what());
  }
}

TrainingPolicy policy_of(const std::string& name) {
  if (const PolicyPreset* preset = preset_named(name)) return policy_of_toml(preset->toml, "policy " + name);
  if (!name.ends_with(".toml") && !std::filesystem::exists(name))
    throw UsageError(
        fmt::format("no policy is called '{}'{} ('halfulp formats policies' lists them; a file ends in "
                    ".toml)",
                    shortened(name), suggestion(name, policy_presets())));
  const MappedFile file(name);
  return policy_of_toml({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, name);
}

}  // namespace halfulp

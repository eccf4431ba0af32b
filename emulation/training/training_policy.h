#pragma once
// A policy: which recipe each tensor role gets in each phase of training, in which layers and when. Data and what must
// hold of it; reads no files.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulation/blocks/hadamard.h"
#include "emulation/blocks/recipe.h"
#include "emulation/training/roles.h"

namespace halfulp {

// What an operand is quantized from.
enum class OperandSource { requantize, reuse_w_fprop, dequantize_w_fprop, dequantize_x_fprop };
inline constexpr std::array<std::string_view, 4> kOperandSourceNames{"requantize", "reuse:w_fprop", "dequant:w_fprop",
                                                                     "dequant:x_fprop"};

// Of which a Hadamard transform's random signs are those.
enum class SignsOf { run, layer, step };

struct RuleRotation {
  int size;
  HadamardSigns signs;
  SignsOf of = SignsOf::run;
  std::string id;  // shared by the two operands of a product

  friend bool operator==(const RuleRotation&, const RuleRotation&) = default;
};

struct RoleRule {
  std::string quantizer;           // its name in the policy, or the recipe as it was written
  const Recipe* recipe = nullptr;  // none: FP32, not quantized
  std::optional<RuleRotation> rotation{};
  OperandSource source = OperandSource::requantize;
  bool clip_ok = false;  // stochastic rounding may clip a block's largest elements, which is a bias
  bool bias_ok = false;  // a choice between scales may follow stochastic rounding, which is one too
  std::map<std::string, std::string> options{};  // what nothing here reads yet, as written
};

// Where and when a rule holds.
struct RolePlace {
  Phase phase;
  int role;  // in kRoles
  friend auto operator<=>(const RolePlace&, const RolePlace&) = default;
};
using RoleRules = std::map<RolePlace, RoleRule>;

// The first and the last layers, which have another rule in every linear product.
struct HighLayers {
  int first = 0, last = 0;
  RoleRule as{};
};

struct ScheduledChange {
  std::string condition;  // "tokens_frac", "step", "lr_frac", or a metric's name
  double threshold;       // reached from below; of a metric: fallen below
  RoleRules rules;
};

struct TrainingPolicy {
  std::string name, title, source;
  RoleRule base{};  // of roles that are not mentioned
  RoleRules rules;
  HighLayers high;
  std::vector<ScheduledChange> schedule;
  std::map<std::string, std::string> settings;  // every other key, as "state.opt_m" and its value as written
};

// The rule of a role in layer `layer` of `layers`, before any scheduled change.
const RoleRule& rule_of(const TrainingPolicy& policy, RolePlace place, int layer, int layers);

// Whether no magnitude of a block goes beyond the largest value of the element's format, which it would saturate to:
// the room that an unbiased stochastic rounding needs. Of every largest magnitude of 12 bits in some binades.
bool has_headroom(const Recipe& recipe);

// What is wrong with a policy, a sentence each, naming phases and roles; empty where nothing is.
std::vector<std::string> contradictions(const TrainingPolicy& policy);

}  // namespace halfulp

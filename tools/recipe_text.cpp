#include "tools/recipe_text.h"

#include <fmt/format.h>

#include "emulation/blocks/block.h"

namespace halfulp {
namespace {

std::string rounding_text(Rounding rounding) {
  const std::string name(kRoundings[std::size_t(rounding)].name);
  return rounding == Rounding::nearest_even ? "to nearest even" : name;
}

std::string conversion_text(std::string_view format, std::string_view argument, const Policy& policy) {
  return fmt::format("{}({}), {}", format, argument, policy_text(policy));
}

std::string_view nan_text(AmaxNan nan) {
  switch (nan) {
    case AmaxNan::ignored: return "NaN is ignored";
    case AmaxNan::propagates: return "NaN makes it NaN";
    case AmaxNan::propagates_from_all: return "NaN where all are";
  }
  return "";
}

std::string amax_text(std::string_view of, AmaxNan nan) {
  return fmt::format("max |x| of the {}; {}", of, nan_text(nan));
}

RecipeStep formula_step(Quantity quantity, std::string_view symbol, const Formula& formula) {
  return {quantity, std::string(symbol), std::string(formula.text())};
}

}  // namespace

std::string policy_text(const Policy& policy) {
  return fmt::format("{}, {}", rounding_text(policy.rounding),
                     policy.overflow == Overflow::saturate ? "saturating" : "overflow to Inf or NaN");
}

std::string_view loss_total_text(LossTotal total) {
  switch (total) {
    case LossTotal::sequential: return "sum of";
    case LossTotal::torch: return "sum (in PyTorch's order) of";
    case LossTotal::largest: return "largest";
  }
  return "";
}

std::string extent_text(const Extent& block) {
  return fmt::format("{} x {}", block.rows, block.cols == Extent::kWhole ? "row" : std::to_string(block.cols));
}

std::vector<RecipeStep> tensor_steps(const Recipe& r) {
  if (!has_outer_scale(r)) return {};
  std::vector<RecipeStep> steps{{Quantity::tensor_amax, "A", amax_text("tensor", r.amax_nan)}};
  if (!r.encode.empty()) steps.push_back(formula_step(Quantity::tensor_encode, "S_enc", r.encode));
  steps.push_back(formula_step(Quantity::tensor_decode, "S_dec", r.decode));
  return steps;
}

std::vector<RecipeStep> block_steps(const Recipe& r) {
  if (!has_scale(r)) return {};
  std::vector<RecipeStep> steps{{Quantity::block_amax, "a", amax_text("block", r.amax_nan)},
                                formula_step(Quantity::unrounded_scale, "d", r.unrounded)};
  if (has_choice(r)) {
    steps.push_back({Quantity::alternative_scale, "d2",
                     fmt::format("{}; taken for d where the {} {} is smaller, v = {}", r.choice.alternative.text(),
                                 loss_total_text(r.choice.total), r.choice.loss.text(), r.choice.estimate.text())});
  }
  steps.push_back(
      {Quantity::scale, "s", conversion_text(r.scale.name(), has_choice(r) ? "d or d2" : "d", r.scale_policy)});
  steps.push_back(formula_step(Quantity::factor, "m", r.factor));
  if (has_correction(r)) {
    steps.push_back(
        {Quantity::correction, "v",
         fmt::format("sum y * y / sum y * c over {} elements; 1 where the divisor is 0", r.correction.group)});
    steps.push_back({Quantity::corrected_scale, "s'",
                     conversion_text(r.scale.name(), r.correction.scale.text(), r.correction.policy)});
  }
  return steps;
}

std::vector<RecipeStep> element_steps(const Recipe& r) {
  std::vector<RecipeStep> steps;
  if (!r.scaled.empty()) steps.push_back(formula_step(Quantity::scaled, "y", r.scaled));
  steps.push_back({Quantity::code, "c", conversion_text(r.element.name(), r.scaled.empty() ? "x" : "y", r.policy)});
  steps.push_back({Quantity::value, "q", r.value.empty() ? "c" : std::string(r.value.text())});
  return steps;
}

}  // namespace halfulp

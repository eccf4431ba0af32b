#include "tools/recipe_text.h"

#include <fmt/format.h>

#include "emulation/blocks/block.h"
#include "tools/number_text.h"

namespace halfulp {
namespace {

std::string rounding_text(Rounding rounding) {
  const std::string name(kRoundings[std::size_t(rounding)].name);
  return rounding == Rounding::nearest_even ? "to nearest even" : name;
}

// A formula with "fl(1/6)" in the place of {}, and then what that is.
std::string with_reciprocal(fmt::format_string<std::string> formula, float x) {
  const std::string reciprocal = fmt::format("fl(1/{})", decimal(x));
  return fmt::format(formula, std::string(reciprocal)) +
         fmt::format(", {} = {} = {}", reciprocal, decimal(1.0f / x), hex_float(double(1.0f / x)));
}

std::string conversion_text(std::string_view format, std::string_view argument, const Policy& policy) {
  return fmt::format("{}({}), {}", format, argument, policy_text(policy));
}

std::string amax_text(std::string_view of, AmaxNan nan) {
  return fmt::format("max |x| of the {}; NaN {}", of, nan == AmaxNan::ignored ? "is ignored" : "makes it NaN");
}

float range_of(const Recipe& r) { return max_value(scale_of(r).format) * max_value(element_of(r).format); }

}  // namespace

std::string policy_text(const Policy& policy) {
  return fmt::format("{}, {}", rounding_text(policy.rounding),
                     policy.overflow == Overflow::saturate ? "saturating" : "overflow to Inf or NaN");
}

std::vector<RecipeStep> tensor_steps(const Recipe& r) {
  switch (r.outer) {
    case OuterScale::none: return {};
    case OuterScale::encode:
      return {{Quantity::tensor_amax, "A", amax_text("tensor", r.amax_nan)},
              {Quantity::tensor_encode, "S_enc",
               fmt::format("min({} / A, FLT_MAX), {} = {} * {}; 1 where A or the quotient is 0", decimal(range_of(r)),
                           decimal(range_of(r)), decimal(max_value(scale_of(r).format)),
                           decimal(max_value(element_of(r).format)))},
              {Quantity::tensor_decode, "S_dec", "1 / S_enc"}};
  }
  return {};
}

std::vector<RecipeStep> block_steps(const Recipe& r) {
  const RecipeStep amax{Quantity::block_amax, "a", amax_text("block", r.amax_nan)};
  switch (r.scale_rule) {
    case ScaleRule::none: return {};
    case ScaleRule::mx_floor: {
      const int emax = element_of(r).format.max_exponent();
      return {amax,
              {Quantity::scale, "s",
               fmt::format("2^(floor(log2 a) - {}), at least 2^-127; NaN where a is Inf or NaN", emax)},
              {Quantity::multiplier, "m", "1 / s, a power of two"}};
    }
    case ScaleRule::mx_round_up: {
      constexpr Policy kUp{.rounding = Rounding::up, .overflow = Overflow::saturate};
      return {amax,
              {Quantity::unrounded_scale, "d", with_reciprocal("a * {}", max_value(element_of(r).format))},
              {Quantity::scale, "s", conversion_text(r.scale, "d", kUp)},
              {Quantity::multiplier, "m", "1 / s, a power of two"}};
    }
    case ScaleRule::nvfp4_encode:
      return {amax,
              {Quantity::unrounded_scale, "d",
               with_reciprocal("min(a * (S_enc * {}), FLT_MAX)", max_value(element_of(r).format))},
              {Quantity::scale, "s", conversion_text(r.scale, "d", kSaturatingCast)},
              {Quantity::multiplier, "m", "min(1 / (s * S_dec), FLT_MAX)"}};
  }
  return {};
}

std::vector<RecipeStep> element_steps(const Recipe& r) {
  const std::string argument = has_scale(r) ? "x * m" : "x";
  std::string decoded = has_scale(r) ? "c * s" : "c";
  if (has_outer_scale(r)) decoded = with_reciprocal("c * (s * A * {})", range_of(r));
  return {{Quantity::code, "c", conversion_text(r.element, argument, r.policy)}, {Quantity::value, "q", decoded}};
}

}  // namespace halfulp

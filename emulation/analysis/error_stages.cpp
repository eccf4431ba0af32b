#include "emulation/analysis/error_stages.h"

#include <algorithm>
#include <limits>

namespace halfulp {
namespace {

// 2^exponent, a normal number of FP64.
double power_of_two_fp64(int exponent) { return bit_cast<double>(uint64_t(exponent + 1023) << 52); }

// The random bits of one element.
int random_bits_of(const Recipe& recipe) { return recipe.random == RandomSource::ideal ? 32 : 16; }

// A magnitude that comes out as `lower`, or as `upper` with the probability `share`, under (scaled) units: the error of
// a value whose magnitude is `size`. The sign comes later.
Moments moments_of(double lower, double upper, double share, double size) {
  const double below = lower - size, above = upper - size;
  return {.mean = below + share * (above - below), .square = below * below + share * (above * above - below * below)};
}

Moments signed_as(double x, const Moments& of_magnitude) {
  return {.mean = std::copysign(1.0, x) * of_magnitude.mean, .square = of_magnitude.square};
}

bool is_dead(const RealPosition& at) { return at.lower == 0 && at.upper_share == 0; }

// Under the scale amax / max: with a = amax and M = max the value is |x| M / a, and the error (c a - |x| M) / M.
Moments ideal_error(const StagedBlock& b, double x) {
  const Recipe& r = *b.recipe;
  const double size = absolute(x), max = max_value(r.element.format());
  if (size == 0) return {};
  const RealPosition at = position_on_grid(r.element.format(), r.policy.rounding, random_bits_of(r), x * max / b.amax);
  if (is_dead(at)) return {};
  const Moments scaled = moments_of(at.lower * b.amax, (at.lower + at.ulp) * b.amax, at.upper_share, size * max);
  return signed_as(x, {.mean = scaled.mean / max, .square = scaled.square / (max * max)});
}

// A value beyond the largest one, on the grid as it would go on.
Moments unclipped_error(const StagedBlock& b, double x) {
  const Recipe& r = *b.recipe;
  const double scale = b.largest / max_value(r.element.format());
  const RealPosition at = position_on_grid(r.element.format(), r.policy.rounding, random_bits_of(r), x / scale);
  return signed_as(x, moments_of(at.lower * scale, (at.lower + at.ulp) * scale, at.upper_share, absolute(x)));
}

// The recipe's own error over all random words: of the two codes between which `x` falls, or of the one at the end.
template <class Source>
Moments expected_error(const StagedBlock& b, Source x) {
  const Recipe& r = *b.recipe;
  const Format& format = r.element.format();
  const auto scaled = [&] {
    if constexpr (std::is_same_v<Source, float>)
      return scaled_element(r, b.tensor, b.factor, x);
    else
      return x;
  }();
  const Policy down{.rounding = Rounding::toward_zero, .overflow = Overflow::saturate};
  const uint32_t lower = encode(format, down, scaled);
  const bool at_end = (lower & format.magnitude_mask()) >= format.max_code();
  const RealPosition at = position_on_grid(format, r.policy.rounding, random_bits_of(r), double(scaled));
  const double size = absolute(double(x));
  const double low = absolute(decode_element(r, b.tensor, b.scale, lower));
  if (at_end) return signed_as(double(x), moments_of(low, low, 0, size));
  const double high = absolute(decode_element(r, b.tensor, b.scale, lower + 1));
  return signed_as(double(x), moments_of(low, high, at.upper_share, size));
}

}  // namespace

RealPosition position_on_grid(const Format& format, Rounding rounding, int random_bits, double x) {
  const double size = absolute(x);
  if (size == 0) return {.lower = 0, .ulp = 0, .upper_share = 0};
  const int exponent = std::max(int(bit_cast<uint64_t>(size) >> 52) - 1023, format.min_exponent());
  const double ulp = power_of_two_fp64(exponent - format.mantissa_bits);
  const double in_ulps = size / ulp;  // exact, and below 2^53
  const uint64_t whole = uint64_t(in_ulps);
  const double fraction = (in_ulps - double(whole)) * 0x1p32;
  const Tail tail{.negative = x < 0,
                  .odd = (whole & 1) != 0,
                  .fraction = uint32_t(fraction),
                  .sticky = fraction != double(uint32_t(fraction))};
  const double share = is_stochastic(rounding)
                           ? double(tail.fraction >> (32 - random_bits)) * power_of_two_fp64(-random_bits)
                           : double(rounds_away(rounding, tail, {}));
  return {.lower = double(whole) * ulp, .ulp = ulp, .upper_share = share};
}

bool has_closed_form(const Recipe& recipe) {
  return is_stochastic(recipe.policy.rounding) && !has_choice(recipe) && !has_correction(recipe);
}

StagedBlock staged_block(const Recipe& recipe, const TensorScale& tensor, uint32_t scale_code, float amax) {
  StagedBlock block{.recipe = &recipe,
                    .tensor = tensor,
                    .scale = 1,
                    .factor = 1,
                    .amax = amax,
                    .largest = largest_value(recipe, tensor, 1),
                    .closed_form = has_closed_form(recipe)};
  if (!has_scale(recipe)) return block;
  block.scale = decode(recipe.scale.format(), scale_code);
  block.largest = largest_value(recipe, tensor, block.scale);
  Values values = values_of(tensor);
  values[Symbol::a] = amax;
  values[Symbol::s] = block.scale;
  block.factor = evaluate(recipe.factor, values);
  return block;
}

template <class Source>
StageErrors stage_errors(const StagedBlock& block, Source x, float q) {
  const double value = double(x), e = error_of(double(q), x);
  const Moments own = block.closed_form ? expected_error(block, x) : Moments{.mean = e, .square = e * e};
  StageErrors errors;
  for (Moments& stage : errors.of) stage = own;
  const bool usable = block.largest > 0 && is_finite(block.largest);
  if (usable && absolute(value) > block.largest)
    errors.of[int(Stage::dead_zone)] = errors.of[int(Stage::scale)] = unclipped_error(block, value);
  const bool dead = usable && value != 0 && own.mean == -value && own.square == value * value;
  if (dead) errors.of[int(Stage::scale)] = {};
  errors.of[int(Stage::grid)] = has_scale(*block.recipe) || has_outer_scale(*block.recipe)
                                    ? ideal_error(block, value)
                                    : errors.of[int(Stage::scale)];
  return errors;
}

template StageErrors stage_errors(const StagedBlock&, float, float);
template StageErrors stage_errors(const StagedBlock&, double, float);
template StageErrors stage_errors(const StagedBlock&, int64_t, float);
template StageErrors stage_errors(const StagedBlock&, uint64_t, float);

}  // namespace halfulp

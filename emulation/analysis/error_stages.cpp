#include "emulation/analysis/error_stages.h"

#include <algorithm>
#include <cmath>

#include "emulation/analysis/grid_positions.h"
#include "emulation/blocks/formula_arrays.h"

namespace halfulp {
namespace {

using Strip = double[kStrip];
using Errors = std::span<StageErrors>;

// The random bits of one element.
GridRounding grid_of(const Recipe& r) {
  return {.format = r.element.format(),
          .rounding = r.policy.rounding,
          .random_bits = r.random == RandomSource::ideal ? 32 : 16};
}

// The error of x, whose magnitude comes out as `lower`, or by `width` more with the probability `share`.
Moments moments_of(double lower, double width, double share, double x) {
  if (share == 0) width = 0;  // it may be infinite
  const double mean = lower + share * width - absolute(x);
  return {.mean = std::copysign(1.0, x) * mean, .square = mean * mean + share * (1 - share) * width * width};
}

// Under the scale amax / max: with a = amax and M = max a value is x M / a, and its error (c a - x M) / M.
template <class Source>
void ideal_errors(const StagedBlock& b, std::span<const Source> x, Errors out) {
  const double max = max_value(b.recipe->element.format()), unit = 1 / max;
  Strip scaled, value;
  GridPositions at;
  for (std::size_t i = 0; i < x.size(); ++i) scaled[i] = double(x[i]) * max;
  for (std::size_t i = 0; i < x.size(); ++i) value[i] = b.amax == 0 ? 0 : scaled[i] / b.amax;
  grid_positions(grid_of(*b.recipe), std::span(value, x.size()), at);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Moments e = moments_of(at.lower[i] * b.amax, at.ulp[i] * b.amax, at.share[i], scaled[i]);
    const bool dead = at.lower[i] == 0 && at.share[i] == 0;
    out[i].of[int(Stage::grid)] = dead ? Moments{} : Moments{.mean = e.mean * unit, .square = e.square * unit * unit};
  }
}

// A value beyond the largest one, on the grid as it would go on.
Moments unclipped_error(const StagedBlock& b, double x) {
  const double scale = b.largest / max_value(b.recipe->element.format()), value = x / scale;
  GridPositions at;
  grid_positions(grid_of(*b.recipe), {&value, 1}, at);
  return moments_of(at.lower[0] * scale, at.ulp[0] * scale, at.share[0], x);
}

// Formulas of a recipe over a strip of one block's elements.
void scaled_elements(const StagedBlock& b, std::span<const float> x, std::span<float> out) {
  if (b.recipe->scaled.empty()) return void(std::ranges::copy(x, out.begin()));
  Columns columns{.arrays = {}, .constants = values_of(b.tensor)};
  columns.constants[Symbol::m] = b.factor;
  evaluate(b.recipe->scaled, columns.with(Symbol::x, x), out);
}
void decoded_elements(const StagedBlock& b, std::span<float> c) {
  if (b.recipe->value.empty()) return;
  Columns columns{.arrays = {}, .constants = values_of(b.tensor)};
  columns.constants[Symbol::s] = b.scale;
  evaluate(b.recipe->value, columns.with(Symbol::c, c), c);
}

// The recipe's own errors over all random words: of the two codes between which an element falls, or of the largest.
template <class Source>
void expected_errors(const StagedBlock& b, std::span<const Source> x, Errors out) {
  const double max = max_value(b.recipe->element.format());
  float converted[kStrip], neighbours[2 * kStrip];  // all lower ones, then all upper ones
  Strip value;
  if constexpr (std::is_same_v<Source, float>) {
    scaled_elements(b, x, std::span(converted, x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) value[i] = double(converted[i]);
  } else {
    for (std::size_t i = 0; i < x.size(); ++i) value[i] = double(x[i]);
  }
  GridPositions at;
  grid_positions(grid_of(*b.recipe), std::span(value, x.size()), at);
  for (std::size_t i = 0; i < x.size(); ++i) {
    neighbours[i] = float(std::min(at.lower[i], max));
    neighbours[x.size() + i] = float(std::min(at.lower[i] + at.ulp[i], max));
  }
  decoded_elements(b, std::span(neighbours, 2 * x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double low = absolute(double(neighbours[i])), width = absolute(double(neighbours[x.size() + i])) - low;
    out[i].of[int(Stage::clip)] = moments_of(low, width, at.share[i], double(x[i]));
  }
}

template <class Source>
void errors_of_values(std::span<const Source> x, std::span<const float> q, Errors out) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double e = error_of(double(q[i]), x[i]);
    out[i].of[int(Stage::clip)] = {.mean = e, .square = e * e};
  }
}

// The stages before the recipe's own error that begin with its scale.
template <class Source>
void add_scale_stages(const StagedBlock& b, Source x, StageErrors& errors) {
  const double value = double(x);
  const Moments own = errors.total();
  errors.of[int(Stage::scale)] = errors.of[int(Stage::dead_zone)] = own;
  if (!(b.largest > 0) || !is_finite(b.largest)) return;
  if (absolute(value) > b.largest) {
    const Moments unclipped = unclipped_error(b, value);
    if (is_finite(unclipped.square)) errors.of[int(Stage::scale)] = errors.of[int(Stage::dead_zone)] = unclipped;
  }
  if (own.mean == -value && own.square == value * value) errors.of[int(Stage::scale)] = {};
}

template <class Source>
void errors_of_strip(const StagedBlock& b, std::span<const Source> x, std::span<const float> q, Errors out) {
  b.closed_form ? expected_errors(b, x, out) : errors_of_values(x, q, out);
  for (std::size_t i = 0; i < x.size(); ++i) add_scale_stages(b, x[i], out[i]);
  if (has_scale(*b.recipe) || has_outer_scale(*b.recipe)) return ideal_errors(b, x, out);
  for (StageErrors& errors : out) errors.of[int(Stage::grid)] = errors.of[int(Stage::scale)];
}

}  // namespace

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
  if (!block.closed_form) return block;  // which alone asks for the factor
  Values values = values_of(tensor);
  values[Symbol::a] = amax;
  values[Symbol::s] = block.scale;
  block.factor = evaluate(recipe.factor, values);
  return block;
}

template <class Source>
void stage_errors(const StagedBlock& block, std::span<const Source> x, std::span<const float> q,
                  std::span<StageErrors> out) {
  for (std::size_t first = 0; first < x.size(); first += kStrip) {
    const std::size_t count = std::min(kStrip, x.size() - first);
    errors_of_strip(block, x.subspan(first, count), q.subspan(first, count), out.subspan(first, count));
  }
}

template void stage_errors(const StagedBlock&, std::span<const float>, std::span<const float>, std::span<StageErrors>);
template void stage_errors(const StagedBlock&, std::span<const double>, std::span<const float>, std::span<StageErrors>);
template void stage_errors(const StagedBlock&, std::span<const int64_t>, std::span<const float>,
                           std::span<StageErrors>);
template void stage_errors(const StagedBlock&, std::span<const uint64_t>, std::span<const float>,
                           std::span<StageErrors>);

}  // namespace halfulp

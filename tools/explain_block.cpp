#include "tools/explain_block.h"

#include <cmath>
#include <limits>

#include "emulation/blocks/block.h"
#include "emulation/blocks/block_sums.h"
#include "emulation/blocks/elementwise.h"
#include "emulation/blocks/quantize.h"
#include "emulation/simd/scalar.h"
#include "tools/number_text.h"
#include "tools/recipe_text.h"

namespace halfulp {
namespace {

struct Element {
  float x;
  float scaled;
  uint32_t code;
  float decoded;
};

// One of a choice's two scales, and what the block's elements lose under it.
struct Candidate {
  BlockScale scale;
  float loss = 0;
};

// A block with every intermediate result of its recipe.
struct Walk {
  const Recipe& recipe;
  TensorScale tensor;
  BlockStatistics block;
  BlockScale scale;         // the one taken, as its elements were coded with it
  Candidate first, second;  // of d and d2
  float stored = 0;         // the scale that is stored, after any correction
  float correction = 1;     // v: of the group that the block is corrected with
  std::vector<Element> elements;
};

// The elements of a group that is corrected together, of which the first block is shown; else those of the block.
Matrix shape_of(const Recipe& recipe, std::size_t elements) {
  const uint64_t rows = uint64_t(recipe.block.rows);
  return {.rows = rows, .cols = elements / rows};
}

// Codes and scales of the given elements.
struct Coded {
  std::vector<std::byte> codes, scales;

  uint32_t code(const FormatEntry& format, std::size_t i) const {
    return simd::load_at({.bits = format.storage_bits}, codes.data(), i) >> format.storage_shift;
  }
  uint32_t scale_code(const FormatEntry& format) const {
    return simd::load_at({.bits = format.storage_bits}, scales.data(), 0);
  }
};

Coded coded(const Recipe& r, const TensorScale& tensor, std::span<const float> x, const Randomness& random) {
  const Matrix shape = shape_of(r, x.size());
  Coded result{.codes = std::vector<std::byte>(code_bytes(r, shape) + 1),
               .scales = std::vector<std::byte>(scale_bytes(r, shape))};
  quantize_elementwise(r, tensor, shape, x, random, result.codes, result.scales);
  return result;
}

// The block under one formula for its scale, as if there were no choice.
Candidate candidate(const Walk& walk, const Formula& unrounded, std::span<const float> x, const Randomness& random) {
  const Recipe& r = walk.recipe;
  Recipe alone = r;
  alone.unrounded = unrounded;
  alone.choice = {};
  alone.correction = {};  // which wants the whole group
  const Coded block = coded(alone, walk.tensor, x, random);
  Candidate candidate{.scale = block_scale(r, walk.tensor, walk.block, unrounded)};
  Values values = values_of(walk.tensor);
  values[Symbol::s] = candidate.scale.value;
  values[Symbol::m] = candidate.scale.factor;
  std::vector<float> losses;
  for (std::size_t i = 0; i < x.size(); ++i) {
    values[Symbol::x] = x[i];
    values[Symbol::c] = decode(r.element.format(), block.code(r.element.entry(), i));
    values[Symbol::v] = evaluate(r.choice.estimate, values);
    losses.push_back(evaluate(r.choice.loss, values));
  }
  candidate.loss = total_of_losses(r.choice.total, losses.data(), losses.size());
  return candidate;
}

bool takes_second(const Walk& walk) { return walk.second.loss < walk.first.loss; }

void walk_scale(Walk& walk, std::span<const float> x, const Randomness& random) {
  const Recipe& r = walk.recipe;
  walk.scale = walk.first.scale = block_scale(r, walk.tensor, walk.block, r.unrounded);
  if (!has_choice(r)) return;
  walk.first = candidate(walk, r.unrounded, x, random);
  walk.second = candidate(walk, r.choice.alternative, x, random);
  if (takes_second(walk)) walk.scale = walk.second.scale;
}

// v of the group that begins with the block.
float correction_of(const Walk& walk, std::span<const float> x, const Coded& group, const Randomness& random) {
  const Recipe& r = walk.recipe;
  const Elementwise e = elementwise(r, walk.tensor, shape_of(r, x.size()), x.data(), random);
  const std::size_t width = std::size_t(r.block.cols);
  std::vector<float> y, c;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y.push_back(scaled_element(r, walk.tensor, scale_of_block(e, i / width).factor, x[i]));
    c.push_back(decode(r.element.format(), group.code(r.element.entry(), i)));
  }
  return correction_factor(y.data(), c.data(), x.size());
}

std::size_t block_elements(const Recipe& r, std::size_t given) {
  return has_correction(r) ? std::size_t(r.block.cols) : given;
}

Walk walk_block(const Recipe& r, std::span<const float> x, std::optional<float> tensor_amax, const Randomness& random) {
  const std::span<const float> shown = x.first(block_elements(r, x.size()));
  const Matrix shape = shape_of(r, shown.size());
  Walk walk{.recipe = r,
            .tensor = {},
            .block = block_statistics(r, shown.data(), shape.rows, shape.cols, shape.cols),
            .scale = {},
            .first = {},
            .second = {},
            .elements = {}};
  walk.tensor = tensor_scale(r, tensor_amax.value_or(largest_magnitude(r, 0, x)));
  const Coded group = coded(r, walk.tensor, x, random);
  if (has_scale(r)) {
    walk_scale(walk, shown, random);
    walk.stored = decode(r.scale.format(), group.scale_code(r.scale.entry()));
  }
  if (has_correction(r)) walk.correction = correction_of(walk, x, group, random);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const uint32_t code = group.code(r.element.entry(), i);
    walk.elements.push_back({.x = x[i],
                             .scaled = scaled_element(r, walk.tensor, walk.scale.factor, x[i]),
                             .code = code,
                             .decoded = decode_element(r, walk.tensor, walk.stored, code)});
  }
  return walk;
}

Fact number_fact(std::string_view key, float x) { return {key, Json(double(x)), decimal(x)}; }

// The value of a quantity of the tensor or of the block.
float value_of(const Walk& walk, Quantity quantity) {
  switch (quantity) {
    case Quantity::tensor_amax: return walk.tensor.amax;
    case Quantity::tensor_encode: return walk.tensor.encode;
    case Quantity::tensor_decode: return walk.tensor.decode;
    case Quantity::block_amax: return walk.block.amax;
    case Quantity::unrounded_scale: return walk.first.scale.unrounded;
    case Quantity::alternative_scale: return walk.second.scale.unrounded;
    case Quantity::scale: return walk.scale.value;
    case Quantity::factor: return walk.scale.factor;
    case Quantity::correction: return walk.correction;
    case Quantity::corrected_scale: return walk.stored;
    case Quantity::scaled:
    case Quantity::code:
    case Quantity::value: break;  // an element's
  }
  return std::numeric_limits<float>::quiet_NaN();
}

// The value of a step, its bits, and its code where it has one.
Facts step_facts(const Walk& walk, const RecipeStep& step) {
  const float value = value_of(walk, step.quantity);
  const bool stored = step.quantity == Quantity::scale || step.quantity == Quantity::corrected_scale;
  const Format* scale = stored ? &walk.recipe.scale.entry().format : nullptr;
  const uint32_t code = scale ? encode(*scale, walk.recipe.scale_policy, value) : 0;
  return {{"step", step.symbol},
          number_fact("value", value),
          {"hex", hex_float(double(value))},
          {"bits", hex_bits(bit_cast<uint32_t>(value), 32)},
          {"code", scale ? Json(code) : Json(nullptr), scale ? code_text(*scale, code) : ""},
          {"fields", scale ? Json(fields_text(*scale, code)) : Json(nullptr), scale ? fields_text(*scale, code) : ""},
          {"formula", step.formula}};
}

Facts candidate_facts(const Walk& walk, std::string_view name, const Candidate& candidate, bool taken) {
  const Format& format = walk.recipe.scale.format();
  return {{"candidate", name},
          number_fact("unrounded", candidate.scale.unrounded),
          number_fact("s", candidate.scale.value),
          {"code", candidate.scale.code, code_text(format, candidate.scale.code)},
          number_fact("m", candidate.scale.factor),
          number_fact("loss", candidate.loss),
          {"taken", Json(taken), taken ? "taken" : ""}};
}

std::vector<Facts> candidates_of(const Walk& walk) {
  if (!has_choice(walk.recipe)) return {};
  return {candidate_facts(walk, "d", walk.first, !takes_second(walk)),
          candidate_facts(walk, "d2", walk.second, takes_second(walk))};
}

// Whether the scaled value lies halfway between its code's value and the next on the other side.
bool is_tie(const Format& f, const Element& element) {
  const double scaled = std::fabs(double(element.scaled)), rounded = std::fabs(double(decode(f, element.code)));
  const uint32_t magnitude = element.code & f.magnitude_mask();
  if (scaled == rounded || (scaled < rounded && magnitude == 0) || magnitude > f.max_code()) return false;
  if (scaled > rounded && magnitude == f.max_code()) return false;
  const uint32_t other = scaled > rounded ? magnitude + 1 : magnitude - 1;
  return (rounded + double(decode(f, other))) / 2 == scaled;
}

std::string note_of(const Format& f, const Element& element) {
  const float value = decode(f, element.code);
  if (std::isnan(element.x)) return std::isnan(value) ? "NaN" : "NaN became a number";
  if (std::isnan(element.scaled)) return "no number times the multiplier";
  if (std::fabs(element.scaled) > max_value(f)) {
    return std::isfinite(value) ? fmt::format("saturated at {}", decimal(value)) : "overflowed";
  }
  if (element.x != 0 && value == 0) return std::isnan(element.decoded) ? "0 times no number" : "dead zone: became 0";
  if (is_tie(f, element)) return "tie";
  return "";
}

std::string shown(double x) { return std::isnan(x) ? "nan" : fmt::format("{:.6g}", x); }

Facts element_facts(const Walk& walk, std::size_t position) {
  const Format& f = walk.recipe.element.format();
  const Element& element = walk.elements[position];
  const double error = double(element.decoded) - double(element.x);
  Facts facts{{"i", int(position)}, number_fact("x", element.x)};
  if (!walk.recipe.scaled.empty()) facts.push_back(number_fact("y", element.scaled));
  facts.emplace_back("code", element.code, code_text(f, element.code));
  facts.emplace_back("fields", fields_text(f, element.code));
  facts.push_back(number_fact("c", decode(f, element.code)));
  if (!walk.recipe.value.empty()) facts.push_back(number_fact("q", element.decoded));
  facts.emplace_back("error", error, shown(error));
  facts.emplace_back("note", note_of(f, element));
  return facts;
}

// Figures of the block alone, over the elements that are finite and come back so.
Facts summary_of(const std::vector<Element>& elements) {
  double squared_error = 0, squared_value = 0, product = 0;
  for (const Element& element : elements) {
    const double x = element.x, q = element.decoded;
    if (!std::isfinite(x) || !std::isfinite(q)) continue;
    squared_error += (q - x) * (q - x);
    squared_value += x * x;
    product += x * q;
  }
  const double rel_mse = squared_error / squared_value;
  return {{"rel_mse", rel_mse, shown(rel_mse)},
          {"sqnr_db", -10 * std::log10(rel_mse), shown(-10 * std::log10(rel_mse))},
          {"shrinkage", 1 - product / squared_value, shown(1 - product / squared_value)}};
}

std::string formula_lines(const Recipe& recipe) {
  std::string lines;
  for (const RecipeStep& step : element_steps(recipe)) lines += fmt::format("  {} = {}\n", step.symbol, step.formula);
  return lines;
}

}  // namespace

BlockExplanation explain_block(const Recipe& recipe, std::span<const float> x, std::optional<float> amax,
                               const Randomness& random) {
  BlockExplanation e{.recipe = &recipe, .steps = {}, .candidates = {}, .elements = {}, .summary = {}};
  const Walk walk = walk_block(recipe, x, amax, random);
  for (const RecipeStep& step : tensor_steps(recipe)) e.steps.push_back(step_facts(walk, step));
  for (const RecipeStep& step : block_steps(recipe)) e.steps.push_back(step_facts(walk, step));
  e.candidates = candidates_of(walk);
  for (std::size_t i = 0; i < walk.elements.size(); ++i) e.elements.push_back(element_facts(walk, i));
  e.summary = summary_of(walk.elements);
  return e;
}

std::string to_text(const BlockExplanation& e, Color color) {
  const Recipe& recipe = *e.recipe;
  std::string text = fmt::format("{}: {}\n{}\n", recipe.name, recipe.summary, recipe.source);
  if (!e.steps.empty())
    text += "\nEvery operation rounds to FP32, to nearest even.\n" + to_text(to_table(e.steps), color);
  if (!e.candidates.empty())
    text += fmt::format("\nThe choice: d, or d2 where its loss is smaller. The loss is the {} {}, v = {}:\n{}",
                        loss_total_text(recipe.choice.total), recipe.choice.loss.text(), recipe.choice.estimate.text(),
                        to_text(to_table(e.candidates), color));
  text += "\nEach element x:\n" + formula_lines(recipe) + to_text(to_table(e.elements), color);
  return text + "\nThe block, error q - x:\n" + to_lines(e.summary);
}

Json to_json(const BlockExplanation& e) {
  Json json = to_json(e.summary);
  json["recipe"] = std::string(e.recipe->name);
  json["steps"] = to_json(e.steps);
  if (!e.candidates.empty()) json["candidates"] = to_json(e.candidates);
  json["elements"] = to_json(e.elements);
  return json;
}

}  // namespace halfulp

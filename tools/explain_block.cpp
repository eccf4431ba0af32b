#include "tools/explain_block.h"

#include <cmath>
#include <limits>

#include "emulation/blocks/block.h"
#include "emulation/blocks/quantize.h"
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

// A block with every intermediate result of its recipe.
struct Walk {
  const Recipe& recipe;
  TensorScale tensor;
  float amax;  // of the block
  BlockScale scale;
  float multiplier;  // of the decoded codes
  std::vector<Element> elements;
};

template <int id>
Walk walk_block(std::span<const float> x, std::optional<float> tensor_amax) {
  const float amax = block_amax<id>(x.data(), x.size());
  const TensorScale tensor = tensor_scale<id>(tensor_amax.value_or(amax));
  const BlockScale scale = block_scale<id>(amax, tensor);
  const float multiplier = decode_multiplier<id>(scale.code, tensor);
  Walk walk{
      .recipe = kRecipes[id], .tensor = tensor, .amax = amax, .scale = scale, .multiplier = multiplier, .elements = {}};
  for (const float value : x) {
    const uint32_t code = encode_element<id>(scale, value);
    walk.elements.push_back({.x = value,
                             .scaled = has_scale(kRecipes[id]) ? value * scale.multiplier : value,
                             .code = code,
                             .decoded = decode_element<id>(code, multiplier)});
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
    case Quantity::block_amax: return walk.amax;
    case Quantity::unrounded_scale: return walk.scale.unrounded;
    case Quantity::scale: return decode(scale_of(walk.recipe).format, walk.scale.code);
    case Quantity::multiplier: return walk.scale.multiplier;
    case Quantity::code:
    case Quantity::value: break;  // an element's
  }
  return std::numeric_limits<float>::quiet_NaN();
}

// The value of a step, its bits, and its code where it has one.
Facts step_facts(const Walk& walk, const RecipeStep& step) {
  const float value = value_of(walk, step.quantity);
  const Format* scale = step.quantity == Quantity::scale ? &scale_of(walk.recipe).format : nullptr;
  return {{"step", step.symbol},
          number_fact("value", value),
          {"hex", hex_float(double(value))},
          {"bits", hex_bits(bit_cast<uint32_t>(value), 32)},
          {"code", scale ? Json(walk.scale.code) : Json(nullptr), scale ? code_text(*scale, walk.scale.code) : ""},
          {"fields", scale ? Json(fields_text(*scale, walk.scale.code)) : Json(nullptr),
           scale ? fields_text(*scale, walk.scale.code) : ""},
          {"formula", step.formula}};
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
  const Format& f = element_of(walk.recipe).format;
  const Element& element = walk.elements[position];
  const double error = double(element.decoded) - double(element.x);
  Facts facts{{"i", int(position)}, number_fact("x", element.x)};
  if (has_scale(walk.recipe)) facts.push_back(number_fact("x*m", element.scaled));
  facts.emplace_back("code", element.code, code_text(f, element.code));
  facts.emplace_back("fields", fields_text(f, element.code));
  facts.push_back(number_fact("c", decode(f, element.code)));
  if (has_scale(walk.recipe)) facts.push_back(number_fact("q", element.decoded));
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

const Recipe& recipe_of(const BlockExplanation& e) { return kRecipes[std::size_t(e.recipe_id)]; }

std::string formula_lines(const Recipe& recipe) {
  std::string lines;
  for (const RecipeStep& step : element_steps(recipe)) lines += fmt::format("  {} = {}\n", step.symbol, step.formula);
  return lines;
}

}  // namespace

BlockExplanation explain_block(std::span<const float> x, int recipe_id, std::optional<float> amax) {
  BlockExplanation e{.recipe_id = recipe_id, .steps = {}, .elements = {}, .summary = {}};
  with_recipe(recipe_id, [&]<int id>() {
    const Walk walk = walk_block<id>(x, amax);
    for (const RecipeStep& step : tensor_steps(walk.recipe)) e.steps.push_back(step_facts(walk, step));
    for (const RecipeStep& step : block_steps(walk.recipe)) e.steps.push_back(step_facts(walk, step));
    for (std::size_t i = 0; i < walk.elements.size(); ++i) e.elements.push_back(element_facts(walk, i));
    e.summary = summary_of(walk.elements);
  });
  return e;
}

std::string to_text(const BlockExplanation& e, Color color) {
  const Recipe& recipe = recipe_of(e);
  std::string text = fmt::format("{}: {}\n{}\n", recipe.name, recipe.summary, recipe.source);
  if (!e.steps.empty())
    text += "\nEvery operation rounds to FP32, to nearest even.\n" + to_text(to_table(e.steps), color);
  text += "\nEach element x:\n" + formula_lines(recipe) + to_text(to_table(e.elements), color);
  return text + "\nThe block, error q - x:\n" + to_lines(e.summary);
}

Json to_json(const BlockExplanation& e) {
  Json json = to_json(e.summary);
  json["recipe"] = std::string(recipe_of(e).name);
  json["steps"] = to_json(e.steps);
  json["elements"] = to_json(e.elements);
  return json;
}

}  // namespace halfulp

#include "tools/recipe_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipe_fields.h"
#include "emulation/simd/scalar.h"
#include "lib/error.h"
#include "lib/random_values.h"
#include "tools/number_text.h"

namespace halfulp {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr uint64_t kSeed = 1, kTries = 20000;

// "-" where the field is empty or says nothing about the recipe.
std::string text_of(const RecipeField& field, const Recipe& recipe) {
  const std::string text = field.applies(recipe) ? field.text(recipe) : "";
  return text.empty() ? "-" : text;
}

std::vector<Facts> differing_fields(const Recipe& first, const Recipe& second) {
  std::vector<Facts> rows;
  for (const RecipeField& field : recipe_fields()) {
    const std::string p = text_of(field, first), q = text_of(field, second);
    if (p != q) rows.push_back({{"field", field.name}, {"first", p}, {"second", q}, {"meaning", field.meaning}});
  }
  return rows;
}

// A shape that is whole blocks of both.
Matrix common_shape(const Recipe& p, const Recipe& q) {
  constexpr uint64_t kRow = 32;  // of a recipe whose block is the whole row, or that has none
  constexpr uint64_t kMaxElements = uint64_t{1} << 16;
  const auto cols = [](const Recipe& r) {
    const bool any = !has_scale(r) || r.block.cols == Extent::kWhole;
    return std::lcm(any ? uint64_t{1} : uint64_t(r.block.cols), uint64_t(std::max(r.correction.group, 1)));
  };
  const uint64_t width = std::lcm(cols(p), cols(q));
  const Matrix shape{.rows = std::lcm(uint64_t(p.block.rows), uint64_t(q.block.rows)),
                     .cols = width == 1 ? kRow : width};
  if (shape.rows > kMaxElements || shape.cols > kMaxElements || shape.elements() > kMaxElements)
    throw UsageError(fmt::format("--diff: blocks of {} and {} together are more than 2^16 elements", p.name, q.name));
  return shape;
}

struct Result {
  std::vector<uint32_t> codes, scales;
  std::vector<float> scale_values, values;
};

Result result_of(const Recipe& r, const Matrix& shape, std::span<const float> x, float amax) {
  const TensorScale tensor = tensor_scale(r, amax);
  std::vector<std::byte> codes(code_bytes(r, shape) + 1), scales(scale_bytes(r, shape));
  Result result{.codes = {}, .scales = {}, .scale_values = {}, .values = std::vector<float>(x.size())};
  quantize_elementwise(r, tensor, shape, x, {.seed = kSeed}, codes, scales);
  dequantize(r, tensor, shape, std::span(codes).first(code_bytes(r, shape)), scales, result.values);
  for (std::size_t i = 0; i < x.size(); ++i)
    result.codes.push_back(simd::load_at({.bits = r.element.entry().storage_bits}, codes.data(), i));
  for (uint64_t i = 0; i < scale_grid(r, shape).elements(); ++i) {
    result.scales.push_back(simd::load_at({.bits = r.scale.entry().storage_bits}, scales.data(), i));
    result.scale_values.push_back(decode(r.scale.format(), result.scales.back()));
  }
  return result;
}

bool same(float p, float q) { return p == q ? std::signbit(p) == std::signbit(q) : std::isnan(p) && std::isnan(q); }

// What a block is looked for by: stored bytes are what a kernel is checked by, so they come first.
enum class Sought { bytes, values };

bool differs(const Recipe& p, const Recipe& q, const Result& a, const Result& b, Sought sought) {
  if (sought == Sought::values) return !std::ranges::equal(a.values, b.values, same);
  const bool codes = p.element == q.element && a.codes != b.codes;
  return codes || (p.scale == q.scale && p.block == q.block && a.scales != b.scales);
}

// A kind of block, in words, and element i of its try number t.
struct Kind {
  std::string_view words;
  uint64_t tries;
  std::function<float(uint64_t t, uint64_t i)> element;
};

float bf16_normal(uint64_t t, uint64_t i) { return apply(Op::bf16, float(normal(kSeed, t, i))); }

// BF16 numbers tell nothing of formats that have them all.
std::vector<Kind> kinds(const Recipe& p, const Recipe& q) {
  const bool narrow = p.element.format().bits() <= 8 || q.element.format().bits() <= 8;
  return {
      {"normal numbers in BF16", narrow ? kTries : 0, bf16_normal},
      {"normal numbers in FP32", kTries, [](uint64_t t, uint64_t i) { return float(normal(kSeed, t + kTries, i)); }},
      {"zeros, of which every other one is negative", 1, [](uint64_t, uint64_t i) { return i % 2 ? -0.f : 0.f; }},
      {"normal numbers with a negative zero", 1,
       [](uint64_t t, uint64_t i) { return i == 1 ? -0.f : bf16_normal(t, i); }},
      {"tiny numbers in a tensor of normal ones", 20,
       [](uint64_t t, uint64_t i) { return bf16_normal(t, i) * power_of_two(-8 - 2 * int(t)); }},
      {"a NaN among normal numbers", 1, [](uint64_t t, uint64_t i) { return i == 1 ? kNaN : bf16_normal(t, i); }},
      {"an infinity among normal numbers", 1, [](uint64_t t, uint64_t i) { return i == 1 ? kInf : bf16_normal(t, i); }},
      {"NaN only", 1, [](uint64_t, uint64_t) { return kNaN; }},
      {"numbers near the smallest of FP32", 10,
       [](uint64_t t, uint64_t i) { return bf16_normal(t, i) * power_of_two(-118 - 2 * int(t)); }},
      {"numbers near the largest of FP32", 4,
       [](uint64_t t, uint64_t i) { return bf16_normal(t, i) * power_of_two(123 + int(t)); }},
  };
}

struct Example {
  std::string words;
  std::vector<float> x;
  float amax;
  Result first, second;
};

std::string example_words(const Recipe& p, const Recipe& q, const Kind& kind, uint64_t t, std::size_t elements,
                          float amax) {
  std::string words =
      fmt::format("{} elements: {}{}", elements, kind.tries > 1 ? fmt::format("block {} of ", t) : "", kind.words);
  if (has_outer_scale(p) || has_outer_scale(q))
    words += fmt::format("; the tensor's largest magnitude is {}", decimal(amax));
  if (is_random(p) || is_random(q)) words += fmt::format("; random bits of seed {}", kSeed);
  return words;
}

std::optional<Example> find_example(const Recipe& p, const Recipe& q, Sought sought) {
  const Matrix shape = common_shape(p, q);
  for (const Kind& kind : kinds(p, q)) {
    const uint64_t tries =
        std::min<uint64_t>(kind.tries, std::max<uint64_t>(20, (uint64_t{1} << 19) / shape.elements()));
    for (uint64_t t = 0; t < tries; ++t) {
      std::vector<float> x(shape.elements());
      for (uint64_t i = 0; i < x.size(); ++i) x[i] = kind.element(t, i);
      const float own = largest_magnitude(p, 0, x);
      const float amax = std::isfinite(own) ? std::max(own, 4.f) : 4.f;  // of a tensor that has more blocks
      Example e{.words = example_words(p, q, kind, t, x.size(), amax),
                .x = x,
                .amax = amax,
                .first = result_of(p, shape, x, amax),
                .second = result_of(q, shape, x, amax)};
      if (differs(p, q, e.first, e.second, sought)) return e;
    }
  }
  return std::nullopt;
}

std::string scales_text(const Recipe& r, const Result& result) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(result.scales.size(), 8); ++i)
    text += fmt::format("{}{} ({})", i ? ", " : "", code_text(r.scale.format(), result.scales[i]),
                        decimal(result.scale_values[i]));
  if (result.scales.size() > 8) text += fmt::format(", and {} more", result.scales.size() - 8);
  return result.scales.empty() ? "none" : text;
}

std::vector<Facts> differing_elements(const Recipe& p, const Recipe& q, const Example& e) {
  std::vector<Facts> rows;
  for (std::size_t i = 0; i < e.x.size(); ++i) {
    const bool codes = p.element == q.element && e.first.codes[i] != e.second.codes[i];
    if (!codes && same(e.first.values[i], e.second.values[i])) continue;
    rows.push_back({{"i", int(i)},
                    {"x", Json(double(e.x[i])), decimal(e.x[i])},
                    {"first_code", e.first.codes[i], code_text(p.element.format(), e.first.codes[i])},
                    {"first_value", Json(double(e.first.values[i])), decimal(e.first.values[i])},
                    {"second_code", e.second.codes[i], code_text(q.element.format(), e.second.codes[i])},
                    {"second_value", Json(double(e.second.values[i])), decimal(e.second.values[i])}});
  }
  return rows;
}

// As many as a person reads.
std::string elements_text(const std::vector<Facts>& elements, Color color) {
  constexpr std::size_t kMost = 32;
  if (elements.empty()) return "";
  const std::vector<Facts> shown(elements.begin(), elements.begin() + std::ptrdiff_t(std::min(elements.size(), kMost)));
  std::string text = "\nElements that differ:\n" + to_text(to_table(shown), color);
  if (elements.size() > kMost) text += fmt::format("and {} more, which --json shows\n", elements.size() - kMost);
  return text;
}

}  // namespace

RecipeDiff diff_recipes(const Recipe& first, const Recipe& second) {
  RecipeDiff diff{.first = &first,
                  .second = &second,
                  .fields = differing_fields(first, second),
                  .example = {},
                  .scales = {},
                  .elements = {}};
  std::optional<Example> example = find_example(first, second, Sought::bytes);
  if (!example) example = find_example(first, second, Sought::values);
  if (!example) {
    diff.example = "no block was found, ordinary or special, whose codes, scales or values differ";
    if (first.edge != second.edge) diff.example += "; one of them takes tensors that are not whole blocks";
    return diff;
  }
  diff.example = example->words;
  diff.scales = {{"first_scales", scales_text(first, example->first)},
                 {"second_scales", scales_text(second, example->second)}};
  diff.elements = differing_elements(first, second, *example);
  return diff;
}

std::string to_text(const RecipeDiff& diff, Color color) {
  std::string text = fmt::format("first   {}: {}\nsecond  {}: {}\n", diff.first->name, diff.first->summary,
                                 diff.second->name, diff.second->summary);
  text += diff.fields.empty() ? "\nNo field differs.\n" : "\n" + to_text(to_table(diff.fields), color);
  text += fmt::format("\nExample: {}\n{}", diff.example, to_lines(diff.scales));
  return text + elements_text(diff.elements, color);
}

Json to_json(const RecipeDiff& diff) {
  Json json = to_json(diff.scales);
  json["first"] = std::string(diff.first->name);
  json["second"] = std::string(diff.second->name);
  json["fields"] = to_json(diff.fields);
  json["example"] = diff.example;
  json["elements"] = to_json(diff.elements);
  return json;
}

}  // namespace halfulp

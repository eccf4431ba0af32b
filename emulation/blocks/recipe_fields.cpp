#include "emulation/blocks/recipe_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>
#include <set>
#include <stdexcept>

namespace halfulp {
namespace {

constexpr std::array<std::string_view, 3> kAmaxNanNames{"ignored", "propagates", "propagates-from-all"};
constexpr std::array<std::string_view, 2> kEdgeNames{"refused", "partial"};
constexpr std::array<std::string_view, 2> kRandomNames{"ideal", "te"};
constexpr std::array<std::string_view, 3> kLossTotalNames{"sequential", "torch", "largest"};

constexpr auto kRoundingNames = [] {
  std::array<std::string_view, kRoundings.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kRoundings[i].name;
  return names;
}();

template <class Names>
std::vector<std::string_view> all_of(const Names& names) {
  return {names.begin(), names.end()};
}

// A field that is an enumerator, by the position of its name.
template <auto member_of, auto& names>
RecipeField enumerator(std::string_view name, std::string_view meaning) {
  return {.name = name,
          .meaning = meaning,
          .choices = all_of(names),
          .text = [](const Recipe& r) { return std::string(names[std::size_t(member_of(const_cast<Recipe&>(r)))]); },
          .set =
              [](Recipe& r, std::string_view text) {
                const auto found = std::ranges::find(names, text);
                if (found == names.end())
                  throw std::invalid_argument(fmt::format("expected {}", fmt::join(names, ", ")));
                using Enum = std::remove_reference_t<decltype(member_of(r))>;
                member_of(r) = Enum(found - names.begin());
              }};
}

template <auto member_of>
RecipeField formula(std::string_view name, std::string_view meaning) {
  return {.name = name,
          .meaning = meaning,
          .choices = {},
          .text = [](const Recipe& r) { return std::string(member_of(const_cast<Recipe&>(r)).text()); },
          .set = [](Recipe& r, std::string_view text) { member_of(r) = Formula(kept(text)); }};
}

template <auto member_of>
RecipeField format(std::string_view name, std::string_view meaning) {
  return {.name = name,
          .meaning = meaning,
          .choices = {},
          .text = [](const Recipe& r) { return std::string(member_of(const_cast<Recipe&>(r)).name()); },
          .set =
              [](Recipe& r, std::string_view text) {
                const int id = text.empty() ? -1 : find_format(text);
                if (id < 0 && !text.empty()) throw std::invalid_argument("expected the name of a format");
                member_of(r) = FormatName(id);
              }};
}

int positive(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > 1 << 20)
    throw std::invalid_argument("expected a number from 1 to 2^20");
  return value;
}

std::string extent_text(const Recipe& r) {
  return fmt::format("{}x{}", r.block.rows, r.block.cols == Extent::kWhole ? "row" : std::to_string(r.block.cols));
}

void set_extent(Recipe& r, std::string_view text) {
  const std::size_t cross = text.find('x');
  if (cross == std::string_view::npos) throw std::invalid_argument("expected ROWSxCOLUMNS, such as 1x32, or 1xrow");
  const std::string_view cols = text.substr(cross + 1);
  r.block = {positive(text.substr(0, cross)), cols == "row" ? Extent::kWhole : positive(cols)};
}

std::string group_text(const Recipe& r) { return std::to_string(r.correction.group); }

void set_group(Recipe& r, std::string_view text) { r.correction.group = text == "0" ? 0 : positive(text); }

// clang-format off
std::vector<RecipeField> make_fields() {
  return {
      format<[](Recipe& r) -> auto& { return r.element; }>("element", "format of the codes"),
      enumerator<[](Recipe& r) -> auto& { return r.policy.rounding; }, kRoundingNames>("rounding", "of elements"),
      enumerator<[](Recipe& r) -> auto& { return r.policy.overflow; }, kOverflowNames>("overflow", "of elements"),
      enumerator<[](Recipe& r) -> auto& { return r.policy.inf; }, kInfInputNames>("inf", "an infinite element"),
      enumerator<[](Recipe& r) -> auto& { return r.policy.nan; }, kNanInputNames>("nan", "a NaN element"),
      enumerator<[](Recipe& r) -> auto& { return r.policy.zero; }, kZeroResultNames>("zero", "sign of a zero code"),
      enumerator<[](Recipe& r) -> auto& { return r.random; }, kRandomNames>("random", "bits of stochastic rounding"),
      {.name = "block", .meaning = "rows x columns that share a scale", .choices = {}, .text = extent_text,
       .set = set_extent},
      enumerator<[](Recipe& r) -> auto& { return r.edge; }, kEdgeNames>("edge", "a tensor that is not whole blocks"),
      enumerator<[](Recipe& r) -> auto& { return r.amax_nan; }, kAmaxNanNames>(
          "amax-nan", "a NaN in a largest magnitude"),
      formula<[](Recipe& r) -> auto& { return r.encode; }>("S_enc", "encode scale of the tensor"),
      formula<[](Recipe& r) -> auto& { return r.decode; }>("S_dec", "decode scale of the tensor"),
      format<[](Recipe& r) -> auto& { return r.scale; }>("scale", "format of the scales"),
      formula<[](Recipe& r) -> auto& { return r.unrounded; }>("d", "scale before it is rounded to its format"),
      enumerator<[](Recipe& r) -> auto& { return r.scale_policy.rounding; }, kRoundingNames>(
          "scale-rounding", "of scales"),
      enumerator<[](Recipe& r) -> auto& { return r.scale_policy.overflow; }, kOverflowNames>(
          "scale-overflow", "of scales"),
      enumerator<[](Recipe& r) -> auto& { return r.scale_policy.inf; }, kInfInputNames>(
          "scale-inf", "an infinite scale"),
      formula<[](Recipe& r) -> auto& { return r.factor; }>("m", "factor of the block's elements"),
      formula<[](Recipe& r) -> auto& { return r.scaled; }>("y", "what is converted to a code"),
      formula<[](Recipe& r) -> auto& { return r.value; }>("q", "what an element stands for"),
      formula<[](Recipe& r) -> auto& { return r.choice.alternative; }>(
          "d2", "another d, taken where its loss is smaller"),
      formula<[](Recipe& r) -> auto& { return r.choice.estimate; }>(
          "v", "what an element is taken to stand for in the loss"),
      formula<[](Recipe& r) -> auto& { return r.choice.loss; }>("loss", "of an element"),
      enumerator<[](Recipe& r) -> auto& { return r.choice.total; }, kLossTotalNames>(
          "loss-total", "what becomes of a block's losses"),
      {.name = "correction-group", .meaning = "elements over which scales are corrected; 0: they are not", .choices = {},
       .text = group_text, .set = set_group},
      formula<[](Recipe& r) -> auto& { return r.correction.scale; }>("s2", "corrected scale, v = sum y*y / sum y*c"),
      enumerator<[](Recipe& r) -> auto& { return r.correction.policy.rounding; }, kRoundingNames>(
          "s2-rounding", "of it"),
      enumerator<[](Recipe& r) -> auto& { return r.correction.policy.overflow; }, kOverflowNames>(
          "s2-overflow", "of it"),
  };
}
// clang-format on

// A formula and the symbols that have values when it is evaluated.
struct Scope {
  std::string_view field;
  const Formula& formula;
  std::vector<Symbol> known;
};

std::string unknown_symbol(const Scope& scope) {
  for (std::size_t i = 0; i < kSymbols.size(); ++i)
    if (scope.formula.uses(Symbol(i)) && std::ranges::find(scope.known, Symbol(i)) == scope.known.end())
      return fmt::format("{} = {}: {} has no value there", scope.field, scope.formula.text(), kSymbols[i].name);
  return "";
}

}  // namespace

std::string_view kept(std::string_view text) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> all;
  const std::lock_guard lock(mutex);
  return *all.emplace(text).first;
}

std::span<const RecipeField> recipe_fields() {
  static const std::vector<RecipeField> kFields = [] {
    std::vector<RecipeField> fields = make_fields();
    for (RecipeField& field : fields) {
      if (field.name == "random") field.applies = is_random;
      if (field.name == "loss-total") field.applies = has_choice;
      if (field.name.starts_with("scale-") || field.name == "edge") field.applies = has_scale;
      if (field.name.starts_with("s2") || field.name == "correction-group") field.applies = has_correction;
    }
    return fields;
  }();
  return kFields;
}

void set_field(Recipe& recipe, std::string_view name, std::string_view text) {
  for (const RecipeField& field : recipe_fields()) {
    if (field.name != name) continue;
    try {
      return field.set(recipe, text);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("{} = '{}': {}", name, text, error.what()));
    }
  }
  std::vector<std::string_view> names;
  for (const RecipeField& field : recipe_fields()) names.push_back(field.name);
  throw std::invalid_argument(fmt::format("a recipe has no field '{}'; it has {}", name, fmt::join(names, ", ")));
}

std::string contradiction(const Recipe& r) {
  using enum Symbol;
  const std::vector<Symbol> tensor{A, S_enc, S_dec};
  const auto with = [&](std::initializer_list<Symbol> more) {
    std::vector<Symbol> known = tensor;
    known.insert(known.end(), more);
    return known;
  };
  for (const Scope& scope :
       {Scope{"S_enc", r.encode, {A}}, Scope{"S_dec", r.decode, {A, S_enc}},
        Scope{"d", r.unrounded, with({a, sum, squares})}, Scope{"d2", r.choice.alternative, with({a, sum, squares})},
        Scope{"m", r.factor, with({a, sum, squares, d, s})}, Scope{"y", r.scaled, with({x, m})},
        Scope{"q", r.value, with({c, s})}, Scope{"v", r.choice.estimate, with({x, m, c, s})},
        Scope{"loss", r.choice.loss, {x, v}}, Scope{"s2", r.correction.scale, with({s, v})}})
    if (std::string reason = unknown_symbol(scope); !reason.empty()) return reason;
  const int bits = r.element.empty() ? 0 : r.element.entry().storage_bits;
  if (bits == 4 && r.block.cols % 2 != 0) return "a block of 4-bit codes has an even number of columns";
  if (has_scale(r) && r.scale.entry().storage_bits != 8 && r.scale.entry().storage_bits != 32)
    return "scales are stored in 8 or 32 bits";
  if (is_stochastic(r.scale_policy.rounding))
    return "scale-rounding is not stochastic; s2 and s2-rounding are for that";
  if (r.random == RandomSource::te && (!has_scale(r) || r.block.cols % 4 != 0))
    return "random = te gives one word to four elements of a block, so it needs blocks of whole fours";
  if (has_correction(r) && (r.block.rows > 1 || r.block.cols == Extent::kWhole))
    return "correction-group is for blocks that are a part of one row";
  if (r.correction.group % (r.block.cols == Extent::kWhole ? 1 : r.block.cols) != 0 || r.correction.group > 512)
    return "correction-group is a multiple of the block, at most 512";
  return is_sound(r) ? ""
                     : "a scale needs a block, d, m, y and q; a block needs a scale; S_enc needs S_dec; d2 needs v and "
                       "loss; correction-group needs s2";
}

}  // namespace halfulp

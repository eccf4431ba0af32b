#include "emulation/blocks/recipe_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>
#include <set>
#include <stdexcept>

#include "lib/cli.h"
#include "lib/utf8.h"

namespace halfulp {
namespace {

// The choices of a field, by the position of the enumerator.
constexpr std::array<FieldChoice, 2> kOverflows{
    {{kOverflowNames[0], "the largest finite value"}, {kOverflowNames[1], "Inf, or NaN where there is no Inf"}}};
constexpr std::array<FieldChoice, 2> kInfInputs{
    {{kInfInputNames[0], "as a finite value that overflows"}, {kInfInputNames[1], "NaN where the format has no Inf"}}};
constexpr std::array<FieldChoice, 7> kNanInputs{
    {{kNanInputNames[0], "all magnitude bits one, sign dropped"},
     {kNanInputNames[1], "the same, sign kept"},
     {kNanInputNames[2], "sign and upper payload kept, made quiet"},
     {kNanInputNames[3], "sign and the quiet bit alone"},
     {kNanInputNames[4], "signed zero where the format has no NaN"},
     {kNanInputNames[5], "sign and as much of the payload as fits, not made quiet"},
     {kNanInputNames[6], "the same, less one ulp"}}};
constexpr std::array<FieldChoice, 2> kZeroResults{
    {{kZeroResultNames[0], "where the format has a -0"}, {kZeroResultNames[1], "never -0"}}};
constexpr std::array<FieldChoice, 3> kAmaxNans{{{"ignored", "it counts for nothing"},
                                                {"propagates", "one NaN makes it NaN"},
                                                {"propagates-from-all", "NaN where every element is (CUDA __hmax)"}}};
constexpr std::array<FieldChoice, 2> kEdges{
    {{"refused", "tensors are whole blocks"}, {"partial", "the last block may be a part of one"}}};
constexpr std::array<FieldChoice, 2> kRandoms{
    {{"ideal", "32 for each element, from (seed, tensor, element)"},
     {"te", "a word for four elements, as cvt.rs takes it, from Transformer Engine's Philox or --random"}}};
constexpr std::array<FieldChoice, 3> kLossTotals{{{"sequential", "their sum, element by element"},
                                                  {"torch", "their sum in the order of PyTorch's CPU kernel"},
                                                  {"largest", "the largest of them"}}};

constexpr auto kRoundingChoices = [] {
  std::array<FieldChoice, kRoundings.size()> choices;
  for (std::size_t i = 0; i < choices.size(); ++i) choices[i] = {kRoundings[i].name, kRoundings[i].meaning};
  return choices;
}();

std::string joined(std::span<const FieldChoice> choices) {
  std::vector<std::string_view> names;
  for (const FieldChoice& choice : choices) names.push_back(choice.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// "; did you mean 'e4m3'?", or nothing.
std::string suggestion(std::string_view text, std::span<const FieldChoice> choices) {
  std::vector<std::string> names;
  for (const FieldChoice& choice : choices) names.emplace_back(choice.name);
  return did_you_mean(text, names);
}

// A field that is an enumerator, by the position of its name.
template <auto member_of, auto& choices>
RecipeField enumerator(std::string_view name, std::string_view meaning) {
  return {
      .name = name,
      .meaning = meaning,
      .takes = joined(choices),
      .choices = {choices.begin(), choices.end()},
      .symbols = {},
      .text = [](const Recipe& r) { return std::string(choices[std::size_t(member_of(const_cast<Recipe&>(r)))].name); },
      .set =
          [](Recipe& r, std::string_view text) {
            const auto found = std::ranges::find(choices, text, &FieldChoice::name);
            if (found == choices.end())
              throw std::invalid_argument(fmt::format("expected {}{}", joined(choices), suggestion(text, choices)));
            using Enum = std::remove_reference_t<decltype(member_of(r))>;
            member_of(r) = Enum(found - choices.begin());
          }};
}

// What the parser says, less the formula's text, which stands before it anyway.
Formula parsed(std::string_view text) {
  try {
    return Formula(text);
  } catch (const std::invalid_argument& error) {
    const std::string_view message = error.what();
    const std::string quoted = fmt::format("formula '{}', ", text);
    throw std::invalid_argument(std::string(message.starts_with(quoted) ? message.substr(quoted.size()) : message));
  }
}

std::string names_of(std::span<const Symbol> symbols) {
  std::vector<std::string_view> names;
  for (const Symbol symbol : symbols) names.push_back(kSymbols[std::size_t(symbol)].name);
  return fmt::format("{}", fmt::join(names, ", "));
}

template <auto member_of>
RecipeField formula(std::string_view name, std::string_view meaning, std::vector<Symbol> symbols) {
  return {.name = name,
          .meaning = meaning,
          .takes = "a formula of " + names_of(symbols),
          .choices = {},
          .symbols = symbols,
          .text = [](const Recipe& r) { return std::string(member_of(const_cast<Recipe&>(r)).text()); },
          .set = [](Recipe& r, std::string_view text) { member_of(r) = parsed(kept(text)); }};
}

std::vector<FieldChoice> format_choices() {
  std::vector<FieldChoice> choices;
  for (const FormatEntry& row : kFormats) choices.push_back({row.name, ""});
  return choices;
}

template <auto member_of>
RecipeField format(std::string_view name, std::string_view meaning, std::string_view takes) {
  return {.name = name,
          .meaning = meaning,
          .takes = std::string(takes),
          .choices = {},
          .symbols = {},
          .text = [](const Recipe& r) { return std::string(member_of(const_cast<Recipe&>(r)).name()); },
          .set =
              [](Recipe& r, std::string_view text) {
                const int id = text.empty() ? -1 : find_format(text);
                if (id < 0 && !text.empty())
                  throw std::invalid_argument("expected the name of a format" + suggestion(text, format_choices()));
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

constexpr std::string_view kExtents = "ROWSxCOLUMNS, such as 1x32, or 1xrow";

void set_extent(Recipe& r, std::string_view text) {
  const std::size_t cross = text.find('x');
  if (cross == std::string_view::npos) throw std::invalid_argument(fmt::format("expected {}", kExtents));
  const std::string_view cols = text.substr(cross + 1);
  r.block = {positive(text.substr(0, cross)), cols == "row" ? Extent::kWhole : positive(cols)};
}

std::string group_text(const Recipe& r) { return std::to_string(r.correction.group); }

void set_group(Recipe& r, std::string_view text) { r.correction.group = text == "0" ? 0 : positive(text); }

// clang-format off
std::vector<RecipeField> make_fields() {
  using enum Symbol;
  return {
      format<[](Recipe& r) -> auto& { return r.element; }>("element", "format of the codes", "a format's name"),
      enumerator<[](Recipe& r) -> auto& { return r.policy.rounding; }, kRoundingChoices>(
          "rounding", "how elements are rounded"),
      enumerator<[](Recipe& r) -> auto& { return r.policy.overflow; }, kOverflows>(
          "overflow", "what an element beyond the largest finite value becomes"),
      enumerator<[](Recipe& r) -> auto& { return r.policy.inf; }, kInfInputs>(
          "inf", "what an infinite element becomes"),
      enumerator<[](Recipe& r) -> auto& { return r.policy.nan; }, kNanInputs>("nan", "what a NaN element becomes"),
      enumerator<[](Recipe& r) -> auto& { return r.policy.zero; }, kZeroResults>("zero", "sign of a zero code"),
      enumerator<[](Recipe& r) -> auto& { return r.random; }, kRandoms>("random", "bits of stochastic rounding"),
      {.name = "block", .meaning = "rows x columns that share a scale", .takes = std::string(kExtents), .choices = {},
       .symbols = {}, .text = extent_text, .set = set_extent},
      enumerator<[](Recipe& r) -> auto& { return r.edge; }, kEdges>("edge", "a tensor that is not whole blocks"),
      enumerator<[](Recipe& r) -> auto& { return r.amax_nan; }, kAmaxNans>("amax-nan", "a NaN in a largest magnitude"),
      formula<[](Recipe& r) -> auto& { return r.encode; }>("S_enc", "encode scale of the tensor", {A}),
      formula<[](Recipe& r) -> auto& { return r.decode; }>("S_dec", "decode scale of the tensor", {A, S_enc}),
      format<[](Recipe& r) -> auto& { return r.scale; }>(
          "scale", "format of the scales", "a format's name, of 8 or 32 bits, or nothing"),
      formula<[](Recipe& r) -> auto& { return r.unrounded; }>(
          "d", "scale before it is rounded to its format", {A, S_enc, S_dec, a, sum, squares}),
      enumerator<[](Recipe& r) -> auto& { return r.scale_policy.rounding; }, kRoundingChoices>(
          "scale-rounding", "how d is rounded to a scale"),
      enumerator<[](Recipe& r) -> auto& { return r.scale_policy.overflow; }, kOverflows>(
          "scale-overflow", "what a d beyond the largest finite value becomes"),
      enumerator<[](Recipe& r) -> auto& { return r.scale_policy.inf; }, kInfInputs>(
          "scale-inf", "what an infinite d becomes"),
      formula<[](Recipe& r) -> auto& { return r.factor; }>(
          "m", "factor of the block's elements", {A, S_enc, S_dec, a, sum, squares, d, s}),
      formula<[](Recipe& r) -> auto& { return r.scaled; }>("y", "what is converted to a code", {A, S_enc, S_dec, x, m}),
      formula<[](Recipe& r) -> auto& { return r.value; }>("q", "what an element stands for", {A, S_enc, S_dec, c, s}),
      formula<[](Recipe& r) -> auto& { return r.choice.alternative; }>(
          "d2", "another d, taken where its loss is smaller", {A, S_enc, S_dec, a, sum, squares}),
      formula<[](Recipe& r) -> auto& { return r.choice.estimate; }>(
          "v", "what an element is taken to stand for in the loss", {A, S_enc, S_dec, x, m, c, s}),
      formula<[](Recipe& r) -> auto& { return r.choice.loss; }>("loss", "error of an element", {x, v}),
      enumerator<[](Recipe& r) -> auto& { return r.choice.total; }, kLossTotals>(
          "loss-total", "what becomes of a block's losses"),
      {.name = "correction-group", .meaning = "elements over which scales are corrected; 0: they are not",
       .takes = "0, or a multiple of the block up to 512", .choices = {}, .symbols = {}, .text = group_text,
       .set = set_group},
      formula<[](Recipe& r) -> auto& { return r.correction.scale; }>(
          "s2", "corrected scale, v = sum y*y / sum y*c", {A, S_enc, S_dec, s, v}),
      enumerator<[](Recipe& r) -> auto& { return r.correction.policy.rounding; }, kRoundingChoices>(
          "s2-rounding", "how s2 is rounded to a scale"),
      enumerator<[](Recipe& r) -> auto& { return r.correction.policy.overflow; }, kOverflows>(
          "s2-overflow", "what an s2 beyond the largest finite value becomes"),
  };
}
// clang-format on

// A symbol that a formula names and that has no value there.
std::string unknown_symbol(const Recipe& recipe) {
  for (const RecipeField& field : recipe_fields()) {
    if (field.symbols.empty()) continue;
    const std::string text = field.text(recipe);
    const Formula formula{std::string_view(text)};
    for (std::size_t i = 0; i < kSymbols.size(); ++i)
      if (formula.uses(Symbol(i)) && std::ranges::find(field.symbols, Symbol(i)) == field.symbols.end())
        return fmt::format("{} = '{}': {}, {}, has no value there; expected {}", field.name, text, kSymbols[i].name,
                           kSymbols[i].meaning, field.takes);
  }
  return "";
}

// Fields that `why` needs and that are empty.
std::string missing(const Recipe& recipe, std::string_view why, std::initializer_list<std::string_view> needed) {
  std::vector<std::string_view> empty;
  for (const RecipeField& field : recipe_fields())
    if (std::ranges::find(needed, field.name) != needed.end() && field.text(recipe).empty())
      empty.push_back(field.name);
  return empty.empty() ? "" : fmt::format("{}; not stated: {}", why, fmt::join(empty, ", "));
}

std::string missing_field(const Recipe& r) {
  const bool blocks = r.block != Extent{1, 1};
  if (has_scale(r) && !blocks)
    return fmt::format("a scale needs a block, and scale is {} but block is 1x1", r.scale.name());
  if (!has_scale(r) && blocks)
    return fmt::format("a block needs a scale, and block is {} but scale is not stated", extent_text(r));
  std::string reason = missing(r, "a recipe needs the format of its codes", {"element"});
  if (reason.empty() && has_scale(r)) reason = missing(r, "a scale needs d, m, y and q", {"d", "m", "y", "q"});
  if (reason.empty() && !r.encode.empty()) reason = missing(r, "S_enc needs S_dec", {"S_dec"});
  if (reason.empty() && has_choice(r)) reason = missing(r, "d2 needs v and loss", {"v", "loss"});
  if (reason.empty() && has_correction(r)) reason = missing(r, "correction-group needs s2", {"s2"});
  return reason;
}

// What the storage of codes and scales and the random words ask of blocks.
std::string unfit_block(const Recipe& r) {
  if (r.element.entry().storage_bits == 4 && r.block.cols % 2 != 0)
    return fmt::format("block = {}: a block of 4-bit codes has an even number of columns", extent_text(r));
  if (has_scale(r) && r.scale.entry().storage_bits != 8 && r.scale.entry().storage_bits != 32)
    return fmt::format("scale = {}: scales are stored in 8 or 32 bits, not in {}", r.scale.name(),
                       r.scale.entry().storage_bits);
  if (r.random == RandomSource::te && (!has_scale(r) || r.block.cols % 4 != 0))
    return fmt::format(
        "random = te gives one word to four elements of a block, so it needs blocks of whole fours; block "
        "is {}",
        extent_text(r));
  return "";
}

std::string unfit_correction(const Recipe& r) {
  if (!has_correction(r)) return "";
  if (!has_scale(r)) return "correction-group is for recipes with a scale";
  if (r.block.rows > 1 || r.block.cols == Extent::kWhole)
    return fmt::format("correction-group is for blocks that are a part of one row; block is {}", extent_text(r));
  if (r.correction.group % r.block.cols != 0 || r.correction.group > 512)
    return fmt::format("correction-group = {}: expected a multiple of {}, the block, up to 512", r.correction.group,
                       r.block.cols);
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
      if (field.name == "amax-nan") field.applies = [](const Recipe& r) { return has_scale(r) || has_outer_scale(r); };
      if (field.name == "loss-total") field.applies = has_choice;
      if (field.name.starts_with("scale-") || field.name == "edge") field.applies = has_scale;
      if (field.name.starts_with("s2") || field.name == "correction-group") field.applies = has_correction;
    }
    return fields;
  }();
  return kFields;
}

void set_field(Recipe& recipe, std::string_view name, std::string_view text) {
  std::vector<std::string> names;
  for (const RecipeField& field : recipe_fields()) {
    names.emplace_back(field.name);
    if (field.name != name) continue;
    try {
      return field.set(recipe, text);
    } catch (const std::invalid_argument& error) {
      const std::string_view what = error.what();
      throw std::invalid_argument(
          fmt::format("{} = '{}'{} {}", name, shortened(text), what.starts_with("position") ? "," : ":", what));
    }
  }
  throw std::invalid_argument(fmt::format("a recipe has no field '{}'; its fields are {}{}", shortened(name),
                                          fmt::join(names, ", "), did_you_mean(name, names)));
}

std::string contradiction(const Recipe& r) {
  if (is_stochastic(r.scale_policy.rounding))
    return "scale-rounding = stochastic: scales are rounded so by s2 and s2-rounding only";
  for (const auto reason_of : {missing_field, unknown_symbol, unfit_block, unfit_correction})
    if (std::string reason = reason_of(r); !reason.empty()) return reason;
  return "";
}

}  // namespace halfulp

// What `halfulp formats` says about the formulas of recipes.

#include <algorithm>
#include <array>
#include <cctype>

#include "emulation/blocks/formula.h"
#include "emulation/blocks/recipe_fields.h"
#include "emulation/blocks/recipes.h"
#include "tools/catalogs.h"
#include "tools/number_text.h"

namespace halfulp {
namespace {

// A word or sign of a formula.
struct Term {
  std::string_view name;
  std::string_view kind;
  std::string form;
  std::string meaning;
};

// What has no name, in the order in which it binds, loosest first. The rows of kOperators are among them.
constexpr std::array<std::array<std::string_view, 3>, 10> kSigns{{
    {"?", "p ? q : r", "q where p is not 0, a NaN included, else r"},
    {"==", "p == q", "1 where they are equal, else 0"},
    {"<", "p < q", "1 where p is smaller, else 0"},
    {"+", "p + q", "sum, from the left"},
    {"-", "p - q", "difference, from the left; -p changes the sign"},
    {"*", "p * q", "product, from the left"},
    {"/", "p / q", "quotient, from the left: a / 6 * b divides first"},
    {"(", "(p)", "binds first"},
    {"0x", "0x1.8p-3", "a number with hexadecimal digits and a power of two, rounded to FP32"},
    {"0", "1.5e-4", "a number with decimal digits and a power of ten, rounded to FP32"},
}};

std::string call_of(const FunctionEntry& row) {
  constexpr std::string_view kOperands = "p, q, r";
  return fmt::format("{}({})", row.name, kOperands.substr(0, std::size_t(3 * row.arguments - 2)));
}

std::vector<Term> terms() {
  std::vector<Term> all;
  for (const SymbolEntry& row : kSymbols)
    all.push_back({row.name, "symbol", std::string(row.name), std::string(row.meaning)});
  for (const FunctionEntry& row : kFunctions)
    all.push_back({row.name, "function", call_of(row), std::string(row.meaning)});
  for (const ConstantEntry& row : kConstants)
    all.push_back({row.name, "constant", std::string(row.name), decimal(row.value)});
  for (const auto& [name, form, meaning] : kSigns)
    all.push_back({name, "sign", std::string(form), std::string(meaning)});
  return all;
}

Facts list_row(const Term& term) {
  return {{"name", term.name}, {"kind", term.kind}, {"form", term.form}, {"meaning", term.meaning}};
}

std::vector<Facts> list_terms() {
  std::vector<Facts> rows;
  for (const Term& term : terms()) rows.push_back(list_row(term));
  return rows;
}

// Fields whose formulas may name a symbol.
std::vector<Facts> field_rows(std::string_view name) {
  std::vector<Facts> rows;
  for (const RecipeField& field : recipe_fields())
    for (const Symbol symbol : field.symbols)
      if (kSymbols[std::size_t(symbol)].name == name)
        rows.push_back({{"field", field.name}, {"meaning", field.meaning}});
  return rows;
}

bool is_word(char c) { return std::isalnum(uint8_t(c)) || c == '_'; }

// Whether the name stands in the formula, not as a part of a longer one.
bool names(std::string_view formula, std::string_view name) {
  for (std::size_t at = formula.find(name); at != std::string_view::npos; at = formula.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || !is_word(name.front()) || !is_word(formula[at - 1]);
    const bool ends = end == formula.size() || !is_word(name.back()) || !is_word(formula[end]);
    if (begins && ends) return true;
  }
  return false;
}

// Formulas of the catalog's recipes that have the term, the first of each field and text.
std::vector<Facts> use_rows(const Term& term) {
  std::vector<Facts> rows;
  std::vector<std::string> seen;
  for (const Recipe& recipe : kRecipes) {
    for (const RecipeField& field : recipe_fields()) {
      const std::string text = field.text(recipe), statement = fmt::format("{} = {}", field.name, text);
      if (field.symbols.empty() || !names(text, term.name) || std::ranges::find(seen, statement) != seen.end())
        continue;
      seen.push_back(statement);
      rows.push_back({{"field", field.name}, {"formula", text}, {"recipe", recipe.name}});
    }
  }
  return rows;
}

Description describe(std::string_view name) {
  const std::vector<Term> all = terms();
  const Term& term = *std::ranges::find(all, name, &Term::name);
  return {.title = fmt::format("{}, a {} of formulas", term.name, term.kind),
          .facts = list_row(term),
          .sections = {{"fields", "Fields whose formulas may name it", field_rows(term.name)},
                       {"uses", "Formulas of recipes that have it", use_rows(term)}}};
}

std::vector<std::string> term_names() {
  std::vector<std::string> all;
  for (const Term& term : terms()) all.emplace_back(term.name);
  return all;
}

}  // namespace

Catalog formula_catalog() {
  return {.name = "formula",
          .singular = "formula-term",
          .title = "What a recipe's formula is made of; every operation is one in FP32, rounded to nearest even",
          .names = term_names,
          .list = list_terms,
          .describe = describe};
}

}  // namespace halfulp

#include "tools/recipe_option.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>

#include "emulation/blocks/recipe_fields.h"
#include "emulation/blocks/recipes.h"
#include "lib/error.h"
#include "lib/mapped_file.h"
#include "lib/utf8.h"
#include "tools/options.h"

namespace halfulp {
namespace {

constexpr std::string_view kWhereFieldsAre =
    "('halfulp formats recipe-fields' says what each field takes, 'halfulp formats formula' what formulas are made of)";

// Recipes that a user stated, by what was said of them.
const Recipe& keep(const std::string& text, const Recipe& recipe) {
  static std::mutex mutex;
  static std::map<std::string, Recipe> all;
  const std::lock_guard lock(mutex);
  return all.emplace(text, recipe).first->second;
}

// "; did you mean 'nvfp4/te'?", or nothing.
std::string near_recipe(std::string_view name) {
  std::vector<std::string> names;
  for (const Recipe& row : kRecipes) names.emplace_back(row.name);
  return did_you_mean(name, names);
}

const Recipe& named(std::string_view name) {
  const int id = find_recipe(name);
  if (id >= 0) return kRecipes[std::size_t(id)];
  throw UsageError(fmt::format("no recipe is called '{}'{} ('halfulp formats recipes' lists them all)", shortened(name),
                               near_recipe(name)));
}

void check(const Recipe& recipe) {
  if (const std::string reason = contradiction(recipe); !reason.empty()) throw std::invalid_argument(reason);
}

// Whether FIELD=, and not FIELD==, stands at the beginning.
bool begins_setting(std::string_view text) {
  return std::ranges::any_of(recipe_fields(), [&](const RecipeField& f) {
    return text.starts_with(f.name) && text.substr(f.name.size()).starts_with('=') &&
           !text.substr(f.name.size()).starts_with("==");
  });
}

// NAME+FIELD=TEXT+FIELD=TEXT. A + that no "FIELD=" follows belongs to a formula, but for the first.
std::vector<std::string_view> settings_of(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const bool cut = i == text.size() || (text[i] == '+' && (parts.empty() || begins_setting(text.substr(i + 1))));
    if (!cut) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return parts;
}

void apply_settings(Recipe& recipe, std::span<const std::string_view> settings) {
  std::set<std::string_view> given;
  for (const std::string_view setting : settings) {
    const std::size_t equals = std::min(setting.find('='), setting.size());
    const std::string_view field = setting.substr(0, equals);
    if (!given.insert(field).second) throw std::invalid_argument(fmt::format("{} is given twice", shortened(field)));
    if (equals == setting.size())
      throw std::invalid_argument(fmt::format("expected FIELD=TEXT after a '+', got '{}'", shortened(field)));
    set_field(recipe, field, setting.substr(equals + 1));
  }
}

const Recipe& composed(std::string_view text) {
  const std::vector<std::string_view> parts = settings_of(text);
  if (parts.size() == 1) return named(text);
  Recipe recipe = named(parts[0]);
  recipe.name = kept(text);
  recipe.summary = kept(fmt::format("{}, changed by the user", parts[0]));
  try {
    apply_settings(recipe, std::span(parts).subspan(1));
    check(recipe);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("recipe {}: {} {}", shortened(text), error.what(), kWhereFieldsAre));
  }
  return keep(std::string(text), recipe);
}

// Does it, and says the line of what it throws.
template <class Do>
auto at_line(const toml::source_region& source, Do&& act) {
  try {
    return act();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("line {}: {}", source.begin.line, error.what()));
  }
}

// The recipe that a file changes.
Recipe base_of(std::string_view name) {
  const int id = find_recipe(name);
  if (id >= 0) return kRecipes[std::size_t(id)];
  throw std::invalid_argument(
      fmt::format("base = '{}': expected the name of a recipe that 'halfulp formats recipes' "
                  "lists{}",
                  shortened(name), near_recipe(name)));
}

// A key of the table and the text that it states.
void state(Recipe& recipe, std::string_view key, const toml::node& value) {
  const auto text = value.value<std::string_view>();
  if (!value.is_string())
    throw std::invalid_argument(
        fmt::format("{} is no string; every field is one, as in block = \"1x32\"", shortened(key)));
  if (key == "name") {
    if (!text->empty()) recipe.name = kept(*text);
  } else if (key == "summary") {
    recipe.summary = kept(*text);
  } else if (key == "source") {
    recipe.source = kept(*text);
  } else if (key != "base") {
    set_field(recipe, key, *text);
  }
}

// Throws std::invalid_argument, naming the line.
Recipe recipe_of_table(const toml::table& table, const std::string& where) {
  Recipe recipe = default_recipe();
  if (const auto base = table["base"].value<std::string_view>(); base && table["base"].is_string())
    recipe = at_line(table["base"].node()->source(), [&] { return base_of(*base); });
  recipe.name = recipe.source = kept(where);
  recipe.summary = "stated by the user";
  for (const auto& entry : table)
    at_line(entry.second.source(), [&] { state(recipe, entry.first.str(), entry.second); });
  check(recipe);
  return recipe;
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (uint8_t(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", uint8_t(c));
    } else {
      out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
    }
  }
  return out + '"';
}

// Pieces between commas, put together again where a comma stands between parentheses.
std::vector<std::string> joined(const std::vector<std::string>& pieces) {
  std::vector<std::string> whole;
  std::ptrdiff_t open = 0;
  for (const std::string& piece : pieces) {
    if (open > 0) {
      whole.back() += ',' + piece;
    } else {
      whole.push_back(piece);
    }
    open += std::ranges::count(piece, '(') - std::ranges::count(piece, ')');
  }
  return whole;
}

}  // namespace

const Recipe& recipe_of(std::string_view text) {
  if (!text.ends_with(".toml")) return composed(text);
  const std::string path(text);
  const MappedFile file(path);
  return recipe_of_toml({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path);
}

std::vector<const Recipe*> recipes_of(const Arguments& arguments) {
  std::vector<const Recipe*> recipes;
  for (const std::string& text : joined(arguments.list("--recipe"))) recipes.push_back(&recipe_of(text));
  if (recipes.empty()) throw UsageError("--recipe is needed: which recipe? ('halfulp formats recipes' lists them)");
  return recipes;
}

const Recipe& default_recipe() { return kRecipes[0]; }  // elements by themselves

bool is_named(const Recipe& recipe) {
  return &recipe >= kRecipes.data() && &recipe < kRecipes.data() + kRecipes.size();
}

std::string recipe_toml(const Recipe& recipe) {
  std::string text = fmt::format("name = {}\n", toml_string(recipe.name));
  for (const RecipeField& field : recipe_fields())
    if (const std::string value = field.text(recipe); !value.empty())
      text += fmt::format("{} = {}\n", field.name, toml_string(value));
  return text;
}

const Recipe& recipe_of_toml(std::string_view toml, const std::string& where) {
  try {
    return keep(where + '\0' + std::string(toml), recipe_of_table(toml::parse(toml, where), where));
  } catch (const toml::parse_error& error) {
    throw InputError({.file = where, .tensor = {}, .byte = {}},
                     fmt::format("line {}, column {}: {}", error.source().begin.line, error.source().begin.column,
                                 error.description()));
  } catch (const std::invalid_argument& error) {
    throw InputError({.file = where, .tensor = {}, .byte = {}}, fmt::format("{} {}", error.what(), kWhereFieldsAre));
  }
}

}  // namespace halfulp

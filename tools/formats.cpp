// halfulp formats: what is in the catalogs, each row with its source.

#include <algorithm>
#include <iostream>

#include "emulation/blocks/recipe_fields.h"
#include "lib/error.h"
#include "lib/utf8.h"
#include "tools/catalogs.h"
#include "tools/options.h"
#include "tools/recipe_diff.h"
#include "tools/recipe_option.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr std::string_view kNotes =
    R"(NAME is a format (e4m3), a rounding mode (nearest-even, rn), a recipe (nvfp4/te), a PTX conversion
(cvt.rn.satfinite.e4m3x2.f32), a field of recipes (block), a word of their formulas (even_log2), a layout or order
(swizzled-128x4, split-halves), an accumulator (sm90.qgmma.f32), or a whole catalog: formats, roundings, recipes,
recipe-fields, formula, scale-layouts, nibble-orders, hadamard-signs, instructions, accumulators, policies.
Evidence says how the model of an instruction is known: measured (run on hardware over every input), matched (reproduces
published recordings), or read in the specification only. That of an accumulator is measured (equal to an H200's
answers), recorded (to published recordings), published (a description, held against no hardware here) or defined.)";

std::vector<Catalog> catalogs() {
  return {format_catalog(),      rounding_catalog(),     recipe_catalog(),       recipe_field_catalog(),
          formula_catalog(),     scale_layout_catalog(), nibble_order_catalog(), hadamard_sign_catalog(),
          instruction_catalog(), accumulator_catalog(),  policy_catalog()};
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Tables under their titles; CSV without titles. A blank line lies between two.
std::string titled(std::string_view title, const std::vector<Facts>& rows, const Arguments& arguments) {
  const Table table = to_table(rows);
  if (output_mode_of(arguments) == OutputMode::csv) return to_csv(table);
  return fmt::format("{}:\n{}", title, to_text(table, color_of(arguments)));
}

std::string list(const std::vector<Catalog>& shown, const Arguments& arguments) {
  Json body = Json::object();
  std::string text;
  for (const Catalog& catalog : shown) {
    body[std::string(catalog.name)] = to_json(catalog.list());
    text += text.empty() ? "" : "\n";
    text += titled(catalog.title, catalog.list(), arguments);
  }
  return output_mode_of(arguments) == OutputMode::json ? dump_result("formats", body) : text;
}

Json to_json(const Catalog& catalog, const Description& description) {
  Json body = to_json(description.facts);
  body["kind"] = std::string(catalog.singular);
  for (const Description::Section& section : description.sections) body[section.key] = to_json(section.rows);
  return body;
}

std::string to_text(const Description& description, const Arguments& arguments) {
  const bool csv = output_mode_of(arguments) == OutputMode::csv;
  std::string text =
      csv ? to_csv(to_table({description.facts})) : description.title + '\n' + to_lines(description.facts);
  for (const Description::Section& section : description.sections)
    if (!section.rows.empty()) text += fmt::format("\n{}", titled(section.heading, section.rows, arguments));
  return text;
}

// A function of formulas that has a format's name: who asks for that name wants the format.
bool is_aside(const Catalog& catalog, const std::vector<Catalog>& found) {
  return catalog.name == formula_catalog().name && found.front().name == format_catalog().name;
}

std::string aside(const Description& function) {
  std::string form, meaning;
  for (const Fact& fact : function.facts) {
    if (fact.key == "form") form = fact.text;
    if (fact.key == "meaning") meaning = fact.text;
  }
  return fmt::format("Formulas of recipes have a function of this name: {}, {} ('halfulp formats formula')\n", form,
                     meaning);
}

// Every row of that name: bf16 is a format and a recipe.
std::string describe(std::string_view name, const std::vector<Catalog>& found, const Arguments& arguments) {
  Json body = {{"found", Json::array()}};
  std::string text;
  for (const Catalog& catalog : found) {
    const Description description = catalog.describe(name);
    body["found"].push_back(to_json(catalog, description));
    text += text.empty() ? "" : "\n";
    const bool brief = output_mode_of(arguments) == OutputMode::text && is_aside(catalog, found);
    text += brief ? aside(description) : to_text(description, arguments);
  }
  return output_mode_of(arguments) == OutputMode::json ? dump_result("formats", body) : text;
}

UsageError unknown(std::string_view name) {
  std::vector<std::string> candidates;
  for (const Catalog& catalog : catalogs()) {
    candidates.emplace_back(catalog.name);
    for (std::string& row : catalog.names()) candidates.push_back(std::move(row));
  }
  return UsageError(fmt::format("nothing is called '{}'{} ('halfulp formats' lists everything that has a name)",
                                shortened(name), did_you_mean(name, candidates)));
}

std::string difference(const Arguments& arguments) {
  const std::vector<std::string>& asked = arguments.positionals("NAME");
  if (asked.empty()) throw UsageError("--diff compares a recipe with the one named before it");
  const RecipeDiff diff = diff_recipes(recipe_of(asked[0]), recipe_of(arguments.string("--diff")));
  switch (output_mode_of(arguments)) {
    case OutputMode::json: return dump_result("formats", to_json(diff));
    case OutputMode::csv: return to_csv(to_table(diff.fields));
    case OutputMode::text: break;
  }
  return to_text(diff, color_of(arguments));
}

// A recipe that is stated, not named.
bool is_stated(const std::string& name) { return name.ends_with(".toml") || name.find('+') != std::string::npos; }

std::string answer(const Arguments& arguments) {
  const std::vector<std::string>& asked = arguments.positionals("NAME");
  if (arguments.has("--diff")) return difference(arguments);
  if (asked.empty()) return list(catalogs(), arguments);
  std::vector<Catalog> found;
  for (const Catalog& catalog : catalogs()) {
    if (catalog.name == asked[0]) return list({catalog}, arguments);
    if (contains(catalog.names(), asked[0])) found.push_back(catalog);
  }
  if (found.empty() && is_stated(asked[0])) found.push_back(recipe_catalog());
  if (found.empty()) throw unknown(asked[0]);
  return describe(asked[0], found, arguments);
}

ExitCode run(const Arguments& arguments) {
  std::cout << answer(arguments);
  return ExitCode::good;
}

}  // namespace

Verb formats_verb() {
  return {
      .name = "formats",
      .summary = "lists formats, rounding modes, recipes and instructions with their sources, or describes one",
      .examples = {{"halfulp formats", "everything that has a name"},
                   {"halfulp formats e4m3", "a format: its limits, its special codes, every value"},
                   {"halfulp formats nvfp4/te", "a recipe: its steps as formulas with the constants"},
                   {"halfulp formats nvfp4/te --diff nvfp4/modelopt",
                    "where two recipes part, in words and on a block"},
                   {"halfulp formats nvfp4/te+block=1x32", "a recipe of one's own, stated by what it changes"},
                   {"halfulp formats recipe-fields",
                    "what such a recipe can state: each field, its choices and default"},
                   {"halfulp formats formula", "the symbols and functions of its formulas"},
                   {"halfulp formats cvt.rs.satfinite.e2m1x4.f32", "an instruction: operands, lanes, random bits"},
                   {"halfulp formats recipes --csv", "one catalog, for a program"}},
      .positionals = {{.name = "NAME",
                       .help = "of whatever has one, or of a catalog: see below",
                       .count = Positional::Count::optional}},
      .options = {"--diff", "--json", "--csv", "--color"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp

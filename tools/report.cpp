// halfulp report: results of other verbs as one HTML page. What the page shows and how is in tools/report/.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "emulation/blocks/recipe.h"
#include "formats/codec.h"
#include "lib/atomic_file.h"
#include "lib/error.h"
#include "lib/json.h"
#include "lib/mapped_file.h"
#include "lib/notice.h"
#include "lib/utf8.h"
#include "tools/options.h"
#include "tools/packed_json.h"
#include "tools/recipe_option.h"
#include "tools/report/page_text.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr std::string_view kNotes =
    R"(RESULT is what a verb prints with --json: of error, bias, mma, identify, replay, record, doctor, formats, explain or
cvt. Each file becomes a section: what was run, what was found, plots, and tables that sort and filter. --detail of
'halfulp error' and 'halfulp bias' gives more to plot. Numbers that FP32 holds are whole in the page, others have seven
digits. The page needs no network and no other file; the same results give the same bytes.
A link to a part of the page holds its place after '#': #section=2&tensor=NAME&recipe=NAME&plot=scales.
Charts are drawn by Chart.js (MIT), which is in the page.)";

constexpr std::string_view kVerbs[] = {"bias",    "cvt",      "doctor", "error",  "explain",
                                       "formats", "identify", "mma",    "record", "replay"};

// Far more than any result has; what comes after recurses.
constexpr int kMaxDepth = 64;

Json parse(const std::string& path, std::string_view text) {
  const auto check_depth = [&](int depth, Json::parse_event_t, const Json&) {
    if (depth > kMaxDepth) throw InputError({.file = path}, "is nested too deeply for a result of halfulp");
    return true;
  };
  try {
    return Json::parse(text, check_depth);
  } catch (const Json::parse_error& error) {
    const bool ends = error.byte > text.size();
    throw InputError({.file = path, .tensor = {}, .byte = ends ? text.size() : error.byte - 1},
                     ends ? "the file ends within its JSON: was it cut off?"
                          : "is not JSON; a result is what a verb prints with --json");
  } catch (const Json::exception&) {
    throw InputError({.file = path}, "has a number that no JSON reader takes");
  }
}

// The verb whose result it is.
std::string verb_of(const std::string& path, std::string_view text, const Json& result) {
  constexpr std::string_view kPrefix = "halfulp.", kVersion1 = "/1";
  if (!result.is_object() || !result.contains("schema") || !result.at("schema").is_string())
    throw InputError({.file = path}, "is JSON without \"schema\"; expected what a verb of halfulp prints with --json");
  const std::string schema = result.at("schema").get<std::string>();
  const std::size_t byte = text.find('"' + schema + '"');
  Where where{.file = path};
  if (byte != std::string_view::npos) where.byte = byte;
  if (!schema.starts_with(kPrefix))
    throw InputError(where, fmt::format("its schema is '{}'; expected halfulp.VERB/1", shortened(schema)));
  if (!schema.ends_with(kVersion1))
    throw InputError(where, fmt::format("its schema is '{}'; this halfulp reads version 1", shortened(schema)));
  std::string verb = schema.substr(kPrefix.size(), schema.size() - kPrefix.size() - kVersion1.size());
  if (std::ranges::find(kVerbs, verb) == std::end(kVerbs))
    throw InputError(where,
                     fmt::format("its schema is '{}', which no verb of this halfulp prints{}", shortened(schema),
                                 did_you_mean(verb, std::vector<std::string>(std::begin(kVerbs), std::end(kVerbs)))));
  return verb;
}

Json section_of(const std::string& path) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  Json result = parse(path, text);
  const std::string verb = verb_of(path, text, result);
  return {{"file", path}, {"verb", verb}, {"result", std::move(result)}};
}

Json describe(const FormatEntry& entry) {
  const Format& f = entry.format;
  Json values = Json::array();
  constexpr int kListedBits = 8;
  if (f.bits() <= kListedBits)
    for (uint32_t code = 0; code <= f.code_mask(); ++code) {
      const double value = decode(f, code);
      values.push_back(std::isfinite(value) ? Json(value) : Json(shortest_decimal(value)));
    }
  return {{"sign_bits", f.sign == Sign::one_bit ? 1 : 0},
          {"exponent_bits", f.exponent_bits},
          {"mantissa_bits", f.mantissa_bits},
          {"bits", f.bits()},
          {"values", values}};
}

// The recipe of a result's "recipe", if this halfulp knows it. No file is read because a result names it.
const Recipe* recipe_named(const std::string& name) {
  if (name.ends_with(".toml")) return nullptr;
  try {
    return &recipe_of(name);
  } catch (const Error&) {
    return nullptr;
  }
}

// What the page says of codes and scales: the formats of the recipes that results name.
Json formats_of_recipes(const Json& sections) {
  Json recipes = Json::object();
  for (const Json& section : sections)
    for (const Json& record : section.at("result").value("results", Json::array())) {
      if (!record.is_object() || !record.contains("recipe") || !record.at("recipe").is_string()) continue;
      const std::string name = record.at("recipe").get<std::string>();
      if (recipes.contains(name)) continue;
      recipes[name] = Json::object();
      const Recipe* recipe = recipe_named(name);
      if (recipe == nullptr) continue;
      recipes[name]["element"] = describe(recipe->element.entry());
      if (has_scale(*recipe)) recipes[name]["scale"] = describe(recipe->scale.entry());
    }
  return recipes;
}

ExitCode run(const Arguments& arguments) {
  if (!arguments.has("--output")) throw UsageError("-o FILE.html: the file to write the page into is missing");
  Json sections = Json::array();
  for (const std::string& path : arguments.positionals("RESULT")) sections.push_back(section_of(path));
  Json recipes = formats_of_recipes(sections);
  const std::string data = packed_json({{"recipes", std::move(recipes)}, {"sections", std::move(sections)}});
  if (!kHasCharts) notice("built without Chart.js: the page has tables only (see tools/CMakeLists.txt)");
  AtomicFile file(arguments.string("--output"));
  for (const std::string_view text : {kPageBefore, std::string_view(data), kPageAfter})
    file.write(std::as_bytes(std::span(text)));
  file.commit();
  return ExitCode::good;
}

}  // namespace

Verb report_verb() {
  return {
      .name = "report",
      .summary = "results as one HTML page: findings, plots, tables",
      .examples = {{"halfulp report error.json -o error.html",
                    "what 'halfulp error model.safetensors -r nvfp4/te,mxfp8/te --detail --json > error.json' found"},
                   {"halfulp report error.json mma.json -o all.html", "several results, a section each"}},
      .positionals = {{.name = "RESULT",
                       .help = "a file that a verb's --json was written into",
                       .count = Positional::Count::at_least_one}},
      .options = {"--output"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp

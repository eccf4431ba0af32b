// halfulp error: what a recipe's rounding costs, tensor by tensor.

#include "emulation/analysis/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <mutex>

#include "emulation/blocks/quantize.h"
#include "emulation/panels.h"
#include "lib/error.h"
#include "lib/json.h"
#include "lib/notice.h"
#include "lib/table.h"
#include "lib/threshold.h"
#include "tools/device_recipes.h"
#include "tools/inputs.h"
#include "tools/options.h"
#include "tools/recipe_option.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr std::string_view kNotes =
    R"(Figures, x being a value, q what comes back from its code, and e = q - x:
  rel_mse         sum e^2 / sum x^2
                  (of zeros 0, and sqnr_db infinite: they come back exactly)
  sqnr_db         -10 log10 rel_mse;  rate_bits  -1/2 log2 rel_mse
  shrinkage       1 - sum x q / sum x^2: positive where the recipe makes values smaller on the whole
  residual        rel_mse - shrinkage^2: what is left of rel_mse when values are scaled back
  mean_error      mean of e: the bias; by_sign has it for positive and negative x
  max_abs_error   largest |e|
  clipped         share of finite x beyond the largest value of their block; dead_zone  share with x != 0 and q = 0
  scale_min/max   smallest and largest block scale, as a value of the scale format; scales  shares of codes at the
                  ends of the format, subnormal, NaN
  crest           quantiles over blocks of largest |x| / root mean square, in steps of 2^-10
  codes           entropy (Miller-Madow), codes used, share at the largest magnitude; of up to 16 bits
  se              standard errors over clusters (blocks; 32 elements for a recipe without blocks), delta method
  ci95            Wilson intervals of the shares
A value whose block has a scale of zero is beyond that block's range and comes back as zero: clipped and dead_zone.
Elements that are not finite, or come back so, are counted (nonfinite_in, nonfinite_out) and left out of the sums.
Zeros that --pad adds take part in their block's scale, and count in no figure. Under --hadamard x is a value after the
rotation; then the zeros that a group of it was filled up with count, which are zeros no more.
Sums are of FP64 numbers: of F64 values beyond about 1e154 and 1e-154 the squares overflow and vanish.
--fail-on passes over a figure that a recipe does not have (scale_min of bf16), and fails on one that is NaN.
A tensor that a recipe cannot take (no numbers, a row that is not whole blocks) is listed as skipped. The last rows,
(all), are over the tensors that every recipe takes. rate_bits, residual and max_abs_error are in the CSV and the
JSON, whose other figures are under 'by_sign', 'ci95', 'codes', 'crest', 'scales'.)";

ErrorDetail detail_of(const Arguments& arguments) {
  return arguments.flag("--detail") ? ErrorDetail::strata : ErrorDetail::summary;
}

ErrorSums sums_of(const Arguments& arguments, const DeviceRecipes& device, const Recipe& recipe, const Tensor& tensor,
                  std::size_t number, Progress& progress) {
  const int threads = threads_of(arguments);
  const ErrorDetail detail = detail_of(arguments);
  const Reading reading = reading_of(arguments, recipe, tensor);
  const TensorScale scale = tensor_scale(recipe, amax_of(arguments, recipe, tensor, reading, threads, progress));
  const Randomness random = randomness_of(arguments, recipe, tensor, number);
  ErrorSums sums(recipe, detail);
  std::mutex merging;
  with_element_type(tensor.dtype, [&]<class Source>() {
    check_source<Source>(device, tensor);
    for_each_panel<Source>(
        recipe, tensor, reading.layout, reading.rotation, device.threads,
        [&](const Panel& panel, std::span<const Source> x) {
          ErrorSums part(recipe, detail, device.functions);
          part.add(scale, panel.shape, x, panel_randomness(random, recipe, reading.layout.padded.shape(), panel),
                   without_padding(reading.layout, panel, reading.rotation ? uint64_t(reading.rotation->size) : 1));
          const std::lock_guard lock(merging);
          sums.merge(part);
          progress.advance(x.size());
        });
  });
  return sums;
}

Json describe(const Tensor& tensor, const Recipe& recipe) {
  return {{"file", tensor.file},
          {"tensor", tensor.name},
          {"dtype", std::string(row(tensor.dtype).name)},
          {"shape", tensor.shape},
          {"recipe", std::string(recipe.name)}};
}

uint64_t work(const Arguments& arguments, const std::vector<Tensor>& tensors,
              const std::vector<const Recipe*>& recipes) {
  uint64_t elements = 0;
  for (const Tensor& tensor : tensors)
    for (const Recipe* recipe : recipes)
      if (refusal(arguments, *recipe, tensor).empty())
        elements += reading_of(arguments, *recipe, tensor).layout.padded.shape().elements() *
                    uint64_t(passes(arguments, *recipe));
  return elements;
}

bool taken_by_all(const Arguments& arguments, const std::vector<const Recipe*>& recipes, const Tensor& tensor) {
  return std::ranges::all_of(recipes,
                             [&](const Recipe* recipe) { return refusal(arguments, *recipe, tensor).empty(); });
}

// A recipe's figures over all tensors that every recipe takes, so that the recipes' totals speak of the same values.
Json totals_of(const std::vector<ErrorSums>& sums, const std::vector<const Recipe*>& recipes) {
  Json totals = Json::array();
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    totals.push_back(sums[i].figures());
    totals.back()["recipe"] = std::string(recipes[i]->name);
  }
  return totals;
}

Json measure(const Arguments& arguments, const DeviceRecipes& device, const std::vector<Tensor>& tensors,
             const std::vector<const Recipe*>& recipes) {
  Json body = {{"results", Json::array()}, {"skipped", Json::array()}, {"totals", Json::array()}};
  std::vector<ErrorSums> totals;
  for (const Recipe* recipe : recipes) totals.emplace_back(*recipe, detail_of(arguments));
  Progress progress("error", work(arguments, tensors, recipes), ProgressUnit::elements, progress_of(arguments));
  for (std::size_t number = 0; number < tensors.size(); ++number) {
    const Tensor& tensor = tensors[number];
    for (std::size_t i = 0; i < recipes.size(); ++i) {
      Json json = describe(tensor, *recipes[i]);
      const std::string reason = refusal(arguments, *recipes[i], tensor);
      if (!reason.empty()) {
        json["reason"] = reason;
        body["skipped"].push_back(std::move(json));
        continue;
      }
      const ErrorSums sums = sums_of(arguments, device, *recipes[i], tensor, number, progress);
      if (taken_by_all(arguments, recipes, tensor)) totals[i].merge(sums);
      json.update(sums.figures());
      body["results"].push_back(std::move(json));
    }
  }
  if (tensors.size() > 1) body["totals"] = totals_of(totals, recipes);
  return body;
}

// A column of figures: where the number is in a result's JSON, and its digits in the text. Only a CSV, which no screen
// has to hold, has those of kCsv.
enum class Shown { always, csv };
struct FigureColumn {
  std::string_view title;
  std::string_view figure;  // a JSON pointer
  int digits;
  Shown shown = Shown::always;
};

constexpr FigureColumn kFigureColumns[] = {
    {.title = "sqnr_db", .figure = "/sqnr_db", .digits = 4},
    {.title = "rate_bits", .figure = "/rate_bits", .digits = 4, .shown = Shown::csv},
    {.title = "rel_mse", .figure = "/rel_mse", .digits = 4},
    {.title = "se(rel_mse)", .figure = "/se/rel_mse", .digits = 2},
    {.title = "shrinkage", .figure = "/shrinkage", .digits = 3},
    {.title = "se(shrinkage)", .figure = "/se/shrinkage", .digits = 2},
    {.title = "residual", .figure = "/residual", .digits = 4, .shown = Shown::csv},
    {.title = "mean_error", .figure = "/mean_error", .digits = 3},
    {.title = "se(mean_error)", .figure = "/se/mean_error", .digits = 2},
    {.title = "max_abs_error", .figure = "/max_abs_error", .digits = 3, .shown = Shown::csv},
    {.title = "clipped", .figure = "/clipped", .digits = 3},
    {.title = "dead_zone", .figure = "/dead_zone", .digits = 3},
    {.title = "scale_min", .figure = "/scale_min", .digits = 4},
    {.title = "scale_max", .figure = "/scale_max", .digits = 4},
};

std::vector<Cell> table_row(const Json& json, Shown shown) {
  const bool total = !json.contains("tensor");
  std::vector<Cell> cells{total ? "(all)" : json.at("tensor").get<std::string>(), json.at("recipe").get<std::string>(),
                          count_cell(json.at("elements").get<uint64_t>())};
  if (shown == Shown::csv) {
    cells.emplace_back(total ? "" : json.at("file").get<std::string>());
    cells.emplace_back(total ? "" : shape_text(json.at("shape").get<std::vector<uint64_t>>()));
  }
  for (const FigureColumn& column : kFigureColumns) {
    if (column.shown > shown) continue;
    const Json& value = json.at(Json::json_pointer(std::string(column.figure)));
    cells.push_back(value.is_null() ? Cell("-", "") : number_cell(to_double(value), column.digits));
  }
  return cells;
}

Table table_of(const Json& body, Shown shown) {
  Table table{.columns = {{"tensor", Align::left}, {"recipe", Align::left}, {"elements"}}, .rows = {}};
  if (shown == Shown::csv) table.columns.insert(table.columns.end(), {{"file", Align::left}, {"shape", Align::left}});
  for (const FigureColumn& column : kFigureColumns)
    if (column.shown <= shown) table.columns.push_back({std::string(column.title)});
  for (const char* part : {"results", "totals"})
    for (const Json& json : body.at(part)) table.rows.push_back(table_row(json, shown));
  return table;
}

// Says on stderr what was left out and why, one line for each reason.
void report_skipped(const Json& skipped) {
  std::map<std::string, std::vector<std::string>> tensors;
  for (const Json& json : skipped)
    tensors[json.at("reason").get<std::string>()].push_back(json.at("tensor").get<std::string>());
  for (const auto& [reason, names] : tensors)
    notice(fmt::format("skipped {}{}: {}", names.front(),
                       names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "", reason));
}

// Refuses a metric that there is not before the work, not after it.
void check_metrics(const Arguments& arguments, const std::vector<const Recipe*>& recipes) {
  for (const std::string& text : arguments.list("--fail-on"))
    for (const Recipe* recipe : recipes)
      fails(parse_threshold(text), ErrorSums(*recipe, ErrorDetail::summary).figures());
}

ExitCode check_thresholds(const Arguments& arguments, const Json& results) {
  ExitCode code = ExitCode::good;
  for (const std::string& text : arguments.list("--fail-on")) {
    const Threshold threshold = parse_threshold(text);
    for (const Json& json : results) {
      const Json& value = json.at(threshold.metric);
      if (value.is_null() || !fails(threshold, json)) continue;  // null: a figure that the recipe does not have
      notice(fmt::format("{} under {}: {} is {}, and --fail-on '{}'", json.at("tensor").get<std::string>(),
                         json.at("recipe").get<std::string>(), threshold.metric, shortest_decimal(to_double(value)),
                         text));
      code = ExitCode::check_failed;
    }
  }
  return code;
}

ExitCode run(const Arguments& arguments) {
  const OutputMode mode = output_mode_of(arguments);
  const Color color = color_of(arguments);
  if (arguments.flag("--detail") && mode != OutputMode::json) throw UsageError("--detail adds to --json only");
  const std::vector<const Recipe*> recipes = recipes_of(arguments);
  check_amax(arguments, recipes);
  check_seed(arguments, recipes);
  check_metrics(arguments, recipes);
  const std::vector<Tensor> tensors = open_inputs(arguments, arguments.positionals("FILE"));
  const Json body = measure(arguments, device_recipes(arguments, recipes), tensors, recipes);

  if (body.at("results").empty())
    throw InputError(where(tensors.front()), body.at("skipped").front().at("reason").get<std::string>());
  report_skipped(body.at("skipped"));
  switch (mode) {
    case OutputMode::json: std::cout << dump_result("error", body); break;
    case OutputMode::csv: std::cout << to_csv(table_of(body, Shown::csv)); break;
    case OutputMode::text: std::cout << to_text(table_of(body, Shown::always), color); break;
  }
  return check_thresholds(arguments, body.at("results"));
}

}  // namespace

Verb error_verb() {
  return {
      .name = "error",
      .summary = "error and bias of recipes on tensors, with standard errors",
      .examples = {{"halfulp error model.safetensors -r bf16,mxfp8/te,nvfp4/te", "every tensor of a model"},
                   {"halfulp error model/ -r nvfp4/te --include '*dense*weight' --json",
                    "some tensors of a sharded model"},
                   {"halfulp error weights.npy -r nvfp4/te --fail-on 'sqnr_db<20'",
                    "exit with 1 if any tensor is below 20 dB"}},
      .positionals = {{.name = "FILE",
                       .help = ".npy, .safetensors, .safetensors.index.json or a directory; FILE:TENSOR for one tensor",
                       .count = Positional::Count::at_least_one}},
      .options = {"--recipe", "--axis", "--pad", "--hadamard", "--signs", "--seed", "--include", "--exclude", "--amax",
                  "--dtype", "--json", "--csv", "--detail", "--fail-on", "--color", "--threads", "--device",
                  "--progress"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp

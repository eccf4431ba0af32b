// halfulp bias of a capture: the error and bias of every tensor of a training run, as a policy quantizes it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include "lib/error.h"
#include "lib/philox.h"
#include "lib/threshold.h"
#include "tools/bias.h"
#include "tools/bias_tensors.h"
#include "tools/captured.h"
#include "tools/captured_products.h"
#include "tools/heat_map.h"
#include "tools/inputs.h"
#include "tools/options.h"
#include "tools/tensor_results.h"

namespace halfulp {
namespace {

const std::string kNotQuantized = "not quantized";

Reading reading_of(const Captured& c, uint64_t seed) {
  const Rotation rotation = rotation_of(c.rule, c.name, seed);
  const int axis = c.tensor.shape.size() < 2 ? -1 : kRoles[std::size_t(c.name.place.role)].axis;
  return {.layout = tensor_layout(*c.rule.recipe, c.tensor.shape, axis, Padding::none, CodeOrder::axis_last, rotation),
          .rotation = rotation};
}

float amax_of(const Captured& c, const Reading& reading, int threads) {
  if (!has_outer_scale(*c.rule.recipe)) return 0;
  float amax = 0;
  std::mutex merging;
  for_each_panel<float>(*c.rule.recipe, c.tensor, reading.layout, reading.rotation, threads,
                        [&](const Panel&, std::span<const float> x) {
                          const float panel = largest_magnitude(*c.rule.recipe, 0, x);
                          const std::lock_guard lock(merging);
                          amax = largest_magnitude(*c.rule.recipe, amax, {&panel, 1});
                        });
  return amax;
}

Json describe(const Captured& c) {
  const RolePlace& place = c.name.place;
  Json json = {{"file", c.tensor.file},
               {"tensor", c.tensor.name},
               {"dtype", std::string(row(c.tensor.dtype).name)},
               {"shape", c.tensor.shape},
               {"phase", std::string(kPhases[std::size_t(place.phase)].name)},
               {"role", std::string(kRoles[std::size_t(place.role)].name)},
               {"layer", c.name.layer},
               {"step", c.name.step ? Json(*c.name.step) : Json()},
               {"recipe", c.rule.recipe == nullptr ? "fp32" : std::string(c.rule.recipe->name)}};
  return json;
}

struct Run {
  uint64_t seed;
  ErrorDetail detail;
  int threads;
};

Run run_of(const Arguments& arguments) {
  return {.seed = arguments.has("--seed") ? arguments.unsigned_integer("--seed") : 0,
          .detail = error_detail(arguments),
          .threads = threads_of(arguments)};
}

void add_result(const Captured& c, const Run& run, Progress& progress, Json& body) {
  Json json = describe(c);
  const Reading reading = c.rule.recipe == nullptr ? Reading{} : reading_of(c, run.seed);
  const std::string reason = c.rule.recipe == nullptr ? "not quantized" : refusal(*c.rule.recipe, c.tensor, reading);
  if (!reason.empty()) {
    json["reason"] = reason;
    body["skipped"].push_back(std::move(json));
    return progress.advance(c.tensor.elements());
  }
  const Randomness random{
      .seed = run.seed, .stream = stream_of(c.tensor.name), .scale_stream = stream_of(c.tensor.name + ".scales")};
  json.update(bias_sums(*c.rule.recipe, c.tensor, reading, amax_of(c, reading, run.threads), random, run.detail,
                        run.threads, progress)
                  .figures());
  body["results"].push_back(std::move(json));
}

double figure(const Json& json, const char* pointer) { return to_double(json.at(Json::json_pointer(pointer))); }

// What hurts most: by error, each tensor's rel_mse, of which a product's error is about the sum of its two operands';
// by bias, the shrinkage where it is found. Shares are of the sum over all tensors.
Json ranking_of(const Json& results) {
  Json ranking = Json::array();
  for (const auto& [by, pointer] :
       {std::pair{"error", "/decomposition/rel_mse/total"}, {"bias", "/bias/shrinkage/value"}}) {
    double total = 0;
    std::vector<const Json*> rows;
    for (const Json& json : results) {
      const bool counts = std::string_view(by) == "error" || json.at("bias").at("shrinkage").at("verdict") == "biased";
      if (!counts || std::isnan(figure(json, pointer))) continue;
      rows.push_back(&json);
      total += std::fabs(figure(json, pointer));
    }
    std::ranges::stable_sort(rows, std::greater<>(),
                             [&](const Json* json) { return std::fabs(figure(*json, pointer)); });
    for (const Json* json : rows) {
      Json entry = {
          {"by", by}, {"value", figure(*json, pointer)}, {"share", std::fabs(figure(*json, pointer)) / total}};
      for (const char* key : {"tensor", "phase", "role", "layer", "step", "recipe"}) entry[key] = json->at(key);
      ranking.push_back(std::move(entry));
    }
  }
  return ranking;
}

void add_products(const Arguments& arguments, const Capture& capture, const Run& run, Json& body) {
  const std::size_t draws = std::size_t(arguments.integer("--draws", 4, 1 << 14));
  const std::vector<CapturedProduct> products = products_of(capture);
  Progress progress("products", products.size() * draws, ProgressUnit::draws, progress_of(arguments));
  for (const CapturedProduct& product : products) {
    const std::optional<ProductExperiment> experiment = experiment_of(capture, product, run.seed, draws);
    if (!experiment) {
      progress.advance(draws);
      continue;
    }
    const Json check = check_draws({&*experiment}, run.threads);
    Json& streams = body["streams"];
    if (streams.is_null() || check.at("worst_z") > streams.at("worst_z")) streams = check;
    body["products"].push_back(figures_of(product, *experiment, run.threads, [&] { progress.advance(1); }));
  }
}

constexpr FigureColumn kColumns[] = {
    {.title = "rel_mse", .figure = "/decomposition/rel_mse/total", .digits = 4},
    {.title = "shrinkage", .figure = "/bias/shrinkage/value", .digits = 3},
    {.title = "z", .figure = "/bias/shrinkage/z", .digits = 3},
    {.title = "mean_error", .figure = "/bias/mean_error/value", .digits = 3},
    {.title = "z", .figure = "/bias/mean_error/z", .digits = 3},
    {.title = "detectable", .figure = "/bias/mean_error/minimum_detectable", .digits = 2, .shown = Shown::csv},
    {.title = "grid", .figure = "/decomposition/rel_mse/grid", .digits = 3, .shown = Shown::csv},
    {.title = "scale", .figure = "/decomposition/rel_mse/scale", .digits = 3, .shown = Shown::csv},
    {.title = "dead_zone", .figure = "/decomposition/rel_mse/dead_zone", .digits = 3, .shown = Shown::csv},
    {.title = "clip", .figure = "/decomposition/rel_mse/clip", .digits = 3, .shown = Shown::csv},
};

Table table_of(const Json& results, Shown shown) {
  Table table{.columns = {{"phase", Align::left},
                          {"role", Align::left},
                          {"layer", Align::left},
                          {"step"},
                          {"recipe", Align::left}},
              .rows = {}};
  for (const FigureColumn& column : kColumns)
    if (column.shown <= shown) table.columns.push_back({std::string(column.title)});
  for (const Json& json : results) {
    std::vector<Cell> cells{json.at("phase").get<std::string>(), json.at("role").get<std::string>(),
                            json.at("layer").get<std::string>(),
                            json.at("step").is_null() ? Cell("-", "") : count_cell(json.at("step").get<uint64_t>()),
                            json.at("recipe").get<std::string>()};
    for (const FigureColumn& column : kColumns)
      if (column.shown <= shown)
        cells.push_back(number_cell(figure(json, std::string(column.figure).c_str()), column.digits));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string ranking_text(const Json& ranking, std::string_view by, std::string_view title, Color color) {
  constexpr std::size_t kShown = 10;
  Table table{.columns = {{"share"},
                          {"value"},
                          {"phase", Align::left},
                          {"role", Align::left},
                          {"layer", Align::left},
                          {"recipe", Align::left}},
              .rows = {}};
  for (const Json& entry : ranking)
    if (entry.at("by") == by && table.rows.size() < kShown)
      table.rows.push_back({Cell(fmt::format("{:.1f} %", 100 * to_double(entry.at("share"))), ""),
                            number_cell(to_double(entry.at("value")), 3), entry.at("phase").get<std::string>(),
                            entry.at("role").get<std::string>(), entry.at("layer").get<std::string>(),
                            entry.at("recipe").get<std::string>()});
  if (table.rows.empty()) return fmt::format("\n{}: none.\n", title);
  return fmt::format("\n{}:\n{}", title, to_text(table, color));
}

// Layers down, phases and roles across, rel_mse in each place: the mean over steps.
HeatMap heat_map_of(const Json& results) {
  HeatMap map("rel_mse, mean over steps");
  for (const Json& json : results)
    map.add(json.at("layer").get<std::string>(),
            fmt::format("{}/{}", json.at("phase").get<std::string>(), json.at("role").get<std::string>()),
            figure(json, "/decomposition/rel_mse/total"));
  return map;
}

void print_text(const Json& body, Color color) {
  std::cout << to_text(table_of(body.at("results"), Shown::always), color)
            << ranking_text(body.at("ranking"), "error", "What loses most, by rel_mse", color)
            << ranking_text(body.at("ranking"), "bias", "What is most biased, by shrinkage where it is found", color)
            << '\n'
            << to_text(heat_map_of(body.at("results")), color);
  if (!body.at("products").empty()) std::cout << '\n' << products_text(body.at("products"), color);
}

}  // namespace

ExitCode bias_of_capture(const Arguments& arguments) {
  const OutputMode mode = output_mode_of(arguments);
  const Color color = color_of(arguments);
  const Run run = run_of(arguments);
  const Capture capture = open_capture(arguments);

  Json body = {{"kind", "capture"},        {"policy", capture.policy.name}, {"results", Json::array()},
               {"skipped", Json::array()}, {"products", Json::array()},     {"streams", nullptr}};
  uint64_t elements = 0;
  for (const Captured& c : capture.tensors) elements += c.tensor.elements();
  {
    Progress progress("bias", elements, ProgressUnit::elements, progress_of(arguments));
    for (const Captured& c : capture.tensors) add_result(c, run, progress, body);
  }
  if (body.at("results").empty() && body.at("skipped").front().at("reason") == kNotQuantized)
    throw UsageError(fmt::format("policy {} quantizes none of these tensors", capture.policy.name));
  report_skipped(body, capture.tensors.front().tensor);
  body["ranking"] = ranking_of(body["results"]);
  if (arguments.flag("--products")) add_products(arguments, capture, run, body);
  switch (mode) {
    case OutputMode::json: std::cout << dump_result("bias", body); break;
    case OutputMode::csv: std::cout << to_csv(table_of(body["results"], Shown::csv)); break;
    case OutputMode::text: print_text(body, color); break;
  }
  return check_thresholds(arguments, body.at("results"));
}

}  // namespace halfulp

// halfulp bias of a capture: the error and bias of every tensor of a training run, as a policy quantizes it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <set>

#include "emulation/training/capture.h"
#include "lib/error.h"
#include "lib/philox.h"
#include "lib/threshold.h"
#include "tools/bias.h"
#include "tools/bias_products.h"
#include "tools/bias_tensors.h"
#include "tools/heat_map.h"
#include "tools/inputs.h"
#include "tools/options.h"
#include "tools/policy_file.h"
#include "tools/recipe_option.h"
#include "tools/tensor_results.h"

namespace halfulp {
namespace {

const std::string kNotQuantized = "not quantized";

struct Captured {
  Tensor tensor;
  CapturedName name;
  RoleRule rule;
};

// Of a capture under --recipe: every operand of a linear product by that recipe.
TrainingPolicy policy_of_recipe(const Arguments& arguments) {
  const std::vector<const Recipe*> recipes = recipes_of(arguments);
  if (recipes.size() != 1) throw UsageError("--recipe: a capture takes one recipe, or --policy");
  TrainingPolicy policy;
  policy.name = recipes.front()->name;
  for (std::size_t phase = 0; phase < kPhases.size(); ++phase)
    for (std::size_t role = 0; role < kRoles.size(); ++role)
      policy.rules[{.phase = Phase(phase), .role = int(role)}] = {.quantizer = policy.name, .recipe = recipes.front()};
  return policy;
}

TrainingPolicy policy_option(const Arguments& arguments) {
  if (!arguments.has("--policy")) return policy_of_recipe(arguments);
  if (arguments.has("--recipe")) throw UsageError("--policy and --recipe: one or the other");
  return policy_of(arguments.string("--policy"));
}

std::vector<Captured> open_capture(const Arguments& arguments) {
  std::vector<Captured> capture;
  for (Tensor& tensor : open_inputs(arguments, arguments.positionals("SUBJECT"))) {
    try {
      const CapturedName name = parse_captured_name(tensor.name);
      capture.push_back({.tensor = std::move(tensor), .name = name, .rule = {}});
    } catch (const std::invalid_argument& error) {
      throw InputError(where(tensor), error.what());
    }
  }
  return capture;
}

// By phase, role, layer and step; layers in the order of their numbers.
auto order_of(const Captured& c) {
  return std::tuple(c.name.place, layer_number(c.name.layer).value_or(-1), c.name.layer, c.name.step.value_or(0));
}

void apply(const TrainingPolicy& policy, std::vector<Captured>& capture) {
  int layers = 0;
  for (const Captured& c : capture) layers = std::max(layers, layer_number(c.name.layer).value_or(-1) + 1);
  const bool needs_numbers = policy.high.first > 0 || policy.high.last > 0;
  for (Captured& c : capture) {
    const std::optional<int> layer = layer_number(c.name.layer);
    if (needs_numbers && !layer)
      throw InputError(where(c.tensor),
                       "names a layer without a number, and the policy treats first and last layers "
                       "differently");
    c.rule = rule_of(policy, c.name.place, layer.value_or(0), layers);
  }
  std::ranges::sort(capture, {}, order_of);
}

Rotation rotation_of(const RoleRule& rule, const CapturedName& name, uint64_t seed) {
  if (!rule.rotation) return std::nullopt;
  Hadamard h{.size = rule.rotation->size, .signs = rule.rotation->signs, .seed = seed ^ stream_of(rule.rotation->id)};
  if (rule.rotation->of == SignsOf::layer) h.seed ^= stream_of(name.layer);
  if (rule.rotation->of == SignsOf::step) h.seed ^= stream_of(fmt::format("{}#{}", name.layer, name.step.value_or(0)));
  return h;
}

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

// The tensor of a role in a layer and step: its own, or that of the role which it is the same as.
const Captured* tensor_of(const std::vector<Captured>& capture, const CapturedName& like, std::string_view role) {
  const auto find = [&](std::string_view name) -> const Captured* {
    for (const Captured& c : capture)
      if (kRoles[std::size_t(c.name.place.role)].name == name && c.name.layer == like.layer && c.name.step == like.step)
        return &c;
    return nullptr;
  };
  if (const Captured* own = find(role)) return own;
  const std::string_view other = kRoles[std::size_t(find_role(role))].same_as;
  return other.empty() ? nullptr : find(other);
}

struct CapturedProduct {
  LinearProduct product;
  CapturedName name;
  ProductExperiment draws;
};

ProductOperand operand_of(const Captured& c, const RoleRule& rule, std::string_view role, uint64_t seed) {
  ProductOperand operand =
      load_operand(c.tensor, kRoles[std::size_t(find_role(role))].axis == -1 ? Along::rows : Along::columns);
  operand.recipe = rule.recipe;
  operand.rotation = rotation_of(rule, c.name, seed);
  operand.name = fmt::format("{}/{}/{}", role, c.name.layer, c.name.step.value_or(0));
  return operand;
}

// The product whose first operand has this role, in the phase that the policy has it in.
std::optional<CapturedProduct> product_of(const std::vector<Captured>& capture, const TrainingPolicy& policy,
                                          const Captured& first, LinearProduct product, std::string_view a_role,
                                          const Run& run, std::size_t draws) {
  const std::string_view b_role = kRoles[std::size_t(find_role(a_role))].partner;
  const Captured* const a = tensor_of(capture, first.name, a_role);
  const Captured* const b = tensor_of(capture, first.name, b_role);
  if (a == nullptr || b == nullptr) return std::nullopt;
  const bool trainer = first.name.place.phase == Phase::rl_trainer;
  const Phase phase = trainer                           ? Phase::rl_trainer
                      : product == LinearProduct::fprop ? Phase::pretrain_fwd
                                                        : Phase::pretrain_bwd;
  const int layer = layer_number(first.name.layer).value_or(0);
  int layers = layer + 1;
  for (const Captured& c : capture) layers = std::max(layers, layer_number(c.name.layer).value_or(-1) + 1);
  const auto rule = [&](std::string_view role) {
    return rule_of(policy, {.phase = phase, .role = find_role(role)}, layer, layers);
  };
  CapturedProduct result{.product = product,
                         .name = {.place = {.phase = phase, .role = find_role(a_role)},
                                  .layer = first.name.layer,
                                  .step = first.name.step},
                         .draws = {.a = operand_of(*a, rule(a_role), a_role, run.seed),
                                   .b = operand_of(*b, rule(b_role), b_role, run.seed),
                                   .seed = run.seed,
                                   .draws = draws}};
  if (result.draws.a.shape.cols != result.draws.b.shape.cols)
    throw InputError(
        where(b->tensor),
        fmt::format("has shape {}, which does not fit {} of shape {} as operands of {}", shape_text(b->tensor.shape),
                    a->tensor.name, shape_text(a->tensor.shape), kLinearProductNames[std::size_t(product)]));
  for (const ProductOperand* operand : {&result.draws.a, &result.draws.b})
    if (operand->recipe != nullptr && !refusal(*operand->recipe, operand->shape).empty()) return std::nullopt;
  return result;
}

// Of every layer and step with an operand: fprop, dgrad and wgrad where both operands are there.
Json products_of(const Arguments& arguments, const std::vector<Captured>& capture, const TrainingPolicy& policy,
                 const Run& run, Json& streams) {
  Json products = Json::array();
  if (!arguments.flag("--products")) return products;
  const std::size_t draws = std::size_t(arguments.integer("--draws", 4, 1 << 14));
  std::set<std::tuple<Phase, std::string, std::optional<uint64_t>>> seen;
  for (const Captured& c : capture) {
    if (c.name.place.phase == Phase::rl_sampler) continue;
    const Phase group = c.name.place.phase == Phase::rl_trainer ? Phase::rl_trainer : Phase::pretrain_fwd;
    if (!seen.insert({group, c.name.layer, c.name.step}).second) continue;
    for (const auto& [product, role] : {std::pair{LinearProduct::fprop, "x_fprop"},
                                        {LinearProduct::dgrad, "dy_dgrad"},
                                        {LinearProduct::wgrad, "dy_wgrad"}}) {
      const std::optional<CapturedProduct> found = product_of(capture, policy, c, product, role, run, draws);
      if (!found) continue;
      const Json check = check_draws({&found->draws}, run.threads);
      if (streams.is_null() || check.at("worst_z") > streams.at("worst_z")) streams = check;
      Json json = product_figures(found->draws, product == LinearProduct::wgrad ? SumsOver::tokens : SumsOver::features,
                                  run.threads);
      json["product"] = std::string(kLinearProductNames[std::size_t(product)]);
      json["phase"] = std::string(kPhases[std::size_t(found->name.place.phase)].name);
      json["layer"] = c.name.layer;
      json["step"] = c.name.step ? Json(*c.name.step) : Json();
      products.push_back(std::move(json));
    }
  }
  return products;
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
  const TrainingPolicy policy = policy_option(arguments);
  std::vector<Captured> capture = open_capture(arguments);
  apply(policy, capture);

  Json body = {{"kind", "capture"},        {"policy", policy.name},     {"results", Json::array()},
               {"skipped", Json::array()}, {"products", Json::array()}, {"streams", nullptr}};
  uint64_t elements = 0;
  for (const Captured& c : capture) elements += c.tensor.elements();
  {
    Progress progress("bias", elements, ProgressUnit::elements, progress_of(arguments));
    for (const Captured& c : capture) add_result(c, run, progress, body);
  }
  if (body.at("results").empty() && body.at("skipped").front().at("reason") == kNotQuantized)
    throw UsageError(fmt::format("policy {} quantizes none of these tensors", policy.name));
  report_skipped(body, capture.front().tensor);
  body["ranking"] = ranking_of(body["results"]);
  body["products"] = products_of(arguments, capture, policy, run, body["streams"]);
  switch (mode) {
    case OutputMode::json: std::cout << dump_result("bias", body); break;
    case OutputMode::csv: std::cout << to_csv(table_of(body["results"], Shown::csv)); break;
    case OutputMode::text: print_text(body, color); break;
  }
  return check_thresholds(arguments, body.at("results"));
}

}  // namespace halfulp

// halfulp error: what a recipe's rounding costs, tensor by tensor.

#include "emulation/analysis/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <mutex>
#include <set>

#include "emulation/blocks/quantize.h"
#include "emulation/chunks.h"
#include "lib/error.h"
#include "lib/json.h"
#include "lib/table.h"
#include "lib/threshold.h"
#include "tools/inputs.h"
#include "tools/options.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr std::string_view kNotes =
    R"(Figures, x being a value, q what comes back from its code, and e = q - x:
  rel_mse         sum e^2 / sum x^2
  sqnr_db         -10 log10 rel_mse;  rate_bits  -1/2 log2 rel_mse
  shrinkage       1 - sum x q / sum x^2: positive where the recipe makes values smaller on the whole
  residual        rel_mse - shrinkage^2: what is left of rel_mse when values are scaled back
  mean_error      mean of e: the bias; by_sign has it for positive and negative x
  max_abs_error   largest |e|
  clipped         share of finite x beyond the largest value of their block; dead_zone  share with x != 0 and q = 0
  scale_min/max   smallest and largest block scale, as a value of the scale format; scales  shares of codes at the
                  ends of the format, subnormal, NaN
  crest           quantiles over blocks of largest |x| / root mean square, in steps of 2^-10
  codes           entropy (Miller-Madow), codes used, share at the largest magnitude
  se              standard errors over clusters (blocks; 32 elements for a recipe without blocks), delta method
  ci95            Wilson intervals of the shares
Elements that are not finite, or come back so, are counted (nonfinite_in, nonfinite_out) and left out of the sums.
A tensor that a recipe cannot take (no numbers, a row that is not whole blocks) is listed as skipped.)";

struct Row {
  Json json;
  int recipe_id;
};

ErrorSums sums_of(const Arguments& arguments, int recipe_id, const Tensor& tensor, Progress& progress) {
  const int threads = threads_of(arguments);
  const ErrorDetail detail = arguments.flag("--detail") ? ErrorDetail::strata : ErrorDetail::summary;
  const TensorScale scale = tensor_scale_of(recipe_id, amax_of(arguments, recipe_id, tensor, threads, progress));
  ErrorSums sums(recipe_id, detail);
  std::mutex merging;
  with_element_type(tensor.dtype, [&]<class Source>() {
    for_each_chunk<Source>(tensor, threads, [&](uint64_t, std::span<const Source> x) {
      ErrorSums chunk(recipe_id, detail);
      chunk.add(scale, x);
      const std::lock_guard lock(merging);
      sums.merge(chunk);
      progress.advance(x.size());
    });
  });
  return sums;
}

Json describe(const Tensor& tensor, int recipe_id) {
  return {{"file", tensor.file},
          {"tensor", tensor.name},
          {"dtype", std::string(row(tensor.dtype).name)},
          {"shape", tensor.shape},
          {"recipe", std::string(kRecipes[std::size_t(recipe_id)].name)}};
}

uint64_t work(const Arguments& arguments, const std::vector<Tensor>& tensors, const std::vector<int>& recipes) {
  uint64_t elements = 0;
  for (const Tensor& tensor : tensors)
    for (const int id : recipes)
      if (refusal(kRecipes[std::size_t(id)], tensor.dtype, tensor.shape).empty())
        elements += tensor.elements() * uint64_t(passes(arguments, id));
  return elements;
}

Json measure(const Arguments& arguments, const std::vector<Tensor>& tensors, const std::vector<int>& recipes) {
  Json body = {{"results", Json::array()}, {"skipped", Json::array()}, {"totals", Json::array()}};
  std::vector<ErrorSums> totals;
  for (const int id : recipes)
    totals.emplace_back(id, arguments.flag("--detail") ? ErrorDetail::strata : ErrorDetail::summary);
  Progress progress("error", work(arguments, tensors, recipes), ProgressUnit::elements, progress_of(arguments));
  for (const Tensor& tensor : tensors) {
    for (std::size_t i = 0; i < recipes.size(); ++i) {
      Json json = describe(tensor, recipes[i]);
      const std::string reason = refusal(kRecipes[std::size_t(recipes[i])], tensor.dtype, tensor.shape);
      if (!reason.empty()) {
        json["reason"] = reason;
        body["skipped"].push_back(std::move(json));
        continue;
      }
      const ErrorSums sums = sums_of(arguments, recipes[i], tensor, progress);
      totals[i].merge(sums);
      json.update(sums.figures());
      body["results"].push_back(std::move(json));
    }
  }
  for (std::size_t i = 0; i < recipes.size() && tensors.size() > 1; ++i) {
    Json json = totals[i].figures();
    json["recipe"] = std::string(kRecipes[std::size_t(recipes[i])].name);
    body["totals"].push_back(std::move(json));
  }
  return body;
}

std::vector<Cell> table_row(const Json& json, const std::string& tensor, const std::string& shape) {
  const auto number = [&](const char* key, int digits) {
    return json.at(key).is_null() ? Cell("-", "") : number_cell(to_double(json.at(key)), digits);
  };
  std::vector<Cell> cells{tensor, shape, json.at("recipe").get<std::string>(),
                          count_cell(json.at("elements").get<uint64_t>())};
  for (const auto& [key, digits] : {std::pair{"rel_mse", 4},
                                    {"sqnr_db", 4},
                                    {"rate_bits", 4},
                                    {"shrinkage", 3},
                                    {"mean_error", 3},
                                    {"max_abs_error", 3},
                                    {"clipped", 3},
                                    {"dead_zone", 3},
                                    {"scale_min", 4},
                                    {"scale_max", 4}})
    cells.push_back(number(key, digits));
  cells.push_back(number_cell(to_double(json.at("se").at("rel_mse")), 2));
  cells.push_back(number_cell(to_double(json.at("se").at("mean_error")), 2));
  return cells;
}

Table table_of(const Json& body) {
  Table table{.columns = {{"tensor", Align::left},
                          {"shape", Align::left},
                          {"recipe", Align::left},
                          {"elements"},
                          {"rel_mse"},
                          {"sqnr_db"},
                          {"rate_bits"},
                          {"shrinkage"},
                          {"mean_error"},
                          {"max_abs_error"},
                          {"clipped"},
                          {"dead_zone"},
                          {"scale_min"},
                          {"scale_max"},
                          {"se(rel_mse)"},
                          {"se(mean_error)"}},
              .rows = {}};
  for (const Json& json : body.at("results"))
    table.rows.push_back(table_row(json, json.at("tensor").get<std::string>(),
                                   shape_text(json.at("shape").get<std::vector<uint64_t>>())));
  for (const Json& json : body.at("totals")) table.rows.push_back(table_row(json, "(all)", ""));
  return table;
}

// Says on stderr what was left out and why, one line for each reason.
void report_skipped(const Json& skipped) {
  std::map<std::string, std::vector<std::string>> tensors;
  for (const Json& json : skipped)
    tensors[json.at("reason").get<std::string>()].push_back(json.at("tensor").get<std::string>());
  for (const auto& [reason, names] : tensors)
    fmt::print(stderr, "halfulp: skipped {}{}: {}\n", names.front(),
               names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "", reason);
}

ExitCode check_thresholds(const Arguments& arguments, const Json& results) {
  ExitCode code = ExitCode::good;
  for (const std::string& text : arguments.list("--fail-on")) {
    const Threshold threshold = parse_threshold(text);
    for (const Json& json : results) {
      if (!fails(threshold, json)) continue;
      fmt::print(stderr, "halfulp: {} under {}: {} is {}, and --fail-on '{}'\n", json.at("tensor").get<std::string>(),
                 json.at("recipe").get<std::string>(), threshold.metric, json.at(threshold.metric).dump(), text);
      code = ExitCode::check_failed;
    }
  }
  return code;
}

ExitCode run(const Arguments& arguments) {
  check_device(arguments);
  const std::vector<int> recipes = recipes_of(arguments);
  check_amax(arguments, recipes);
  for (const std::string& text : arguments.list("--fail-on")) parse_threshold(text);
  const std::vector<Tensor> tensors = open_inputs(arguments, arguments.positionals("FILE"));
  const Json body = measure(arguments, tensors, recipes);

  report_skipped(body.at("skipped"));
  if (body.at("results").empty())
    throw InputError(where(tensors.front()), body.at("skipped").front().at("reason").get<std::string>());
  if (arguments.flag("--json")) {
    std::cout << dump_result("error", body);
  } else {
    const Table table = table_of(body);
    std::cout << (arguments.flag("--csv") ? to_csv(table) : to_text(table, color_of(arguments)));
  }
  return check_thresholds(arguments, body.at("results"));
}

}  // namespace

Verb error_verb() {
  return {
      .name = "error",
      .summary = "error and bias of recipes on tensors, with standard errors",
      .examples = {{"halfulp error model.safetensors -r bf16,mxfp8/te,nvfp4/te", "every tensor of a model"},
                   {"halfulp error model/ -r nvfp4/te --include '*mlp*' --json", "some tensors of a sharded model"},
                   {"halfulp error weights.npy -r nvfp4/te --fail-on 'sqnr_db<20'", "exit with 1 below 20 dB"}},
      .positionals = {{.name = "FILE",
                       .help = ".npy, .safetensors, .safetensors.index.json or a directory; FILE:TENSOR for one tensor",
                       .count = Positional::Count::at_least_one}},
      .options = {"--recipe", "--include", "--exclude", "--amax", "--dtype", "--json", "--csv", "--detail", "--fail-on",
                  "--color", "--threads", "--device", "--progress"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp

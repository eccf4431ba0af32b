// halfulp bias of tensors under recipes.

#include "tools/bias_tensors.h"

#include <fmt/format.h>

#include <iostream>
#include <mutex>

#include "lib/error.h"
#include "lib/notice.h"
#include "lib/table.h"
#include "lib/threshold.h"
#include "tools/bias.h"
#include "tools/options.h"
#include "tools/recipe_option.h"
#include "tools/tensor_results.h"

namespace halfulp {

BiasSums bias_sums(const Recipe& recipe, const Tensor& tensor, const Reading& reading, float amax,
                   const Randomness& random, ErrorDetail detail, int threads, Progress& progress) {
  const TensorScale scale = tensor_scale(recipe, amax);
  BiasSums sums(recipe, detail);
  std::mutex merging;
  with_element_type(tensor.dtype, [&]<class Source>() {
    for_each_panel<Source>(
        recipe, tensor, reading.layout, reading.rotation, threads, [&](const Panel& panel, std::span<const Source> x) {
          BiasSums part(recipe, detail);
          const uint64_t group = reading.rotation ? uint64_t(reading.rotation->size) : 1;
          part.add({.tensor = scale, .panel = panel, .counted = without_padding(reading.layout, panel, group)}, x,
                   panel_randomness(random, recipe, reading.layout.padded.shape(), panel));
          const std::lock_guard lock(merging);
          sums.merge(part);
          progress.advance(x.size());
        });
  });
  return sums;
}

namespace {

BiasSums sums_of(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor, std::size_t number,
                 Progress& progress) {
  const int threads = threads_of(arguments);
  const Reading reading = reading_of(arguments, recipe, tensor);
  return bias_sums(recipe, tensor, reading, amax_of(arguments, recipe, tensor, reading, threads, progress),
                   randomness_of(arguments, recipe, tensor, number), error_detail(arguments), threads, progress);
}

constexpr FigureColumn kColumns[] = {
    {.title = "rel_mse", .figure = "/decomposition/rel_mse/total", .digits = 4},
    {.title = "grid", .figure = "/decomposition/rel_mse/grid", .digits = 3},
    {.title = "scale", .figure = "/decomposition/rel_mse/scale", .digits = 3},
    {.title = "dead_zone", .figure = "/decomposition/rel_mse/dead_zone", .digits = 3},
    {.title = "clip", .figure = "/decomposition/rel_mse/clip", .digits = 3},
    {.title = "shrinkage", .figure = "/bias/shrinkage/value", .digits = 3},
    {.title = "z", .figure = "/bias/shrinkage/z", .digits = 3},
    {.title = "se(shrinkage)", .figure = "/bias/shrinkage/se", .digits = 2, .shown = Shown::csv},
    {.title = "shrinkage:grid", .figure = "/decomposition/shrinkage/grid", .digits = 3, .shown = Shown::csv},
    {.title = "shrinkage:scale", .figure = "/decomposition/shrinkage/scale", .digits = 3, .shown = Shown::csv},
    {.title = "shrinkage:dead_zone", .figure = "/decomposition/shrinkage/dead_zone", .digits = 3, .shown = Shown::csv},
    {.title = "shrinkage:clip", .figure = "/decomposition/shrinkage/clip", .digits = 3, .shown = Shown::csv},
    {.title = "mean_error", .figure = "/bias/mean_error/value", .digits = 3},
    {.title = "z", .figure = "/bias/mean_error/z", .digits = 3},
    {.title = "se(mean_error)", .figure = "/bias/mean_error/se", .digits = 2, .shown = Shown::csv},
    {.title = "detectable", .figure = "/bias/mean_error/minimum_detectable", .digits = 2},
};

// Refuses a metric that there is not before the work, not after it.
void check_metrics(const Arguments& arguments, const std::vector<const Recipe*>& recipes) {
  for (const std::string& text : arguments.list("--fail-on"))
    for (const Recipe* recipe : recipes)
      fails(parse_threshold(text), BiasSums(*recipe, ErrorDetail::summary).figures());
}

}  // namespace

ErrorDetail error_detail(const Arguments& arguments) {
  return arguments.flag("--detail") ? ErrorDetail::strata : ErrorDetail::summary;
}

ExitCode bias_of_tensors(const Arguments& arguments) {
  const OutputMode mode = output_mode_of(arguments);
  const Color color = color_of(arguments);
  const std::vector<const Recipe*> recipes = recipes_of(arguments);
  check_amax(arguments, recipes);
  check_metrics(arguments, recipes);
  const std::vector<Tensor> tensors = open_inputs(arguments, arguments.positionals("SUBJECT"));
  Json body = measure_tensors<BiasSums>(
      arguments, "bias", tensors, recipes,
      [&](const Recipe& recipe) { return BiasSums(recipe, error_detail(arguments)); },
      [&](const Recipe& recipe, const Tensor& tensor, std::size_t number, Progress& progress) {
        return sums_of(arguments, recipe, tensor, number, progress);
      });
  body["kind"] = "tensors";
  switch (mode) {
    case OutputMode::json: std::cout << dump_result("bias", body); break;
    case OutputMode::csv: std::cout << to_csv(figure_table(body, kColumns, Shown::csv)); break;
    case OutputMode::text: std::cout << to_text(figure_table(body, kColumns, Shown::always), color); break;
  }
  return check_thresholds(arguments, body.at("results"));
}

}  // namespace halfulp

// halfulp error: what a recipe's rounding costs, tensor by tensor.

#include "emulation/analysis/error.h"

#include <fmt/format.h>

#include <iostream>
#include <mutex>

#include "emulation/blocks/quantize.h"
#include "emulation/panels.h"
#include "lib/json.h"
#include "lib/table.h"
#include "lib/threshold.h"
#include "tools/device_recipes.h"
#include "tools/inputs.h"
#include "tools/options.h"
#include "tools/recipe_option.h"
#include "tools/tensor_results.h"
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

// Refuses a metric that there is not before the work, not after it.
void check_metrics(const Arguments& arguments, const std::vector<const Recipe*>& recipes) {
  for (const std::string& text : arguments.list("--fail-on"))
    for (const Recipe* recipe : recipes)
      fails(parse_threshold(text), ErrorSums(*recipe, ErrorDetail::summary).figures());
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
  const DeviceRecipes device = device_recipes(arguments, recipes);
  const Json body = measure_tensors<ErrorSums>(
      arguments, "error", tensors, recipes,
      [&](const Recipe& recipe) { return ErrorSums(recipe, detail_of(arguments)); },
      [&](const Recipe& recipe, const Tensor& tensor, std::size_t number, Progress& progress) {
        return sums_of(arguments, device, recipe, tensor, number, progress);
      });
  switch (mode) {
    case OutputMode::json: std::cout << dump_result("error", body); break;
    case OutputMode::csv: std::cout << to_csv(figure_table(body, kFigureColumns, Shown::csv)); break;
    case OutputMode::text: std::cout << to_text(figure_table(body, kFigureColumns, Shown::always), color); break;
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

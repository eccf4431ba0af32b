// halfulp bias of products: a linear layer's fprop, dgrad and wgrad over many draws of their rounding.

#include "tools/bias_products.h"

#include <fmt/format.h>

#include <cmath>
#include <iostream>

#include "emulation/analysis/ratio_sums.h"
#include "emulation/analysis/streams.h"
#include "emulation/elements.h"
#include "emulation/matmul/fp64_product.h"
#include "lib/error.h"
#include "lib/notice.h"
#include "lib/philox.h"
#include "lib/table.h"
#include "tools/bias.h"
#include "tools/inputs.h"
#include "tools/options.h"
#include "tools/recipe_option.h"

namespace halfulp {

ProductOperand load_operand(const Tensor& tensor, Along along) {
  if (tensor.shape.size() != 2)
    throw InputError(where(tensor), fmt::format("has shape {}; an operand is a matrix", shape_text(tensor.shape)));
  if (element_kind(tensor.dtype) != ElementKind::narrow_float)
    throw InputError(where(tensor),
                     fmt::format("has {} elements; an operand has F32, F16 or BF16", row(tensor.dtype).name));
  const uint64_t rows = tensor.shape[0], cols = tensor.shape[1];
  std::vector<float> x(rows * cols);
  load_elements<float>(tensor.dtype, tensor.bytes.data(), 0, x);
  if (along == Along::rows) return {.x = std::move(x), .shape = {.rows = rows, .cols = cols}};
  std::vector<float> transposed(x.size());
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t col = 0; col < cols; ++col) transposed[col * rows + row] = x[row * cols + col];
  return {.x = std::move(transposed), .shape = {.rows = cols, .cols = rows}};
}

namespace {

// The variance over batches of the exact product: its K is divided into groups, each a batch of its own. Relative to
// |exact|^2, of the sum over all of them.
Figure batch_noise(const ProductExperiment& e, const OutputSample& sample) {
  constexpr std::size_t kGroups = 16;
  const std::size_t m = sample.rows(e.a.shape), n = sample.cols(e.b.shape), k = e.a.shape.cols / kGroups;
  if (k == 0) return {.value = NAN, .se = NAN, .n = 0, .unit = "of |exact|^2", .method = "too few tokens"};
  std::vector<std::vector<double>> groups(kGroups, std::vector<double>(m * n));
  const auto rows = [&](const ProductOperand& x, std::size_t step, std::size_t group) {
    std::vector<double> part;
    for (std::size_t row = 0; row < x.shape.rows; row += step) {
      const float* const first = &x.x[row * x.shape.cols + group * k];
      part.insert(part.end(), first, first + k);
    }
    return part;
  };
  for (std::size_t g = 0; g < kGroups; ++g)
    multiply_fp64(m, n, k, rows(e.a, sample.row_step, g), rows(e.b, sample.col_step, g), groups[g]);
  // Variance of the sum of G independent groups: G times that of one.
  RatioSums<1> sums;
  for (std::size_t row = 0; row < m; ++row) {
    double variance = 0, squared = 0;
    for (std::size_t i = row * n; i < (row + 1) * n; ++i) {
      double sum = 0, squares = 0;
      for (const std::vector<double>& group : groups) sum += group[i], squares += group[i] * group[i];
      variance += (squares - sum * sum / double(kGroups)) * double(kGroups) / double(kGroups - 1);
      squared += sum * sum;
    }
    sums.add({variance}, squared);
  }
  return {.value = sums.ratio(0),
          .se = sums.standard_error(0),
          .n = kGroups,
          .unit = "of |exact|^2",
          .method = "16 groups of tokens; delta method over rows"};
}

// Where nothing is random the error of these operands is bias to the last bit.
Figure all_bias(const Figure& error) {
  return {.value = error.value, .se = 0, .n = 1, .unit = error.unit, .method = "exact: nothing is random"};
}

Json concentration_json(const Draws::Statistics& statistics) {
  Json json = {{"draws", Json::array()}, {"error", Json::array()}, {"se", Json::array()}, {"bits", Json::array()}};
  for (const MeanError& point : statistics.concentration()) {
    json["draws"].push_back(point.draws);
    json["error"].push_back(point.error);
    json["se"].push_back(point.se);
    json["bits"].push_back(-0.5 * std::log2(point.error));
  }
  json["slope"] = estimate(statistics.slope());
  return json;
}

Json share_of_batch_noise(const Figure& noise, const Figure& batch) {
  const double share = noise.value / batch.value;
  return estimate({.value = share,
                   .se = std::fabs(share) * std::hypot(noise.se / noise.value, batch.se / batch.value),
                   .n = noise.n,
                   .unit = "",
                   .method = batch.method});
}

Json operand_json(const ProductOperand& operand) {
  return {{"name", operand.name},
          {"recipe", operand.recipe == nullptr ? Json() : Json(std::string(operand.recipe->name))},
          {"shape", {operand.shape.rows, operand.shape.cols}}};
}

}  // namespace

Json product_figures(const ProductExperiment& e, SumsOver over, int threads, const std::function<void()>& drawn) {
  const OutputSample sample = sample_of(e);
  const Draws draws = draw_products(e, sample, threads, drawn);
  const Draws::Statistics statistics = draws.statistics(threads);
  const Draws::TileFigures tiles = draws.tile_figures();
  const bool random = is_random(e);
  Json json = {
      {"shape", {e.a.shape.rows, e.b.shape.rows, e.a.shape.cols}},
      {"operands", {operand_json(e.a), operand_json(e.b)}},
      {"outputs", draws.exact().size()},
      {"draws", e.draws},
      {"fixed", !random                            ? "nothing is random: all draws are one"
                : e.signs == SignsDrawn::each_draw ? "the operands; each draw has new random words and signs"
                                                   : "the operands and all signs; each draw has new random words"},
      {"rel_error", estimate(tiles.error)},
      {"mean_error", tested(tiles.mean_error)},
      {"projection", estimate(statistics.projection())},
      {"cosine", estimate(statistics.cosine())},
      {"squared_bias", tested(random ? statistics.squared_bias() : all_bias(statistics.error()))},
      {"noise", random ? estimate(statistics.noise()) : Json()},
      {"gradient_to_noise", nullptr},
      {"batch_noise_share", nullptr},
      {"concentration", nullptr}};
  if (!random) return json;
  json["gradient_to_noise"] = estimate(statistics.gradient_to_noise());
  json["concentration"] = concentration_json(statistics);
  if (over == SumsOver::tokens)
    json["batch_noise_share"] = share_of_batch_noise(statistics.noise(), batch_noise(e, sample));
  return json;
}

Json check_draws(const std::vector<const ProductExperiment*>& experiments, int threads) {
  std::vector<uint64_t> streams;
  uint64_t seed = 0;
  for (const ProductExperiment* e : experiments) {
    seed = e->seed;
    const std::vector<uint64_t> more = streams_of(*e);
    streams.insert(streams.end(), more.begin(), more.end());
  }
  const auto word = [seed](uint64_t stream, uint64_t index) { return random_word(seed, stream, index); };
  const StreamCheck check = check_streams(streams, word, threads);
  if (!check.independent()) throw std::logic_error("streams of random words depend on each other");
  return summary(check);
}

namespace {

struct Experiment {
  LinearProduct product;
  SumsOver over;
  ProductExperiment draws;
};

SignsDrawn signs_of(const Arguments& arguments, const Rotation& rotation) {
  if (!arguments.flag("--fresh-signs")) return SignsDrawn::once;
  if (!rotation) throw UsageError("--fresh-signs are those of --hadamard");
  return SignsDrawn::each_draw;
}

struct Setting {
  const Recipe* recipe;
  Rotation rotation;
  SignsDrawn signs;
  uint64_t seed;
  std::size_t draws;
};

Setting setting_of(const Arguments& arguments) {
  const std::vector<const Recipe*> recipes = recipes_of(arguments);
  if (recipes.size() != 1) throw UsageError("--recipe: products are of one recipe; a policy may have more");
  const Rotation rotation = rotation_of(arguments);
  return {.recipe = recipes.front(),
          .rotation = rotation,
          .signs = signs_of(arguments, rotation),
          .seed = arguments.has("--seed") ? arguments.unsigned_integer("--seed") : 0,
          .draws = std::size_t(arguments.integer("--draws", 4, 1 << 14))};
}

ProductOperand operand_of(const Setting& setting, const Tensor& tensor, Along along, std::string_view name) {
  ProductOperand operand = load_operand(tensor, along);
  operand.recipe = setting.recipe;
  operand.rotation = setting.rotation;
  operand.name = name;
  if (const std::string reason = refusal(*setting.recipe, operand.shape); !reason.empty())
    throw InputError(where(tensor), fmt::format("as {}, of rows of {}: {}", name, operand.shape.cols, reason));
  if (setting.rotation && operand.shape.cols % uint64_t(setting.rotation->size) != 0)
    throw InputError(where(tensor), fmt::format("as {}: rows of {} are not whole groups of --hadamard {}", name,
                                                operand.shape.cols, setting.rotation->size));
  return operand;
}

// a and b sum along the same dimension of their tensors.
void check_length(const Tensor& a, const Tensor& b, const ProductOperand& x, const ProductOperand& y) {
  if (x.shape.cols == y.shape.cols) return;
  throw InputError(where(b), fmt::format("has shape {}, which does not fit {} of shape {}: sums of {} and of {}",
                                         shape_text(b.shape), a.name, shape_text(a.shape), y.shape.cols, x.shape.cols));
}

Experiment experiment_of(const Setting& setting, LinearProduct product, const Tensor& a, Along a_along,
                         std::string_view a_name, const Tensor& b, Along b_along, std::string_view b_name) {
  Experiment e{.product = product,
               .over = product == LinearProduct::wgrad ? SumsOver::tokens : SumsOver::features,
               .draws = {.a = operand_of(setting, a, a_along, a_name),
                         .b = operand_of(setting, b, b_along, b_name),
                         .signs = setting.signs,
                         .seed = setting.seed,
                         .draws = setting.draws}};
  check_length(a, b, e.draws.a, e.draws.b);
  return e;
}

std::vector<Experiment> experiments_of(const Arguments& arguments, const Setting& setting) {
  if (!arguments.has("--w")) throw UsageError("--w is needed: products have two operands");
  const Tensor x = open_input(arguments, arguments.string("--x")), w = open_input(arguments, arguments.string("--w"));
  std::vector<Experiment> list;
  list.push_back(experiment_of(setting, LinearProduct::fprop, x, Along::rows, "x_fprop", w, Along::rows, "w_fprop"));
  if (!arguments.has("--dy")) return list;
  const Tensor dy = open_input(arguments, arguments.string("--dy"));
  list.push_back(
      experiment_of(setting, LinearProduct::dgrad, dy, Along::rows, "dy_dgrad", w, Along::columns, "w_dgrad"));
  list.push_back(
      experiment_of(setting, LinearProduct::wgrad, dy, Along::columns, "dy_wgrad", x, Along::columns, "x_wgrad"));
  return list;
}

struct FigureRow {
  const char* title;
  const char* figure;  // a JSON pointer
  int digits;
};
constexpr FigureRow kFigures[] = {
    {"error of a draw", "/rel_error", 4},
    {"projection on the exact", "/projection", 6},
    {"cosine with the exact", "/cosine", 6},
    {"mean error", "/mean_error", 3},
    {"squared bias", "/squared_bias", 4},
    {"noise of a draw", "/noise", 4},
    {"exact / noise", "/gradient_to_noise", 4},
    {"noise / batch noise", "/batch_noise_share", 4},
    {"slope of the mean's error", "/concentration/slope", 4},
};

void add_figure(const Json& json, const FigureRow& row, std::vector<Cell>& cells) {
  const Json::json_pointer at{row.figure};
  const bool there = json.contains(at) && !json.at(at).is_null();
  cells.push_back(there ? number_cell(to_double(json.at(at).at("value")), row.digits) : Cell("-", ""));
  cells.push_back(there ? number_cell(to_double(json.at(at).at("se")), 2) : Cell("-", ""));
}

// A row for each figure, a column for each product and its standard error.
Table table_of(const Json& results) {
  Table table{.columns = {{"relative to the exact product", Align::left}}, .rows = {}};
  for (const Json& json : results) {
    table.columns.push_back({json.at("product").get<std::string>()});
    table.columns.push_back({"se"});
  }
  for (const FigureRow& row : kFigures) {
    std::vector<Cell> cells{row.title};
    for (const Json& json : results) add_figure(json, row, cells);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// The error of the mean of so many draws.
std::string concentration_text(const Json& results, Color color) {
  Table table{.columns = {{"mean of draws"}}, .rows = {}};
  const Json& first = results.front().at("concentration");
  if (first.is_null()) return "";
  for (const Json& draws : first.at("draws")) table.rows.push_back({count_cell(draws.get<uint64_t>())});
  for (const Json& json : results) {
    table.columns.push_back({json.at("product").get<std::string>()});
    table.columns.push_back({"se"});
    const Json& curve = json.at("concentration");
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      table.rows[i].push_back(number_cell(to_double(curve.at("error")[i])));
      table.rows[i].push_back(number_cell(to_double(curve.at("se")[i]), 2));
    }
  }
  return "\n" + to_text(table, color);
}

std::string verdicts_text(const Json& results) {
  std::string text = "\n";
  for (const Json& json : results) {
    const Json& bias = json.at("squared_bias");
    text += fmt::format(
        "{}: bias {} (squared bias is {:.3g} standard errors; {:.2g} of the product's square would have "
        "been found); fixed: {}\n",
        json.at("product").get<std::string>(), bias.at("verdict").get<std::string>(), to_double(bias.at("z")),
        to_double(bias.at("minimum_detectable")), json.at("fixed").get<std::string>());
  }
  return text;
}

}  // namespace

ExitCode bias_of_products(const Arguments& arguments) {
  const OutputMode mode = output_mode_of(arguments);
  const Color color = color_of(arguments);
  const int threads = threads_of(arguments);
  const std::vector<Experiment> experiments = experiments_of(arguments, setting_of(arguments));
  std::vector<const ProductExperiment*> draws;
  for (const Experiment& e : experiments) draws.push_back(&e.draws);

  Json body = {{"kind", "products"}, {"results", Json::array()}, {"streams", check_draws(draws, threads)}};
  Progress progress("bias", experiments.size() * draws.front()->draws, ProgressUnit::elements, progress_of(arguments));
  for (const Experiment& e : experiments) {
    Json json = product_figures(e.draws, e.over, threads, [&] { progress.advance(1); });
    json["product"] = std::string(kLinearProductNames[int(e.product)]);
    body["results"].push_back(std::move(json));
  }
  switch (mode) {
    case OutputMode::json: std::cout << dump_result("bias", body); break;
    case OutputMode::csv: std::cout << to_csv(table_of(body["results"])); break;
    case OutputMode::text:
      std::cout << to_text(table_of(body["results"]), color) << concentration_text(body["results"], color)
                << verdicts_text(body["results"]);
      break;
  }
  return ExitCode::good;
}

}  // namespace halfulp

// halfulp bias of products: a linear layer's fprop, dgrad and wgrad over many draws of their rounding.

#include "tools/bias_products.h"

#include <fmt/format.h>

#include <iostream>

#include "emulation/analysis/streams.h"
#include "emulation/elements.h"
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
    {"squared bias over batches", "/population/squared_bias", 4},
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

std::string verdict_text(const Json& json) {
  const Json& bias = json.at("squared_bias");
  const std::string verdict = bias.at("verdict").get<std::string>();
  if (verdict == "exact") return "all of the error is bias for these operands: nothing is random";
  return fmt::format("{}; the squared bias is {:.3g} standard errors from zero, and {:.2g} would have been found",
                     verdict == "biased" ? "biased" : "no bias was found", to_double(bias.at("z")),
                     to_double(bias.at("minimum_detectable")));
}

std::string verdicts_text(const Json& results) {
  std::string text = "\n";
  for (const Json& json : results)
    text += fmt::format("{}: {}. Fixed: {}.\n", json.at("product").get<std::string>(), verdict_text(json),
                        json.at("fixed").get<std::string>());
  return text;
}

}  // namespace

// A row for each.
std::string products_text(const Json& products, Color color) {
  Table table{.columns = {{"phase", Align::left},
                          {"layer", Align::left},
                          {"step"},
                          {"product", Align::left},
                          {"error"},
                          {"squared bias"},
                          {"se"},
                          {"noise"},
                          {"bias", Align::left}},
              .rows = {}};
  for (const Json& json : products) {
    const Json& bias = json.at("squared_bias");
    table.rows.push_back(
        {json.at("phase").get<std::string>(), json.at("layer").get<std::string>(),
         json.at("step").is_null() ? Cell("-", "") : count_cell(json.at("step").get<uint64_t>()),
         json.at("product").get<std::string>(), number_cell(to_double(json.at("rel_error").at("value"))),
         number_cell(to_double(bias.at("value"))), number_cell(to_double(bias.at("se")), 2),
         json.at("noise").is_null() ? Cell("-", "") : number_cell(to_double(json.at("noise").at("value"))),
         bias.at("verdict").get<std::string>()});
  }
  return to_text(table, color);
}

ExitCode bias_of_products(const Arguments& arguments) {
  const OutputMode mode = output_mode_of(arguments);
  const Color color = color_of(arguments);
  const int threads = threads_of(arguments);
  const std::vector<Experiment> experiments = experiments_of(arguments, setting_of(arguments));
  std::vector<const ProductExperiment*> draws;
  for (const Experiment& e : experiments) draws.push_back(&e.draws);

  Json body = {{"kind", "products"}, {"results", Json::array()}, {"streams", check_draws(draws, threads)}};
  Progress progress("bias", experiments.size() * draws.front()->draws, ProgressUnit::draws, progress_of(arguments));
  for (const Experiment& e : experiments) {
    Json json = product_figures(e.draws, e.over, threads, [&] { progress.advance(1); });
    json["product"] = std::string(kLinearProductNames[std::size_t(e.product)]);
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

#include "emulation/analysis/product_bias.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "emulation/analysis/ratio_sums.h"
#include "emulation/blocks/quantize.h"

namespace halfulp {
namespace {

constexpr std::size_t kMostBatches = 16;

// Tokens of a batch: whole blocks and groups of both operands; 0 where there are not four batches of them.
std::size_t tokens_of_batch(const ProductExperiment& e) {
  std::size_t unit = 1;
  for (const ProductOperand* operand : {&e.a, &e.b}) {
    if (operand->recipe != nullptr) unit = std::lcm(unit, block_cols(*operand->recipe, operand->shape));
    if (operand->rotation) unit = std::lcm(unit, std::size_t(operand->rotation->size));
  }
  const std::size_t units = e.a.shape.cols / unit, batches = std::min(kMostBatches, units);
  return batches < 4 ? 0 : units / batches * unit;
}

ProductOperand columns_of(const ProductOperand& operand, std::size_t first, std::size_t count) {
  ProductOperand part{.x = {},
                      .shape = {.rows = operand.shape.rows, .cols = count},
                      .recipe = operand.recipe,
                      .rotation = operand.rotation,
                      .name = operand.name + "@" + std::to_string(first)};
  for (std::size_t row = 0; row < operand.shape.rows; ++row) {
    const auto begin = operand.x.begin() + std::ptrdiff_t(row * operand.shape.cols + first);
    part.x.insert(part.x.end(), begin, begin + std::ptrdiff_t(count));
  }
  return part;
}

// The product of each batch of tokens, exactly and in one draw.
struct Batches {
  std::vector<std::vector<double>> exact, drawn;
};

Batches batches_of(const ProductExperiment& e, const OutputSample& sample) {
  Batches batches;
  const std::size_t tokens = tokens_of_batch(e);
  for (std::size_t first = 0; tokens > 0 && first + tokens <= e.a.shape.cols; first += tokens) {
    const ProductExperiment batch{.a = columns_of(e.a, first, tokens),
                                  .b = columns_of(e.b, first, tokens),
                                  .signs = e.signs,
                                  .seed = e.seed,
                                  .draws = 1};
    batches.exact.push_back(exact_product(batch, sample));
    batches.drawn.push_back(drawn_product(batch, sample, 0));
  }
  return batches;
}

// The variance over batches of the sum of all of them: as many times that of one.
Figure batch_noise(const Batches& batches, std::size_t cols) {
  const double count = double(batches.exact.size());
  RatioSums<1> sums;
  for (std::size_t first = 0; first < batches.exact.front().size(); first += cols) {
    double variance = 0, squared = 0;
    for (std::size_t i = first; i < first + cols; ++i) {
      double sum = 0, squares = 0;
      for (const std::vector<double>& batch : batches.exact) sum += batch[i], squares += batch[i] * batch[i];
      variance += (squares - sum * sum / count) * count / (count - 1);
      squared += sum * sum;
    }
    sums.add({variance}, squared);
  }
  return {.value = sums.ratio(0),
          .se = sums.standard_error(0),
          .n = batches.exact.size(),
          .unit = "of |exact|^2",
          .method = "over batches of tokens; delta method over rows"};
}

// The errors of the batches as draws, against the mean of their exact products.
Json population(const Batches& batches, std::size_t cols, int threads) {
  const std::size_t count = batches.exact.size();
  std::vector<double> mean(batches.exact.front().size());
  for (const std::vector<double>& batch : batches.exact)
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += batch[i] / double(count);
  Draws draws(mean, count, cols);
  for (std::size_t batch = 0; batch < count; ++batch) {
    std::vector<double> value = mean;
    for (std::size_t i = 0; i < value.size(); ++i) value[i] += batches.drawn[batch][i] - batches.exact[batch][i];
    draws.set(batch, value);
  }
  const Draws::Statistics statistics = draws.statistics(threads);
  return {{"batches", count},
          {"squared_bias", tested(statistics.squared_bias())},
          {"noise", estimate(statistics.noise())},
          {"fixed", "signs; each batch has other tokens and new random words"}};
}

Json share_of(const Figure& noise, const Figure& batch) {
  const double share = noise.value / batch.value;
  return estimate({.value = share,
                   .se = std::fabs(share) * std::hypot(noise.se / noise.value, batch.se / batch.value),
                   .n = batch.n,
                   .unit = "of the noise of batches",
                   .method = batch.method});
}

// Where nothing is random the error of these operands is bias to the last bit: nothing is tested.
Json all_bias(const Figure& error) {
  Json json = tested({.value = error.value, .se = 0, .n = 1, .unit = error.unit, .method = "exact: nothing is random"});
  json["verdict"] = "exact";
  return json;
}

Json concentration(const Draws::Statistics& statistics) {
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

Json describe(const ProductOperand& operand) {
  return {{"name", operand.name},
          {"recipe", operand.recipe == nullptr ? Json() : Json(std::string(operand.recipe->name))},
          {"shape", {operand.shape.rows, operand.shape.cols}}};
}

const char* what_is_fixed(const ProductExperiment& e) {
  if (!is_random(e)) return "everything: nothing is random, all draws are one";
  return e.signs == SignsDrawn::each_draw ? "the operands; each draw has new random words and signs"
                                          : "the operands and all signs; each draw has new random words";
}

void add_figures_of_draws(const Draws::Statistics& statistics, Json& json) {
  json["squared_bias"] = tested(statistics.squared_bias());
  json["noise"] = estimate(statistics.noise());
  json["gradient_to_noise"] = estimate(statistics.gradient_to_noise());
  json["concentration"] = concentration(statistics);
}

void add_figures_of_batches(const ProductExperiment& e, const OutputSample& sample, const Figure& noise, int threads,
                            Json& json) {
  const Batches batches = batches_of(e, sample);
  if (batches.exact.empty()) return;
  const std::size_t cols = sample.cols(e.b.shape);
  json["population"] = population(batches, cols, threads);
  if (noise.n > 0) json["batch_noise_share"] = share_of(noise, batch_noise(batches, cols));
}

}  // namespace

Json product_figures(const ProductExperiment& e, SumsOver over, int threads, const std::function<void()>& drawn) {
  const OutputSample sample = sample_of(e);
  const Draws draws = draw_products(e, sample, threads, drawn);
  const Draws::Statistics statistics = draws.statistics(threads);
  const Draws::TileFigures tiles = draws.tile_figures();
  Json json = {{"shape", {e.a.shape.rows, e.b.shape.rows, e.a.shape.cols}},
               {"operands", {describe(e.a), describe(e.b)}},
               {"outputs", draws.exact().size()},
               {"draws", e.draws},
               {"fixed", what_is_fixed(e)},
               {"rel_error", estimate(tiles.error)},
               {"mean_error", tested(tiles.mean_error)},
               {"projection", estimate(statistics.projection())},
               {"cosine", estimate(statistics.cosine())},
               {"squared_bias", all_bias(statistics.error())}};
  for (const char* name : {"noise", "gradient_to_noise", "batch_noise_share", "concentration", "population"})
    json[name] = nullptr;
  if (is_random(e)) add_figures_of_draws(statistics, json);
  if (over == SumsOver::tokens)
    add_figures_of_batches(e, sample, is_random(e) ? statistics.noise() : Figure{}, threads, json);
  return json;
}

}  // namespace halfulp

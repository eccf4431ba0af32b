#include "emulation/analysis/bias.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "emulation/analysis/figure.h"

namespace halfulp {
namespace {

constexpr std::size_t kWorstBlocks = 8;
constexpr std::size_t kShownElements = 64;  // of a block

// By squared error; of equal ones the first in the tensor.
bool is_worse(const WorstBlock& a, const WorstBlock& b) {
  if (a.squared_error != b.squared_error) return a.squared_error > b.squared_error;
  return std::pair(a.row, a.col) < std::pair(b.row, b.col);
}

const char* stratum_group(int stratum) {
  return stratum < kFirstEighth ? "by_sign" : stratum < kFirstBinade ? "by_eighth" : "by_binade";
}

std::string stratum_key(int stratum) {
  if (stratum < kFirstEighth) return stratum == 0 ? "positive" : "negative";
  return std::to_string(stratum < kFirstBinade ? stratum - kFirstEighth : stratum - kFirstBinade + kLeastBinade);
}

// Values come back in FP32, half an ulp of which is 2^-24 of them.
constexpr double kFp32Resolution = 0x1p-24;

Figure mean_figure(const RatioSums<1>& sums, double root_mean_square, std::string_view method) {
  return {.value = sums.ratio(0),
          .se = sums.standard_error(0),
          .n = sums.clusters(),
          .unit = "as the tensor's values",
          .method = method,
          .resolution = kFp32Resolution * root_mean_square};
}

std::string_view method_of(const Recipe& recipe) {
  if (!is_random(recipe)) return "delta method over clusters";
  return has_closed_form(recipe) ? "expectation over random words; delta method over clusters"
                                 : "one draw; delta method over clusters";
}

template <class Source>
float finite_magnitude(const Cluster<Source>& c) {
  double amax = 0;
  for (uint64_t row = 0; row < c.rows; ++row)
    for (uint64_t at = row * c.stride; at < row * c.stride + c.cols; ++at)
      if (is_finite(double(c.x[at]))) amax = std::fmax(amax, absolute(double(c.x[at])));
  return float(amax);
}

}  // namespace

// What one cluster adds up to.
struct ClusterBias {
  double squared[kStages]{}, shrunk[kStages]{};  // with the causes up to a stage: sums of e^2 and of -e x
  double squared_value = 0, error = 0, count = 0;
  struct Stratum {
    double error = 0, count = 0;
  };
  Stratum signs[2];
  std::map<int, Stratum> others;

  template <class Source>
  void add(const StageErrors& errors, Source x, ErrorDetail detail) {
    const double value = double(x);
    for (int stage = 0; stage < kStages; ++stage) {
      squared[stage] += errors.of[stage].square;
      shrunk[stage] -= errors.of[stage].mean * value;
    }
    squared_value += value * value;
    error += errors.total().mean;
    count += 1;
    if (value == 0) return;
    add_to(signs[stratum_of(StratumKind::sign, value)], errors.total().mean);
    for (int kind = 1; kind < stratum_kinds(detail); ++kind)
      add_to(others[stratum_of(StratumKind(kind), value)], errors.total().mean);
  }

  static void add_to(Stratum& stratum, double error) {
    stratum.error += error;
    stratum.count += 1;
  }

  // What each stage adds to the one before, and the totals.
  RatioSums<BiasSums::kNumerators>::Vector parts() const {
    RatioSums<BiasSums::kNumerators>::Vector parts{};
    for (std::size_t stage = 0; stage < kStages; ++stage) {
      parts[BiasSums::squared_part + stage] = squared[stage] - (stage == 0 ? 0 : squared[stage - 1]);
      parts[BiasSums::shrinkage_part + stage] = shrunk[stage] - (stage == 0 ? 0 : shrunk[stage - 1]);
    }
    parts[BiasSums::squared_total] = squared[kStages - 1];
    parts[BiasSums::shrinkage_total] = shrunk[kStages - 1];
    return parts;
  }
};

BiasSums::BiasSums(const Recipe& recipe, ErrorDetail detail)
    : recipe_(&recipe), detail_(detail), errors_(recipe, detail) {}

template <class Source>
void BiasSums::add(const BiasPart& part, std::span<const Source> x, const Randomness& random) {
  const Matrix shape = part.panel.shape;
  const ErrorPart errors{.recipe = recipe_,
                         .detail = detail_,
                         .tensor = part.tensor,
                         .shape = shape,
                         .counted = part.counted.value_or(shape)};
  std::vector<std::byte> codes(code_bytes(*recipe_, shape)), scales(scale_bytes(*recipe_, shape));
  std::vector<float> q(x.size());
  quantize<Source>(*recipe_, part.tensor, shape, x, random, codes, scales);
  dequantize(*recipe_, part.tensor, shape, codes, scales, q);
  errors_.add_quantized<Source>(errors, x, codes, scales, q);

  Quantized<Source> made{.x = x, .q = q, .codes = codes, .scales = scales, .row_errors = {}};
  const ClusterGrid grid = cluster_grid(errors);
  for (uint64_t number = 0; number < grid.count(); ++number) add_cluster(part, grid, number, made);
}

template <class Source>
void BiasSums::add_cluster(const BiasPart& part, const ClusterGrid& grid, uint64_t number, Quantized<Source>& made) {
  const Cluster<Source> c = cluster_at(grid, made.x.data(), made.q.data(), number);
  const bool scaled = has_scale(*recipe_);
  const uint32_t code = scaled ? load_stored(recipe_->scale.storage_bits(), made.scales.data(), grid.block(number)) : 0;
  const StagedBlock block = staged_block(*recipe_, part.tensor, code, scaled ? finite_magnitude(c) : part.tensor.amax);
  ClusterBias sums;
  std::vector<StageErrors>& errors = made.row_errors;
  errors.resize(c.cols);
  for (uint64_t row = 0; row < c.rows; ++row) {
    const std::span x(c.x + row * c.stride, c.cols);
    const std::span q(c.q + row * c.stride, c.cols);
    stage_errors<Source>(block, x, q, errors);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (is_finite(double(x[i])) && is_finite(q[i]) && is_finite(errors[i].total().square))
        sums.add(errors[i], x[i], detail_);
  }
  if (sums.count == 0) return;
  const RatioSums<kNumerators>::Vector parts = sums.parts();
  parts_.add(parts, sums.squared_value);
  mean_.add({sums.error}, sums.count);
  for (int sign = 0; sign < 2; ++sign)
    if (sums.signs[sign].count > 0) strata_[sign].add({sums.signs[sign].error}, sums.signs[sign].count);
  for (const auto& [stratum, sum] : sums.others) strata_[stratum].add({sum.error}, sum.count);
  const double least = worst_.size() < kWorstBlocks ? 0 : worst_.back().squared_error;
  if (parts[squared_total] > 0 && parts[squared_total] >= least) keep_if_worst(part, block, sums, c, made, code);
}

// Of the blocks with the largest squared errors, what there is to see.
template <class Source>
void BiasSums::keep_if_worst(const BiasPart& part, const StagedBlock& staged, const ClusterBias& sums,
                             const Cluster<Source>& c, const Quantized<Source>& made, uint32_t scale_code) {
  const uint64_t first = uint64_t(c.x - made.x.data());
  const RatioSums<kNumerators>::Vector parts = sums.parts();
  WorstBlock block{.row = part.panel.first_row + first / part.panel.shape.cols,
                   .col = part.panel.first_col + first % part.panel.shape.cols,
                   .squared_error = parts[squared_total],
                   .squared_value = sums.squared_value,
                   .scale_code = scale_code,
                   .scale = staged.scale};
  if (worst_.size() == kWorstBlocks && !is_worse(block, worst_.back())) return;
  std::copy_n(&parts[squared_part], kStages, block.parts);
  const FormatEntry& element = recipe_->element.entry();
  for (uint64_t row = 0; row < c.rows; ++row) {
    for (uint64_t at = row * c.stride; at < row * c.stride + c.cols && block.x.size() < kShownElements; ++at) {
      block.x.push_back(double(c.x[at]));
      block.q.push_back(c.q[at]);
      block.codes.push_back(load_stored(element.storage_bits, made.codes.data(), first + at) >> element.storage_shift);
    }
  }
  insert_worst(std::move(block));
}

void BiasSums::insert_worst(WorstBlock block) {
  worst_.insert(std::ranges::upper_bound(worst_, block, is_worse), std::move(block));
  if (worst_.size() > kWorstBlocks) worst_.pop_back();
}

template void BiasSums::add(const BiasPart&, std::span<const float>, const Randomness&);
template void BiasSums::add(const BiasPart&, std::span<const double>, const Randomness&);
template void BiasSums::add(const BiasPart&, std::span<const int64_t>, const Randomness&);
template void BiasSums::add(const BiasPart&, std::span<const uint64_t>, const Randomness&);

void BiasSums::merge(const BiasSums& other) {
  errors_.merge(other.errors_);
  parts_.merge(other.parts_);
  mean_.merge(other.mean_);
  for (const auto& [stratum, sums] : other.strata_) strata_[stratum].merge(sums);
  for (const WorstBlock& block : other.worst_) insert_worst(block);
}

Json BiasSums::figures() const {
  Json figures = errors_.figures();
  for (const char* key : {"by_sign", "by_eighth", "by_binade"}) figures.erase(key);  // in "bias", as expectations too
  figures["bias"] = bias_figures();
  figures["decomposition"] = decomposition();
  figures["worst_blocks"] = worst_blocks();
  return figures;
}

// Of zeros, which come back exactly, there is no error, though there is nothing to relate it to.
double BiasSums::part(std::size_t numerator) const {
  return parts_.clusters() > 0 && parts_.denominator() == 0 ? 0 : parts_.ratio(numerator);
}
double BiasSums::part_error(std::size_t numerator) const {
  return parts_.clusters() > 0 && parts_.denominator() == 0 ? 0 : parts_.standard_error(numerator);
}

Json BiasSums::bias_figures() const {
  const std::string_view method = method_of(*recipe_);
  const double rms = std::sqrt(parts_.denominator() / mean_.denominator());
  const Figure shrinkage{.value = part(shrinkage_total),
                         .se = part_error(shrinkage_total),
                         .n = parts_.clusters(),
                         .unit = "of sum x^2",
                         .method = method,
                         .resolution = kFp32Resolution};
  Json bias = {{"mean_error", tested(mean_figure(mean_, rms, method))}, {"shrinkage", tested(shrinkage)}};
  for (const auto& [stratum, sums] : strata_) {
    Json figure = tested(mean_figure(sums, rms, method));
    figure["elements"] = uint64_t(sums.denominator());
    bias[stratum_group(stratum)][stratum_key(stratum)] = std::move(figure);
  }
  return bias;
}

// The parts add up to the total but for the rounding of each to FP64.
Json BiasSums::decomposition() const {
  Json parts;
  const auto add = [&](const char* of, std::size_t first, std::size_t total) {
    for (std::size_t stage = 0; stage < kStages; ++stage) {
      parts[of][std::string(kStageNames[stage])] = part(first + stage);
      parts["se"][of][std::string(kStageNames[stage])] = part_error(first + stage);
    }
    parts[of]["total"] = part(total);
    parts["se"][of]["total"] = part_error(total);
  };
  add("rel_mse", squared_part, squared_total);
  add("shrinkage", shrinkage_part, shrinkage_total);
  return parts;
}

Json BiasSums::worst_blocks() const {
  Json blocks = Json::array();
  const double total = parts_.ratio(squared_total) * parts_.denominator();
  for (const WorstBlock& block : worst_) {
    Json json = {{"row", block.row},
                 {"col", block.col},
                 {"squared_error", block.squared_error},
                 {"rel_mse", block.squared_error / block.squared_value},
                 {"share", block.squared_error / total},
                 {"x", block.x},
                 {"q", block.q},
                 {"codes", block.codes}};
    if (has_scale(*recipe_)) json.update({{"scale", block.scale}, {"scale_code", block.scale_code}});
    for (std::size_t stage = 0; stage < kStages; ++stage)
      json["parts"][std::string(kStageNames[stage])] = block.parts[stage];
    blocks.push_back(std::move(json));
  }
  return blocks;
}

}  // namespace halfulp

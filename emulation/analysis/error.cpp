#include "emulation/analysis/error.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "lib/random_values.h"

namespace halfulp {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLn10 = 0x1.26bb1bbb55516p+1;
constexpr double kZ95 = 1.959963984540054;  // 97.5% quantile of the normal distribution

// libm's logarithms differ between machines; this one does not. Of a number that is positive, or the limit at 0.
double log_base(double x, double ln_base) {
  if (!(x > 0) || !std::isfinite(x)) return x == 0 ? -HUGE_VAL : x > 0 ? HUGE_VAL : kNaN;
  return portable_log(x) / ln_base;
}

double share(uint64_t part, uint64_t whole) { return whole == 0 ? kNaN : double(part) / double(whole); }

// Wilson's 95% interval for a share of independent trials (Wilson, J. Am. Stat. Assoc. 22, 1927).
Json wilson(uint64_t part, uint64_t whole) {
  if (whole == 0) return Json::array({kNaN, kNaN});
  const double n = double(whole), p = double(part) / n, z2 = kZ95 * kZ95;
  const double centre = (p + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kZ95 / (1 + z2 / n) * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
  return Json::array({std::fmax(0, centre - half), std::fmin(1, centre + half)});
}

std::size_t quantile_bin(const std::vector<uint64_t>& histogram, uint64_t total, double quantile) {
  const uint64_t rank = std::min(total - 1, uint64_t(quantile * double(total)));
  uint64_t below = 0;
  for (std::size_t bin = 0; bin < histogram.size(); ++bin)
    if ((below += histogram[bin]) > rank) return bin;
  return histogram.size() - 1;
}

uint64_t total_of(const std::vector<uint64_t>& histogram) {
  uint64_t total = 0;
  for (const uint64_t n : histogram) total += n;
  return total;
}

using ErrorMoments = ClusterMoments<ClusterSums::kVariables>;
using StratumMoments = ClusterMoments<StratumSum::kVariables>;

Json figures_of(const StratumMoments& moments) {
  return {{"elements", uint64_t(moments.sum(StratumSum::count))},
          {"mean_error", moments.ratio(StratumSum::error, StratumSum::count)},
          {"se", moments.ratio_error(StratumSum::error, StratumSum::count)}};
}

}  // namespace

uint64_t cluster_size(const Recipe& recipe, const Matrix& shape) {
  return has_scale(recipe) ? uint64_t(recipe.block.rows) * block_cols(recipe, shape) : kElementwiseCluster;
}

ErrorSums::ErrorSums(const Recipe& recipe, ErrorDetail detail, const RecipeFunctions& with)
    : recipe_(&recipe), with_(with), detail_(detail), tally_(recipe) {}

template <class Source>
void ErrorSums::add(const TensorScale& tensor, const Matrix& shape, std::span<const Source> x, const Randomness& random,
                    const std::optional<Matrix>& counted) {
  const ErrorPart part{
      .recipe = recipe_, .detail = detail_, .tensor = tensor, .shape = shape, .counted = counted.value_or(shape)};
  if constexpr (std::is_same_v<Source, float>) {
    const uint64_t size = cluster_size(*recipe_, shape);
    if (with_.tally_errors != nullptr && size <= kMaxDeviceCluster) {
      cluster_size_ = std::max(cluster_size_, size);
      return with_.tally_errors(part, x, random, tally_);
    }
  }
  std::vector<std::byte> codes(code_bytes(*recipe_, shape)), scales(scale_bytes(*recipe_, shape));
  std::vector<float> q(x.size());
  quantize(with_, *recipe_, tensor, shape, x, random, codes, scales);
  with_.dequantize(*recipe_, tensor, shape, codes, scales, q);
  add_quantized<Source>(part, x, codes, scales, q);
}

template <class Source>
void ErrorSums::add_quantized(const ErrorPart& part, std::span<const Source> x, std::span<const std::byte> codes,
                              std::span<const std::byte> scales, std::span<const float> q) {
  cluster_size_ = std::max(cluster_size_, cluster_size(*recipe_, part.shape));
  tally_errors<Source>(part, x, codes, scales, q, tally_);
}

template void ErrorSums::add(const TensorScale&, const Matrix&, std::span<const float>, const Randomness&,
                             const std::optional<Matrix>&);
template void ErrorSums::add(const TensorScale&, const Matrix&, std::span<const double>, const Randomness&,
                             const std::optional<Matrix>&);
template void ErrorSums::add(const TensorScale&, const Matrix&, std::span<const int64_t>, const Randomness&,
                             const std::optional<Matrix>&);
template void ErrorSums::add(const TensorScale&, const Matrix&, std::span<const uint64_t>, const Randomness&,
                             const std::optional<Matrix>&);

template void ErrorSums::add_quantized(const ErrorPart&, std::span<const float>, std::span<const std::byte>,
                                       std::span<const std::byte>, std::span<const float>);
template void ErrorSums::add_quantized(const ErrorPart&, std::span<const double>, std::span<const std::byte>,
                                       std::span<const std::byte>, std::span<const float>);
template void ErrorSums::add_quantized(const ErrorPart&, std::span<const int64_t>, std::span<const std::byte>,
                                       std::span<const std::byte>, std::span<const float>);
template void ErrorSums::add_quantized(const ErrorPart&, std::span<const uint64_t>, std::span<const std::byte>,
                                       std::span<const std::byte>, std::span<const float>);

void ErrorSums::merge(const ErrorSums& other) {
  cluster_size_ = std::max(cluster_size_, other.cluster_size_);
  tally_.merge(other.tally_);
}

Json ErrorSums::figures() const {
  Json figures = {
      {"elements", tally_.elements},           {"nonfinite_in", tally_.nonfinite_in},
      {"nonfinite_out", tally_.nonfinite_out}, {"clusters", tally_.moments.clusters()},
      {"cluster_size", cluster_size_},         {"max_abs_error", tally_.max_abs_error},
  };
  add_rounding_figures(figures);
  add_share_figures(figures);
  add_scale_figures(figures);
  add_crest_figures(figures);
  add_code_figures(figures);
  add_strata_figures(figures);
  return figures;
}

void ErrorSums::add_rounding_figures(Json& figures) const {
  if (tally_.moments.clusters() > 0 && tally_.moments.sum(ClusterSums::squared_value) == 0)
    return add_figures_of_zeros(figures);
  const double rel_mse = tally_.moments.ratio(ClusterSums::squared_error, ClusterSums::squared_value);
  const double shrinkage =
      0 - tally_.moments.ratio(ClusterSums::error_times_value, ClusterSums::squared_value);  // no -0
  const double rel_mse_se = tally_.moments.ratio_error(ClusterSums::squared_error, ClusterSums::squared_value);
  // rel_mse = shrinkage^2 + residual; d residual = d rel_mse - 2 shrinkage d shrinkage.
  ErrorMoments::Vector residual_weights{};
  residual_weights[ClusterSums::squared_error] = 1;
  residual_weights[ClusterSums::error_times_value] = 2 * shrinkage;
  residual_weights[ClusterSums::squared_value] = 2 * shrinkage * shrinkage - rel_mse;

  figures["rel_mse"] = rel_mse;
  figures["sqnr_db"] = -10 * log_base(rel_mse, kLn10);
  figures["rate_bits"] = -0.5 * log_base(rel_mse, kLn2);
  figures["shrinkage"] = shrinkage;
  figures["residual"] = rel_mse - shrinkage * shrinkage;
  figures["mean_error"] = tally_.moments.ratio(ClusterSums::error, ClusterSums::count);
  figures["se"] = {
      {"rel_mse", rel_mse_se},
      {"sqnr_db", 10 / kLn10 * rel_mse_se / rel_mse},
      {"rate_bits", 0.5 / kLn2 * rel_mse_se / rel_mse},
      {"shrinkage", tally_.moments.ratio_error(ClusterSums::error_times_value, ClusterSums::squared_value)},
      {"residual", tally_.moments.standard_error(residual_weights, ClusterSums::squared_value)},
      {"mean_error", tally_.moments.ratio_error(ClusterSums::error, ClusterSums::count)},
  };
}

// Zeros come back exactly, in every recipe: no error, though there is nothing to relate it to.
void ErrorSums::add_figures_of_zeros(Json& figures) const {
  for (const char* name : {"rel_mse", "shrinkage", "residual", "mean_error"}) figures[name] = 0.0;
  figures["sqnr_db"] = figures["rate_bits"] = HUGE_VAL;
  for (const char* name : {"rel_mse", "shrinkage", "residual", "mean_error", "sqnr_db", "rate_bits"})
    figures["se"][name] = 0.0;
}

void ErrorSums::add_share_figures(Json& figures) const {
  const uint64_t finite = tally_.elements - tally_.nonfinite_in;
  figures["clipped"] = share(tally_.clipped, finite);
  figures["dead_zone"] = share(tally_.dead_zone, finite);
  figures["ci95"] = {{"clipped", wilson(tally_.clipped, finite)}, {"dead_zone", wilson(tally_.dead_zone, finite)}};
}

void ErrorSums::add_scale_figures(Json& figures) const {
  figures["scale_min"] = figures["scale_max"] = nullptr;
  if (tally_.greatest_scale > 0) {
    figures["scale_min"] = number_of_rank(tally_.least_scale);
    figures["scale_max"] = number_of_rank(tally_.greatest_scale);
  }
  if (tally_.scales.empty()) return;
  const Format scale = recipe_->scale.format();
  const uint64_t blocks = total_of(tally_.scales);
  uint64_t subnormal = 0, nan = 0;
  for (uint32_t code = 0; code < tally_.scales.size(); ++code) {
    if (is_nan_code(scale, code)) nan += tally_.scales[code];
    if (scale.subnormals == Subnormals::yes && code > 0 && code < scale.hidden()) subnormal += tally_.scales[code];
  }
  figures["scales"] = {{"at_min", share(tally_.scales[0], blocks)},
                       {"at_max", share(tally_.scales[scale.max_code()], blocks)},
                       {"subnormal", share(subnormal, blocks)},
                       {"nan", share(nan, blocks)}};
  if (detail_ == ErrorDetail::strata) figures["scales"]["histogram"] = tally_.scales;
}

void ErrorSums::add_crest_figures(Json& figures) const {
  const uint64_t blocks = total_of(tally_.crests);
  if (blocks == 0) return;
  for (const auto& [name, quantile] : {std::pair{"p05", 0.05}, {"p50", 0.5}, {"p95", 0.95}, {"max", 1.0}})
    figures["crest"][name] = crest_of_bin(quantile_bin(tally_.crests, blocks, quantile));
}

void ErrorSums::add_code_figures(Json& figures) const {
  figures["codes"] = nullptr;
  if (tally_.codes.empty()) return;
  const Format element = recipe_->element.format();
  const double total = double(tally_.elements);
  double entropy = tally_.elements == 0 ? kNaN : 0;
  uint64_t used = 0;
  for (const uint64_t n : tally_.codes) {
    if (n == 0) continue;
    ++used;
    entropy -= double(n) / total * log_base(double(n) / total, kLn2);
  }
  const uint64_t largest = tally_.codes[element.max_code()] +
                           (element.sign_mask() ? tally_.codes[element.sign_mask() | element.max_code()] : 0);
  // Miller and Madow's correction of the entropy's bias, (codes used - 1) / (2 n) nats.
  figures["codes"] = {{"entropy_bits", entropy + (double(used) - 1) / (2 * total * kLn2)},
                      {"used", used},
                      {"at_max", share(largest, tally_.elements)}};
}

void ErrorSums::add_strata_figures(Json& figures) const {
  for (const auto& [stratum, moments] : tally_.strata) {
    if (stratum < kFirstEighth) {
      figures["by_sign"][stratum == 0 ? "positive" : "negative"] = figures_of(moments);
    } else if (stratum < kFirstBinade) {
      figures["by_eighth"][std::to_string(stratum - kFirstEighth)] = figures_of(moments);
    } else {
      figures["by_binade"][std::to_string(stratum - kFirstBinade + kLeastBinade)] = figures_of(moments);
    }
  }
}

}  // namespace halfulp

#include "emulation/analysis/error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "formats/packing.h"
#include "lib/random_values.h"

namespace halfulp {
namespace {

constexpr uint64_t kElementwiseCluster = 32;

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

// A stratum is an element's sign, binade or place in its binade, as one integer.
enum StratumKind { sign_stratum, binade_stratum, eighth_stratum };
constexpr int kStratumSpan = 1 << 16;
constexpr int kBinadeOffset = 2048;
int stratum_key(StratumKind kind, int value) { return int(kind) * kStratumSpan + value; }

// Crest factors are counted by the upper bits of their FP32 form from 1 on: bins of relative width 2^-10.
constexpr uint32_t kCrestShift = 13, kCrestFirst = 0x3f80'0000 >> kCrestShift, kCrestBins = 10 << 10;  // up to 1024

float crest_of_bin(std::size_t bin) { return bit_cast<float>((uint32_t(bin) + kCrestFirst) << kCrestShift); }

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

void merge_counts(std::vector<uint64_t>& into, const std::vector<uint64_t>& from) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
}

// Codes that are counted one by one: none of a format that has more of them than a tensor could show.
std::size_t codes_of(const Format& f) { return f.bits() <= 16 ? std::size_t{1} << f.bits() : 0; }

// q - x, rounded once. A 64-bit integer may be no double; its rounding to a finite value is an integer again.
template <class Source>
double error_of(double q, Source x) {
  if constexpr (std::is_integral_v<Source>) {
    return double(static_cast<__int128>(q) - static_cast<__int128>(x));
  } else {
    return q - double(x);
  }
}

}  // namespace

uint64_t cluster_size(const Recipe& recipe, const Matrix& shape) {
  return has_scale(recipe) ? uint64_t(recipe.block.rows) * block_cols(recipe, shape) : kElementwiseCluster;
}

ErrorSums::ErrorSums(const Recipe& recipe, ErrorDetail detail, const RecipeFunctions& with)
    : recipe_(&recipe), with_(with), detail_(detail) {
  codes_.resize(codes_of(recipe.element.format()));
  if (!has_scale(recipe)) return;
  scales_.resize(codes_of(recipe.scale.format()));
  crests_.resize(kCrestBins);
}

template <class Source>
void ErrorSums::add(const TensorScale& tensor, const Matrix& shape, std::span<const Source> x, const Randomness& random,
                    const std::optional<Matrix>& counted) {
  std::vector<std::byte> codes(code_bytes(*recipe_, shape)), scales(scale_bytes(*recipe_, shape));
  std::vector<float> q(x.size());
  quantize(with_, *recipe_, tensor, shape, x, random, codes, scales);
  with_.dequantize(*recipe_, tensor, shape, codes, scales, q);
  cluster_size_ = std::max(cluster_size_, cluster_size(*recipe_, shape));
  if (has_scale(*recipe_)) {
    const Matrix part = counted.value_or(shape);
    for (uint64_t row = 0; row < part.rows; ++row) count_codes(codes, row * shape.cols, part.cols);
    add_blocks<Source>(tensor, shape, part, x, q, scales);
  } else {
    count_codes(codes, 0, x.size());
    add_runs<Source>(tensor, x, q);
  }
}

template <class Source>
void ErrorSums::add_runs(const TensorScale& tensor, std::span<const Source> x, std::span<const float> q) {
  Cluster<Source> cluster{.x = {}, .q = {}, .largest = largest_value(tensor, 1)};
  for (std::size_t first = 0; first < x.size(); first += kElementwiseCluster) {
    const std::size_t size = std::min<std::size_t>(kElementwiseCluster, x.size() - first);
    cluster.x.assign(&x[first], &x[first] + size);
    cluster.q.assign(&q[first], &q[first] + size);
    add_cluster(cluster);
  }
}

template <class Source>
void ErrorSums::add_blocks(const TensorScale& tensor, const Matrix& shape, const Matrix& counted,
                           std::span<const Source> x, std::span<const float> q, std::span<const std::byte> scales) {
  const Matrix grid = scale_grid(*recipe_, shape);
  const uint64_t height = uint64_t(recipe_->block.rows), width = block_cols(*recipe_, shape);
  const FormatEntry& format = recipe_->scale.entry();
  Cluster<Source> cluster{};
  for (uint64_t block = 0; block < grid.elements(); ++block) {
    const uint64_t first_row = block / grid.cols * height, col = block % grid.cols * width;
    if (first_row >= counted.rows || col >= counted.cols) continue;
    const uint32_t code =
        format.storage_bits == 8 ? load_code<8>(scales.data(), block) : load_code<32>(scales.data(), block);
    count_scale(code);
    cluster.largest = largest_value(tensor, decode(format.format, code));
    cluster.x.clear();
    cluster.q.clear();
    for (uint64_t row = first_row; row < std::min(first_row + height, counted.rows); ++row) {
      const std::size_t first = row * shape.cols + col, size = std::min(width, counted.cols - col);
      cluster.x.insert(cluster.x.end(), &x[first], &x[first] + size);
      cluster.q.insert(cluster.q.end(), &q[first], &q[first] + size);
    }
    add_cluster(cluster);
  }
}

// The largest magnitude that a code stands for under a block's scale.
double ErrorSums::largest_value(const TensorScale& tensor, float scale) const {
  return magnitude(decode_element(*recipe_, tensor, scale, recipe_->element.format().max_code()));
}

template void ErrorSums::add(const TensorScale&, const Matrix&, std::span<const float>, const Randomness&,
                             const std::optional<Matrix>&);
template void ErrorSums::add(const TensorScale&, const Matrix&, std::span<const double>, const Randomness&,
                             const std::optional<Matrix>&);
template void ErrorSums::add(const TensorScale&, const Matrix&, std::span<const int64_t>, const Randomness&,
                             const std::optional<Matrix>&);
template void ErrorSums::add(const TensorScale&, const Matrix&, std::span<const uint64_t>, const Randomness&,
                             const std::optional<Matrix>&);

void ErrorSums::count_codes(std::span<const std::byte> codes, uint64_t first, uint64_t elements) {
  if (codes_.empty()) return;
  const FormatEntry& element = recipe_->element.entry();
  for (uint64_t i = first; i < first + elements; ++i) {
    const uint32_t stored = element.storage_bits == 4   ? load_code<4>(codes.data(), i)
                            : element.storage_bits == 8 ? load_code<8>(codes.data(), i)
                                                        : load_code<16>(codes.data(), i);
    ++codes_[stored >> element.storage_shift];
  }
}

void ErrorSums::count_scale(uint32_t code) {
  if (!scales_.empty()) ++scales_[code];
  const float value = decode(recipe_->scale.format(), code);
  scale_min_ = std::fmin(scale_min_, value);
  scale_max_ = std::fmax(scale_max_, value);
}

template <class Source>
void ErrorSums::add_cluster(const Cluster<Source>& cluster) {
  std::vector<double> values, errors;
  for (std::size_t i = 0; i < cluster.x.size(); ++i) {
    const double value = double(cluster.x[i]), q = double(cluster.q[i]);
    nonfinite_in_ += !std::isfinite(value);
    nonfinite_out_ += std::isfinite(value) && !std::isfinite(q);
    clipped_ += std::isfinite(value) && std::fabs(value) > cluster.largest;
    if (!std::isfinite(value) || !std::isfinite(q)) continue;
    dead_zone_ += q == 0 && value != 0;
    values.push_back(value);
    errors.push_back(error_of(q, cluster.x[i]));
  }
  elements_ += cluster.x.size();
  if (!values.empty()) add_finite(values, errors);
}

void ErrorSums::add_finite(std::span<const double> x, std::span<const double> e) {
  std::array<double, kVariables> sums{};
  for (std::size_t i = 0; i < x.size(); ++i) {
    max_abs_error_ = std::fmax(max_abs_error_, std::fabs(e[i]));
    sums[squared_error] += e[i] * e[i];
    sums[squared_value] += x[i] * x[i];
    sums[error_times_value] += e[i] * x[i];
    sums[error] += e[i];
  }
  sums[count] = double(x.size());
  moments_.add(sums);
  add_strata(x, e);
  if (!crests_.empty()) add_crest(x);
}

void ErrorSums::add_strata(std::span<const double> x, std::span<const double> e) {
  // A cluster's sums by stratum: few, so a search through a small array is the quickest map.
  std::vector<std::pair<int, ClusterMoments<2>::Vector>> sums;
  const auto add = [&](StratumKind kind, int value, double error_) {
    const int key = stratum_key(kind, value);
    std::size_t i = 0;
    while (i < sums.size() && sums[i].first != key) ++i;
    if (i == sums.size()) sums.push_back({key, {0, 0}});
    sums[i].second[0] += error_;
    sums[i].second[1] += 1;
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == 0) continue;
    add(sign_stratum, std::signbit(x[i]), e[i]);
    if (detail_ == ErrorDetail::summary) continue;
    const Unpacked u = unpack(x[i]);
    const int leading = floor_log2(u.significand);
    add(binade_stratum, u.exponent + leading + kBinadeOffset, e[i]);
    add(eighth_stratum, int((u.significand << (63 - leading)) >> 60 & 7), e[i]);
  }
  for (const auto& [key, sum] : sums) strata_[key].add(sum);
}

void ErrorSums::add_crest(std::span<const double> x) {
  double amax = 0, squares = 0;
  for (const double value : x) {
    amax = std::fmax(amax, std::fabs(value));
    squares += value * value;
  }
  if (!(squares > 0)) return;
  const float crest = float(amax / std::sqrt(squares / double(x.size())));
  const uint32_t bin = bit_cast<uint32_t>(crest) >> kCrestShift;
  ++crests_[std::clamp(bin, kCrestFirst, kCrestFirst + kCrestBins - 1) - kCrestFirst];
}

void ErrorSums::merge(const ErrorSums& other) {
  elements_ += other.elements_;
  nonfinite_in_ += other.nonfinite_in_;
  nonfinite_out_ += other.nonfinite_out_;
  clipped_ += other.clipped_;
  dead_zone_ += other.dead_zone_;
  max_abs_error_ = std::fmax(max_abs_error_, other.max_abs_error_);
  moments_.merge(other.moments_);
  for (const auto& [key, moments] : other.strata_) strata_[key].merge(moments);
  cluster_size_ = std::max(cluster_size_, other.cluster_size_);
  scale_min_ = std::fmin(scale_min_, other.scale_min_);
  scale_max_ = std::fmax(scale_max_, other.scale_max_);
  merge_counts(codes_, other.codes_);
  merge_counts(scales_, other.scales_);
  merge_counts(crests_, other.crests_);
}

Json ErrorSums::figures() const {
  Json figures = {
      {"elements", elements_},           {"nonfinite_in", nonfinite_in_}, {"nonfinite_out", nonfinite_out_},
      {"clusters", moments_.clusters()}, {"cluster_size", cluster_size_}, {"max_abs_error", max_abs_error_},
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
  if (moments_.clusters() > 0 && moments_.sum(squared_value) == 0) return add_figures_of_zeros(figures);
  const double rel_mse = moments_.ratio(squared_error, squared_value);
  const double shrinkage = 0 - moments_.ratio(error_times_value, squared_value);  // no -0
  const double rel_mse_se = moments_.ratio_error(squared_error, squared_value);
  // rel_mse = shrinkage^2 + residual; d residual = d rel_mse - 2 shrinkage d shrinkage.
  std::array<double, kVariables> residual_weights{};
  residual_weights[squared_error] = 1;
  residual_weights[error_times_value] = 2 * shrinkage;
  residual_weights[squared_value] = 2 * shrinkage * shrinkage - rel_mse;

  figures["rel_mse"] = rel_mse;
  figures["sqnr_db"] = -10 * log_base(rel_mse, kLn10);
  figures["rate_bits"] = -0.5 * log_base(rel_mse, kLn2);
  figures["shrinkage"] = shrinkage;
  figures["residual"] = rel_mse - shrinkage * shrinkage;
  figures["mean_error"] = moments_.ratio(error, count);
  figures["se"] = {
      {"rel_mse", rel_mse_se},
      {"sqnr_db", 10 / kLn10 * rel_mse_se / rel_mse},
      {"rate_bits", 0.5 / kLn2 * rel_mse_se / rel_mse},
      {"shrinkage", moments_.ratio_error(error_times_value, squared_value)},
      {"residual", moments_.standard_error(residual_weights, squared_value)},
      {"mean_error", moments_.ratio_error(error, count)},
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
  const uint64_t finite = elements_ - nonfinite_in_;
  figures["clipped"] = share(clipped_, finite);
  figures["dead_zone"] = share(dead_zone_, finite);
  figures["ci95"] = {{"clipped", wilson(clipped_, finite)}, {"dead_zone", wilson(dead_zone_, finite)}};
}

void ErrorSums::add_scale_figures(Json& figures) const {
  figures["scale_min"] = figures["scale_max"] = nullptr;
  if (!std::isnan(scale_min_)) {
    figures["scale_min"] = scale_min_;
    figures["scale_max"] = scale_max_;
  }
  if (scales_.empty()) return;
  const Format scale = recipe_->scale.format();
  const uint64_t blocks = total_of(scales_);
  uint64_t subnormal = 0, nan = 0;
  for (uint32_t code = 0; code < scales_.size(); ++code) {
    if (is_nan_code(scale, code)) nan += scales_[code];
    if (scale.subnormals == Subnormals::yes && code > 0 && code < scale.hidden()) subnormal += scales_[code];
  }
  figures["scales"] = {{"at_min", share(scales_[0], blocks)},
                       {"at_max", share(scales_[scale.max_code()], blocks)},
                       {"subnormal", share(subnormal, blocks)},
                       {"nan", share(nan, blocks)}};
  if (detail_ == ErrorDetail::strata) figures["scales"]["histogram"] = scales_;
}

void ErrorSums::add_crest_figures(Json& figures) const {
  const uint64_t blocks = total_of(crests_);
  if (blocks == 0) return;
  for (const auto& [name, quantile] : {std::pair{"p05", 0.05}, {"p50", 0.5}, {"p95", 0.95}, {"max", 1.0}})
    figures["crest"][name] = crest_of_bin(quantile_bin(crests_, blocks, quantile));
}

void ErrorSums::add_code_figures(Json& figures) const {
  figures["codes"] = nullptr;
  if (codes_.empty()) return;
  const Format element = recipe_->element.format();
  const double total = double(elements_);
  double entropy = elements_ == 0 ? kNaN : 0;
  uint64_t used = 0;
  for (const uint64_t n : codes_) {
    if (n == 0) continue;
    ++used;
    entropy -= double(n) / total * log_base(double(n) / total, kLn2);
  }
  const uint64_t largest =
      codes_[element.max_code()] + (element.sign_mask() ? codes_[element.sign_mask() | element.max_code()] : 0);
  // Miller and Madow's correction of the entropy's bias, (codes used - 1) / (2 n) nats.
  figures["codes"] = {{"entropy_bits", entropy + (double(used) - 1) / (2 * total * kLn2)},
                      {"used", used},
                      {"at_max", share(largest, elements_)}};
}

void ErrorSums::add_strata_figures(Json& figures) const {
  const auto figure = [](const ClusterMoments<2>& m) {
    return Json{{"elements", uint64_t(m.sum(1))}, {"mean_error", m.ratio(0, 1)}, {"se", m.ratio_error(0, 1)}};
  };
  for (const auto& [key, moments] : strata_) {
    const int value = key % kStratumSpan;
    switch (StratumKind(key / kStratumSpan)) {
      case sign_stratum: figures["by_sign"][value ? "negative" : "positive"] = figure(moments); break;
      case binade_stratum: figures["by_binade"][std::to_string(value - kBinadeOffset)] = figure(moments); break;
      case eighth_stratum: figures["by_eighth"][std::to_string(value)] = figure(moments); break;
    }
  }
}

}  // namespace halfulp

#include "emulation/analysis/draws.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "emulation/analysis/ratio_sums.h"
#include "lib/threads.h"

namespace halfulp {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// In eight sums, for speed, which depend on the elements' order alone.
template <class Other>
double dot(std::span<const float> a, std::span<const Other> b) {
  constexpr std::size_t kSums = 8;
  double sums[kSums]{};
  std::size_t i = 0;
  for (; i + kSums <= a.size(); i += kSums)
    for (std::size_t lane = 0; lane < kSums; ++lane) sums[lane] += double(a[i + lane]) * double(b[i + lane]);
  for (; i < a.size(); ++i) sums[i % kSums] += double(a[i]) * double(b[i]);
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

double squares(std::span<const double> x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return sum;
}

double mean(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum / double(x.size());
}

// Standard error of the mean of independent numbers.
double error_of_mean(const std::vector<double>& x) {
  if (x.size() < 2) return kNaN;
  const double center = mean(x);
  double sum = 0;
  for (const double value : x) sum += (value - center) * (value - center);
  return std::sqrt(sum / double(x.size() - 1) / double(x.size()));
}

}  // namespace

Draws::Draws(std::vector<double> exact, std::size_t draws, std::size_t row_length)
    : draws_(draws), row_length_(row_length), exact_(std::move(exact)), errors_(draws * exact_.size()) {}

void Draws::set(std::size_t draw, std::span<const double> value) {
  float* const errors = &errors_[draw * exact_.size()];
  for (std::size_t i = 0; i < exact_.size(); ++i) errors[i] = float(value[i] - exact_[i]);
}

Draws::TileFigures Draws::tile_figures() const {
  constexpr std::size_t kTileRows = 16;
  const std::size_t tile = kTileRows * row_length_;
  RatioSums<1> error, mean_error;
  for (std::size_t first = 0; first < exact_.size(); first += tile) {
    const std::size_t count = std::min(tile, exact_.size() - first);
    double sum = 0, squared = 0;
    for (std::size_t draw = 0; draw < draws_; ++draw) {
      for (std::size_t i = 0; i < count; ++i) {
        const double e = errors_[draw * exact_.size() + first + i];
        sum += e, squared += e * e;
      }
    }
    error.add({squared / double(draws_)}, squares(std::span(exact_).subspan(first, count)));
    mean_error.add({sum / double(draws_)}, double(count));
  }
  const auto figure = [](const RatioSums<1>& sums, std::string_view unit) {
    return Figure{.value = sums.ratio(0),
                  .se = sums.standard_error(0),
                  .n = sums.clusters(),
                  .unit = unit,
                  .method = "delta method over tiles of 16 rows"};
  };
  return {.error = figure(error, "of |exact|^2"), .mean_error = figure(mean_error, "as the product")};
}

Draws::Statistics Draws::statistics(int threads) const {
  const double squared_exact = squares(exact_);
  std::vector<double> gram(draws_ * draws_), along(draws_);
  const auto errors = [&](std::size_t i) { return std::span(errors_).subspan(i * exact_.size(), exact_.size()); };
  parallel_for(draws_, threads, [&](std::size_t i) {
    along[i] = dot(errors(i), std::span(exact_)) / squared_exact;
    for (std::size_t j = 0; j <= i; ++j)
      gram[i * draws_ + j] = gram[j * draws_ + i] = dot(errors(i), errors(j)) / squared_exact;
  });
  return {std::move(gram), draws_, std::move(along)};
}

Draws::Statistics::Statistics(std::vector<double> gram, std::size_t draws, std::vector<double> along)
    : gram_(std::move(gram)), draws_(draws), along_(std::move(along)) {}

Figure Draws::Statistics::mean_of(const std::vector<double>& values, std::string_view unit) const {
  return {.value = mean(values), .se = error_of_mean(values), .n = draws_, .unit = unit, .method = "over draws"};
}

// With h_ij = <e_i, e_j>, i != j, and R draws: Var U = (4 (R - 2) zeta_1 + 2 zeta_2) / (R (R - 1)), where zeta_1 is the
// covariance of two h that share a draw and zeta_2 the variance of h.
Figure Draws::Statistics::squared_bias() const {
  const double r = double(draws_);
  double sum = 0, pairs = 0, triples = 0;
  for (std::size_t i = 0; i < draws_; ++i) {
    double row = 0, row_squares = 0;
    for (std::size_t j = 0; j < draws_; ++j) {
      if (i == j) continue;
      row += at(i, j);
      row_squares += at(i, j) * at(i, j);
    }
    sum += row;
    pairs += row_squares;
    triples += row * row - row_squares;
  }
  Figure f{.value = sum / (r * (r - 1)), .se = kNaN, .n = draws_, .unit = "of |exact|^2", .method = "U-statistic"};
  if (draws_ < 4) return f;
  // Sums over ordered pairs of different draws, over triples h_ij h_ik, and over the quadruples h_ij h_kl that are
  // left.
  const double quadruples = sum * sum - 2 * pairs - 4 * triples;
  const double of_one = quadruples / (r * (r - 1) * (r - 2) * (r - 3));
  const double zeta_1 = std::max(0.0, triples / (r * (r - 1) * (r - 2)) - of_one);
  const double zeta_2 = std::max(0.0, pairs / (r * (r - 1)) - of_one);
  f.se = std::sqrt((4 * (r - 2) * zeta_1 + 2 * zeta_2) / (r * (r - 1)));
  return f;
}

Figure Draws::Statistics::error() const {
  std::vector<double> errors(draws_);
  for (std::size_t i = 0; i < draws_; ++i) errors[i] = at(i, i);
  return mean_of(errors, "of |exact|^2");
}

// Of a draw: its error less the mean of its products with the others.
Figure Draws::Statistics::noise() const {
  std::vector<double> noise(draws_);
  for (std::size_t i = 0; i < draws_; ++i) {
    double others = 0;
    for (std::size_t j = 0; j < draws_; ++j)
      if (j != i) others += at(i, j);
    noise[i] = at(i, i) - others / double(draws_ - 1);
  }
  return mean_of(noise, "of |exact|^2");
}

Figure Draws::Statistics::projection() const {
  std::vector<double> values = along_;
  for (double& value : values) value += 1;
  return mean_of(values, "");
}

Figure Draws::Statistics::cosine() const {
  std::vector<double> values(draws_);
  for (std::size_t i = 0; i < draws_; ++i) values[i] = (1 + along_[i]) / std::sqrt(1 + 2 * along_[i] + at(i, i));
  return mean_of(values, "");
}

Figure Draws::Statistics::gradient_to_noise() const {
  const Figure variance = noise();
  const double value = 1 / std::sqrt(variance.value);
  return {.value = value,
          .se = value * variance.se / (2 * variance.value),
          .n = draws_,
          .unit = "",
          .method = "over draws"};
}

MeanError Draws::Statistics::mean_error(std::size_t draws) const {
  const std::size_t groups = draws_ / draws;
  std::vector<double> errors(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t i = g * draws; i < (g + 1) * draws; ++i)
      for (std::size_t j = g * draws; j < (g + 1) * draws; ++j) errors[g] += at(i, j);
    errors[g] /= double(draws) * double(draws);
  }
  MeanError result{.draws = draws, .groups = groups, .error = mean(errors), .se = error_of_mean(errors)};
  // Of few groups: what the bias and the noise leave open.
  constexpr std::size_t kFew = 8;
  if (groups < kFew) result.se = std::hypot(squared_bias().se, noise().se / double(draws));
  return result;
}

std::vector<MeanError> Draws::Statistics::concentration() const {
  std::vector<MeanError> curve;
  for (std::size_t draws = 1; draws < draws_; draws *= 4) curve.push_back(mean_error(draws));
  curve.push_back(mean_error(draws_));
  return curve;
}

double Draws::Statistics::fitted_slope() const {
  double weights = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const MeanError& point : concentration()) {
    const double relative = point.se / point.error;
    const double weight = relative > 0 ? 1 / (relative * relative) : 1;
    const double u = std::log(double(point.draws)), v = std::log(point.error);
    weights += weight, x += weight * u, y += weight * v, xx += weight * u * u, xy += weight * u * v;
  }
  return (weights * xy - x * y) / (weights * xx - x * x);
}

Draws::Statistics Draws::Statistics::without(std::size_t first, std::size_t count) const {
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < draws_; ++i)
    if (i < first || i >= first + count) kept.push_back(i);
  std::vector<double> gram, along;
  for (const std::size_t i : kept) {
    along.push_back(along_[i]);
    for (const std::size_t j : kept) gram.push_back(at(i, j));
  }
  return {std::move(gram), kept.size(), std::move(along)};
}

// The points of the curve share their draws, so the standard error is a jackknife over groups of draws.
Figure Draws::Statistics::slope() const {
  constexpr std::size_t kGroups = 16;
  Figure f{.value = fitted_slope(), .se = kNaN, .n = draws_, .unit = "", .method = "jackknife over 16 groups of draws"};
  if (draws_ < 2 * kGroups) return f;
  const std::size_t size = draws_ / kGroups;
  std::vector<double> slopes(kGroups);
  for (std::size_t g = 0; g < kGroups; ++g) slopes[g] = without(g * size, size).fitted_slope();
  f.se = error_of_mean(slopes) * double(kGroups - 1);
  return f;
}

}  // namespace halfulp

#pragma once
// Sums over clusters of several numerators and one denominator, and what they say of the ratios: as ClusterMoments, but
// without the products of numerators with each other. Exact, so they do not depend on how the work was divided.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "lib/exact_sum.h"

namespace halfulp {

template <std::size_t numerators>
class RatioSums {
 public:
  using Vector = std::array<double, numerators>;

  void add(const Vector& cluster, double denominator) {
    ++clusters_;
    denominator_.add(denominator);
    denominator_squared_.add(denominator * denominator);
    for (std::size_t i = 0; i < numerators; ++i) {
      if (cluster[i] == 0) continue;  // common, and adds nothing
      of_[i].sum.add(cluster[i]);
      of_[i].squared.add(cluster[i] * cluster[i]);
      of_[i].crossed.add(cluster[i] * denominator);
    }
  }

  void merge(const RatioSums& other) {
    clusters_ += other.clusters_;
    denominator_.merge(other.denominator_);
    denominator_squared_.merge(other.denominator_squared_);
    for (std::size_t i = 0; i < numerators; ++i) {
      of_[i].sum.merge(other.of_[i].sum);
      of_[i].squared.merge(other.of_[i].squared);
      of_[i].crossed.merge(other.of_[i].crossed);
    }
  }

  uint64_t clusters() const { return clusters_; }
  double denominator() const { return denominator_.value(); }
  double ratio(std::size_t i) const { return of_[i].sum.value() / denominator(); }

  // Delta method: sqrt(C/(C-1) sum_c (n_c - r d_c)^2) / sum d. NaN for one cluster.
  double standard_error(std::size_t i) const {
    if (clusters_ < 2) return std::numeric_limits<double>::quiet_NaN();
    const double r = ratio(i), c = double(clusters_);
    const double squares =
        of_[i].squared.value() - 2 * r * of_[i].crossed.value() + r * r * denominator_squared_.value();
    return std::sqrt(std::fmax(squares, 0) * c / (c - 1)) / denominator();
  }

 private:
  struct Numerator {
    ExactSum sum, squared, crossed;
  };

  uint64_t clusters_ = 0;
  ExactSum denominator_, denominator_squared_;
  std::array<Numerator, numerators> of_;
};

}  // namespace halfulp

#pragma once
// Sums over clusters, and what they say of a ratio of two of them. A cluster is a group of dependent elements (here: a
// block); clusters are taken as independent. Sums are exact, so that they do not depend on how the work was divided.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "lib/exact_sum.h"

namespace halfulp {

// A cluster's variables and then their products (i, j), i <= j, row by row: what is added up of it.
template <std::size_t variables>
struct Addends {
  static constexpr std::size_t kCount = variables + variables * (variables + 1) / 2;
  double of[kCount];
};

template <std::size_t variables>
HOST_DEVICE constexpr Addends<variables> addends_of(const double (&cluster)[variables]) {
  Addends<variables> addends{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < variables; ++i) addends.of[at++] = cluster[i];
  for (std::size_t i = 0; i < variables; ++i)
    for (std::size_t j = i; j < variables; ++j) addends.of[at++] = cluster[i] * cluster[j];
  return addends;
}

template <std::size_t variables>
class ClusterMoments {
 public:
  using Vector = std::array<double, variables>;
  static constexpr std::size_t kSums = Addends<variables>::kCount;

  void add(const double (&cluster)[variables]) {
    ++clusters_;
    const Addends<variables> addends = addends_of(cluster);
    for (std::size_t i = 0; i < kSums; ++i) sums_[i].add(addends.of[i]);
  }

  // Adds what others summed up: `limbs` has ExactSum::kLimbs for each of the sums, each below 2^62.
  void add_limbs(uint64_t clusters, std::span<const int64_t> limbs) {
    clusters_ += clusters;
    for (std::size_t i = 0; i < kSums; ++i)
      sums_[i].add_limbs(limbs.subspan(i * ExactSum::kLimbs).template first<ExactSum::kLimbs>());
  }

  void merge(const ClusterMoments& other) {
    clusters_ += other.clusters_;
    for (std::size_t i = 0; i < kSums; ++i) sums_[i].merge(other.sums_[i]);
  }

  uint64_t clusters() const { return clusters_; }
  double sum(std::size_t variable) const { return sums_[variable].value(); }
  double ratio(std::size_t numerator, std::size_t denominator) const { return sum(numerator) / sum(denominator); }

  // Standard error of a function of ratios over sum(denominator), whose change with cluster c is weights . c divided by
  // that sum, and adds up to zero over all clusters: sqrt(C/(C-1) sum_c (weights . c)^2) / sum(denominator), the delta
  // method. For the ratio r itself the weights are 1 on the numerator and -r on the denominator. NaN for one cluster.
  double standard_error(const Vector& weights, std::size_t denominator) const {
    if (clusters_ < 2) return std::numeric_limits<double>::quiet_NaN();
    double squares = 0;
    std::size_t at = variables;
    for (std::size_t i = 0; i < variables; ++i)
      for (std::size_t j = i; j < variables; ++j)
        squares += (i == j ? 1 : 2) * weights[i] * weights[j] * sums_[at++].value();
    const double c = double(clusters_);
    return std::sqrt(std::fmax(squares, 0) * c / (c - 1)) / sum(denominator);
  }

  double ratio_error(std::size_t numerator, std::size_t denominator) const {
    Vector weights{};
    weights[numerator] = 1;
    weights[denominator] -= ratio(numerator, denominator);
    return standard_error(weights, denominator);
  }

 private:
  uint64_t clusters_ = 0;
  std::array<ExactSum, kSums> sums_;  // of Addends
};

}  // namespace halfulp

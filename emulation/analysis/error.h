#pragma once
// What a recipe's rounding does to a tensor: error and bias figures with standard errors over blocks. Every sum is
// exact over integers, or over one double per block, so the figures depend on the tensor and the recipe only.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "emulation/analysis/cluster_moments.h"
#include "emulation/blocks/block.h"
#include "lib/json.h"

namespace halfulp {

// Elements of one cluster, the unit of the standard errors: a block, or 32 elements where a recipe has none.
int cluster_size(const Recipe& recipe);

enum class ErrorDetail {
  summary,
  strata,  // also the mean error per binade and per eighth of a binade, and the histogram of the scales
};

// The sums from which every figure comes. x is a value, q what comes back from its code, e = q - x. Elements whose x or
// q is not finite are counted and left out of the sums.
class ErrorSums {
 public:
  ErrorSums(int recipe_id, ErrorDetail detail);

  // x begins at a multiple of cluster_size() in its tensor, and ends at one or at the tensor's end. Sources other than
  // float are for elementwise recipes.
  template <class Source>
  void add(const TensorScale& tensor, std::span<const Source> x);

  void merge(const ErrorSums& other);

  // The figures by name: `halfulp error --help` says what each is. A figure that has no value is NaN.
  Json figures() const;

 private:
  enum Variable { squared_error, squared_value, error_times_value, error, count, kVariables };

  template <int id, class Source>
  void add_cluster(const TensorScale& tensor, std::span<const Source> x);
  void add_finite(std::span<const double> x, std::span<const double> e);
  void add_strata(std::span<const double> x, std::span<const double> e);
  void add_crest(std::span<const double> x);

  void add_rounding_figures(Json& figures) const;
  void add_figures_of_zeros(Json& figures) const;
  void add_share_figures(Json& figures) const;
  void add_scale_figures(Json& figures) const;
  void add_crest_figures(Json& figures) const;
  void add_code_figures(Json& figures) const;
  void add_strata_figures(Json& figures) const;

  int recipe_id_;
  ErrorDetail detail_;
  uint64_t elements_ = 0;
  uint64_t nonfinite_in_ = 0;
  uint64_t nonfinite_out_ = 0;
  uint64_t clipped_ = 0;
  uint64_t dead_zone_ = 0;
  double max_abs_error_ = 0;
  ClusterMoments<kVariables> moments_;
  std::map<int, ClusterMoments<2>> strata_;  // error and count, by the keys of error.cpp
  std::vector<uint64_t> codes_;              // histograms
  std::vector<uint64_t> scales_;
  std::vector<uint64_t> crests_;
};

}  // namespace halfulp

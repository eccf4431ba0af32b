#pragma once
// What a recipe's rounding does to a tensor: error and bias figures with standard errors over blocks. Every sum is
// exact over integers, or over one double per block, so the figures depend on the tensor and the recipe only.

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "emulation/analysis/cluster_moments.h"
#include "emulation/backend.h"
#include "emulation/blocks/quantize.h"
#include "lib/json.h"

namespace halfulp {

// Elements of one cluster, the unit of the standard errors: a block of a matrix of this shape, or 32 elements where a
// recipe has none.
uint64_t cluster_size(const Recipe& recipe, const Matrix& shape);

enum class ErrorDetail {
  summary,
  strata,  // also the mean error per binade and per eighth of a binade, and the histogram of the scales
};

// The sums from which every figure comes. x is a value, q what comes back from its code, e = q - x. Elements whose x or
// q is not finite are counted and left out of the sums.
class ErrorSums {
 public:
  // The recipe must outlive the sums. `with` computes it for float sources.
  ErrorSums(const Recipe& recipe, ErrorDetail detail, const RecipeFunctions& with = kCpuRecipes);

  // A part of a tensor: whole blocks, or clusters, but for the tensor's end. Sources other than float are for recipes
  // without any scale. Of a recipe with blocks only the first `counted` rows and columns count, all unless told: the
  // rest is padding, which takes part in nothing but its blocks' scales.
  template <class Source>
  void add(const TensorScale& tensor, const Matrix& shape, std::span<const Source> x, const Randomness& random = {},
           const std::optional<Matrix>& counted = {});

  void merge(const ErrorSums& other);

  // The figures by name: `halfulp error --help` says what each is. A figure that has no value is NaN.
  Json figures() const;

 private:
  enum Variable { squared_error, squared_value, error_times_value, error, count, kVariables };

  // What came of the elements of one cluster.
  template <class Source>
  struct Cluster {
    std::vector<Source> x;
    std::vector<float> q;
    double largest;  // magnitude that a code stands for
  };
  template <class Source>
  void add_runs(const TensorScale& tensor, std::span<const Source> x, std::span<const float> q);
  template <class Source>
  void add_blocks(const TensorScale& tensor, const Matrix& shape, const Matrix& counted, std::span<const Source> x,
                  std::span<const float> q, std::span<const std::byte> scales);
  template <class Source>
  void add_cluster(const Cluster<Source>& cluster);
  double largest_value(const TensorScale& tensor, float scale) const;
  void count_codes(std::span<const std::byte> codes, uint64_t first, uint64_t elements);
  void count_scale(uint32_t code);
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

  const Recipe* recipe_;
  RecipeFunctions with_;
  uint64_t cluster_size_ = 0;
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
  std::vector<uint64_t> scales_;             // of formats of up to 16 bits
  float scale_min_ = std::numeric_limits<float>::quiet_NaN();
  float scale_max_ = std::numeric_limits<float>::quiet_NaN();
  std::vector<uint64_t> crests_;
};

}  // namespace halfulp

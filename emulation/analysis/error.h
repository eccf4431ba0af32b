#pragma once
// What a recipe's rounding does to a tensor: error and bias figures with standard errors over blocks. Every sum is
// exact over integers, or over one double per block, so the figures depend on the tensor and the recipe only.

#include <cstdint>
#include <optional>
#include <span>

#include "emulation/analysis/error_tally.h"
#include "emulation/backend.h"
#include "emulation/blocks/quantize.h"
#include "lib/json.h"

namespace halfulp {

// Elements of one cluster, the unit of the standard errors: a block of a matrix of this shape, or 32 elements where a
// recipe has none.
uint64_t cluster_size(const Recipe& recipe, const Matrix& shape);

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

  // The same of codes and scales that are there already, and the values q that come back from them.
  template <class Source>
  void add_quantized(const ErrorPart& part, std::span<const Source> x, std::span<const std::byte> codes,
                     std::span<const std::byte> scales, std::span<const float> q);

  void merge(const ErrorSums& other);

  // The figures by name: `halfulp error --help` says what each is. A figure that has no value is NaN.
  Json figures() const;

 private:
  void add_rounding_figures(Json& figures) const;
  void add_figures_of_zeros(Json& figures) const;
  void add_share_figures(Json& figures) const;
  void add_scale_figures(Json& figures) const;
  void add_crest_figures(Json& figures) const;
  void add_code_figures(Json& figures) const;
  void add_strata_figures(Json& figures) const;

  const Recipe* recipe_;
  RecipeFunctions with_;
  ErrorDetail detail_;
  uint64_t cluster_size_ = 0;
  ErrorTally tally_;
};

}  // namespace halfulp

#pragma once
// What an accumulator, and the quantization of its operands, cost a matrix product, against exact sums. Computes no
// product itself but the exact ones.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "emulation/analysis/cluster_moments.h"
#include "emulation/analysis/exact_product.h"
#include "formats/format.h"
#include "lib/json.h"

namespace halfulp {

// A product as it was computed, d = factor * a @ b^T + c_factor * c, and what it is compared with.
struct ComputedProduct {
  std::size_t m, n;
  Format format;                // of d
  std::span<const uint32_t> d;  // codes, [m, n]
  const ExactProduct& operands;
  double factor = 1;
  std::span<const double> c{};
  double c_factor = 1;
  const ExactProduct* originals = nullptr;  // of the operands before they were quantized
};

struct ComparedOutput {
  std::size_t tile, row, col;
  uint32_t d, correct;  // codes; `correct` is the exact number rounded once
  double exact;         // to FP64
  double error;         // d - exact
  double ulps;          // of d's format at the exact number
};

// Products are added one after the other; clusters of dependent outputs are the rows of d, or its columns where there
// are more. Any number of threads gives the same.
class ProductErrors {
 public:
  // Every step-th output takes part, cluster by cluster.
  void add(const ComputedProduct& product, std::size_t step, int threads,
           const std::function<void(uint64_t)>& advance = {});

  uint64_t outputs() const { return outputs_; }
  const std::optional<ComparedOutput>& largest_error() const { return largest_error_; }
  const std::optional<ComparedOutput>& largest_ulps() const { return largest_ulps_; }

  // Against the exact product of the operands; null for what nothing was compared for.
  Json figures() const;
  // Total error against the originals' product as that of the operands and that of the accumulator; null without.
  Json split() const;

 private:
  enum Variable {
    error,
    squared_error,
    exact_size,
    squared_exact,
    error_times_exact,
    ulps,
    inward,
    size_ulps,
    count,
    kVariables
  };
  enum SplitVariable {
    total,
    operand,
    accumulator,
    size,
    squared_total,
    squared_operand,
    squared_accumulator,
    crossed,
    squared_size,
    kSplitVariables
  };
  struct Tally;
  static void add_output(const ComputedProduct& product, std::size_t tile, std::size_t i, std::size_t j, Tally& tally);
  void merge(const Tally& tally);

  uint64_t outputs_ = 0, correct_ = 0, not_finite_ = 0, overflowed_ = 0;
  std::size_t tiles_ = 0;
  bool has_originals_ = false;
  std::optional<ComparedOutput> largest_error_, largest_ulps_;
  ClusterMoments<kVariables> moments_;
  ClusterMoments<kSplitVariables> split_;
};

}  // namespace halfulp

#pragma once
// What a recipe's rounding does to a tensor on average, and which of its steps does it: bias with the test against
// zero, the error and the shrinkage as sums of four causes, the worst blocks. For stochastic rounding in closed form,
// over all random words. Sums are exact, so the figures depend on the tensor and the recipe only.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "emulation/analysis/error.h"
#include "emulation/analysis/error_stages.h"
#include "emulation/analysis/ratio_sums.h"
#include "emulation/panels.h"
#include "lib/json.h"

namespace halfulp {

struct ClusterBias;

// A block that contributes much to a tensor's squared error.
struct WorstBlock {
  uint64_t row, col;  // of its first element in the matrix that the recipe sees
  double squared_error = 0, squared_value = 0;
  double parts[kStages]{};  // of squared_error, by Stage
  uint32_t scale_code = 0;
  float scale = 1;
  std::vector<double> x{};
  std::vector<float> q{};
  std::vector<uint32_t> codes{};
};

// A part of a tensor: a panel of the matrix that the recipe sees, of which the first `counted` rows and columns count.
struct BiasPart {
  TensorScale tensor;
  Panel panel;
  std::optional<Matrix> counted = {};
};

class BiasSums {
 public:
  // The recipe must outlive the sums.
  BiasSums(const Recipe& recipe, ErrorDetail detail);

  // As ErrorSums::add().
  template <class Source>
  void add(const BiasPart& part, std::span<const Source> x, const Randomness& random);

  void merge(const BiasSums& other);

  // The figures of ErrorSums, and "bias", "decomposition" and "worst_blocks": `halfulp bias --help` says what each is.
  Json figures() const;

 private:
  friend struct ClusterBias;
  // Numerators over sum x^2: the increments of the squared error and of the shrinkage, and their totals.
  enum Numerator { squared_part, shrinkage_part = kStages, squared_total = 2 * kStages, shrinkage_total, kNumerators };
  // A panel's elements and what the recipe made of them.
  template <class Source>
  struct Quantized {
    std::span<const Source> x;
    std::span<const float> q;
    std::span<const std::byte> codes, scales;
    std::vector<StageErrors> row_errors;  // of a cluster's row, here for its memory
  };

  template <class Source>
  void add_cluster(const BiasPart& part, const ClusterGrid& grid, uint64_t number, Quantized<Source>& made);
  template <class Source>
  void keep_if_worst(const BiasPart& part, const StagedBlock& staged, const ClusterBias& sums, const Cluster<Source>& c,
                     const Quantized<Source>& made, uint32_t scale_code);
  void insert_worst(WorstBlock block);
  double part(std::size_t numerator) const;
  double part_error(std::size_t numerator) const;
  Json bias_figures() const;
  Json decomposition() const;
  Json worst_blocks() const;

  const Recipe* recipe_;
  ErrorDetail detail_;
  ErrorSums errors_;
  RatioSums<kNumerators> parts_;
  RatioSums<1> mean_;
  std::map<int, RatioSums<1>> strata_;
  std::vector<WorstBlock> worst_;  // most squared error first
};

}  // namespace halfulp

#pragma once
// What is counted and added up of a recipe's errors: integers and exact sums, which do not depend on how a tensor was
// divided or on who added them up. No figures: those are in error.h.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "emulation/analysis/cluster.h"
#include "emulation/analysis/cluster_moments.h"
#include "emulation/blocks/quantize.h"
#include "formats/packing.h"

namespace halfulp {

enum class ErrorDetail {
  summary,
  strata,  // also the mean error per binade and per eighth of a binade, and the histogram of the scales
};

// How many kinds of strata are told apart: the first ones of StratumKind.
constexpr int stratum_kinds(ErrorDetail detail) { return detail == ErrorDetail::strata ? 3 : 1; }

inline constexpr uint64_t kElementwiseCluster = 32;

// A part of a tensor under a recipe.
struct ErrorPart {
  const Recipe* recipe;
  ErrorDetail detail;
  TensorScale tensor;
  Matrix shape;
  Matrix counted;  // the rows and columns that count; all of them where the recipe has no blocks
};

// Its clusters: blocks, or runs of kElementwiseCluster elements where the recipe has none.
ClusterGrid cluster_grid(const ErrorPart& part);

// The largest magnitude that a code stands for under a block's scale.
HOST_DEVICE constexpr double largest_value(const Recipe& recipe, const TensorScale& tensor, float scale) {
  return magnitude(decode_element(recipe, tensor, scale, recipe.element.format().max_code()));
}

// A code or scale as it is stored, in 4, 8, 16 or 32 bits.
HOST_DEVICE constexpr uint32_t load_stored(int bits, const std::byte* codes, uint64_t i) {
  switch (bits) {
    case 4: return load_code<4>(codes, i);
    case 8: return load_code<8>(codes, i);
    case 16: return load_code<16>(codes, i);
    default: return load_code<32>(codes, i);
  }
}

// The order of numbers as one of integers, -0 before +0; none is 0.
HOST_DEVICE constexpr uint32_t rank_of(float x) {
  const uint32_t bits = bit_cast<uint32_t>(x);
  return bits >> 31 ? ~bits : bits | 0x8000'0000u;
}
constexpr float number_of_rank(uint32_t rank) { return bit_cast<float>(rank >> 31 ? rank & 0x7fff'ffffu : ~rank); }

struct ErrorTally {
  explicit ErrorTally(const Recipe& recipe);
  void merge(const ErrorTally& other);

  uint64_t elements = 0;
  uint64_t nonfinite_in = 0;
  uint64_t nonfinite_out = 0;
  uint64_t clipped = 0;
  uint64_t dead_zone = 0;
  double max_abs_error = 0;
  ClusterMoments<ClusterSums::kVariables> moments;
  std::map<int, ClusterMoments<StratumSum::kVariables>> strata;
  std::vector<uint64_t> codes;  // histograms: of formats of up to 16 bits
  std::vector<uint64_t> scales;
  std::vector<uint64_t> crests;
  uint32_t least_scale = ~uint32_t{0};  // ranks
  uint32_t greatest_scale = 0;          // 0: there was no number
};

// Adds the errors of a part to a tally: x, and what a recipe made of it.
template <class Source>
void tally_errors(const ErrorPart& part, std::span<const Source> x, std::span<const std::byte> codes,
                  std::span<const std::byte> scales, std::span<const float> q, ErrorTally& tally);

}  // namespace halfulp

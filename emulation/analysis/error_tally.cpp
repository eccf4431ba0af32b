#include "emulation/analysis/error_tally.h"

#include <algorithm>
#include <utility>

namespace halfulp {
namespace {

// Codes that are counted one by one: none of a format that has more of them than a tensor could show.
std::size_t codes_of(const Format& f) { return f.bits() <= 16 ? std::size_t{1} << f.bits() : 0; }

void merge_counts(std::vector<uint64_t>& into, const std::vector<uint64_t>& from) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] += from[i];
}

void count_codes(const ErrorPart& part, const ClusterGrid& grid, std::span<const std::byte> codes, ErrorTally& tally) {
  if (tally.codes.empty()) return;
  const FormatEntry& element = part.recipe->element.entry();
  for (uint64_t row = 0; row < grid.rows; ++row)
    for (uint64_t i = row * grid.stride; i < row * grid.stride + grid.cols; ++i)
      ++tally.codes[load_stored(element.storage_bits, codes.data(), i) >> element.storage_shift];
}

float count_scale(const Recipe& recipe, uint32_t code, ErrorTally& tally) {
  if (!tally.scales.empty()) ++tally.scales[code];
  const float value = decode(recipe.scale.format(), code);
  if (value == value) {
    tally.least_scale = std::min(tally.least_scale, rank_of(value));
    tally.greatest_scale = std::max(tally.greatest_scale, rank_of(value));
  }
  return value;
}

void add_cluster(const ClusterSums& sums, ErrorTally& tally) {
  tally.elements += sums.elements;
  tally.nonfinite_in += sums.nonfinite_in;
  tally.nonfinite_out += sums.nonfinite_out;
  tally.clipped += sums.clipped;
  tally.dead_zone += sums.dead_zone;
  tally.max_abs_error = std::max(tally.max_abs_error, sums.max_abs_error);
  if (sums.of[ClusterSums::count] == 0) return;
  tally.moments.add(sums.of);
  if (!tally.crests.empty() && sums.of[ClusterSums::squared_value] > 0) ++tally.crests[crest_bin(sums)];
}

// The strata of one cluster after the other.
class StrataOfCluster {
 public:
  void add(int stratum, double error) {
    if (sums_[std::size_t(stratum)].of[StratumSum::count] == 0) met_.push_back(stratum);
    sums_[std::size_t(stratum)].add(error);
  }
  // Adds the cluster to the tally, and begins another one.
  void flush(ErrorTally& tally) {
    for (const int stratum : met_) tally.strata[stratum].add(std::exchange(sums_[std::size_t(stratum)], {}).of);
    met_.clear();
  }

 private:
  std::vector<StratumSum> sums_ = std::vector<StratumSum>(kStrata);
  std::vector<int> met_;
};

template <class Source>
void add_strata(const Cluster<Source>& c, ErrorDetail detail, StrataOfCluster& strata) {
  for (uint64_t row = 0; row < c.rows; ++row) {
    for (uint64_t at = row * c.stride; at < row * c.stride + c.cols; ++at) {
      const double value = double(c.x[at]);
      if (value == 0 || !is_finite(value) || !is_finite(c.q[at])) continue;
      const double e = error_of(c.q[at], c.x[at]);
      for (int kind = 0; kind < stratum_kinds(detail); ++kind) strata.add(stratum_of(StratumKind(kind), value), e);
    }
  }
}

}  // namespace

ClusterGrid cluster_grid(const ErrorPart& part) {
  const uint64_t elements = part.shape.elements();
  if (!has_scale(*part.recipe))
    return {
        .rows = 1, .cols = elements, .stride = elements, .height = 1, .width = kElementwiseCluster, .blocks_across = 0};
  return {.rows = part.counted.rows,
          .cols = part.counted.cols,
          .stride = part.shape.cols,
          .height = uint64_t(part.recipe->block.rows),
          .width = block_cols(*part.recipe, part.shape),
          .blocks_across = scale_grid(*part.recipe, part.shape).cols};
}

ErrorTally::ErrorTally(const Recipe& recipe) {
  codes.resize(codes_of(recipe.element.format()));
  if (!has_scale(recipe)) return;
  scales.resize(codes_of(recipe.scale.format()));
  crests.resize(kCrestBins);
}

void ErrorTally::merge(const ErrorTally& other) {
  elements += other.elements;
  nonfinite_in += other.nonfinite_in;
  nonfinite_out += other.nonfinite_out;
  clipped += other.clipped;
  dead_zone += other.dead_zone;
  max_abs_error = std::max(max_abs_error, other.max_abs_error);
  moments.merge(other.moments);
  for (const auto& [stratum, sums] : other.strata) strata[stratum].merge(sums);
  merge_counts(codes, other.codes);
  merge_counts(scales, other.scales);
  merge_counts(crests, other.crests);
  least_scale = std::min(least_scale, other.least_scale);
  greatest_scale = std::max(greatest_scale, other.greatest_scale);
}

template <class Source>
void tally_errors(const ErrorPart& part, std::span<const Source> x, std::span<const std::byte> codes,
                  std::span<const std::byte> scales, std::span<const float> q, ErrorTally& tally) {
  const Recipe& recipe = *part.recipe;
  const ClusterGrid grid = cluster_grid(part);
  count_codes(part, grid, codes, tally);
  double largest = largest_value(recipe, part.tensor, 1);
  StrataOfCluster strata;
  for (uint64_t number = 0; number < grid.count(); ++number) {
    if (has_scale(recipe)) {
      const uint32_t code = load_stored(recipe.scale.storage_bits(), scales.data(), grid.block(number));
      largest = largest_value(recipe, part.tensor, count_scale(recipe, code, tally));
    }
    const Cluster<Source> cluster = cluster_at(grid, x.data(), q.data(), number);
    add_cluster(cluster_sums(cluster, largest), tally);
    add_strata(cluster, part.detail, strata);
    strata.flush(tally);
  }
}

template void tally_errors(const ErrorPart&, std::span<const float>, std::span<const std::byte>,
                           std::span<const std::byte>, std::span<const float>, ErrorTally&);
template void tally_errors(const ErrorPart&, std::span<const double>, std::span<const std::byte>,
                           std::span<const std::byte>, std::span<const float>, ErrorTally&);
template void tally_errors(const ErrorPart&, std::span<const int64_t>, std::span<const std::byte>,
                           std::span<const std::byte>, std::span<const float>, ErrorTally&);
template void tally_errors(const ErrorPart&, std::span<const uint64_t>, std::span<const std::byte>,
                           std::span<const std::byte>, std::span<const float>, ErrorTally&);

}  // namespace halfulp

#pragma once
// The errors of one cluster, a group of dependent elements: its sums, and those of a stratum of its elements, each in
// FP64 and in the order of the elements. For CPU and GPU. Knows no recipe; adds up no clusters.

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "emulation/blocks/layout.h"
#include "formats/codec.h"

namespace halfulp {

// How the elements that count, the first rows and columns of a matrix, are divided into clusters.
struct ClusterGrid {
  uint64_t rows, cols;     // that count; the last clusters may be cut off
  uint64_t stride;         // columns of the matrix
  uint64_t height, width;  // of a cluster
  uint64_t blocks_across;  // blocks side by side in the matrix, those that do not count too

  HOST_DEVICE constexpr uint64_t across() const { return divide_up(cols, width); }
  HOST_DEVICE constexpr uint64_t count() const {
    return rows == 0 || cols == 0 ? 0 : divide_up(rows, height) * across();
  }
  // Where the scale of cluster number `cluster` is among the matrix's.
  HOST_DEVICE constexpr uint64_t block(uint64_t cluster) const {
    return cluster / across() * blocks_across + cluster % across();
  }
};

// The elements of a cluster, x, and what comes back from their codes, q.
template <class Source>
struct Cluster {
  const Source* x;
  const float* q;
  uint64_t rows, cols, stride;
};

template <class Source>
HOST_DEVICE constexpr Cluster<Source> cluster_at(const ClusterGrid& grid, const Source* x, const float* q,
                                                 uint64_t cluster) {
  const uint64_t row = cluster / grid.across() * grid.height, col = cluster % grid.across() * grid.width;
  const uint64_t first = row * grid.stride + col;
  return {.x = x + first,
          .q = q + first,
          .rows = grid.height < grid.rows - row ? grid.height : grid.rows - row,
          .cols = grid.width < grid.cols - col ? grid.width : grid.cols - col,
          .stride = grid.stride};
}

// q - x, rounded once. A 64-bit integer may be no double; its rounding to a finite value is an integer again.
template <class Source>
HOST_DEVICE constexpr double error_of(double q, Source x) {
  if constexpr (std::is_integral_v<Source>) {
    return double(static_cast<__int128>(q) - static_cast<__int128>(x));
  } else {
    return q - double(x);
  }
}

HOST_DEVICE constexpr double absolute(double x) { return bit_cast<double>(bit_cast<uint64_t>(x) & low_mask(63)); }
HOST_DEVICE constexpr bool is_finite(double x) { return (bit_cast<uint64_t>(x) >> 52 & 0x7ff) != 0x7ff; }

// Elements whose x or q is not finite are counted and left out of the sums.
struct ClusterSums {
  enum Variable { squared_error, squared_value, error_times_value, error, count, kVariables };

  uint64_t elements = 0;
  uint64_t nonfinite_in = 0;
  uint64_t nonfinite_out = 0;
  uint64_t clipped = 0;    // beyond the largest magnitude that a code stands for
  uint64_t dead_zone = 0;  // not zero, and come back as zero
  double max_abs_error = 0;
  double max_abs_value = 0;
  double of[kVariables]{};
};

template <class Source>
HOST_DEVICE constexpr void add_element(ClusterSums& sums, double largest, Source x, float q) {
  const double value = double(x);
  ++sums.elements;
  sums.nonfinite_in += !is_finite(value);
  sums.nonfinite_out += is_finite(value) && !is_finite(q);
  sums.clipped += is_finite(value) && absolute(value) > largest;
  if (!is_finite(value) || !is_finite(q)) return;
  sums.dead_zone += q == 0 && value != 0;
  const double e = error_of(q, x);
  if (absolute(e) > sums.max_abs_error) sums.max_abs_error = absolute(e);
  if (absolute(value) > sums.max_abs_value) sums.max_abs_value = absolute(value);
  sums.of[ClusterSums::squared_error] += e * e;
  sums.of[ClusterSums::squared_value] += value * value;
  sums.of[ClusterSums::error_times_value] += e * value;
  sums.of[ClusterSums::error] += e;
  sums.of[ClusterSums::count] += 1;
}

// `largest` is the largest magnitude that a code stands for under the cluster's scale.
template <class Source>
HOST_DEVICE constexpr ClusterSums cluster_sums(const Cluster<Source>& c, double largest) {
  ClusterSums sums;
  for (uint64_t row = 0; row < c.rows; ++row)
    for (uint64_t col = 0; col < c.cols; ++col)
      add_element(sums, largest, c.x[row * c.stride + col], c.q[row * c.stride + col]);
  return sums;
}

// Crest factors, the largest magnitude over the root mean square, are counted by the upper bits of their FP32 form from
// 1 on: bins of relative width 2^-10.
inline constexpr uint32_t kCrestShift = 13, kCrestFirst = 0x3f80'0000 >> kCrestShift;
inline constexpr uint32_t kCrestBins = 10 << 10;  // up to 1024

inline float crest_of_bin(std::size_t bin) { return bit_cast<float>((uint32_t(bin) + kCrestFirst) << kCrestShift); }

// The bin of a cluster's crest factor. Requires that its sum of squared values is not zero.
HOST_DEVICE inline uint32_t crest_bin(const ClusterSums& sums) {
  const double mean_square = sums.of[ClusterSums::squared_value] / sums.of[ClusterSums::count];
  const uint32_t bin = bit_cast<uint32_t>(float(sums.max_abs_value / std::sqrt(mean_square))) >> kCrestShift;
  if (bin < kCrestFirst) return 0;
  return bin - kCrestFirst < kCrestBins ? bin - kCrestFirst : kCrestBins - 1;
}

// A stratum is all elements of one sign, of one eighth of their binade, or of one binade, zeros left out: a number for
// each, in this order.
enum class StratumKind { sign, eighth, binade };
inline constexpr int kFirstEighth = 2, kFirstBinade = 10, kLeastBinade = -1074;
inline constexpr int kStrata = kFirstBinade + 1024 - kLeastBinade;

HOST_DEVICE constexpr int stratum_of(StratumKind kind, double x) {
  if (kind == StratumKind::sign) return int(bit_cast<uint64_t>(x) >> 63);
  const Unpacked u = unpack(x);
  const int leading = floor_log2(u.significand);
  if (kind == StratumKind::eighth) return kFirstEighth + int((u.significand << (63 - leading)) >> 60 & 7);
  return kFirstBinade - kLeastBinade + u.exponent + leading;
}

// What a stratum of a cluster adds up to.
struct StratumSum {
  enum Variable { error, count, kVariables };
  double of[kVariables]{};

  HOST_DEVICE constexpr void add(double e) {
    of[error] += e;
    of[count] += 1;
  }
};

inline constexpr int kNoStratum = -1;

// The stratum of an element; none of one that is left out.
template <class Source>
HOST_DEVICE constexpr int stratum_at(const Cluster<Source>& c, StratumKind kind, uint64_t at) {
  const double value = double(c.x[at]);
  return value == 0 || !is_finite(value) || !is_finite(c.q[at]) ? kNoStratum : stratum_of(kind, value);
}

// Whether no element before (row, col) is of that stratum.
template <class Source>
HOST_DEVICE constexpr bool begins_stratum(const Cluster<Source>& c, StratumKind kind, int stratum, uint64_t row,
                                          uint64_t col) {
  for (uint64_t rows = row + 1; rows > 0; --rows)
    for (uint64_t cols = rows == row + 1 ? col : c.cols; cols > 0; --cols)
      if (stratum_at(c, kind, (rows - 1) * c.stride + cols - 1) == stratum) return false;
  return true;
}

// The sum of the stratum of element (row, col) where that is its first one in the cluster, else nothing: so each
// stratum is met once, without a table of them.
template <class Source>
HOST_DEVICE constexpr StratumSum sum_of_begun_stratum(const Cluster<Source>& c, StratumKind kind, uint64_t row,
                                                      uint64_t col) {
  const int stratum = stratum_at(c, kind, row * c.stride + col);
  StratumSum sum;
  if (stratum == kNoStratum || !begins_stratum(c, kind, stratum, row, col)) return sum;
  for (uint64_t i = row; i < c.rows; ++i) {
    for (uint64_t j = i == row ? col : 0; j < c.cols; ++j) {
      const uint64_t at = i * c.stride + j;
      if (stratum_at(c, kind, at) == stratum) sum.add(error_of(c.q[at], c.x[at]));
    }
  }
  return sum;
}

}  // namespace halfulp

#pragma once
// Where magnitudes lie on a format's grid of values, which goes on beyond its largest one, and with what probability
// they are rounded up. In FP64, by strips of values, so that compilers make vectors of it. Knows no scale.

#include <cstddef>
#include <span>

#include "formats/format.h"
#include "formats/rounding.h"

namespace halfulp {

struct GridRounding {
  Format format;
  Rounding rounding;
  int random_bits;  // of stochastic rounding
};

inline constexpr std::size_t kStrip = 64;

// The magnitude comes out as `lower`, or, with the probability `share`, as lower + ulp.
struct GridPositions {
  double lower[kStrip], ulp[kStrip], share[kStrip];
};

// Of up to kStrip finite values, by their magnitudes; signs matter to directed roundings only.
void grid_positions(const GridRounding& grid, std::span<const double> x, GridPositions& out);

}  // namespace halfulp

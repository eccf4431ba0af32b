#include "emulation/analysis/grid_positions.h"

#include <algorithm>

#include "lib/bits.h"

namespace halfulp {
namespace {

// 2^exponent, a normal number of FP64.
double power_of_two_fp64(int exponent) { return bit_cast<double>(uint64_t(exponent + 1023) << 52); }

double magnitude_of(double x) { return bit_cast<double>(bit_cast<uint64_t>(x) & low_mask(63)); }

// The whole number of ulps nearest to 0 <= x < 2^51, ties to even.
double nearest_whole(double x) { return (x + 0x1p52) - 0x1p52; }
// One less where that is beyond x, which the sign of the difference tells without a branch.
double floor_whole(double x) {
  const double nearest = nearest_whole(x);
  const uint64_t beyond = uint64_t{0} - (bit_cast<uint64_t>(x - nearest) >> 63);
  return nearest - bit_cast<double>(beyond & bit_cast<uint64_t>(1.0));
}

// What turns magnitudes into ulps: powers of two, so that nothing is rounded.
struct Ulps {
  explicit Ulps(const Format& f)
      : least(power_of_two_fp64(f.min_exponent())),
        per_ulp(power_of_two_fp64(f.mantissa_bits)),
        of_binade(power_of_two_fp64(-f.mantissa_bits)) {}

  // The binade's power of two; the smallest normal's for subnormal numbers.
  uint64_t binade(double x) const { return bit_cast<uint64_t>(x > least ? x : least) & uint64_t{0x7ff} << 52; }
  double ulp(uint64_t of) const { return bit_cast<double>(of) * of_binade; }
  double count(double x, uint64_t of) const { return x * (bit_cast<double>((uint64_t{0x7fe} << 52) - of) * per_ulp); }

  double least, per_ulp, of_binade;
};

void to_nearest_even(const Ulps& ulps, std::span<const double> x, GridPositions& out) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double size = magnitude_of(x[i]);
    const uint64_t binade = ulps.binade(size);
    out.ulp[i] = ulps.ulp(binade);
    out.lower[i] = nearest_whole(ulps.count(size, binade)) * out.ulp[i];
    out.share[i] = 0;
  }
}

void stochastically(const Ulps& ulps, int random_bits, std::span<const double> x, GridPositions& out) {
  const double words = power_of_two_fp64(random_bits), share = power_of_two_fp64(-random_bits);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double size = magnitude_of(x[i]);
    const uint64_t binade = ulps.binade(size);
    const double count = ulps.count(size, binade), whole = floor_whole(count);
    out.ulp[i] = ulps.ulp(binade);
    out.lower[i] = whole * out.ulp[i];
    out.share[i] = floor_whole((count - whole) * words) * share;
  }
}

// Any rounding that is no matter of chance, by what defines it.
void by_definition(const Ulps& ulps, Rounding rounding, std::span<const double> x, GridPositions& out) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double size = magnitude_of(x[i]);
    const uint64_t binade = ulps.binade(size);
    const double count = ulps.count(size, binade), whole = floor_whole(count), fraction = (count - whole) * 0x1p32;
    const Tail tail{.negative = x[i] < 0,
                    .odd = (uint64_t(whole) & 1) != 0,
                    .fraction = uint32_t(fraction),
                    .sticky = fraction != double(uint32_t(fraction))};
    out.ulp[i] = ulps.ulp(binade);
    out.lower[i] = whole * out.ulp[i];
    out.share[i] = double(rounds_away(rounding, tail, {}));
  }
}

}  // namespace

void grid_positions(const GridRounding& grid, std::span<const double> x, GridPositions& out) {
  const Ulps ulps(grid.format);
  if (grid.rounding == Rounding::nearest_even) return to_nearest_even(ulps, x, out);
  if (is_stochastic(grid.rounding)) return stochastically(ulps, grid.random_bits, x, out);
  by_definition(ulps, grid.rounding, x, out);
}

}  // namespace halfulp

#include "emulation/analysis/rounding_bias.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lib/random_values.h"

namespace halfulp {
namespace {

double value_of(const Conversion& c, Unpacked u, uint32_t word) {
  if (c.relu == Relu::yes && u.negative && u.kind != Unpacked::Kind::nan) return 0;
  const RandomBits random{.word = word, .count = std::max(1, c.random_bits)};
  return double(decode(c.to.format, encode_unpacked(c.to.format, c.policy, u, random)));
}

// The sum over m = a .. b - 1 of m ln((m + 1) / m) - 1: the integral of (floor(y) - y) / y from a to b. From Stirling's
// series for m ln m - ln m!, whose next term is below 2^-60 from kSmall on.
double log_uniform_of_floor(uint64_t a, uint64_t b) {
  constexpr uint64_t kSmall = 1 << 12;
  double sum = 0;
  for (; a < b && a < kSmall; ++a) {
    const double m = double(a);
    sum += m * (portable_log(m + 1) - portable_log(m)) - 1;
  }
  if (a >= b) return sum;
  const double low = double(a), high = double(b);
  return sum - 0.5 * (portable_log(high) - portable_log(low)) - (1 / high - 1 / low) / 12;
}

// Where a deterministic rounding goes in the three parts of the distance from a code to the next: below the middle, in
// it, above it.
struct Directions {
  bool below, tie, above;
};
Directions directions_of(Rounding rounding, bool odd) {
  const auto away = [&](uint32_t fraction, bool sticky) {
    return rounds_away(rounding, {.negative = false, .odd = odd, .fraction = fraction, .sticky = sticky}, {});
  };
  constexpr uint32_t kHalf = uint32_t{1} << 31;
  return {.below = away(kHalf / 2, true), .tie = away(kHalf, false), .above = away(kHalf + kHalf / 2, true)};
}

// The mean error in ulps over the fractions j / 2^bits, j = 0 .. 2^bits - 1, of a value that they are added to.
double mean_over_fractions(const Directions& to, int bits) {
  const double count = std::ldexp(1.0, bits), half = count / 2;
  double away = (to.below ? half - 1 : 0) + (to.above ? half - 1 : 0);
  if (bits > 0) away += to.tie ? 1 : 0;
  return (away - (count - 1) / 2) / count;
}

int lost_bits(const Conversion& c) { return c.from.format.mantissa_bits - c.to.format.mantissa_bits; }

// Rounding to codes `first` to `last`, positive and equally far apart, of which `unit` ulps make the value of `first`.
struct CodeRange {
  const Conversion& conversion;
  uint32_t first, last;  // exclusive
  uint64_t unit;         // value of `first` in ulps
};

// Of the significand, its hidden bit included.
bool is_odd(const CodeRange& range, uint32_t code) { return ((range.unit + code - range.first) & 1) != 0; }

double deterministic_uniform(const CodeRange& range) {
  double sum = 0;
  for (uint32_t code = range.first; code < range.last; ++code) {
    const Directions to = directions_of(range.conversion.policy.rounding, is_odd(range, code));
    sum += (to.below ? 0.5 : 0) + (to.above ? 0.5 : 0) - 0.5;
  }
  return sum / double(range.last - range.first);
}

double deterministic_log_uniform(const CodeRange& range) {
  double sum = 0;
  for (uint32_t code = range.first; code < range.last; ++code) {
    const double lower = double(range.unit + code - range.first), middle = lower + 0.5, upper = lower + 1;
    const Directions to = directions_of(range.conversion.policy.rounding, is_odd(range, code));
    sum += (to.below ? upper : lower) * (portable_log(middle) - portable_log(lower)) - 0.5;
    sum += (to.above ? upper : lower) * (portable_log(upper) - portable_log(middle)) - 0.5;
  }
  const double end = double(range.unit + range.last - range.first);
  return sum / (portable_log(end) - portable_log(double(range.unit)));
}

double mean_over_source(const CodeRange& range, int bits) {
  const Conversion& c = range.conversion;
  if (c.random_bits > 0)  // truncated to random_bits on average
    return bits <= c.random_bits ? 0 : -(std::ldexp(0.5, -c.random_bits) - std::ldexp(0.5, -bits));
  double sum = 0;
  for (uint32_t code = range.first; code < range.last; ++code)
    sum += mean_over_fractions(directions_of(c.policy.rounding, is_odd(range, code)), bits);
  return sum / double(range.last - range.first);
}

double log_uniform_mean(const CodeRange& range) {
  const int bits = range.conversion.random_bits;
  if (bits == 0) return deterministic_log_uniform(range);
  const uint64_t a = range.unit << bits, b = (range.unit + range.last - range.first) << bits;
  return log_uniform_of_floor(a, b) / (portable_log(double(b)) - portable_log(double(a))) * std::ldexp(1.0, -bits);
}

IntervalBias bias_of(const CodeRange& range, double from, double to, int binades, double ulp) {
  const Conversion& c = range.conversion;
  const bool stochastic = c.random_bits > 0;
  const Rounding rounding = c.policy.rounding;
  const bool to_nearest =
      rounding == Rounding::nearest_even || rounding == Rounding::nearest_away || rounding == Rounding::nearest_zero;
  IntervalBias bias{.from = from,
                    .to = to,
                    .binades = binades,
                    .ulp = ulp,
                    .uniform = stochastic ? -std::ldexp(0.5, -c.random_bits) : deterministic_uniform(range),
                    .log_uniform = {},
                    .source = {},
                    .largest = stochastic   ? std::ldexp(1.0, -c.random_bits)
                               : to_nearest ? 0.5
                                            : 1,
                    .largest_sd = stochastic ? 0.5 : 0,
                    .tie_share = {}};
  if (binades > 0) bias.log_uniform = log_uniform_mean(range);
  const int bits = lost_bits(c);
  const int lowest = std::ilogb(from), highest = lowest + std::max(binades, 1) - 1;
  const bool met = c.from.format.min_exponent() <= highest && c.from.format.max_exponent() >= lowest;
  if (binades == 0 || bits <= 0 || !met) return bias;  // subnormal results come of sources with ever more bits
  bias.source = mean_over_source(range, bits);
  bias.tie_share = std::ldexp(1.0, -bits);
  return bias;
}

}  // namespace

Conversion conversion_of(const PtxCvt& op) {
  return {.from = op.from,
          .to = op.to,
          .policy = op.policy,
          .relu = op.relu,
          .random_bits = is_stochastic(op.policy.rounding) ? random_bits(op, 0, 0).count : 0};
}

// Results grow with the random word, so that two of them and a bisection tell all.
Outcomes outcomes_of(const Conversion& c, double x) {
  const Unpacked u = unpack(x);
  const uint64_t words = uint64_t{1} << c.random_bits;
  const double first = value_of(c, u, 0), second = value_of(c, u, uint32_t(words - 1));
  if (first == second || (std::isnan(first) && std::isnan(second)))
    return {.first = first, .second = second, .upper_words = 0, .share = 0};
  uint64_t low = 0, high = words - 1;  // of which `high` gives the second result, and `low` does not
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (value_of(c, u, uint32_t(middle)) == first ? low : high) = middle;
  }
  return {.first = first, .second = second, .upper_words = words - high, .share = double(words - high) / double(words)};
}

double covariance_of_pair(const Outcomes& a, const Outcomes& b) {
  constexpr uint32_t kFields = 1 << 16;
  uint32_t both = 0;
  for (uint32_t field = kFields - uint32_t(a.upper_words); field < kFields; ++field)
    both += reverse16(field) >= kFields - b.upper_words;
  return (double(both) / kFields - a.share * b.share) * (a.second - a.first) * (b.second - b.first);
}

// Over a coarse grid of fractions, and from the best of them uphill by ever smaller steps.
PairCorrelation pair_that_correlates() {
  constexpr int kWords = 1 << 16, kGrid = 1 << 11, kOffset = 341;  // whose bits alternate
  const auto covariance = [](int a, int b) {
    const auto at = [](int words) {
      return Outcomes{.first = 0, .second = 1, .upper_words = uint64_t(words), .share = words / double(kWords)};
    };
    return a <= 0 || b <= 0 || a >= kWords || b >= kWords ? 0 : covariance_of_pair(at(a), at(b));
  };
  int first = kOffset, second = kOffset;
  double largest = covariance(first, second);
  const auto improve = [&](int a, int b) {
    const double found = covariance(a, b);
    if (std::fabs(found) <= std::fabs(largest)) return false;
    return largest = found, first = a, second = b, true;
  };
  for (int a = kOffset; a < kWords; a += kGrid)
    for (int b = kOffset; b < kWords; b += kGrid) improve(a, b);
  for (int step = kGrid / 2; step > 0; step /= 2)
    while (improve(first + step, second) || improve(first - step, second) || improve(first, second + step) ||
           improve(first, second - step)) {
    }
  return {.first_fraction = first / double(kWords), .second_fraction = second / double(kWords), .covariance = largest};
}

std::vector<IntervalBias> interval_biases(const Conversion& c) {
  const Format& f = c.to.format;
  std::vector<IntervalBias> biases;
  const uint32_t hidden = f.hidden(), end = f.max_code();
  const double smallest = std::ldexp(1.0, f.min_exponent()), ulp = std::ldexp(smallest, -f.mantissa_bits);
  if (f.subnormals == Subnormals::yes)
    biases.push_back(bias_of({.conversion = c, .first = 0, .last = hidden, .unit = 0}, 0, smallest, 0, ulp));
  const int whole = f.max_exponent() - f.min_exponent();  // binades below that of the largest value
  if (whole > 0)
    biases.push_back(
        bias_of({.conversion = c, .first = 0, .last = hidden, .unit = hidden}, smallest, 2 * smallest, whole, ulp));
  const uint32_t codes_at_top = end % hidden;  // above the power of two
  const double top = std::ldexp(1.0, f.max_exponent());
  if (codes_at_top > 0)
    biases.push_back(bias_of({.conversion = c, .first = 0, .last = codes_at_top, .unit = hidden}, top,
                             double(decode(f, end)), 1, std::ldexp(top, -f.mantissa_bits)));
  return biases;
}

double ulp_at(const Format& f, double x) {
  const int exponent = x == 0 || !std::isfinite(x) ? f.min_exponent() : std::ilogb(x);
  return std::ldexp(1.0, std::clamp(exponent, f.min_exponent(), f.max_exponent()) - f.mantissa_bits);
}

BiasCurve bias_curve(const Conversion& c) {
  const Format& f = c.to.format;
  constexpr uint32_t kMostCodes = 128, kPoints = 2048;
  const bool all = f.max_code() <= kMostCodes;
  const uint32_t one = uint32_t(-f.min_exponent() + (f.subnormals == Subnormals::yes ? 1 : 0)) << f.mantissa_bits;
  const uint32_t first = all ? 0 : one, last = all ? f.max_code() : one + f.hidden();
  const uint32_t steps = std::clamp(kPoints / 2 / std::max(last - first, 1u), 8u, 32u) / 8 * 8;
  BiasCurve curve;
  const auto add = [&](double x) {
    const Outcomes o = outcomes_of(c, x);
    curve.x.push_back(x);
    curve.bias.push_back(o.mean() - x);
    curve.bias_ulp.push_back((o.mean() - x) / ulp_at(f, x));
    curve.sd.push_back(std::sqrt(o.variance()));
  };
  for (uint32_t code = first; code < last; ++code) {
    const double lower = double(decode(f, code)), ulp = double(decode(f, code + 1)) - lower;
    for (uint32_t step = 0; step < steps; ++step) {
      add(lower + ulp * step / steps);
      add(std::nextafter(lower + ulp * (step + 1) / steps,
                         0));  // where steps are at their lowest, and ties just before
    }
  }
  const double max = double(decode(f, last));
  for (uint32_t step = 0; all && step <= steps; ++step) add(max + ulp_at(f, max) * step / steps);
  return curve;
}

}  // namespace halfulp

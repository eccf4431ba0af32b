#pragma once
// What a conversion gives on average, in closed form: over all random words of one value, and over the values between
// two neighbours of the result's format. Without sampling; knows no tensors.

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/catalog.h"
#include "formats/codec.h"
#include "formats/ptx_cvt.h"

namespace halfulp {

// A conversion of one value. `random_bits` is 0 where nothing is random.
struct Conversion {
  FormatEntry from;  // of the source's values
  FormatEntry to;
  Policy policy;
  Relu relu = Relu::no;
  int random_bits = 0;
};

Conversion conversion_of(const PtxCvt& op);

// The two results that a value can have, and how often it has the second: for `upper_words` of the 2^random_bits words.
struct Outcomes {
  double first, second;
  uint64_t upper_words;
  double share;  // upper_words / 2^random_bits

  double mean() const { return share == 0 ? first : first + share * (second - first); }
  double variance() const { return share == 0 ? 0 : share * (1 - share) * (second - first) * (second - first); }
};

// `x` is a value of any kind. A result that is Inf or NaN makes the mean so.
Outcomes outcomes_of(const Conversion& conversion, double x);

// The covariance of the results of two lanes of a .rs instruction for four lanes, of which the second reads the first
// one's 16 random bits in reversed order: a sum over all 2^16 of them.
double covariance_of_pair(const Outcomes& a, const Outcomes& b);

// A pair of fractions of an ulp whose results correlate more, positively or negatively, than those of any pair near it.
struct PairCorrelation {
  double first_fraction, second_fraction;
  double covariance;  // in ulps^2
};
PairCorrelation pair_that_correlates();

// Values of one sign whose neighbours are equally far apart: subnormals, a binade, or all binades that look alike.
// Everything is in ulps, the distance of neighbours, as for positive values: negative means smaller than the value.
struct IntervalBias {
  double from, to;                    // of the first such binade
  int binades;                        // that look alike, `from` and `to` doubled each time; 0: subnormals
  double ulp;                         // of the first
  double uniform;                     // mean of E[q] - x, x uniform on the reals from `from` to `to`
  std::optional<double> log_uniform;  // x log-uniform; none for subnormals
  std::optional<double> source;     // mean over the source's values in that range, each once; none where all are exact
  double largest;                   // supremum of |E[q] - x|
  double largest_sd;                // of the standard deviation of q
  std::optional<double> tie_share;  // of the source's values: exactly between two neighbours
};
std::vector<IntervalBias> interval_biases(const Conversion& conversion);

// Points of E[q] - x over the real line: all of the positive range where the format has up to 128 positive codes, else
// one binade, [1, 2].
struct BiasCurve {
  std::vector<double> x, bias, bias_ulp, sd;
};
BiasCurve bias_curve(const Conversion& conversion);

// The distance of the neighbours between which |x| falls.
double ulp_at(const Format& format, double x);

}  // namespace halfulp

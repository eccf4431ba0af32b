#pragma once
// A measured figure beside what it takes to believe it: its standard error, and for one that tells of bias the test
// against zero. Bias is declared at |z| >= 4, since many figures are tested at once, and a figure that is not declared
// biased says how small a bias would have been.

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/json.h"

namespace halfulp {

struct Figure {
  double value = 0;
  double se = 0;   // standard error
  uint64_t n = 0;  // independent clusters, or draws, that the standard error comes from
  std::string_view unit{};
  std::string_view method{};  // of the standard error
  double resolution = 0;      // what the numbers themselves are rounded to: nothing smaller is called a bias
};

inline constexpr double kBiasZ = 4;
inline constexpr uint64_t kFewest = 16;  // clusters or draws; of fewer the standard error says too little for a verdict

// Standard errors away from zero; infinite where there is no error, NaN where the figure has none.
inline double z_of(const Figure& f) {
  if (f.value == 0 && f.se == 0) return 0;
  return f.value / f.se;
}

enum class Verdict { not_detected, biased, unknown };
inline constexpr std::string_view kVerdictNames[] = {"not detected", "biased", "unknown"};

inline Verdict verdict_of(const Figure& f) {
  const double z = z_of(f);
  if (std::isnan(z) || (f.n < kFewest && f.se != 0)) return Verdict::unknown;
  return std::fabs(z) >= kBiasZ && std::fabs(f.value) > f.resolution ? Verdict::biased : Verdict::not_detected;
}

// {value, se, ci95, n, unit, method}
inline Json estimate(const Figure& f) {
  constexpr double kQuantile = 1.959963984540054;  // of the normal distribution, 97.5%
  return {{"value", f.value},
          {"se", f.se},
          {"ci95", {f.value - kQuantile * f.se, f.value + kQuantile * f.se}},
          {"n", f.n},
          {"unit", std::string(f.unit)},
          {"method", std::string(f.method)}};
}

// The same with {z, minimum_detectable, verdict}: a figure that is zero where there is no bias.
inline Json tested(const Figure& f) {
  Json json = estimate(f);
  json["z"] = z_of(f);
  json["minimum_detectable"] = std::isnan(f.se) ? f.se : std::fmax(kBiasZ * f.se, f.resolution);
  json["verdict"] = std::string(kVerdictNames[int(verdict_of(f))]);
  return json;
}

}  // namespace halfulp

#include "emulation/analysis/product_error.h"

#include <algorithm>
#include <cmath>

#include "formats/codec.h"
#include "lib/threads.h"

namespace halfulp {
namespace {

// The distance of the format's numbers around x.
double ulp_at(const Format& f, double x) {
  const int exponent = x == 0 ? f.min_exponent() : std::max(std::ilogb(x), f.min_exponent());
  return std::ldexp(1.0, std::min(exponent, f.max_exponent()) - f.mantissa_bits);
}

uint32_t rounded_code(const Format& f, double odd) {
  return encode(f, {.rounding = Rounding::nearest_even, .overflow = Overflow::to_special}, odd);
}

// Zeros of either sign are one number, and so are NaNs.
bool same_number(const Format& f, uint32_t x, uint32_t y) {
  const float a = decode(f, x), b = decode(f, y);
  return a == b || (std::isnan(a) && std::isnan(b));
}

template <std::size_t variables>
Json estimate(const ClusterMoments<variables>& moments, std::size_t numerator, std::size_t denominator) {
  if (moments.sum(denominator) == 0 && moments.sum(numerator) == 0) return {{"value", 0.0}, {"se", 0.0}, {"z", 0.0}};
  const double value = moments.ratio(numerator, denominator), se = moments.ratio_error(numerator, denominator);
  return {{"value", value}, {"se", se}, {"z", se > 0 ? value / se : value == 0 ? 0 : std::nan("")}};
}

void keep_larger(std::optional<ComparedOutput>& largest, const std::optional<ComparedOutput>& other,
                 double ComparedOutput::*of) {
  if (other && (!largest || std::fabs(*other.*of) > std::fabs(*largest.*of))) largest = other;
}

}  // namespace

// Of one cluster.
struct ProductErrors::Tally {
  uint64_t outputs = 0, correct = 0, not_finite = 0, overflowed = 0;
  std::optional<ComparedOutput> largest_error, largest_ulps;
  double of[kVariables]{}, split[kSplitVariables]{};
};

void ProductErrors::add_output(const ComputedProduct& product, std::size_t tile, std::size_t i, std::size_t j,
                               Tally& tally) {
  const Format& f = product.format;
  const double c = product.c.empty() ? 0 : product.c[i * product.n + j];
  const Rounded exact = scaled_sum(product.operands.element(i, j), product.factor, c, product.c_factor);
  ComparedOutput out{.tile = tile,
                     .row = i,
                     .col = j,
                     .d = product.d[i * product.n + j],
                     .correct = rounded_code(f, exact.odd),
                     .exact = exact.nearest,
                     .error = 0,
                     .ulps = 0};
  ++tally.outputs;
  tally.correct += same_number(f, out.d, out.correct);
  const double d = double(decode(f, out.d));
  tally.not_finite += !std::isfinite(out.exact);
  tally.overflowed += std::isfinite(out.exact) && !std::isfinite(d);
  if (!std::isfinite(out.exact) || !std::isfinite(d)) return;
  out.error = d - out.exact;
  out.ulps = out.error / ulp_at(f, out.exact);
  keep_larger(tally.largest_error, out, &ComparedOutput::error);
  keep_larger(tally.largest_ulps, out, &ComparedOutput::ulps);
  const double size = std::fabs(out.exact), e = out.error;
  const double addends[kVariables] = {e,
                                      e * e,
                                      size,
                                      size * size,
                                      e * out.exact,
                                      out.ulps,
                                      out.exact > 0   ? -out.ulps
                                      : out.exact < 0 ? out.ulps
                                                      : 0,
                                      std::fabs(out.ulps),
                                      1};
  for (int v = 0; v < kVariables; ++v) tally.of[v] += addends[v];
  if (product.originals == nullptr) return;
  const double wanted = scaled_sum(product.originals->element(i, j), 1, c, product.c_factor).nearest;
  if (!std::isfinite(wanted)) return;
  const double q = out.exact - wanted, t = d - wanted;
  const double parts[kSplitVariables] = {t, q, e, std::fabs(wanted), t * t, q * q, e * e, 2 * q * e, wanted * wanted};
  for (int v = 0; v < kSplitVariables; ++v) tally.split[v] += parts[v];
}

void ProductErrors::merge(const Tally& tally) {
  outputs_ += tally.outputs, correct_ += tally.correct;
  not_finite_ += tally.not_finite, overflowed_ += tally.overflowed;
  keep_larger(largest_error_, tally.largest_error, &ComparedOutput::error);
  keep_larger(largest_ulps_, tally.largest_ulps, &ComparedOutput::ulps);
  if (tally.of[count] == 0) return;
  moments_.add(tally.of);
  split_.add(tally.split);
}

void ProductErrors::add(const ComputedProduct& product, std::size_t step, int threads,
                        const std::function<void(uint64_t)>& advance) {
  const bool by_row = product.m >= product.n;
  const std::size_t clusters = by_row ? product.m : product.n, width = by_row ? product.n : product.m;
  std::vector<Tally> tallies(clusters);
  parallel_for(clusters, threads, [&](std::size_t cluster) {
    for (std::size_t at = (step - cluster * width % step) % step; at < width; at += step) {
      by_row ? add_output(product, tiles_, cluster, at, tallies[cluster])
             : add_output(product, tiles_, at, cluster, tallies[cluster]);
      if (advance) advance(1);
    }
  });
  for (const Tally& tally : tallies) merge(tally);
  has_originals_ = has_originals_ || product.originals != nullptr;
  ++tiles_;
}

Json ProductErrors::figures() const {
  Json json{
      {"outputs", outputs_}, {"correctly_rounded", correct_}, {"not_finite", not_finite_}, {"overflowed", overflowed_}};
  json["correctly_rounded_share"] = outputs_ == 0 ? Json() : Json(double(correct_) / double(outputs_));
  const bool any = moments_.clusters() > 0 && moments_.sum(count) > 0;
  const auto of = [&](Variable numerator, Variable denominator) {
    return any ? estimate(moments_, numerator, denominator) : Json();
  };
  json["rel_mse"] = of(squared_error, squared_exact);
  json["bias"] = of(error, exact_size);
  json["bias_ulps"] = of(ulps, count);
  json["toward_zero_ulps"] = of(inward, count);
  json["mean_abs_ulps"] = of(size_ulps, count);
  json["shrinkage"] = of(error_times_exact, squared_exact);
  if (any) json["shrinkage"]["value"] = -moments_.ratio(error_times_exact, squared_exact);
  if (any) json["shrinkage"]["z"] = -json["shrinkage"]["z"].get<double>();
  return json;
}

Json ProductErrors::split() const {
  if (!has_originals_ || split_.clusters() == 0) return {};
  Json mse, bias;
  mse["total"] = estimate(split_, squared_total, squared_size);
  mse["operands"] = estimate(split_, squared_operand, squared_size);
  mse["accumulator"] = estimate(split_, squared_accumulator, squared_size);
  mse["crossed"] = estimate(split_, crossed, squared_size);
  bias["total"] = estimate(split_, total, size);
  bias["operands"] = estimate(split_, operand, size);
  bias["accumulator"] = estimate(split_, accumulator, size);
  return {{"rel_mse", mse}, {"bias", bias}};
}

}  // namespace halfulp

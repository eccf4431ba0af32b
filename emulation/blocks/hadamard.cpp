#include "emulation/blocks/hadamard.h"

#include <fmt/format.h>

#include <bit>

#include "formats/catalog.h"
#include "formats/codec.h"
#include "lib/error.h"

namespace halfulp {
namespace {

enum class Direction { forward, inverse };

// The double nearest to 1 / sqrt(2^log2_size).
double normalization(int log2_size) {
  constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;
  return double(power_of_two(-(log2_size / 2))) * (log2_size % 2 == 0 ? 1 : kSqrtHalf);
}

void butterflies(std::span<double> v) {
  for (std::size_t apart = 1; apart < v.size(); apart *= 2) {
    for (std::size_t first = 0; first < v.size(); first += 2 * apart) {
      for (std::size_t i = first; i < first + apart; ++i) {
        const double a = v[i], b = v[i + apart];
        v[i] = a + b;
        v[i + apart] = a - b;
      }
    }
  }
}

template <int id>
float rounded(double value) {
  constexpr Policy kNearest{.rounding = Rounding::nearest_even, .overflow = Overflow::to_special};
  return decode_bits(kFormatAt<id>, encode(kFormatAt<id>, kNearest, value));
}

float rounded(HadamardResult result, double value) {
  return result == HadamardResult::bf16 ? rounded<format_id("bf16")>(value) : rounded<format_id("f32")>(value);
}

void transform_group(const Hadamard& h, Direction direction, uint64_t group, std::span<const float> from,
                     std::span<float> to) {
  const PhiloxBlock signs = sign_bits(h, group);
  const auto with_sign_of = [&](std::size_t k, double value) { return signs[k / 32] >> (k % 32) & 1 ? -value : value; };
  double buffer[kMaxHadamardSize];
  const std::span v(buffer, from.size());
  for (std::size_t k = 0; k < v.size(); ++k)
    v[k] = direction == Direction::forward ? with_sign_of(k, from[k]) : double(from[k]);
  butterflies(v);
  const double scale = normalization(std::countr_zero(from.size()));
  for (std::size_t k = 0; k < v.size(); ++k) {
    const double sum = direction == Direction::inverse ? with_sign_of(k, v[k]) : v[k];
    to[k] = rounded(h.result, (sum + 0.0) * scale);  // + 0.0: -0 becomes +0
  }
}

void transform(const Hadamard& h, Direction direction, uint64_t row_length, std::span<const float> from,
               std::span<float> to) {
  check_hadamard(h, row_length);
  if (to.size() != from.size() || from.size() % row_length != 0) {
    throw InputError({}, fmt::format("Hadamard transform of rows of {}: got {} elements to transform into {}",
                                     row_length, from.size(), to.size()));
  }
  const auto size = std::size_t(h.size);
  for (std::size_t first = 0; first < from.size(); first += size)
    transform_group(h, direction, first % row_length / size, from.subspan(first, size), to.subspan(first, size));
}

}  // namespace

void check_hadamard(const Hadamard& h, uint64_t row_length) {
  if (h.size < 2 || h.size > kMaxHadamardSize || !std::has_single_bit(unsigned(h.size)))
    throw UsageError(fmt::format("a Hadamard transform of size {}: expected 2, 4, 8, 16, 32, 64 or 128", h.size));
  if (h.signs == HadamardSigns::te && h.size != kTeHadamardSize) {
    throw UsageError(
        fmt::format("Transformer Engine's Hadamard signs are for size {}, got size {}; seeded signs are "
                    "for every size",
                    kTeHadamardSize, h.size));
  }
  if (row_length == 0 || row_length % uint64_t(h.size) != 0) {
    throw InputError({}, fmt::format("a Hadamard transform takes rows in multiples of {}, got {}; padded with zeros it "
                                     "would be {}",
                                     h.size, row_length, (row_length / uint64_t(h.size) + 1) * uint64_t(h.size)));
  }
}

void hadamard(const Hadamard& h, uint64_t row_length, std::span<const float> x, std::span<float> y) {
  transform(h, Direction::forward, row_length, x, y);
}

void inverse_hadamard(const Hadamard& h, uint64_t row_length, std::span<const float> y, std::span<float> x) {
  transform(h, Direction::inverse, row_length, y, x);
}

}  // namespace halfulp

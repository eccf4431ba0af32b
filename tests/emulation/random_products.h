#pragma once
// Matrix products to try accumulators on: operands and accumulators of kinds that go wrong in different ways.

#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

#include "emulation/matmul/gemm.h"
#include "formats/catalog.h"
#include "formats/codec.h"

namespace halfulp {

inline const FormatEntry& entry(std::string_view name) { return kFormats[std::size_t(find_format(name))]; }
inline Accumulator accumulator(std::string_view name) { return kAccumulators[std::size_t(find_accumulator(name))]; }

// How operands are drawn.
enum class Draw {
  codes,     // any: NaN and Inf where the format has them
  narrow,    // normal values
  wide,      // exponents all over the format
  zeros,     // seven of ten
  cancels,   // the second half of each block is the first's negative, but for a few
  largest,   // near the largest value
  smallest,  // subnormals
};
inline constexpr Draw kDraws[] = {Draw::codes,   Draw::narrow,  Draw::wide,    Draw::zeros,
                                  Draw::cancels, Draw::largest, Draw::smallest};

// Codes and scales of one operand.
class RandomOperand {
 public:
  RandomOperand(const Accumulator& row, const Format& format, std::size_t rows, std::size_t k, Draw draw, unsigned seed)
      : random_(seed), format_(format) {
    for (std::size_t i = 0; i < rows * k; ++i) codes_.push_back(code(draw, i));
    if (row.scales == SumScales::none) return;
    scaled_ = row.scales == SumScales::groups ? 16 : 32;
    scale_format_ = entry(row.scales == SumScales::groups && seed % 2 == 0 ? "ue4m3" : "e8m0").format;
    for (std::size_t i = 0; i < rows * ((k + scaled_ - 1) / scaled_); ++i) scales_.push_back(scale(draw));
  }
  GemmOperand operand() const {
    return {.format = format_, .codes = codes_, .scale_format = scale_format_, .scales = scales_, .scaled = scaled_};
  }

 private:
  uint32_t pick(uint32_t bound) { return uint32_t(random_()) % bound; }
  uint32_t value(double x) {
    return encode(format_, {.rounding = Rounding::nearest_even, .overflow = Overflow::saturate}, x, {});
  }
  uint32_t code(Draw draw, std::size_t i) {
    const uint32_t any = uint32_t(random_()) & format_.code_mask();
    const uint32_t magnitude = any & format_.magnitude_mask();
    switch (draw) {
      case Draw::codes: return any;
      case Draw::narrow: return value(std::normal_distribution<>()(random_));
      case Draw::wide: return magnitude > format_.max_code() ? 0 : any;
      case Draw::zeros: return pick(10) < 7 ? any & format_.sign_mask() : magnitude > format_.max_code() ? 0 : any;
      case Draw::cancels: return i % 16 < 8 || pick(8) == 0 ? value(pick(64)) : codes_[i - 8] ^ format_.sign_mask();
      case Draw::largest: return (any & format_.sign_mask()) | (format_.max_code() - pick(3));
      case Draw::smallest: return (any & format_.sign_mask()) | pick(2 * format_.hidden());
    }
    return 0;
  }
  uint32_t scale(Draw draw) {
    const uint32_t any = uint32_t(random_()) & scale_format_.code_mask();
    if (draw == Draw::codes) return any;
    const uint32_t one = uint32_t(scale_format_.bias) << scale_format_.mantissa_bits;
    return draw == Draw::narrow ? one + pick(16) : std::min(any, scale_format_.max_code());
  }

  std::mt19937 random_;
  Format format_, scale_format_{};
  std::size_t scaled_ = 0;
  std::vector<uint32_t> codes_, scales_;
};

// A job and what it is of.
struct Product {
  RandomOperand a, b;
  std::vector<uint32_t> c;
  GemmJob job;

  Product(const Accumulator& row, const Format& of_a, const Format& of_b, std::size_t m, std::size_t n, std::size_t k,
          Draw draw, unsigned seed)
      : a(row, of_a, m, k, draw, seed), b(row, of_b, n, k, draw, seed + 100), c(m * n) {
    std::mt19937 random(seed);
    for (uint32_t& x : c) x = uint32_t(random()) & (draw == Draw::codes ? ~0u : 0xc1ff'ffff);
    if (row.sum.format.bits() == 16)
      for (uint32_t& x : c) x &= draw == Draw::codes ? 0xffff : 0xbfff;
    if (draw == Draw::zeros) std::ranges::fill(c, 0u);
    job = {.row = row, .m = m, .n = n, .k = k, .a = a.operand(), .b = b.operand(), .c = c};
  }
  Product(const Product&) = delete;
};

inline std::vector<std::string_view> inputs_of(const Accumulator& row) {
  std::vector<std::string_view> names;
  for (std::string_view rest = row.inputs.empty() ? "f32,bf16,e4m3,e2m1" : row.inputs; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    names.push_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return names;
}

// Those that may meet `a`.
inline std::vector<std::string_view> inputs_of(const Accumulator& row, std::string_view a) {
  return row.mix == InputMix::no ? std::vector{a} : inputs_of(row);
}

}  // namespace halfulp

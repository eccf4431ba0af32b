// Positions on a format's grid against what the one conversion there is makes of the same values.

#include "emulation/analysis/grid_positions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "formats/catalog.h"
#include "formats/codec.h"
#include "lib/philox.h"

namespace halfulp {
namespace {

constexpr const char* kElementFormats[] = {"e2m1", "e2m3", "e3m2", "e4m3", "e5m2", "bf16", "f16"};

const Format& format(std::string_view name) { return kFormats[std::size_t(find_format(name))].format; }

// The same grid with two more binades and a half at its upper end.
Format extended(Format f) {
  f.exponent_bits += 1;
  f.specials = Specials::finite_only;
  return f;
}

// Codes, ties, their neighbours and values between, of both signs; up to four times the largest value.
std::vector<double> values(const Format& f) {
  std::vector<double> x{0, 0x1p-60};
  const Format wide = extended(f);
  const double end = 4 * double(decode(f, f.max_code()));
  const uint32_t step = f.bits() > 8 ? 977 : 1;
  for (uint32_t code = 0; double(decode(wide, code)) < end && code + 1 < wide.max_code(); code += step) {
    const double low = double(decode(wide, code)), gap = double(decode(wide, code + 1)) - low;
    for (const double fraction : {0.0, 0x1p-33, 0.25, 0.5, 0.75})
      for (const double beside : {-0x1p-36, 0.0, 0x1p-36}) x.push_back(std::fabs(low + (fraction + beside) * gap));
    x.push_back(low + gap * double(random_word(1, code, 0)) / 0x1p32);
  }
  const std::size_t positive = x.size();
  for (std::size_t i = 0; i < positive; ++i) x.push_back(-x[i]);
  return x;
}

// Calls fn(x, lower, ulp, share) for each value, strip by strip.
template <class Fn>
void for_each_position(const GridRounding& grid, const std::vector<double>& x, Fn&& fn) {
  GridPositions at;
  for (std::size_t first = 0; first < x.size(); first += kStrip) {
    const std::size_t count = std::min(kStrip, x.size() - first);
    grid_positions(grid, std::span(x).subspan(first, count), at);
    for (std::size_t i = 0; i < count; ++i) fn(x[first + i], at.lower[i], at.ulp[i], at.share[i]);
  }
}

struct Case {
  std::string format;
  Rounding rounding;
};
class OnTheGrid : public testing::TestWithParam<Case> {};

TEST_P(OnTheGrid, IsWhatTheConversionGives) {
  const Format& f = format(GetParam().format);
  const Format wide = extended(f);
  const Policy policy{.rounding = GetParam().rounding, .overflow = Overflow::saturate};
  for_each_position({.format = f, .rounding = GetParam().rounding, .random_bits = 0}, values(f),
                    [&](double x, double lower, double ulp, double share) {
                      EXPECT_TRUE(share == 0 || share == 1);
                      EXPECT_EQ(lower + share * ulp, std::fabs(double(decode(wide, encode(wide, policy, x))))) << x;
                    });
}

std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const char* name : kElementFormats)
    for (const RoundingEntry& row : kRoundings)
      if (!is_stochastic(row.rounding)) cases.push_back({name, row.rounding});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Formats, OnTheGrid, testing::ValuesIn(cases()), [](const auto& instance) {
  std::string name = instance.param.format + "_" + std::string(kRoundings[std::size_t(instance.param.rounding)].name);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

class AtRandom : public testing::TestWithParam<std::tuple<const char*, int>> {};

// A word below 2^bits moves a value up if it is one of the last share * 2^bits.
TEST_P(AtRandom, SharesAreThoseOfTheWords) {
  const Format& f = format(std::get<0>(GetParam()));
  const Format wide = extended(f);
  const int bits = std::get<1>(GetParam());
  const Policy policy{.rounding = Rounding::stochastic, .overflow = Overflow::saturate};
  const auto converted = [&](double x, double word) {
    return std::fabs(double(decode(wide, encode(wide, policy, x, {.word = uint32_t(word), .count = bits}))));
  };
  for_each_position({.format = f, .rounding = Rounding::stochastic, .random_bits = bits}, values(f),
                    [&](double x, double lower, double ulp, double share) {
                      const double words = std::ldexp(1.0, bits), first_up = words - share * words;
                      EXPECT_EQ(converted(x, 0), lower) << x;
                      EXPECT_TRUE(share == 0 || converted(x, first_up) == lower + ulp) << x;
                      EXPECT_TRUE(first_up == 0 || converted(x, first_up - 1) == lower) << x;
                    });
}

INSTANTIATE_TEST_SUITE_P(Formats, AtRandom,
                         testing::Combine(testing::ValuesIn(kElementFormats), testing::Values(2, 3, 8, 16, 32)),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param)) + "_" +
                                  std::to_string(std::get<1>(instance.param)) + "_bits";
                         });

}  // namespace
}  // namespace halfulp

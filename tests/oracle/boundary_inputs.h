#pragma once
// The inputs at which a conversion can go wrong, derived from the format: each value, each midpoint, and the float and
// double neighbours of both. Not a test.

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "formats/format.h"
#include "lib/bits.h"
#include "tests/oracle/slow_round.h"

namespace halfulp::oracle {

// Magnitude codes worth visiting, ascending by binade: all of them up to 16 bits; of a wider format the edges and the
// middle of every binade.
inline std::vector<uint32_t> magnitude_codes(const Format& f) {
  std::vector<uint32_t> codes;
  const uint32_t binade = uint32_t{1} << f.mantissa_bits;
  if (f.bits() <= 16) {
    for (uint32_t code = 0; code <= f.max_code(); ++code) codes.push_back(code);
    return codes;
  }
  for (uint32_t field = 0; field <= f.max_code() / binade; ++field)
    for (const uint32_t digits : {0u, 1u, 2u, binade / 2 - 1, binade / 2, binade / 2 + 1, binade - 2, binade - 1})
      codes.push_back(field * binade + digits);
  return codes;
}

// Non-negative inputs around one magnitude: it, and its neighbours as float and as double.
template <class Visitor>
void visit_neighbourhood(double x, Visitor&& visit) {
  visit(x);
  visit(std::nextafter(x, 0.0));
  visit(std::nextafter(x, HUGE_VAL));
  const auto narrow = float(x);
  visit(double(std::nextafter(narrow, 0.0f)));
  visit(double(std::nextafter(narrow, HUGE_VALF)));
}

// Calls visit(double) for the boundary inputs of f, both signs, all finite. Those that a float holds are floats too.
template <class Visitor>
void visit_boundaries(const Format& f, Visitor&& visit) {
  const auto both_signs = [&](double x) {
    if (!std::isfinite(x)) return;
    visit(x);
    visit(-x);
  };
  for (const uint32_t code : magnitude_codes(f)) {
    const Exact value = magnitude_of(f, code);
    visit_neighbourhood(double(value), both_signs);
    visit_neighbourhood(double((value + magnitude_of(f, uint64_t{code} + 1)) / 2), both_signs);
  }
  for (const double x : {0.0, 0x1p-1074, 0x1p-1022, 0x1p-150, 0x1p-149, 0x1p-126, 0x1.fffffep127, 0x1.ffffffp127,
                         0x1p128, 0x1p129, 0x1p255, 0x1p256, 0x1p386, 0x1p513, 0x1p898, 0x1.fffffffffffffp1023})
    both_signs(x);
}

// Calls visit(float) for `count` random finite bit patterns, the same ones in every run.
template <class Visitor>
void visit_random_floats(int count, Visitor&& visit) {
  std::mt19937 bits(1);
  for (int i = 0; i < count; ++i)
    if (const auto x = bit_cast<float>(uint32_t(bits())); std::isfinite(x)) visit(x);
}

template <class Visitor>
void visit_random_doubles(int count, Visitor&& visit) {
  std::mt19937_64 bits(1);
  for (int i = 0; i < count; ++i)
    if (const auto x = bit_cast<double>(uint64_t(bits())); std::isfinite(x)) visit(x);
}

// A random double of a magnitude that f covers: significand at random, exponent within the format's binades.
inline double random_in_range(const Format& f, std::mt19937_64& bits) {
  const int lowest = f.min_exponent() - f.mantissa_bits - 2, highest = f.max_exponent() + 1;
  const int exponent = lowest + int(bits() % uint64_t(highest - lowest + 1));
  const double significand = 1 + double(bits() >> 12) * 0x1p-52;
  return std::ldexp(bits() & 1 ? significand : -significand, exponent);
}

}  // namespace halfulp::oracle

// encode and decode of every format of the catalog in every rounding mode, against rounding by definition.

#include "formats/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ios>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "formats/catalog.h"
#include "tests/oracle/boundary_inputs.h"
#include "tests/oracle/slow_round.h"

namespace halfulp {
namespace {

constexpr int kFormatCount = int(kFormats.size());
constexpr int kRandomInputs = 20'000;
constexpr Overflow kOverflows[] = {Overflow::saturate, Overflow::to_special};

const FormatEntry& entry_of(int id) { return kFormats[size_t(id)]; }

std::string name_of(Rounding mode) {
  std::string name{kRoundings[size_t(mode)].name};
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// One input that came out wrong, with what is needed to run it again by hand.
struct Fault {
  const FormatEntry& entry;
  Rounding mode;
  uint64_t input_bits;
  RandomBits random;
  uint32_t expected;
  uint32_t got;

  friend std::ostream& operator<<(std::ostream& out, const Fault& f) {
    return out << f.entry.name << ' ' << name_of(f.mode) << std::hex << " input 0x" << f.input_bits << " expected 0x"
               << f.expected << " got 0x" << f.got << " random 0x" << f.random.word << std::dec << " of "
               << f.random.count << " bits";
  }
};

uint64_t bits_of(float x) { return bit_cast<uint32_t>(x); }
uint64_t bits_of(double x) { return bit_cast<uint64_t>(x); }
template <class Integer>
uint64_t bits_of(Integer x) {
  return uint64_t(x);
}

// The definition's code of x, whose sign an unsigned format ignores.
template <class Source>
uint32_t defined_code(const Format& f, Rounding mode, Overflow overflow, Source x, uint64_t magnitude) {
  bool negative = x < Source{0};
  if constexpr (std::is_floating_point_v<Source>) negative = std::signbit(x);
  return oracle::slow_code(f, mode, overflow, negative && f.sign == Sign::one_bit, magnitude);
}

template <class Source>
oracle::Exact exact_of(const Format& f, Source x) {
  return f.sign == Sign::one_bit ? oracle::Exact(x) : std::fabs(oracle::Exact(x));
}

// Compares encode with the definition for one input and both overflow rules; counts the faults and keeps the first.
class Comparison {
 public:
  Comparison(const FormatEntry& entry, Rounding mode) : entry_(entry), mode_(mode) {}

  template <class Source>
  void check(Source x) {
    const RandomBits random = next_random();
    compare(x, random, oracle::slow_magnitude(entry_.format, mode_, exact_of(entry_.format, x), random));
  }

  // A double, and the same value as a float where a float holds it.
  void check_both(double x) {
    const RandomBits random = next_random();
    const uint64_t magnitude = oracle::slow_magnitude(entry_.format, mode_, exact_of(entry_.format, x), random);
    compare(x, random, magnitude);
    if (const auto narrow = float(x); double(narrow) == x) compare(narrow, random, magnitude);
  }

  void expect_no_fault() const { EXPECT_EQ(faults_, 0) << first_.str(); }

 private:
  template <class Source>
  void compare(Source x, RandomBits random, uint64_t magnitude) {
    for (const Overflow overflow : kOverflows) {
      const uint32_t expected = defined_code(entry_.format, mode_, overflow, x, magnitude);
      const uint32_t got = encode(entry_.format, {.rounding = mode_, .overflow = overflow}, x, random);
      if (got != expected && faults_++ == 0) first_ << Fault{entry_, mode_, bits_of(x), random, expected, got};
    }
  }

  RandomBits next_random() {
    if (!is_stochastic(mode_)) return {};
    constexpr int kCounts[] = {1, 2, 3, 8, 13, 16, 31, 32};
    return {.word = uint32_t(bits_()), .count = kCounts[bits_() % std::size(kCounts)]};
  }

  const FormatEntry& entry_;
  Rounding mode_;
  std::mt19937 bits_{7};
  int64_t faults_ = 0;
  std::ostringstream first_;
};

std::vector<Rounding> every_mode() {
  std::vector<Rounding> modes;
  for (const RoundingEntry& row : kRoundings) modes.push_back(row.rounding);
  return modes;
}

class EveryFormatAndMode : public testing::TestWithParam<std::tuple<int, Rounding>> {
 protected:
  const FormatEntry& entry() const { return entry_of(std::get<0>(GetParam())); }
  const Format& format() const { return entry().format; }
  Rounding mode() const { return std::get<1>(GetParam()); }
};

class EnumerableFormatAndMode : public EveryFormatAndMode {};
class NarrowFormatAndMode : public EveryFormatAndMode {};
class SignedFormatAndMode : public EveryFormatAndMode {};

TEST_P(EveryFormatAndMode, EncodeMatchesDefinitionAtBoundaries) {
  Comparison comparison(entry(), mode());
  oracle::visit_boundaries(format(), [&](double x) { comparison.check_both(x); });
  comparison.expect_no_fault();
}

TEST_P(EveryFormatAndMode, EncodeMatchesDefinitionOnRandomFloats) {
  Comparison comparison(entry(), mode());
  oracle::visit_random_floats(kRandomInputs, [&](float x) { comparison.check(x); });
  comparison.expect_no_fault();
}

TEST_P(EveryFormatAndMode, EncodeMatchesDefinitionOnRandomDoubles) {
  Comparison comparison(entry(), mode());
  oracle::visit_random_doubles(kRandomInputs, [&](double x) { comparison.check(x); });
  std::mt19937_64 bits(2);
  for (int i = 0; i < kRandomInputs; ++i) comparison.check(oracle::random_in_range(format(), bits));
  comparison.expect_no_fault();
}

TEST_P(EveryFormatAndMode, EncodeMatchesDefinitionOnIntegers) {
  Comparison comparison(entry(), mode());
  std::mt19937_64 bits(3);
  for (int shift = 0; shift < 64; ++shift) {
    for (const uint64_t offset : {~uint64_t{0}, uint64_t{0}, uint64_t{1}}) {
      const uint64_t power = uint64_t{1} << shift;
      for (const uint64_t x : {power + offset, power + power / 2 + offset, power | (bits() & (power - 1))}) {
        comparison.check(x);
        comparison.check(int64_t(x));
        comparison.check(int32_t(uint32_t(x)));
      }
    }
  }
  comparison.expect_no_fault();
}

TEST_P(EnumerableFormatAndMode, EncodeInvertsDecode) {
  const Policy policy{.rounding = mode(), .overflow = Overflow::to_special};
  for (uint32_t code = 0; code < uint32_t{1} << format().bits(); ++code) {
    if (is_nan_code(format(), code)) continue;
    ASSERT_EQ(encode(format(), policy, decode(format(), code)), code) << entry().name << ' ' << name_of(mode());
  }
}

TEST_P(NarrowFormatAndMode, RoundingKeepsOrder) {
  std::vector<double> inputs;
  oracle::visit_boundaries(format(), [&](double x) {
    if (!std::signbit(x)) inputs.push_back(x);
  });
  std::sort(inputs.begin(), inputs.end());
  const Policy policy{.rounding = mode(), .overflow = Overflow::saturate};
  uint32_t previous = 0;
  for (const double x : inputs) {
    const uint32_t code = encode(format(), policy, x, {.word = 0x9d, .count = 8});
    ASSERT_LE(previous, code) << entry().name << ' ' << name_of(mode()) << " at " << x;
    previous = code;
  }
}

// up and down change places where the sign changes; the other modes are symmetric.
Rounding mirrored(Rounding mode) {
  if (mode == Rounding::up) return Rounding::down;
  return mode == Rounding::down ? Rounding::up : mode;
}

TEST_P(SignedFormatAndMode, NegationChangesTheSignBitAlone) {
  const auto f = format();
  const auto check = [&](double x) {
    const RandomBits random{.word = 0xb00b5, .count = 16};
    const uint32_t code = encode(f, {.rounding = mode(), .overflow = Overflow::to_special}, x, random);
    const uint32_t negated = encode(f, {.rounding = mirrored(mode()), .overflow = Overflow::to_special}, -x, random);
    ASSERT_EQ(code ^ negated, f.sign_mask()) << entry().name << ' ' << name_of(mode()) << " at " << x;
  };
  oracle::visit_boundaries(f, check);
}

std::string instance_name(const testing::TestParamInfo<std::tuple<int, Rounding>>& instance) {
  return std::string(entry_of(std::get<0>(instance.param)).name) + "_" + name_of(std::get<1>(instance.param));
}

template <class Predicate>
std::vector<int> formats_where(Predicate predicate) {
  std::vector<int> ids;
  for (int id = 0; id < kFormatCount; ++id)
    if (predicate(entry_of(id).format)) ids.push_back(id);
  return ids;
}

const std::vector<int> kAll = formats_where([](const Format&) { return true; });
const std::vector<int> kEnumerable = formats_where([](const Format& f) { return f.bits() <= 19; });
const std::vector<int> kNarrow = formats_where([](const Format& f) { return f.bits() <= 8; });
const std::vector<int> kSigned = formats_where([](const Format& f) { return f.has_negative_zero(); });

template <class Ids>
auto in_every_mode(const Ids& ids) {
  return testing::Combine(testing::ValuesIn(ids), testing::ValuesIn(every_mode()));
}

INSTANTIATE_TEST_SUITE_P(Catalog, EveryFormatAndMode, in_every_mode(kAll), instance_name);
INSTANTIATE_TEST_SUITE_P(Catalog, EnumerableFormatAndMode, in_every_mode(kEnumerable), instance_name);
INSTANTIATE_TEST_SUITE_P(Catalog, NarrowFormatAndMode, in_every_mode(kNarrow), instance_name);
INSTANTIATE_TEST_SUITE_P(Catalog, SignedFormatAndMode, in_every_mode(kSigned), instance_name);

class EveryFormat : public testing::TestWithParam<int> {
 protected:
  const FormatEntry& entry() const { return entry_of(GetParam()); }
  const Format& format() const { return entry().format; }
};

class EnumerableFormat : public EveryFormat {};

TEST_P(EveryFormat, DecodeMatchesDefinition) {
  const auto& f = format();
  for (const uint32_t magnitude : oracle::magnitude_codes(f)) {
    ASSERT_EQ(decode(f, magnitude), oracle::magnitude_of(f, magnitude)) << entry().name << " code " << magnitude;
    if (!f.has_negative_zero()) continue;
    const float negative = decode(f, magnitude | f.sign_mask());
    ASSERT_TRUE(std::signbit(negative)) << entry().name << " code " << magnitude;
    ASSERT_EQ(-negative, oracle::magnitude_of(f, magnitude)) << entry().name << " code " << magnitude;
  }
}

TEST_P(EnumerableFormat, EveryCodeIsFiniteInfOrNanOfItsKind) {
  const auto& f = format();
  for (uint32_t code = 0; code < uint32_t{1} << f.bits(); ++code) {
    ASSERT_EQ(std::isnan(decode(f, code)), is_nan_code(f, code)) << entry().name << " code " << code;
    ASSERT_EQ(std::isinf(decode(f, code)), is_inf_code(f, code)) << entry().name << " code " << code;
  }
}

TEST_P(EveryFormat, IsFoundByNameAndAlias) {
  EXPECT_EQ(find_format(entry().name), GetParam());
  EXPECT_EQ(find_format(entry().alias), GetParam());
}

// Every f16 and bf16 value, as a source: widening is exact, so the direct rounding must come out.
TEST_P(EveryFormat, SixteenBitSourcesAreRoundedOnce) {
  Comparison comparison(entry(), Rounding::nearest_even);
  for (const Format& source : {format_named("f16"), format_named("bf16")})
    for (uint32_t code = 0; code <= source.max_code(); ++code)
      comparison.check(float(oracle::magnitude_of(source, code)));
  comparison.expect_no_fault();
}

std::string format_name(const testing::TestParamInfo<int>& instance) {
  return std::string(entry_of(instance.param).name);
}

INSTANTIATE_TEST_SUITE_P(Catalog, EveryFormat, testing::ValuesIn(kAll), format_name);
INSTANTIATE_TEST_SUITE_P(Catalog, EnumerableFormat, testing::ValuesIn(kEnumerable), format_name);

TEST(Catalog, AnUnknownNameIsNotFound) { EXPECT_EQ(find_format("e9m9"), -1); }

}  // namespace
}  // namespace halfulp

// The Hadamard transform against the matrix product in exact integers, and where doubles round, against the tree of its
// definition written as a recursion.

#include "emulation/blocks/hadamard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "formats/catalog.h"
#include "lib/bits.h"
#include "lib/error.h"
#include "lib/random_values.h"
#include "tests/emulation/reports.h"
#include "tests/oracle/slow_round.h"

namespace halfulp {
namespace {

using Int = __int128;

constexpr int kSizes[] = {2, 4, 8, 16, 32, 64, 128};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// NVIDIA/TransformerEngine pytorch/tensor/nvfp4_tensor.py, as public report G04 has it.
constexpr int kTeSigns[16] = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};

constexpr Hadamard kTeToF32{.result = HadamardResult::f32};

std::vector<float> forward(const Hadamard& h, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  hadamard(h, x.size(), x, y);
  return y;
}

std::vector<float> inverse(const Hadamard& h, const std::vector<float>& y) {
  std::vector<float> x(y.size());
  inverse_hadamard(h, y.size(), y, x);
  return x;
}

std::vector<float> unit_vector(int size, int k, float value = 1) {
  std::vector<float> x(std::size_t(size), 0);
  x[std::size_t(k)] = value;
  return x;
}

std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(bit_cast<uint32_t>(value));
  return bits;
}

int sylvester(int k, int j) { return std::popcount(unsigned(k & j)) % 2 == 0 ? 1 : -1; }

// The sign of element k, said again.
int sign(const Hadamard& h, int group, int k) {
  if (h.signs == HadamardSigns::none) return 1;
  if (h.signs == HadamardSigns::te) return kTeSigns[k];
  const uint64_t word = uint64_t(h.vectors == SignVectors::one ? 0 : group) * 4 + uint64_t(k) / 32;
  return random_word(h.seed, stream_of("hadamard signs"), word) >> (k % 32) & 1 ? -1 : 1;
}

// The double nearest to 1/sqrt(n): the c for which (c - ulp/2)^2 n < 1 < (c + ulp/2)^2 n, in integers. c = m 2^e,
// 2^52 <= m < 2^53; the halves are (2m - 1)^2 and (2m + 1)^2 in units of 2^(2e - 2), below 2^108.
double nearest_inverse_root(int n) {
  const double start = 1 / std::sqrt(double(n));
  for (const double c : {std::nextafter(start, 0), start, std::nextafter(start, 1)}) {
    const int e = std::ilogb(c) - 52;
    const auto m = Int(std::ldexp(c, -e));
    const Int one = Int{1} << (2 - 2 * e - std::countr_zero(unsigned(n)));  // 1/n in these units
    if ((2 * m - 1) * (2 * m - 1) < one && one < (2 * m + 1) * (2 * m + 1)) return c;
  }
  throw std::logic_error("no nearest double");
}

const Format& format_of(HadamardResult result) {
  static const Format kFormats[] = {format_named("bf16"), format_named("f32")};
  return kFormats[result == HadamardResult::f32];
}

// A finite double rounded by definition to the result's format, as the float with these upper bits.
float rounded(HadamardResult result, double value) {
  const Format& f = format_of(result);
  const uint64_t magnitude = oracle::slow_magnitude(f, Rounding::nearest_even, value);
  const bool negative = std::signbit(value);
  const uint32_t code = oracle::slow_code(f, Rounding::nearest_even, Overflow::to_special, negative, magnitude);
  return bit_cast<float>(code << (32 - f.bits()));
}

// Integers of at most 2^40 times 2^-20, most of them of few bits: every sum of 128 is exact in double.
std::vector<float> exact_inputs(uint64_t count, uint64_t stream) {
  std::vector<float> x;
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t word = random_word(3, stream, i);
    const int exponent = int(word >> 8) % 33 - 20;
    const float value = float(int(word & 0xff) - 128) * std::ldexp(1.0f, exponent);
    x.push_back(word >> 28 == 0 ? 0 : value);
  }
  return x;
}

// sum over k of x[k] m[k] / sqrt(n) for signs m, rounded once; x in units of 2^-20.
float exact_product(HadamardResult result, std::span<const float> x, const std::function<int(int)>& m) {
  Int sum = 0;
  for (std::size_t k = 0; k < x.size(); ++k) sum += m(int(k)) * Int(std::ldexp(x[k], 20));
  const double value = std::ldexp(double(sum), -20);
  EXPECT_EQ(Int(double(sum)), sum);
  return rounded(result, value * nearest_inverse_root(int(x.size())));
}

using Options = std::tuple<int, HadamardSigns, SignVectors, HadamardResult>;

class EveryHadamard : public testing::TestWithParam<Options> {
 protected:
  Hadamard options() const {
    const auto [size, signs, vectors, result] = GetParam();
    return {.size = size, .signs = signs, .vectors = vectors, .seed = 11, .result = result};
  }
};

TEST_P(EveryHadamard, IsTheMatrixProduct) {
  const Hadamard h = options();
  const std::vector<float> x = exact_inputs(uint64_t(h.size) * 40, uint64_t(h.size));
  const std::vector<float> y = forward(h, x);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const int group = int(i) / h.size, j = int(i) % h.size;
    const auto m = [&](int k) { return sign(h, group, k) * sylvester(k, j); };
    const std::span in(&x[i - std::size_t(j)], std::size_t(h.size));
    ASSERT_EQ(bit_cast<uint32_t>(y[i]), bit_cast<uint32_t>(exact_product(h.result, in, m))) << i;
  }
}

TEST_P(EveryHadamard, InverseIsTheTransposedMatrixProduct) {
  const Hadamard h = options();
  const std::vector<float> y = exact_inputs(uint64_t(h.size) * 40, uint64_t(h.size) + 1000);
  const std::vector<float> x = inverse(h, y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int group = int(i) / h.size, k = int(i) % h.size;
    const auto m = [&](int j) { return sign(h, group, k) * sylvester(j, k); };
    const std::span in(&y[i - std::size_t(k)], std::size_t(h.size));
    ASSERT_EQ(bit_cast<uint32_t>(x[i]), bit_cast<uint32_t>(exact_product(h.result, in, m))) << i;
  }
}

// Each y is off by at most 2^-p |y|, p = 24 or 8 (half an ulp); so x[k] by (1/sqrt(n)) sum |y| 2^-p <= 2^-p |x|_2, and
// by 2^-p of itself once more. The doubles' own errors, below 2^-48, are in the factor 1.01.
TEST_P(EveryHadamard, InverseUndoesItUpToRounding) {
  const Hadamard h = options();
  std::vector<float> x;
  for (int i = 0; i < h.size * 20; ++i) x.push_back(rounded(h.result, normal(5, 0, uint64_t(i))));
  const std::vector<float> back = inverse(h, forward(h, x));
  const double unit = h.result == HadamardResult::f32 ? 0x1p-24 : 0x1p-8;
  for (std::size_t first = 0; first < x.size(); first += std::size_t(h.size)) {
    double norm = 0;
    for (std::size_t k = first; k < first + std::size_t(h.size); ++k) norm += double(x[k]) * x[k];
    for (std::size_t k = first; k < first + std::size_t(h.size); ++k)
      ASSERT_NEAR(back[k], x[k], 1.01 * unit * (std::sqrt(norm) + std::abs(x[k]))) << k;
  }
}

std::string options_name(const testing::TestParamInfo<Options>& info) {
  const auto [size, signs, vectors, result] = info.param;
  const auto row = std::ranges::find(kHadamardSigns, signs, &HadamardSignsEntry::signs);
  return std::string(row->name) + "_" + std::to_string(size) + (vectors == SignVectors::one ? "_one" : "_per_group") +
         (result == HadamardResult::bf16 ? "_bf16" : "_f32");
}
constexpr auto kBothVectors = {SignVectors::one, SignVectors::per_group};
constexpr auto kBothResults = {HadamardResult::bf16, HadamardResult::f32};
INSTANTIATE_TEST_SUITE_P(Te, EveryHadamard,
                         testing::Combine(testing::Values(16), testing::Values(HadamardSigns::te),
                                          testing::Values(SignVectors::one), testing::ValuesIn(kBothResults)),
                         options_name);
INSTANTIATE_TEST_SUITE_P(None, EveryHadamard,
                         testing::Combine(testing::ValuesIn(kSizes), testing::Values(HadamardSigns::none),
                                          testing::Values(SignVectors::one), testing::ValuesIn(kBothResults)),
                         options_name);
INSTANTIATE_TEST_SUITE_P(Seeded, EveryHadamard,
                         testing::Combine(testing::ValuesIn(kSizes), testing::Values(HadamardSigns::seeded),
                                          testing::ValuesIn(kBothVectors), testing::ValuesIn(kBothResults)),
                         options_name);

// The definition's tree for result j: of 2^level inputs from `first`, the halves' sums added, or subtracted where bit
// level - 1 of j is set.
double tree(const std::vector<float>& x, std::size_t first, int level, int j) {
  if (level == 0) return x[first];
  const std::size_t half = std::size_t{1} << (level - 1);
  const double low = tree(x, first, level - 1, j), high = tree(x, first + half, level - 1, j);
  return j >> (level - 1) & 1 ? low - high : low + high;
}

// Small multiples of 1, 2^30 and 2^60: double loses the ones beside a 2^60, and what is left after the large ones
// cancel tells in which order they met.
std::vector<float> cancelling_inputs(int size, uint64_t stream) {
  std::vector<float> x;
  for (uint64_t i = 0; i < uint64_t(size); ++i) {
    const uint32_t word = random_word(7, stream, i);
    x.push_back(float(int(word % 5) - 2) * std::ldexp(1.0f, int(word >> 8) % 3 * 30));
  }
  return x;
}

TEST(Hadamard, AddsNeighboursFirst) {
  for (const int size : kSizes) {
    for (uint64_t trial = 0; trial < 200; ++trial) {
      const std::vector<float> x = cancelling_inputs(size, trial);
      const std::vector<float> y =
          forward({.size = size, .signs = HadamardSigns::none, .result = HadamardResult::f32}, x);
      for (int j = 0; j < size; ++j) {
        const double sum = tree(x, 0, std::countr_zero(unsigned(size)), j);
        ASSERT_EQ(y[std::size_t(j)], float(sum * nearest_inverse_root(size))) << size << ' ' << j;
      }
    }
  }
}

// A sum S of 48 bits for which S / sqrt(n) is as near as can be to a tie of FP32: one ulp of the factor decides some.
TEST(Hadamard, MultipliesByTheNearestDoubleOfTheInverseRoot) {
  for (const int size : {2, 8, 32, 128}) {
    const double factor = nearest_inverse_root(size);
    int decided = 0;
    for (uint64_t i = 0; i < 2000; ++i) {
      const double tie = double(uint64_t{1} << 24 | random_word(9, 0, i) >> 8 << 1 | 1);  // 25 bits, the last one set
      const auto s = uint64_t(std::ldexp(tie / factor, 47 - std::ilogb(tie / factor)));
      std::vector<float> x(std::size_t(size), 0);
      x[0] = float(s >> 24 << 24);
      x[1] = float(s & 0xff'ffff);
      const Hadamard h{.size = size, .signs = HadamardSigns::none, .result = HadamardResult::f32};
      const auto expected_with = [&](double c) { return float(double(s) * c); };
      ASSERT_EQ(forward(h, x)[0], expected_with(factor)) << s;
      decided += expected_with(std::nextafter(factor, 0)) != expected_with(factor);
      decided += expected_with(std::nextafter(factor, 1)) != expected_with(factor);
    }
    EXPECT_GT(decided, 0) << size;
  }
}

// The signs of the transformed unit vectors are orthogonal and their magnitudes alike: the matrix is orthonormal.
TEST(Hadamard, IsOrthonormal) {
  for (const int size : kSizes) {
    const Hadamard h{.size = size, .signs = HadamardSigns::seeded, .seed = 4, .result = HadamardResult::f32};
    std::vector<std::vector<float>> rows;
    for (int k = 0; k < size; ++k) rows.push_back(forward(h, unit_vector(size, k)));
    for (const auto& a : rows) {
      for (const auto& b : rows) {
        int product = 0;
        for (std::size_t j = 0; j < a.size(); ++j) product += a[j] == b[j] ? 1 : -1;
        ASSERT_EQ(product, &a == &b ? size : 0);
        ASSERT_EQ(std::abs(a[0]), float(nearest_inverse_root(size)));
      }
    }
  }
}

// T112 to T114 of the format reference.
TEST(Hadamard, OfTheFirstUnitVectorIsAQuarterEverywhere) {
  EXPECT_EQ(bits_of(forward({}, unit_vector(16, 0))), std::vector<uint32_t>(16, 0x3e80'0000));
}

TEST(Hadamard, OfTheFourthUnitVectorHasTheSignOfTe) {
  std::vector<uint32_t> expected_bits;
  for (int j = 0; j < 16; ++j) expected_bits.push_back(j % 4 == 0 || j % 4 == 3 ? 0xbe80'0000 : 0x3e80'0000);
  EXPECT_EQ(bits_of(forward({}, unit_vector(16, 3))), expected_bits);
}

TEST(Hadamard, OfOneToSixteen) {
  std::vector<float> x;
  for (int i = 1; i <= 16; ++i) x.push_back(float(i));
  EXPECT_EQ(forward({}, x), (std::vector<float>{-15.5, -7.5, 7.5, -0.5, 7.5, -0.5, -15.5, 8.5, 8.5, 16.5, 1.5, 1.5, 1.5,
                                                -2.5, 10.5, -17.5}));
}

TEST(Report, G04_TheMaskHasTheSignsOfTe) {
  const auto& signs = reports::input("G04").at("sign");
  EXPECT_EQ(kTeSignMask, reports::hexadecimal(reports::expected("G04").at("sign_mask_lsb_first")));
  for (std::size_t k = 0; k < 16; ++k) EXPECT_EQ(sign_bits({}, 0)[0] >> k & 1, signs.at(k) == -1 ? 1u : 0u) << k;
}

TEST(Report, G04_SignsAreAppliedBeforeTheMatrix) {
  EXPECT_EQ(forward({}, unit_vector(16, 3)), reports::expected("G04").at("out").get<std::vector<float>>());
}

TEST(Report, G04_OnesShowEveryConvention) {
  EXPECT_EQ(forward({}, std::vector<float>(16, 1)),
            reports::expected("G04").at("ones_vector").get<std::vector<float>>());
}

// 1 + 2^-8 is a tie of BF16. The results lie 2^-42 beside it, which FP32 would lose.
TEST(Hadamard, RoundsOnce) {
  std::vector<float> x(16, 0);
  x[0] = 4 + 0x1p-6f;
  x[1] = 0x1p-40f;
  const std::vector<float> y = forward({.signs = HadamardSigns::none}, x);
  EXPECT_EQ(y[0], 1 + 0x1p-7f);
  EXPECT_EQ(y[1], 1.0f);
}

TEST(Hadamard, OfNaNIsTheCanonicalNaNInItsGroupAlone) {
  std::vector<float> x(32, 1);
  x[5] = -kNan;
  const std::vector<float> bf16 = forward({}, x), f32 = forward(kTeToF32, x);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(bit_cast<uint32_t>(bf16[i]), 0x7fff'0000u);
    EXPECT_EQ(bit_cast<uint32_t>(f32[i]), 0x7fff'ffffu);
  }
  EXPECT_EQ(std::vector<float>(bf16.begin() + 16, bf16.end()), forward({}, std::vector<float>(16, 1)));
}

TEST(Hadamard, OfOneInfinityIsInfiniteWithTheSignOfTheMatrix) {
  std::vector<float> x(16, 1);
  x[6] = kInf;
  const std::vector<float> y = forward({}, x);
  for (int j = 0; j < 16; ++j) EXPECT_EQ(y[std::size_t(j)], kInf * float(kTeSigns[6] * sylvester(6, j))) << j;
}

TEST(Hadamard, OfInfinitiesThatMeetWithOppositeSignsIsNaN) {
  std::vector<float> x(16, 1);
  x[6] = kInf;
  x[9] = -kInf;
  const std::vector<float> y = forward({}, x);
  for (int j = 0; j < 16; ++j) {
    const int a = kTeSigns[6] * sylvester(6, j), b = -kTeSigns[9] * sylvester(9, j);
    if (a == b)
      EXPECT_EQ(y[std::size_t(j)], kInf * float(a)) << j;
    else
      EXPECT_TRUE(std::isnan(y[std::size_t(j)])) << j;
  }
}

TEST(Hadamard, BeyondTheRangeIsInfinity) {
  constexpr float kMax = 0x1.fep127f;
  for (const HadamardResult result : kBothResults) {
    const Hadamard h{.signs = HadamardSigns::none, .result = result};
    EXPECT_EQ(forward(h, std::vector<float>(16, kMax))[0], kInf);
    EXPECT_EQ(forward(h, std::vector<float>(16, -kMax))[0], -kInf);
    EXPECT_EQ(forward(h, std::vector<float>(16, kMax / 4))[0], kMax);  // 16 / 4 / 4
  }
}

TEST(Hadamard, OfZerosOfEitherSignIsPlusZero) {
  for (const float zero : {0.0f, -0.0f}) {
    EXPECT_EQ(bits_of(forward({}, std::vector<float>(16, zero))), std::vector<uint32_t>(16, 0));
    EXPECT_EQ(bits_of(inverse({}, std::vector<float>(16, zero))), std::vector<uint32_t>(16, 0));
  }
}

// A result that is not 0 keeps its sign when it rounds to 0: 2^-149 / 4 in FP32.
TEST(Hadamard, RoundedToZeroKeepsItsSign) {
  const std::vector<float> y = forward(kTeToF32, unit_vector(16, 0, -0x1p-149f));
  EXPECT_EQ(bits_of(y), std::vector<uint32_t>(16, 0x8000'0000));
}

TEST(Hadamard, KeepsSubnormals) {
  EXPECT_EQ(forward(kTeToF32, unit_vector(16, 0, 0x1p-147f)), std::vector<float>(16, 0x1p-149f));
  EXPECT_EQ(forward({}, unit_vector(16, 0, 0x1p-131f)), std::vector<float>(16, 0x1p-133f));
}

TEST(Hadamard, MayWorkInPlace) {
  std::vector<float> x = exact_inputs(64, 77);
  const std::vector<float> y = forward({}, x);
  hadamard({}, x.size(), x, x);
  EXPECT_EQ(x, y);
}

// A row's groups have the signs of their place in it, whatever rows come before.
TEST(Hadamard, OfRowsIsThatOfEachRow) {
  const Hadamard h{.size = 8, .signs = HadamardSigns::seeded, .vectors = SignVectors::per_group, .seed = 1};
  const std::vector<float> x = exact_inputs(3 * 32, 78);
  std::vector<float> y(x.size());
  hadamard(h, 32, x, y);
  for (std::ptrdiff_t first = 0; first < 96; first += 32) {
    const std::vector<float> row(x.begin() + first, x.begin() + first + 32);
    EXPECT_EQ(std::vector<float>(y.begin() + first, y.begin() + first + 32), forward(h, row)) << first;
  }
}

// What the transform is for: with the same signs on both sides it leaves a product as it was. Small integers: exact.
TEST(Hadamard, OfBothOperandsLeavesTheirProduct) {
  for (const SignVectors vectors : kBothVectors) {
    const Hadamard h{
        .size = 64, .signs = HadamardSigns::seeded, .vectors = vectors, .seed = 2, .result = HadamardResult::f32};
    std::vector<float> a, b;
    for (uint64_t k = 0; k < 256; ++k) {
      a.push_back(float(random_word(2, 0, k) % 17) - 8);
      b.push_back(float(random_word(2, 1, k) % 17) - 8);
    }
    const auto product = [](const std::vector<float>& u, const std::vector<float>& v) {
      double sum = 0;
      for (std::size_t k = 0; k < u.size(); ++k) sum += double(u[k]) * v[k];
      return sum;
    };
    EXPECT_EQ(product(forward(h, a), forward(h, b)), product(a, b));
  }
}

TEST(HadamardSigns, NameEachRowOnceInTheOrderOfTheirEnum) {
  for (std::size_t i = 0; i < kHadamardSigns.size(); ++i) {
    EXPECT_EQ(kHadamardSigns[i].signs, HadamardSigns(i));
    EXPECT_FALSE(kHadamardSigns[i].source.empty());
  }
}

TEST(HadamardSigns, OfASharedVectorAreThoseOfEveryGroup) {
  const Hadamard h{.size = 8, .signs = HadamardSigns::seeded, .seed = 3};
  std::vector<float> x;
  for (int i = 0; i < 5 * 8; ++i) x.push_back(float(i % 8));
  const std::vector<float> y = forward(h, x);
  for (std::size_t i = 8; i < y.size(); ++i) EXPECT_EQ(y[i], y[i - 8]);
}

TEST(HadamardSigns, OfGroupsDiffer) {
  const Hadamard h{.size = 128, .signs = HadamardSigns::seeded, .vectors = SignVectors::per_group, .seed = 3};
  for (uint64_t group = 1; group < 100; ++group) EXPECT_NE(sign_bits(h, group)[0], sign_bits(h, group - 1)[0]);
}

TEST(HadamardSigns, OfSeedsDiffer) {
  for (uint64_t seed = 1; seed < 100; ++seed) {
    EXPECT_NE(sign_bits({.signs = HadamardSigns::seeded, .seed = seed}, 0)[0],
              sign_bits({.signs = HadamardSigns::seeded, .seed = seed - 1}, 0)[0]);
  }
}

// Five standard errors of 2^17 fair bits.
TEST(HadamardSigns, AreFair) {
  const Hadamard h{.size = 128, .signs = HadamardSigns::seeded, .vectors = SignVectors::per_group, .seed = 5};
  constexpr int kGroups = 1024;
  int minus = 0;
  for (uint64_t group = 0; group < kGroups; ++group)
    for (uint64_t word = 0; word < 4; ++word) minus += std::popcount(sign_bits(h, group)[word]);
  EXPECT_NEAR(minus, kGroups * 64, 5 * std::sqrt(kGroups * 128 / 4.0));
}

template <class Exception>
std::string message_of(const Hadamard& h, uint64_t row_length, uint64_t from, uint64_t to) {
  std::vector<float> x(from), y(to);
  try {
    hadamard(h, row_length, x, y);
  } catch (const Exception& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Hadamard, RefusesOtherSizes) {
  for (const int size : {-16, 0, 1, 3, 12, 256}) {
    const std::string message = message_of<UsageError>({.size = size, .signs = HadamardSigns::none}, 256, 256, 256);
    EXPECT_TRUE(contains(message, "size " + std::to_string(size) + ": expected 2, 4")) << message;
  }
}

TEST(Hadamard, RefusesTeSignsOfOtherSizes) {
  const std::string message = message_of<UsageError>({.size = 32}, 32, 32, 32);
  EXPECT_TRUE(contains(message, "for size 16, got size 32")) << message;
}

TEST(Hadamard, RefusesRowsWithARest) {
  const std::string message = message_of<InputError>({}, 40, 40, 40);
  EXPECT_TRUE(contains(message, "multiples of 16, got 40; padded with zeros it would be 48")) << message;
  EXPECT_TRUE(contains(message_of<InputError>({}, 0, 0, 0), "got 0"));
}

TEST(Hadamard, RefusesArraysThatAreNoRows) {
  EXPECT_TRUE(contains(message_of<InputError>({}, 32, 48, 48), "rows of 32: got 48 elements"));
  EXPECT_TRUE(contains(message_of<InputError>({}, 32, 64, 32), "got 64 elements to transform into 32"));
}

}  // namespace
}  // namespace halfulp

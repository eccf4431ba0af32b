// Formulas: what their text means, what is wrong with a text, and every function against its definition in other words.

#include "emulation/blocks/formula.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/blocks/formula_arrays.h"
#include "emulation/blocks/recipes.h"
#include "lib/random_values.h"
#include "tests/emulation/hard_inputs.h"

namespace halfulp {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

uint32_t bits(float x) { return bit_cast<uint32_t>(x); }

bool same(float p, float q) { return bits(p) == bits(q) || (std::isnan(p) && std::isnan(q)); }
// Zeros of either sign are the same: C leaves the sign of fmin(-0, 0) open.
bool same_number(float p, float q) { return p == q || (std::isnan(p) && std::isnan(q)); }

// x = 2, m = 3, s = 5, c = 7, a = 11, A = 13.
Values primes() {
  Values values;
  values[Symbol::x] = 2, values[Symbol::m] = 3, values[Symbol::s] = 5;
  values[Symbol::c] = 7, values[Symbol::a] = 11, values[Symbol::A] = 13;
  return values;
}

float value_of(std::string_view text, const Values& values = primes()) { return evaluate(Formula(text), values); }

struct Meaning {
  std::string_view text;
  float value;
};

const std::vector<Meaning> kMeanings{
    {"x + m * s", 17},
    {"(x + m) * s", 25},
    {"x * m + s", 11},
    {"x - m * s", -13},
    {"s - c / x", 1.5f},
    {"s - m < x + x", 1},
    {"x - m - s", -6},
    {"x - (m - s)", 4},
    {"c / x / x", 1.75f},
    {"c / (x / x)", 7},
    {"c / x * x", 7},
    {"-x * m", -6},
    {"x - -m", 5},
    {"--x", 2},
    {"-x + m", 1},
    {"x < m", 1},
    {"m < x", 0},
    {"x == 2", 1},
    {"x + m == s", 1},
    {"x < m == 1", 1},
    {"s < x + m", 0},
    {"x < m ? s : c", 5},
    {"m < x ? s : c", 7},
    {"x ? m : s", 3},
    {"x - 2 ? m : s", 5},
    {"m < x ? s : x < m ? c : a", 7},
    {"x < m ? m < x ? s : c : a", 7},
    {"(x < m ? s : c) + a", 16},
    {"x < m ? s : c + a", 5},
    {"min(x, m) + max(s, c)", 9},
    {"min(max(x, m), max(s, c) - a)", -4},
    {"max(x < m ? s : c, m)", 5},
    {"abs(x - c)", 5},
    {"  x+m *  s ", 17},
    {"0x1.8p1 * x", 6},
    {"1.5e1 - a", 4},
    {"a", 11},
    {"A - a", 2},
    {"Inf - Inf == 0 ? x : m", 3},
    {"FLT_MAX * x == Inf", 1},
};

class FormulaText : public testing::TestWithParam<Meaning> {};
TEST_P(FormulaText, Means) { EXPECT_EQ(value_of(GetParam().text), GetParam().value) << GetParam().text; }
INSTANTIATE_TEST_SUITE_P(Texts, FormulaText, testing::ValuesIn(kMeanings));

struct Mistake {
  std::string_view text;
  std::string_view message;
};

const std::vector<Mistake> kMistakes{
    {"x +", "formula 'x +', position 4: expected a number, a name or '('"},
    {"+ x", "formula '+ x', position 1: expected a number, a name or '('"},
    {"x * * m", "formula 'x * * m', position 5: expected a number, a name or '('"},
    {"foo", "formula 'foo', position 1: 'foo' is no symbol and no function"},
    {"x * S_encode", "formula 'x * S_encode', position 5: 'S_encode' is no symbol and no function"},
    {"x m", "formula 'x m', position 3: expected an operator"},
    {"x)", "formula 'x)', position 2: expected an operator"},
    {"(x", "formula '(x', position 3: expected ')'"},
    {"min(x)", "formula 'min(x)', position 6: expected ','"},
    {"min(x, m, s)", "formula 'min(x, m, s)', position 9: expected ')'"},
    {"abs x", "formula 'abs x', position 5: expected '('"},
    {"x ? m", "formula 'x ? m', position 6: expected ':'"},
    {"x <= m", "formula 'x <= m', position 4: expected a number, a name or '('"},
    {"1e", "formula '1e', position 3: expected an exponent"},
    {"1e+5", "formula '1e+5', position 3: expected an exponent"},
    {"1e23", "formula '1e23', position 5: a number's power of ten is at most 22"},
    {"0x", "formula '0x', position 3: a number has 1 to 15 digits, or 8 after 0x"},
    {"0x123456789", "formula '0x123456789', position 12: a number has 1 to 15 digits, or 8 after 0x"},
    {"1234567890123456", "formula '1234567890123456', position 17: a number has 1 to 15 digits, or 8 after 0x"},
    {"1.2.3", "formula '1.2.3', position 4: expected an operator"},
    {"x & m", "formula 'x & m', position 3: expected an operator"},
    {" ", "formula ' ', position 2: expected a number, a name or '('"},
};

std::string message_of(std::string_view text) {
  try {
    Formula formula(text);
    return "no error";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

class FormulaMistake : public testing::TestWithParam<Mistake> {};
TEST_P(FormulaMistake, IsNamedWithItsPosition) { EXPECT_EQ(message_of(GetParam().text), GetParam().message); }
INSTANTIATE_TEST_SUITE_P(Texts, FormulaMistake, testing::ValuesIn(kMistakes));

TEST(Formula, OfManyOperationsIsRefused) {
  std::string text = "x";
  for (int i = 0; i < 15; ++i) text += " + x";
  EXPECT_EQ(message_of(text), "no error");
  EXPECT_NE(message_of(text + " + x").find("the formula is too long"), std::string::npos);
}

TEST(Formula, OfManyOpenOperandsIsRefused) {
  std::string open, close;
  for (int i = 0; i < 7; ++i) open += "x - (", close += ")";
  EXPECT_EQ(message_of(open + "x" + close), "no error");
  EXPECT_NE(message_of("x - (" + open + "x" + close + ")").find("the formula is too long"), std::string::npos);
}

// A text from outside must not use up the stack.
TEST(Formula, NestedDeeplyIsRefused) {
  EXPECT_EQ(message_of(std::string(60, '(') + "x" + std::string(60, ')')), "no error");
  for (const char* open : {"(", "-", "abs(", "x ? x : ", "x ? "}) {
    std::string text;
    for (int i = 0; i < 100000; ++i) text += open;
    EXPECT_NE(message_of(text + "x").find("the formula is "), std::string::npos) << open;
  }
}

TEST(Formula, OfNothingIsEmpty) { EXPECT_TRUE(Formula("").empty() && Formula().empty()); }

TEST(Formula, IsEqualToAnotherOfTheSameText) {
  EXPECT_TRUE(Formula("x * m") == Formula(std::string_view("x * m")));
  EXPECT_FALSE(Formula("x * m") == Formula("x / m"));
}

TEST(Formula, FoldsConstants) {
  EXPECT_EQ(Formula("1 / 6").size(), 1);
  EXPECT_EQ(bits(Formula("1 / 6")[0].constant), 0x3e2a'aaabu);
  EXPECT_EQ(bits(Formula("1 / 448")[0].constant), 0x3b12'4925u);
  EXPECT_EQ(Formula("x * (1 / 6)").size(), 3);
  EXPECT_EQ(Formula("min(2, 3) ? 4 : 5").size(), 1);
  EXPECT_EQ(value_of("min(2, 3) ? 4 : 5"), 4);
  EXPECT_EQ(Formula("-(1 + 2)").size(), 1);
}

// Each operation is one of the formula's.
TEST(Formula, FoldsNothingElse) {
  EXPECT_EQ(Formula("x + 1 - 1").size(), 5);
  EXPECT_EQ(Formula("x * 2 / 2").size(), 5);
  EXPECT_EQ(Formula("x * 1").size(), 3);
}

// The three orders give three numbers for these: found by search.
TEST(Formula, KeepsTheOrderOfItsOperations) {
  Values values;
  values[Symbol::a] = bit_cast<float>(0x3c43'0000u);
  values[Symbol::S_enc] = 2688 / bit_cast<float>(0x3f82'0000u);
  EXPECT_EQ(bits(value_of("a * (S_enc * (1 / 6))", values)), 0x40a8'0001u);
  EXPECT_EQ(bits(value_of("a / 6 * S_enc", values)), 0x40a8'0000u);
}

TEST(Formula, KnowsWhatItUses) {
  const Formula formula("min(a, S_enc) / 6");
  for (std::size_t i = 0; i < kSymbols.size(); ++i)
    EXPECT_EQ(formula.uses(Symbol(i)), Symbol(i) == Symbol::a || Symbol(i) == Symbol::S_enc) << kSymbols[i].name;
}

TEST(Formula, FindsTheOtherOperand) {
  const Formula product("c * (s * A * (1 / 2688))");
  ASSERT_TRUE(product.is_on(Symbol::c, Op::multiply));
  EXPECT_EQ(evaluate(product.other_operand(), primes()), 5.f * 13 * (1.f / 2688));
  for (const char* text : {"c * s * A", "c * s / A", "s * c", "c + s", "c", "(c + s) * A"})
    EXPECT_FALSE(Formula(text).is_on(Symbol::c, Op::multiply)) << text;
}

// Between the shortest and the longest decimal numbers that FP32 tells apart.
TEST(Formula, ReadsDecimalNumbersAsStrtofDoes) {
  for (uint64_t i = 0; i < 20000; ++i) {
    const int digits = 1 + int(random_word(1, 0, i) % 15), point = int(random_word(1, 1, i) % uint64_t(digits));
    std::string text;
    for (int k = 0; k < digits; ++k) text += char('0' + random_word(2, i, uint64_t(k)) % 10);
    text.insert(std::size_t(digits - point), ".");
    if (random_word(1, 2, i) % 2 != 0) text += "e" + std::to_string(int(random_word(1, 3, i) % 15) - 7);
    ASSERT_EQ(bits(value_of(text)), bits(std::strtof(text.c_str(), nullptr))) << text;
  }
}

TEST(Formula, ReadsHexadecimalNumbersAsStrtofDoes) {
  for (const char* text : {"0x1p-149", "0x1p-150", "0x1.8p-150", "0x1p127", "0x1.fffffep127", "0x1.FEp127", "0x1p128",
                           "0xff", "0x.8p0", "0x1p-1000", "0x1.000001p0", "0x1.0000011p0", "0x1.24924Ap-18"})
    EXPECT_EQ(bits(value_of(text)), bits(std::strtof(text, nullptr))) << text;
}

// ------------------------------------------------------------------------------------------------------------
// functions

std::vector<float> edges() {
  std::vector<float> x = special_values();
  for (int exponent = -149; exponent < 128; ++exponent) {
    const float power = std::ldexp(1.f, exponent);
    for (const float value :
         {power, std::nextafter(power, 0.f), std::nextafter(power, kInf), power * 1.5f, power * 1.75f, power * 1.9375f})
      x.push_back(value), x.push_back(-value);
  }
  for (int i = -300; i < 300; ++i) x.push_back(float(i) / 2);
  for (const float value : {0x1p22f, 0x1p23f, 0x1p24f, 0x1.fffffep22f, 0x1.fffffep23f})
    x.push_back(value), x.push_back(-value);
  return x;
}

struct UnaryCase {
  const char* text;
  float (*definition)(float);
};

float floor_of_exponent(float x) {
  if (!std::isfinite(x)) return std::isnan(x) ? kNaN : 128;
  return std::fabs(x) < FLT_MIN ? -127.f : float(std::ilogb(x));
}

// The smallest whole number not below log2 |x|, and of a subnormal number that of its field with a mantissa.
float ceil_of_exponent(float x) {
  if (!std::isfinite(x)) return std::isnan(x) ? kNaN : 128;
  if (std::fabs(x) < FLT_MIN) return x == 0 ? -127.f : -126.f;
  return float(std::ilogb(x)) + (std::ldexp(1.f, std::ilogb(x)) == std::fabs(x) ? 0.f : 1.f);
}

// floor_log2 of |x| after halves of the last of n mantissa bits are rounded up. A subnormal number's mantissa is in
// units of 2^-149 without a hidden one.
template <int n>
float even_of_exponent(float x) {
  if (!std::isfinite(x)) return std::isnan(x) ? kNaN : 128;
  const double magnitude = std::fabs(double(x));
  if (magnitude < FLT_MIN) return magnitude >= double(FLT_MIN) - std::ldexp(1.0, -127 - n) ? -126.f : -127.f;
  const int exponent = std::ilogb(x);
  return float(exponent) + (magnitude >= std::ldexp(2.0 - std::ldexp(1.0, -n - 1), exponent) ? 1.f : 0.f);
}

float power(float x) {
  if (x < -149 || x > 127) return x < 0 ? 0 : kInf;
  return x == std::floor(x) ? float(std::exp2(double(x))) : kNaN;
}

// To eight significant bits in FP64, where scaling is exact.
float nearest_bf16(float x) {
  if (!std::isfinite(x) || x == 0) return x;
  const int last = std::max(std::ilogb(x), -126) - 7;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(double(x), -last)), last);
  return std::fabs(rounded) > 0x1.fep127 ? std::copysign(kInf, x) : float(std::copysign(rounded, x));
}

float nearest_e4m3(float x) {
  if (std::isnan(x) || x == 0) return x;
  if (std::fabs(x) >= 448) return std::copysign(448.f, x);
  const int last = std::max(std::ilogb(x), -6) - 3;
  return float(std::copysign(std::ldexp(std::nearbyint(std::ldexp(double(x), -last)), last), x));
}

float quest_of(float x) { return x >= 0 ? float(double(std::sqrt(x)) * (2.92247856 / 6) + 1e-8) : 1.f; }

const std::vector<UnaryCase> kUnary{
    {"-x", [](float x) { return std::copysign(x, std::signbit(x) ? 1.f : -1.f); }},
    {"abs(x)", [](float x) { return std::fabs(x); }},
    {"floor(x)", [](float x) { return std::floor(x); }},
    {"ceil(x)", [](float x) { return std::ceil(x); }},
    {"floor_log2(x)", floor_of_exponent},
    {"ceil_log2(x)", ceil_of_exponent},
    {"even_log2(x, 1)", even_of_exponent<1>},
    {"even_log2(x, 2)", even_of_exponent<2>},
    {"even_log2(x, 3)", even_of_exponent<3>},
    {"exp2(x)", power},
    {"log2(x)", [](float x) { return x == 0  ? -kInf
                                     : x < 0 ? kNaN
                                             : float(std::log2l(x)); }},
    {"bf16(x)", nearest_bf16},
    {"e4m3(x)", nearest_e4m3},
    {"quest(x)", quest_of},
};

std::string function_name(std::string_view text) {
  std::string name;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c))) name += c;
  return text == "-x" ? "negation" : name;
}

class UnaryFunction : public testing::TestWithParam<UnaryCase> {};

TEST_P(UnaryFunction, IsItsDefinition) {
  const Formula formula(GetParam().text);
  for (const float x : edges()) {
    Values values;
    values[Symbol::x] = x;
    const float got = evaluate(formula, values), expected = GetParam().definition(x);
    ASSERT_TRUE(same_number(got, expected))
        << GetParam().text << " of " << std::hexfloat << x << ": " << got << ", by definition " << expected;
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, UnaryFunction, testing::ValuesIn(kUnary),
                         [](const auto& instance) { return function_name(instance.param.text); });

struct BinaryCase {
  const char* text;
  float (*definition)(float, float);
};

float with_nan(float p, float q, float result) { return std::isnan(p) || std::isnan(q) ? kNaN : result; }

float search(float x, float step) {
  const float candidates[] = {0.5f, 1, 1.5f, 2, 3, 4, 6, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  float best = 0;
  for (const float k : candidates)
    if (std::fabs(k * step - x) < std::fabs(best * (best == 0 ? 0.f : step) - x)) best = k;
  return best;
}

const std::vector<BinaryCase> kBinary{
    {"x + m", [](float p, float q) { return p + q; }},
    {"x - m", [](float p, float q) { return p - q; }},
    {"x * m", [](float p, float q) { return p * q; }},
    {"x / m", [](float p, float q) { return p / q; }},
    {"x < m", [](float p, float q) { return std::isless(p, q) ? 1.f : 0.f; }},
    {"x == m", [](float p, float q) { return std::islessequal(p, q) && std::isgreaterequal(p, q) ? 1.f : 0.f; }},
    {"min(x, m)", [](float p, float q) { return std::fmin(p, q); }},
    {"max(x, m)", [](float p, float q) { return std::fmax(p, q); }},
    {"minimum(x, m)", [](float p, float q) { return with_nan(p, q, std::fmin(p, q)); }},
    {"maximum(x, m)", [](float p, float q) { return with_nan(p, q, std::fmax(p, q)); }},
    {"x ? m : 3", [](float p, float q) { return p != 0 ? q : 3; }},
    {"reciprocal(x, m)", [](float p, float q) { return float(1.0 / (p < 1e-12 ? 1e-12 : double(p)) * double(q)); }},
    {"search_e2m1(x, m)", search},
};

std::string binary_name(const testing::TestParamInfo<BinaryCase>& instance) {
  return std::to_string(instance.index) + function_name(instance.param.text);
}

class BinaryFunction : public testing::TestWithParam<BinaryCase> {};

TEST_P(BinaryFunction, IsItsDefinition) {
  const Formula formula(GetParam().text);
  for (const float p : special_values()) {
    for (const float q : edges()) {
      Values values;
      values[Symbol::x] = p, values[Symbol::m] = q;
      const float got = evaluate(formula, values), expected = GetParam().definition(p, q);
      ASSERT_TRUE(same_number(got, expected)) << GetParam().text << " of " << std::hexfloat << p << ", " << q << ": "
                                              << got << ", by definition " << expected;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, BinaryFunction, testing::ValuesIn(kBinary), binary_name);

TEST(Functions, AreAllTested) {
  for (const FunctionEntry& row : kFunctions) {
    const std::string call = std::string(row.name) + "(";
    const auto calls = [&](const auto& c) { return std::string_view(c.text).starts_with(call); };
    EXPECT_TRUE(std::ranges::any_of(kUnary, calls) || std::ranges::any_of(kBinary, calls)) << row.name;
  }
}

// A logarithm rounded to FP32 reaches the next whole number early, where it is large: 2^k is the first of which it is
// k, but the last `early` numbers below 2^(k+1) have k + 1, and only from the `late`-th above 2^k on is its ceiling
// more than k. Measured with PyTorch 2.15 on a CPU.
struct Log2Case {
  int first, last;  // k
  int early, late;
};

const std::vector<Log2Case> kLog2{
    {-126, -65, 44, 23}, {-64, -33, 22, 12}, {-32, -17, 11, 6}, {-16, -9, 5, 3}, {-8, -5, 2, 2},
    {-4, -3, 1, 1},      {-2, 1, 0, 1},      {2, 3, 1, 1},      {4, 7, 2, 2},    {8, 15, 5, 3},
    {16, 31, 11, 6},     {32, 63, 22, 12},   {64, 126, 44, 23},
};

class Log2 : public testing::TestWithParam<Log2Case> {};

// The float `ulps` above x, which is not negative.
float above(float x, int ulps) { return bit_cast<float>(uint32_t(int32_t(bits(x)) + ulps)); }

float log2_of(float x) {
  Values values;
  values[Symbol::x] = x;
  return value_of("log2(x)", values);
}

TEST_P(Log2, ReachesTheNextWholeNumberEarly) {
  for (int k = GetParam().first; k <= GetParam().last; ++k) {
    const float end = std::ldexp(1.f, k + 1);
    EXPECT_EQ(std::floor(log2_of(above(end, -GetParam().early))), float(k + 1)) << k;
    EXPECT_EQ(std::floor(log2_of(above(end, -GetParam().early - 1))), float(k)) << k;
  }
}

TEST_P(Log2, LeavesAWholeNumberLate) {
  for (int k = GetParam().first; k <= GetParam().last; ++k) {
    const float begin = std::ldexp(1.f, k);
    EXPECT_EQ(std::ceil(log2_of(above(begin, GetParam().late))), float(k + 1)) << k;
    EXPECT_EQ(std::ceil(log2_of(above(begin, GetParam().late - 1))), float(k)) << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Exponents, Log2, testing::ValuesIn(kLog2),
                         [](const auto& instance) { return "Group" + std::to_string(instance.index); });

// ---------------------------------------------------------------------------------------------------------------
// arrays

std::vector<Formula> formulas_of(const Recipe& r) {
  std::vector<Formula> formulas{r.encode,      r.decode,          r.unrounded,          r.factor,
                                r.scaled,      r.value,           r.choice.alternative, r.choice.estimate,
                                r.choice.loss, r.correction.scale};
  std::erase_if(formulas, [](const Formula& f) { return f.empty(); });
  return formulas;
}

// Symbol number i has an array of its own where bit i of `arrays` is set, else one value.
void expect_arrays_are_scalars(const Formula& formula, std::size_t count, uint32_t arrays) {
  std::vector<std::vector<float>> values(kSymbols.size());
  Columns columns;
  for (std::size_t i = 0; i < kSymbols.size(); ++i) {
    values[i] = i % 3 == 0 ? any_bits(count + 1, i) : uneven_normals(count + 1, i);
    columns.constants[Symbol(i)] = values[i][count];
    if (arrays >> i & 1) columns.with(Symbol(i), std::span(values[i]).first(count));
  }
  std::vector<float> out(count);
  evaluate(formula, columns, out);
  for (std::size_t k = 0; k < count; ++k) {
    Values scalars = columns.constants;
    for (std::size_t i = 0; i < kSymbols.size(); ++i)
      if (arrays >> i & 1) scalars[Symbol(i)] = values[i][k];
    ASSERT_TRUE(same(out[k], evaluate(formula, scalars))) << formula.text() << " at " << k << " of " << count;
  }
}

TEST(FormulaArrays, AreTheScalarFormula) {
  for (const Recipe& recipe : kRecipes)
    for (const Formula& formula : formulas_of(recipe))
      for (const uint32_t arrays : {0u, ~0u, 0x555u}) expect_arrays_are_scalars(formula, 600, arrays);
}

TEST(FormulaArrays, HaveAnyLength) {
  for (const std::size_t count : {0u, 1u, 2u, 511u, 512u, 513u, 1024u, 1025u})
    for (const char* text : {"x * m", "x", "1", "min(a * (S_enc * (1 / 6)), FLT_MAX)", "x == 0 ? -x : x / m"})
      expect_arrays_are_scalars(Formula(text), count, ~0u);
}

TEST(FormulaArrays, DoEveryFunction) {
  for (const auto& c : kUnary) expect_arrays_are_scalars(Formula(c.text), 600, ~0u);
  for (const auto& c : kBinary) expect_arrays_are_scalars(Formula(c.text), 600, ~0u);
}

TEST(FormulaArrays, MayOverwriteTheirInput) {
  const std::vector<float> x = uneven_normals(1500);
  std::vector<float> in_place = x, apart(x.size());
  const Formula formula("x * x - x");
  evaluate(formula, Columns{}.with(Symbol::x, x), apart);
  evaluate(formula, Columns{}.with(Symbol::x, in_place), in_place);
  EXPECT_EQ(in_place, apart);
}

}  // namespace
}  // namespace halfulp

#pragma once
// A formula of a recipe: its text, and the FP32 operations that the text stands for, in the text's order. The catalog's
// are parsed by the compiler, a user's at run time. Not an optimizer: a / 6 * b divides first.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include "formats/catalog.h"
#include "formats/codec.h"
#include "lib/random_values.h"

namespace halfulp {

// What a formula may name.
enum class Symbol : uint8_t { A, S_enc, S_dec, a, sum, squares, d, s, m, x, c, v };

struct SymbolEntry {
  std::string_view name;
  std::string_view meaning;
};

inline constexpr std::array<SymbolEntry, 12> kSymbols{{
    {"A", "largest magnitude of the tensor"},
    {"S_enc", "encode scale of the tensor"},
    {"S_dec", "decode scale of the tensor"},
    {"a", "largest magnitude of the block"},
    {"sum", "sum of the block's elements, in their order"},
    {"squares", "sum of their squares, likewise"},
    {"d", "scale of the block before it is rounded to its format"},
    {"s", "scale of the block"},
    {"m", "factor of the block's elements"},
    {"x", "an element"},
    {"c", "value of the element's code"},
    {"v", "of a choice: what the code is taken to stand for; of a correction: its factor"},
}};
static_assert(kSymbols.size() == std::size_t(Symbol::v) + 1);

// The values of the symbols, by their position.
struct Values {
  float of[kSymbols.size()]{};  // no std::array: device code cannot call its members

  HOST_DEVICE constexpr float& operator[](Symbol symbol) { return of[int(symbol)]; }
  HOST_DEVICE constexpr float operator[](Symbol symbol) const { return of[int(symbol)]; }
};

enum class Op : uint8_t {
  constant,
  symbol,
  add,
  subtract,
  multiply,
  divide,
  negate,
  less,
  equal,
  choose,
  min,
  max,
  minimum,
  maximum,
  abs,
  floor,
  ceil,
  floor_log2,
  ceil_log2,
  even_log2,
  exp2,
  log2,
  bf16,
  e4m3,
  quest,
  reciprocal,
  search_e2m1
};

// Operations that are written as functions.
struct FunctionEntry {
  std::string_view name;
  Op op;
  int arguments;
  std::string_view meaning;
};

inline constexpr auto kFunctions = std::to_array<FunctionEntry>({
    {"min", Op::min, 2, "the smaller; where one is NaN the other (C fminf)"},
    {"max", Op::max, 2, "the larger; where one is NaN the other (C fmaxf)"},
    {"minimum", Op::minimum, 2, "the smaller; NaN where one is NaN"},
    {"maximum", Op::maximum, 2, "the larger; NaN where one is NaN"},
    {"abs", Op::abs, 1, "magnitude"},
    {"floor", Op::floor, 1, "the next whole number, downwards"},
    {"ceil", Op::ceil, 1, "the next whole number, upwards"},
    {"floor_log2", Op::floor_log2, 1,
     "exponent field less 127: floor of log2 of a normal number, -127 below, 128 of Inf"},
    {"ceil_log2", Op::ceil_log2, 1, "the same, one more where the mantissa is not zero"},
    {"even_log2", Op::even_log2, 2,
     "floor_log2 of the first after its mantissa is rounded to as many bits as the second, halves up"},
    {"exp2", Op::exp2, 1, "2 to a whole power; 0 below 2^-149, Inf above 2^127, NaN of a fraction"},
    {"log2", Op::log2, 1, "binary logarithm, rounded to FP32"},
    {"bf16", Op::bf16, 1, "to the nearest BF16, ties to even"},
    {"e4m3", Op::e4m3, 1, "to the nearest E4M3, ties to even, saturating"},
    {"reciprocal", Op::reciprocal, 2, "1 over the first, at least 1e-12, times the second, in FP64, rounded to FP32"},
    {"search_e2m1", Op::search_e2m1, 2,
     "the first E2M1 value k, 0, 0.5, ... 6, -0.5, ... -6, for which |k times the second - the first| is smallest"},
    {"quest", Op::quest, 1,
     "of a variance: 2.92247856 / 6 times its root plus 1e-8 in FP64, rounded to FP32; 1 where it is negative or NaN"},
});

struct ConstantEntry {
  std::string_view name;
  float value;
};

inline constexpr std::array<ConstantEntry, 2> kConstants{{
    {"FLT_MAX", std::numeric_limits<float>::max()},
    {"Inf", std::numeric_limits<float>::infinity()},
}};

// A binary operation's sign in a formula, and how tightly it binds.
struct OperatorEntry {
  std::string_view name;
  Op op;
  int binding;
};

inline constexpr auto kOperators = std::to_array<OperatorEntry>({
    {"==", Op::equal, 1},
    {"<", Op::less, 1},
    {"+", Op::add, 2},
    {"-", Op::subtract, 2},
    {"*", Op::multiply, 3},
    {"/", Op::divide, 3},
});

namespace detail {

// Not std::numeric_limits, whose members device code cannot call.
HOST_DEVICE constexpr float quiet_nan() { return bit_cast<float>(0x7fc0'0000u); }
HOST_DEVICE constexpr float infinity() { return bit_cast<float>(0x7f80'0000u); }

HOST_DEVICE constexpr float exponent_field(float x, uint32_t added) {
  const uint32_t bits = bit_cast<uint32_t>(x) & 0x7fff'ffff;
  const uint32_t field = (bits + added) >> 23;
  return bits > 0x7f80'0000 ? quiet_nan() : bits == 0x7f80'0000 ? 128.f : float(int(field) - 127);
}

HOST_DEVICE constexpr float exp2_whole(float n) {
  if (n != n) return quiet_nan();
  if (n < -149) return 0;
  if (n > 127) return infinity();
  return float(int(n)) == n ? power_of_two(int(n)) : quiet_nan();
}

HOST_DEVICE constexpr float floor_whole(float x) {
  if (!(x > -0x1p23f && x < 0x1p23f)) return x;
  const float toward_zero = float(int(x));
  return toward_zero > x ? toward_zero - 1 : toward_zero;
}

// Within an ulp of FP64 before the rounding to FP32.
HOST_DEVICE constexpr float log2_of(float x) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  if (!(x > 0)) return x == 0 ? -infinity() : quiet_nan();
  if (x == infinity()) return x;
  const uint32_t bits = bit_cast<uint32_t>(x);
  if ((bits & 0x007f'ffff) == 0) return float(int(bits >> 23) - 127);  // exact
  return float(portable_log(double(x)) / kLn2);
}

HOST_DEVICE constexpr float to_format(const Format& f, Overflow overflow, float x) {
  return decode(f, encode(f, {.rounding = Rounding::nearest_even, .overflow = overflow}, x));
}

HOST_DEVICE constexpr float search_e2m1(float x, float step) {
  constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  float best = 0, least = bit_cast<float>(bit_cast<uint32_t>(x) & 0x7fff'ffff);
  for (const float value : kValues) {
    const float difference = value * step - x, distance = difference < 0 ? -difference : difference;
    if (distance < least) {
      best = value;
      least = distance;
    }
  }
  return best;
}

}  // namespace detail

// One operation on its operands, each in FP32.
HOST_DEVICE constexpr float apply(Op op, float p, float q = 0, float r = 0) {
  switch (op) {
    case Op::constant:
    case Op::symbol: return p;
    case Op::add: return p + q;
    case Op::subtract: return p - q;
    case Op::multiply: return p * q;
    case Op::divide: return p / q;
    case Op::negate: return -p;
    case Op::less: return p < q ? 1.f : 0.f;
    case Op::equal: return p == q ? 1.f : 0.f;
    case Op::choose: return p != 0 ? q : r;
    case Op::min: return p < q || q != q ? p : q;
    case Op::max: return p > q || q != q ? p : q;
    case Op::minimum: return p < q || p != p ? p : q;
    case Op::maximum: return p > q || p != p ? p : q;
    case Op::abs: return bit_cast<float>(bit_cast<uint32_t>(p) & 0x7fff'ffff);
    case Op::floor: return detail::floor_whole(p);
    case Op::ceil: return -detail::floor_whole(-p);
    case Op::floor_log2: return detail::exponent_field(p, 0);
    case Op::ceil_log2: return detail::exponent_field(p, 0x007f'ffff);
    case Op::even_log2:
      return q >= 0 && q <= 22 ? detail::exponent_field(p, uint32_t{1} << (22 - int(q))) : detail::quiet_nan();
    case Op::exp2: return detail::exp2_whole(p);
    case Op::log2: return detail::log2_of(p);
    case Op::bf16: return detail::to_format(format_named("bf16"), Overflow::to_special, p);
    case Op::e4m3: return detail::to_format(format_named("e4m3"), Overflow::saturate, p);
    case Op::search_e2m1: return detail::search_e2m1(p, q);
    case Op::reciprocal: return float(1 / (p < 1e-12 ? 1e-12 : double(p)) * double(q));
    case Op::quest: return p >= 0 ? float(double(std::sqrt(p)) * (2.92247856 / 6) + 1e-8) : 1;
  }
  return p;
}

constexpr int arguments_of(Op op) {
  for (const FunctionEntry& row : kFunctions)
    if (row.op == op) return row.arguments;
  return op == Op::constant || op == Op::symbol ? 0 : op == Op::negate ? 1 : op == Op::choose ? 3 : 2;
}

struct Step {
  Op op;
  Symbol symbol;      // of Op::symbol
  uint8_t arguments;  // arguments_of(op)
  float constant;     // of Op::constant
};

class Formula {
 public:
  static constexpr int kMaxSteps = 32, kMaxDepth = 8;

  constexpr Formula() = default;
  // Throws std::invalid_argument, which in the catalog is an error of the compiler.
  constexpr Formula(const char* text) : Formula(std::string_view(text)) {}
  constexpr explicit Formula(std::string_view text);  // `text` must outlive the formula

  constexpr std::string_view text() const { return text_; }
  HOST_DEVICE constexpr bool empty() const { return size_ == 0; }
  HOST_DEVICE constexpr int size() const { return size_; }
  HOST_DEVICE constexpr const Step& operator[](int i) const { return steps_[i]; }
  constexpr bool uses(Symbol symbol) const {
    for (int i = 0; i < size_; ++i)
      if (steps_[i].op == Op::symbol && steps_[i].symbol == symbol) return true;
    return false;
  }
  // Whether it is SYMBOL times or over something, so that other_operand() is that something.
  constexpr bool is_on(Symbol symbol, Op op) const {
    if (size_ < 3 || steps_[0].op != Op::symbol || steps_[0].symbol != symbol || steps_[size_ - 1].op != op)
      return false;
    int depth = 0;
    for (int i = 1; i < size_ - 1; ++i)
      if ((depth += 1 - arguments_of(steps_[i].op)) < 1) return false;
    return depth == 1 && !other_operand().uses(symbol);
  }
  constexpr Formula other_operand() const {
    Formula other;
    other.text_ = text_;
    for (int i = 1; i < size_ - 1; ++i) other.steps_[other.size_++] = steps_[i];
    return other;
  }
  friend constexpr bool operator==(const Formula& p, const Formula& q) { return p.text_ == q.text_; }

 private:
  friend class FormulaParser;
  std::string_view text_;
  Step steps_[kMaxSteps]{};  // in the order of a stack machine
  int size_ = 0;
};

// Recursive descent: condition ? yes : no, comparisons, sums, products, signs, functions, names, numbers.
class FormulaParser {
 public:
  constexpr explicit FormulaParser(Formula& formula) : formula_(formula), text_(formula.text_) {}

  constexpr void parse() {
    choice();
    if (peek() != '\0') fail("expected an operator");
  }

 private:
  // Positions in a message count from 1. Only a constant expression that fails reaches it at compile time.
  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument("formula '" + std::string(text_) + "', position " + std::to_string(at_ + 1) + ": " +
                                what);
  }

  constexpr char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  constexpr bool take(std::string_view token) {
    peek();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  constexpr void expect(std::string_view token) {
    if (!take(token)) fail("expected '" + std::string(token) + "'");
  }

  constexpr void choice() {
    if (++nesting_ > kMaxNesting) fail("the formula is nested too deep");
    operation(1);
    --nesting_;
    if (!take("?")) return;
    choice();
    expect(":");
    choice();
    emit(Op::choose, {}, 0);
  }

  // The operator's position; -1 if there is none. Not its address: under -fsanitize=undefined GCC 12 does not take a
  // comparison with null for a constant expression.
  constexpr int next_operator(int binding) {
    for (std::size_t i = 0; i < kOperators.size(); ++i)
      if (kOperators[i].binding == binding && take(kOperators[i].name)) return int(i);
    return -1;
  }

  constexpr void operation(int binding) {
    if (binding > 3) return operand();
    operation(binding + 1);
    for (int found = next_operator(binding); found >= 0; found = next_operator(binding)) {
      operation(binding + 1);
      emit(kOperators[std::size_t(found)].op, {}, 0);
    }
  }

  constexpr void operand() {
    const char next = peek();
    if (take("(")) {
      choice();
      return expect(")");
    }
    if (take("-")) {
      if (++nesting_ > kMaxNesting) fail("the formula is nested too deep");
      operand();
      --nesting_;
      return emit(Op::negate, {}, 0);
    }
    if (is_digit(next)) return emit(Op::constant, {}, number());
    name();
  }

  static constexpr bool is_digit(char c) { return '0' <= c && c <= '9'; }
  static constexpr bool is_letter(char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_'; }

  constexpr void name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    for (const ConstantEntry& row : kConstants)
      if (row.name == word) return emit(Op::constant, {}, row.value);
    for (std::size_t i = 0; i < kSymbols.size(); ++i)
      if (kSymbols[i].name == word) return emit(Op::symbol, Symbol(i), 0);
    for (const FunctionEntry& row : kFunctions)
      if (row.name == word) return call(row);
    at_ = begin;
    fail(word.empty() ? "expected a number, a name or '('"
                      : "'" + std::string(word) + "' is no symbol and no function");
  }

  constexpr void call(const FunctionEntry& row) {
    expect("(");
    for (int i = 0; i < row.arguments; ++i) {
      if (i > 0) expect(",");
      choice();
    }
    expect(")");
    emit(row.op, {}, 0);
  }

  // Digits with a point and a decimal exponent, or 0x digits with a binary one. At most 15 digits and powers up to
  // 10^22, so that one FP64 division or product rounds correctly.
  constexpr float number() {
    const bool hex = take("0x");
    const int base = hex ? 16 : 10;
    double digits = 0;
    int scale = 0, count = 0;
    for (bool point = false; at_ < text_.size(); ++at_) {
      const int digit = digit_of(text_[at_]);
      if (text_[at_] == '.' && !point) {
        point = true;
      } else if (0 <= digit && digit < base && !(digit == 14 && !hex)) {
        digits = digits * base + digit;
        scale -= point;
        ++count;
      } else {
        break;
      }
    }
    if (count == 0 || count > (hex ? 8 : 15)) fail("a number has 1 to 15 digits, or 8 after 0x");
    return hex ? binary_scaled(digits, 4 * scale) : decimal_scaled(digits, scale);
  }

  static constexpr int digit_of(char c) {
    return is_digit(c) ? c - '0' : 'a' <= c && c <= 'f' ? c - 'a' + 10 : 'A' <= c && c <= 'F' ? c - 'A' + 10 : -1;
  }

  constexpr int exponent(std::string_view mark) {
    if (!take(mark)) return 0;
    const bool negative = take("-");
    int value = 0;
    if (at_ >= text_.size() || !is_digit(text_[at_])) fail("expected an exponent");
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_)
      value = value < 1000 ? 10 * value + text_[at_] - '0' : value;
    return negative ? -value : value;
  }

  constexpr float binary_scaled(double digits, int scale) {
    for (scale += exponent("p"); scale > 0; --scale) digits *= 2;
    for (; scale < 0; ++scale) digits /= 2;
    return float(digits);
  }

  constexpr float decimal_scaled(double digits, int scale) {
    scale += exponent("e");
    if (scale < -22 || scale > 22) fail("a number's power of ten is at most 22");
    double power = 1;
    for (int i = 0; i < (scale < 0 ? -scale : scale); ++i) power *= 10;
    return float(scale < 0 ? digits / power : digits * power);
  }

  // Adds a step; one on constants only is done now.
  constexpr void emit(Op op, Symbol symbol, float constant) {
    const int arguments = arguments_of(op);
    const Step step{.op = op, .symbol = symbol, .arguments = uint8_t(arguments), .constant = constant};
    depth_ += 1 - arguments;
    if (formula_.size_ == Formula::kMaxSteps || depth_ > Formula::kMaxDepth) fail("the formula is too long");
    Step* const top = formula_.steps_ + formula_.size_;
    bool constants = arguments > 0;
    for (int i = 1; i <= arguments; ++i) constants = constants && top[-i].op == Op::constant;
    if (!constants) {
      *top = step;
      ++formula_.size_;
      return;
    }
    float operands[3]{};
    for (int i = 0; i < arguments; ++i) operands[i] = top[i - arguments].constant;
    top[-arguments] = {
        .op = Op::constant, .symbol = {}, .arguments = 0, .constant = apply(op, operands[0], operands[1], operands[2])};
    formula_.size_ -= arguments - 1;
  }

  Formula& formula_;
  std::string_view text_;
  static constexpr int kMaxNesting = 64;
  std::size_t at_ = 0;
  int depth_ = 0;  // of the stack
  int nesting_ = 0;
};

constexpr Formula::Formula(std::string_view text) : text_(text) {
  if (!text.empty()) FormulaParser(*this).parse();
}

// The formula's value. Requires !formula.empty().
HOST_DEVICE constexpr float evaluate(const Formula& formula, const Values& values) {
  float stack[Formula::kMaxDepth + 2]{};
  int depth = 0;
  for (int i = 0; i < formula.size(); ++i) {
    const Step& step = formula[i];
    if (step.op == Op::constant) {
      stack[depth++] = step.constant;
    } else if (step.op == Op::symbol) {
      stack[depth++] = values[step.symbol];
    } else {
      depth -= step.arguments;
      stack[depth] = apply(step.op, stack[depth], stack[depth + 1], stack[depth + 2]);
      ++depth;
    }
  }
  return stack[0];
}

}  // namespace halfulp

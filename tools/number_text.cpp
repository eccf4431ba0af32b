#include "tools/number_text.h"

#include <fmt/format.h>

#include <cmath>

#include "formats/codec.h"

namespace halfulp {
namespace {

// The lowest `count` bits of word, highest first.
std::string binary(uint32_t word, int count) {
  return count == 0 ? "" : fmt::format("{:0{}b}", word & uint32_t(low_mask(count)), count);
}

}  // namespace

std::string decimal(double x) { return std::isnan(x) ? "nan" : fmt::format("{}", x); }

std::string decimal(float x) { return std::isnan(x) ? "nan" : fmt::format("{}", x); }

std::string exact_decimal(double x) {
  constexpr int kMostFractionDigits = 1074;  // of a double
  constexpr std::size_t kRoom = 48;
  if (!std::isfinite(x)) return "";
  std::string digits = fmt::format("{:.{}f}", x, kMostFractionDigits);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits.size() <= kRoom ? digits : "";
}

std::string hex_float(double x) { return std::isfinite(x) ? fmt::format("{:a}", x) : decimal(x); }

std::string hex_bits(uint64_t word, int bits) { return fmt::format("0x{:0{}x}", word, (bits + 3) / 4); }

std::string code_text(const Format& f, uint32_t code) { return hex_bits(code, f.bits()); }

std::string fields_text(const Format& f, uint32_t code) {
  std::string text = f.sign == Sign::one_bit ? binary(code >> f.sign_shift(), 1) + "|" : "";
  text += binary(code >> f.mantissa_bits, f.exponent_bits);
  return f.mantissa_bits == 0 ? text : text + "|" + binary(code, f.mantissa_bits);
}

std::string value_text(const Format& f, uint32_t code) {
  const float value = decode(f, code);
  return f.bits() == 32 ? decimal(value) : decimal(double(value));
}

std::string code_and_value(const Format& f, uint32_t code) {
  return fmt::format("{} ({})", code_text(f, code), value_text(f, code));
}

}  // namespace halfulp

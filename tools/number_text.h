#pragma once
// Numbers and codes as people read them. What a program reads is in lib/json.h.

#include <cstdint>
#include <string>

#include "formats/format.h"

namespace halfulp {

// The shortest decimal that reads back as x: "3", "-0", "6.103515625e-05", "inf".
std::string decimal(double x);
std::string decimal(float x);

// All digits of x, or nothing where they are more than a line has room for.
std::string exact_decimal(double x);

// "0x1.8p+1"
std::string hex_float(double x);

// "0x404ccccd", with as many digits as `bits` take.
std::string hex_bits(uint64_t word, int bits);

// "0x7e" and "0|1111|110": sign, exponent and mantissa.
std::string code_text(const Format& f, uint32_t code);
std::string fields_text(const Format& f, uint32_t code);

// The value of a code: a number, "inf" or "nan".
std::string value_text(const Format& f, uint32_t code);

// "0x7e (448)"
std::string code_and_value(const Format& f, uint32_t code);

}  // namespace halfulp

#pragma once
// A number that a user wrote, in the type that a conversion reads: rounded to it once, and that is said.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/codec.h"

namespace halfulp {

enum class SourceType { f32, f64, f16, bf16 };

struct SourceTypeEntry {
  std::string_view name;    // of --as
  std::string_view spoken;  // in sentences
  int bits;
};

inline constexpr auto kSourceTypes = std::to_array<SourceTypeEntry>({
    {.name = "f32", .spoken = "float32", .bits = 32},
    {.name = "f64", .spoken = "float64", .bits = 64},
    {.name = "f16", .spoken = "float16", .bits = 16},
    {.name = "bf16", .spoken = "bfloat16", .bits = 16},
});
static_assert(kSourceTypes.size() == std::size_t(SourceType::bf16) + 1);

struct SourceNumber {
  std::string text;  // as written
  SourceType type;
  uint64_t bits;  // of the type
  double value;   // exactly
};

// The nearest number of the type to "3.2", "0x1.8p1", "-0", "inf", "nan"; or the number of "bits:0x404ccccd". Throws
// UsageError.
SourceNumber read_source_number(const std::string& text, SourceType type);

Unpacked unpack(const SourceNumber& number);

// The value as its own type writes it: the shortest decimal that reads back.
std::string decimal(const SourceNumber& number);

}  // namespace halfulp

#pragma once
// Every format: a row. The CLI, the tests, the benchmarks, the CUDA dispatch and the printed tables read this list.

#include <array>
#include <string_view>
#include <utility>

#include "formats/format.h"

namespace halfulp {

struct FormatEntry {
  std::string_view name;   // as its standard spells it
  std::string_view alias;  // the other common spelling
  Format format;
  int storage_bits;        // bits that one code takes in an array
  int storage_shift;       // zero bits below the code in its storage
  std::string_view dtype;  // safetensors dtype of an array of codes; empty where none says it
  std::string_view source;
};

// clang-format off
inline constexpr auto kFormats = std::to_array<FormatEntry>({
    {.name = "e2m1", .alias = "fp4",
     .format = {.sign = Sign::one_bit, .exponent_bits = 2, .mantissa_bits = 1, .bias = 1,
                .specials = Specials::finite_only, .subnormals = Subnormals::yes},
     .storage_bits = 4, .storage_shift = 0, .dtype = "F4",
     .source = "OCP MX v1.0 §5.3.3"},
    {.name = "e2m3", .alias = "fp6_e2m3",
     .format = {.sign = Sign::one_bit, .exponent_bits = 2, .mantissa_bits = 3, .bias = 1,
                .specials = Specials::finite_only, .subnormals = Subnormals::yes},
     .storage_bits = 8, .storage_shift = 0, .dtype = "",
     .source = "OCP MX v1.0 §5.3.2"},
    {.name = "e3m2", .alias = "fp6_e3m2",
     .format = {.sign = Sign::one_bit, .exponent_bits = 3, .mantissa_bits = 2, .bias = 3,
                .specials = Specials::finite_only, .subnormals = Subnormals::yes},
     .storage_bits = 8, .storage_shift = 0, .dtype = "",
     .source = "OCP MX v1.0 §5.3.2"},
    {.name = "e4m3", .alias = "e4m3fn",
     .format = {.sign = Sign::one_bit, .exponent_bits = 4, .mantissa_bits = 3, .bias = 7,
                .specials = Specials::nan_only, .subnormals = Subnormals::yes},
     .storage_bits = 8, .storage_shift = 0, .dtype = "F8_E4M3",
     .source = "OCP OFP8 v1.0 §5.1"},
    {.name = "e5m2", .alias = "fp8_e5m2",
     .format = {.sign = Sign::one_bit, .exponent_bits = 5, .mantissa_bits = 2, .bias = 15,
                .specials = Specials::ieee, .subnormals = Subnormals::yes},
     .storage_bits = 8, .storage_shift = 0, .dtype = "F8_E5M2",
     .source = "OCP OFP8 v1.0 §5.1"},
    {.name = "e8m0", .alias = "ue8m0",
     .format = {.sign = Sign::none, .exponent_bits = 8, .mantissa_bits = 0, .bias = 127,
                .specials = Specials::nan_only, .subnormals = Subnormals::no},
     .storage_bits = 8, .storage_shift = 0, .dtype = "F8_E8M0",
     .source = "OCP MX v1.0 §5.4.1"},
    {.name = "ue4m3", .alias = "e4m3_unsigned",
     .format = {.sign = Sign::none, .exponent_bits = 4, .mantissa_bits = 3, .bias = 7,
                .specials = Specials::nan_only, .subnormals = Subnormals::yes},
     .storage_bits = 8, .storage_shift = 0, .dtype = "F8_E4M3",
     .source = "PTX ISA 9.0, alternate floating-point formats: 7 bits in a byte, bit 7 is zero"},
    {.name = "bf16", .alias = "bfloat16",
     .format = {.sign = Sign::one_bit, .exponent_bits = 8, .mantissa_bits = 7, .bias = 127,
                .specials = Specials::ieee, .subnormals = Subnormals::yes},
     .storage_bits = 16, .storage_shift = 0, .dtype = "BF16",
     .source = "PTX ISA 9.0, alternate floating-point formats"},
    {.name = "f16", .alias = "float16",
     .format = {.sign = Sign::one_bit, .exponent_bits = 5, .mantissa_bits = 10, .bias = 15,
                .specials = Specials::ieee, .subnormals = Subnormals::yes},
     .storage_bits = 16, .storage_shift = 0, .dtype = "F16",
     .source = "IEEE 754-2019 table 3.5, binary16"},
    {.name = "tf32", .alias = "tensorfloat32",
     .format = {.sign = Sign::one_bit, .exponent_bits = 8, .mantissa_bits = 10, .bias = 127,
                .specials = Specials::ieee, .subnormals = Subnormals::yes},
     .storage_bits = 32, .storage_shift = 13, .dtype = "",
     .source = "PTX ISA 9.0, alternate floating-point formats: 19 bits at the top of a 32-bit register"},
    {.name = "f32", .alias = "float32",
     .format = {.sign = Sign::one_bit, .exponent_bits = 8, .mantissa_bits = 23, .bias = 127,
                .specials = Specials::ieee, .subnormals = Subnormals::yes},
     .storage_bits = 32, .storage_shift = 0, .dtype = "F32",
     .source = "IEEE 754-2019 table 3.5, binary32"},
    {.name = "e4m3fnuz", .alias = "fp8_e4m3fnuz",
     .format = {.sign = Sign::one_bit, .exponent_bits = 4, .mantissa_bits = 3, .bias = 8,
                .specials = Specials::negative_zero, .subnormals = Subnormals::yes},
     .storage_bits = 8, .storage_shift = 0, .dtype = "F8_E4M3FNUZ",
     .source = "Noune et al., arXiv:2206.02915"},
    {.name = "e5m2fnuz", .alias = "fp8_e5m2fnuz",
     .format = {.sign = Sign::one_bit, .exponent_bits = 5, .mantissa_bits = 2, .bias = 16,
                .specials = Specials::negative_zero, .subnormals = Subnormals::yes},
     .storage_bits = 8, .storage_shift = 0, .dtype = "F8_E5M2FNUZ",
     .source = "Noune et al., arXiv:2206.02915"},
    {.name = "e3m4", .alias = "fp8_e3m4",
     .format = {.sign = Sign::one_bit, .exponent_bits = 3, .mantissa_bits = 4, .bias = 3,
                .specials = Specials::ieee, .subnormals = Subnormals::yes},
     .storage_bits = 8, .storage_shift = 0, .dtype = "",
     .source = "LLVM APFloat Float8E3M4, ml_dtypes float8_e3m4"},
    {.name = "ue5m3", .alias = "e5m3_unsigned",
     .format = {.sign = Sign::none, .exponent_bits = 5, .mantissa_bits = 3, .bias = 15,
                .specials = Specials::nan_only, .subnormals = Subnormals::yes},
     .storage_bits = 8, .storage_shift = 0, .dtype = "",
     .source = "CUDA 13.4 math API, __nv_fp8_ue5m3: no Inf, NaN is 0xff (bias 15 assumed)"},
});
// clang-format on

// Catalog position -> constant. Kernels take the position, not the Format: nvcc 13.0 cannot compile a __global__
// template whose parameter is a struct declared inside a namespace.
template <int id>
inline constexpr Format kFormatAt = kFormats[id].format;

// Catalog position by name or alias; -1 if there is none.
constexpr int find_format(std::string_view name) {
  for (std::size_t id = 0; id < kFormats.size(); ++id)
    if (kFormats[id].name == name || kFormats[id].alias == name) return int(id);
  return -1;
}

// Catalog position by name; an unknown name does not compile.
consteval int format_id(std::string_view name) {
  const int id = find_format(name);
  if (id < 0) throw "no such format";
  return id;
}

// The format of a name that the program text knows.
consteval Format format_named(std::string_view name) { return kFormats[std::size_t(format_id(name))].format; }

// Calls visitor.template operator()<id>() for one catalog position: the only bridge from a run-time choice of format
// to a compile-time constant. Requires 0 <= id < kFormats.size().
template <class Visitor>
constexpr void with_format(int id, Visitor&& visitor) {
  [&]<std::size_t... row>(std::index_sequence<row...>) {
    (void)((id == int(row) && (visitor.template operator()<int(row)>(), true)) || ...);
  }
  (std::make_index_sequence<kFormats.size()>{});
}

namespace detail {
constexpr bool catalog_is_sound() {
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    const FormatEntry& row = kFormats[i];
    if (find_format(row.name) != int(i) || find_format(row.alias) != int(i) || row.source.empty()) return false;
    if (row.format.bits() + row.storage_shift > row.storage_bits || row.format.bits() > 32) return false;
  }
  return true;
}
static_assert(catalog_is_sound(), "a name stands for two rows, or a code does not fit its storage");
}  // namespace detail

}  // namespace halfulp

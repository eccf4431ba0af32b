#pragma once
// The element types a tensor file can declare, and their sizes. What their bits mean is the business of formats/.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace halfulp {

// The order is safetensors' own: its writer sorts tensors by descending Dtype, then by name.
enum class Dtype : uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
};

struct DtypeRow {
  Dtype dtype;
  std::string_view name;       // as safetensors spells it
  int bits;                    // of one element; below 8 the elements are packed
  std::string_view npy_descr;  // as numpy.save spells it; empty where numpy has no such type
};

// Names: safetensors/src/tensor.rs.
inline constexpr DtypeRow kDtypes[] = {
    {.dtype = Dtype::boolean, .name = "BOOL", .bits = 8, .npy_descr = "|b1"},
    {.dtype = Dtype::f4, .name = "F4", .bits = 4, .npy_descr = ""},
    {.dtype = Dtype::f6_e2m3, .name = "F6_E2M3", .bits = 6, .npy_descr = ""},
    {.dtype = Dtype::f6_e3m2, .name = "F6_E3M2", .bits = 6, .npy_descr = ""},
    {.dtype = Dtype::u8, .name = "U8", .bits = 8, .npy_descr = "|u1"},
    {.dtype = Dtype::i8, .name = "I8", .bits = 8, .npy_descr = "|i1"},
    {.dtype = Dtype::f8_e5m2, .name = "F8_E5M2", .bits = 8, .npy_descr = ""},
    {.dtype = Dtype::f8_e4m3, .name = "F8_E4M3", .bits = 8, .npy_descr = ""},
    {.dtype = Dtype::f8_e8m0, .name = "F8_E8M0", .bits = 8, .npy_descr = ""},
    {.dtype = Dtype::f8_e4m3fnuz, .name = "F8_E4M3FNUZ", .bits = 8, .npy_descr = ""},
    {.dtype = Dtype::f8_e5m2fnuz, .name = "F8_E5M2FNUZ", .bits = 8, .npy_descr = ""},
    {.dtype = Dtype::i16, .name = "I16", .bits = 16, .npy_descr = "<i2"},
    {.dtype = Dtype::u16, .name = "U16", .bits = 16, .npy_descr = "<u2"},
    {.dtype = Dtype::f16, .name = "F16", .bits = 16, .npy_descr = "<f2"},
    {.dtype = Dtype::bf16, .name = "BF16", .bits = 16, .npy_descr = ""},
    {.dtype = Dtype::i32, .name = "I32", .bits = 32, .npy_descr = "<i4"},
    {.dtype = Dtype::u32, .name = "U32", .bits = 32, .npy_descr = "<u4"},
    {.dtype = Dtype::f32, .name = "F32", .bits = 32, .npy_descr = "<f4"},
    {.dtype = Dtype::c64, .name = "C64", .bits = 64, .npy_descr = "<c8"},
    {.dtype = Dtype::f64, .name = "F64", .bits = 64, .npy_descr = "<f8"},
    {.dtype = Dtype::i64, .name = "I64", .bits = 64, .npy_descr = "<i8"},
    {.dtype = Dtype::u64, .name = "U64", .bits = 64, .npy_descr = "<u8"},
};

constexpr const DtypeRow& row(Dtype dtype) { return kDtypes[size_t(dtype)]; }

// The type spelled exactly so, as in a file.
std::optional<Dtype> dtype_named(std::string_view name);

// The type a user asked for, upper or lower case. Throws UsageError with the list of names.
Dtype dtype_from_option(std::string_view option, std::string_view value);

// "(2, 3)" or "(2,)", as Python writes a tuple.
std::string shape_text(std::span<const uint64_t> shape);

// The product of the dimensions, 1 for rank 0, or nothing where it does not fit 64 bits.
std::optional<uint64_t> element_count(std::span<const uint64_t> shape);

// The bits of a tensor, or nothing where they do not fit 64 bits.
std::optional<uint64_t> bit_count(Dtype dtype, std::span<const uint64_t> shape);

// Whether every row of the tensor (rank 0: its one element) ends at a byte. Packed types are stored only so.
// Requires bit_count.
bool rows_fill_bytes(Dtype dtype, std::span<const uint64_t> shape);

}  // namespace halfulp

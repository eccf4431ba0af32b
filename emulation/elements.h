#pragma once
// The elements of a tensor as numbers, exactly. Reads what a format of the catalog or a C type says of them.

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/dtype.h"

namespace halfulp {

// The C++ type that holds every value of a dtype.
enum class ElementKind {
  narrow_float,  // float: F32 and everything narrower that formats/catalog.h knows
  f64,           // double
  integer,       // int64_t: BOOL, I8 to I64, U8 to U32
  unsigned_64,   // uint64_t
  none,          // no numbers: complex, unspecified packing
};
ElementKind element_kind(Dtype dtype);

// Elements [first, first + out.size()) of an array whose bytes start at `bytes`, at any address. The instantiation must
// be the one for element_kind(dtype).
template <class Source>
void load_elements(Dtype dtype, const std::byte* bytes, uint64_t first, std::span<Source> out);

// Calls visitor.template operator()<Source>() with the type of element_kind(dtype). Requires that there is one.
template <class Visitor>
void with_element_type(Dtype dtype, Visitor&& visitor) {
  switch (element_kind(dtype)) {
    case ElementKind::narrow_float: visitor.template operator()<float>(); break;
    case ElementKind::f64: visitor.template operator()<double>(); break;
    case ElementKind::integer: visitor.template operator()<int64_t>(); break;
    case ElementKind::unsigned_64: visitor.template operator()<uint64_t>(); break;
    case ElementKind::none: break;
  }
}

}  // namespace halfulp

#include "emulation/elements.h"

#include <cstring>

#include "emulation/simd/simd.h"
#include "formats/catalog.h"
#include "formats/codec.h"
#include "formats/packing.h"

namespace halfulp {
namespace {

// The catalog position of the format whose codes a dtype stores, the first of them (F8_E4M3 is e4m3, not ue4m3); -1 if
// there is none.
int format_of_dtype(Dtype dtype) {
  for (std::size_t id = 0; id < kFormats.size(); ++id)
    if (kFormats[id].dtype == row(dtype).name) return int(id);
  return -1;
}

template <class Stored, class Source>
void widen(const std::byte* bytes, uint64_t first, std::span<Source> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, bytes + (first + i) * sizeof(Stored), sizeof(Stored));
    out[i] = Source(value);
  }
}

void load(Dtype dtype, const std::byte* bytes, uint64_t first, std::span<float> out) {
  const FormatEntry& entry = kFormats[std::size_t(format_of_dtype(dtype))];
  if (entry.storage_bits == 4 && first % 2 != 0 && !out.empty()) {  // the upper half of a byte
    out[0] = decode_bits(entry.format, load_code<4>(bytes, first));
    out = out.subspan(1);
    ++first;
  }
  const std::span codes(bytes + packed_bytes(entry.storage_bits, first),
                        (out.size() * std::size_t(entry.storage_bits) + 7) / 8);
  simd::to_f32(entry.format, {entry.storage_bits, entry.storage_shift}, codes, out);
}

void load(Dtype, const std::byte* bytes, uint64_t first, std::span<double> out) { widen<double>(bytes, first, out); }

void load(Dtype, const std::byte* bytes, uint64_t first, std::span<uint64_t> out) {
  widen<uint64_t>(bytes, first, out);
}

void load(Dtype dtype, const std::byte* bytes, uint64_t first, std::span<int64_t> out) {
  switch (dtype) {
    case Dtype::boolean:
    case Dtype::u8: return widen<uint8_t>(bytes, first, out);
    case Dtype::i8: return widen<int8_t>(bytes, first, out);
    case Dtype::u16: return widen<uint16_t>(bytes, first, out);
    case Dtype::i16: return widen<int16_t>(bytes, first, out);
    case Dtype::u32: return widen<uint32_t>(bytes, first, out);
    case Dtype::i32: return widen<int32_t>(bytes, first, out);
    default: return widen<int64_t>(bytes, first, out);
  }
}

}  // namespace

ElementKind element_kind(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64: return ElementKind::f64;
    case Dtype::u64: return ElementKind::unsigned_64;
    case Dtype::boolean:
    case Dtype::u8:
    case Dtype::i8:
    case Dtype::u16:
    case Dtype::i16:
    case Dtype::u32:
    case Dtype::i32:
    case Dtype::i64: return ElementKind::integer;
    default: return format_of_dtype(dtype) >= 0 ? ElementKind::narrow_float : ElementKind::none;
  }
}

template <class Source>
void load_elements(Dtype dtype, const std::byte* bytes, uint64_t first, std::span<Source> out) {
  load(dtype, bytes, first, out);
}

template void load_elements(Dtype, const std::byte*, uint64_t, std::span<float>);
template void load_elements(Dtype, const std::byte*, uint64_t, std::span<double>);
template void load_elements(Dtype, const std::byte*, uint64_t, std::span<int64_t>);
template void load_elements(Dtype, const std::byte*, uint64_t, std::span<uint64_t>);

}  // namespace halfulp

#include "emulation/blocks/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/catalog.h"
#include "formats/codec.h"
#include "formats/packing.h"
#include "lib/error.h"

namespace halfulp {
namespace {

constexpr Nibbles kEvenLow{.order = NibbleOrder::even_low};

// The product of the dimensions. So that a shape from a file cannot wrap around to the size of a small array.
uint64_t area(std::string_view what, Grid grid) {
  uint64_t product;
  if (__builtin_mul_overflow(grid.rows, grid.cols, &product))
    throw InputError({}, fmt::format("{}: {} x {} do not fit 64 bits", what, grid.rows, grid.cols));
  return product;
}

void require_size(std::string_view what, std::string_view unit, uint64_t expected, uint64_t got) {
  if (expected != got) throw InputError({}, fmt::format("{}: expected {} {}, got {}", what, expected, unit, got));
}

void require_bytes(std::string_view what, Grid grid, uint64_t got) {
  const uint64_t expected = area(what, grid);
  if (expected == got) return;
  throw InputError({},
                   fmt::format("{}: expected {} bytes for {} x {}, got {}", what, expected, grid.rows, grid.cols, got));
}

void require_blocks(const Nibbles& nibbles, uint64_t elements) {
  if (nibbles.order != NibbleOrder::split_halves) return;
  if (nibbles.block < 2 || nibbles.block % 2 != 0)
    throw InputError({}, fmt::format("split halves need an even block, got {}", nibbles.block));
  if (elements % nibbles.block != 0) {
    throw InputError(
        {}, fmt::format("split halves: {} elements are not a multiple of the block, {}", elements, nibbles.block));
  }
}

// Adds a code to a byte whose nibble is still 0.
void put_nibble(std::span<std::byte> codes, uint64_t position, uint32_t code) {
  codes[position / 2] |= std::byte(code << (position % 2 * 4));
}

// Sizes of `count` records and of what is in them.
void require_records(const BlockRecord& record, uint64_t records, uint64_t codes, uint64_t scales) {
  if (records % record.bytes() != 0) {
    throw InputError({}, fmt::format("{}: {} bytes are not a multiple of {}, the bytes of a record", record.name,
                                     records, record.bytes()));
  }
  const uint64_t count = records / record.bytes();
  require_size(fmt::format("codes of {} {} records", count, record.name), "bytes",
               count * record.scale_block() * uint64_t(record.scales) / 2, codes);
  require_size(fmt::format("scales of {} {} records", count, record.name), "bytes", count * uint64_t(record.scales),
               scales);
}

void require_stored(const ScaleLayout& layout, Grid scales, uint64_t linear, uint64_t stored) {
  require_bytes("scales", scales, linear);
  require_bytes(fmt::format("scales stored {}", layout.name), padded_grid(layout, scales), stored);
}

}  // namespace

void reorder_nibbles(const Nibbles& from_order, std::span<const std::byte> from, const Nibbles& to_order,
                     std::span<std::byte> to) {
  require_size("reordered codes", "bytes", from.size(), to.size());
  const uint64_t elements = 2 * from.size();
  require_blocks(from_order, elements);
  require_blocks(to_order, elements);
  std::ranges::fill(to, std::byte{0});
  for (uint64_t i = 0; i < elements; ++i)
    put_nibble(to, nibble_position(to_order, i), load_code<4>(from.data(), nibble_position(from_order, i)));
}

void unpack_records(const BlockRecord& record, std::span<const std::byte> records, std::span<std::byte> codes,
                    std::span<std::byte> scales) {
  require_records(record, records.size(), codes.size(), scales.size());
  const Nibbles halves{.order = NibbleOrder::split_halves, .block = record.scale_block()};
  const auto scale_bytes = uint64_t(record.scales), code_bytes = uint64_t(record.elements) / 2;
  for (uint64_t i = 0; i < records.size() / record.bytes(); ++i) {
    const std::span<const std::byte> from = records.subspan(i * record.bytes(), record.bytes());
    std::ranges::copy(from.first(scale_bytes), scales.begin() + std::ptrdiff_t(i * scale_bytes));
    reorder_nibbles(halves, from.subspan(scale_bytes), kEvenLow, codes.subspan(i * code_bytes, code_bytes));
  }
}

void pack_records(const BlockRecord& record, std::span<const std::byte> codes, std::span<const std::byte> scales,
                  std::span<std::byte> records) {
  require_records(record, records.size(), codes.size(), scales.size());
  const Nibbles halves{.order = NibbleOrder::split_halves, .block = record.scale_block()};
  const auto scale_bytes = uint64_t(record.scales), code_bytes = uint64_t(record.elements) / 2;
  for (uint64_t i = 0; i < records.size() / record.bytes(); ++i) {
    const std::span<std::byte> to = records.subspan(i * record.bytes(), record.bytes());
    std::ranges::copy(scales.subspan(i * scale_bytes, scale_bytes), to.begin());
    reorder_nibbles(kEvenLow, codes.subspan(i * code_bytes, code_bytes), halves, to.subspan(scale_bytes));
  }
}

void store_scales(const ScaleLayout& layout, Grid scales, std::span<const std::byte> linear,
                  std::span<std::byte> stored) {
  require_stored(layout, scales, linear.size(), stored.size());
  std::ranges::fill(stored, std::byte{0});
  for (uint64_t row = 0; row < scales.rows; ++row)
    for (uint64_t col = 0; col < scales.cols; ++col)
      stored[stored_offset(layout, scales, row, col)] = linear[row * scales.cols + col];
}

void load_scales(const ScaleLayout& layout, Grid scales, std::span<const std::byte> stored,
                 std::span<std::byte> linear) {
  require_stored(layout, scales, linear.size(), stored.size());
  for (uint64_t row = 0; row < scales.rows; ++row)
    for (uint64_t col = 0; col < scales.cols; ++col)
      linear[row * scales.cols + col] = stored[stored_offset(layout, scales, row, col)];
}

Grid te_scale_grid(const TeScales& scales, Grid data) {
  const uint64_t block = std::max(scales.block.rows, scales.block.cols);
  for (const uint64_t length : {data.rows, data.cols}) {
    if (length % block == 0) continue;
    throw InputError({}, fmt::format("{} takes rows and columns in multiples of {}, got {} x {}; padded with zeros, {} "
                                     "would be {}",
                                     scales.name, block, data.rows, data.cols, length, round_up(length, block)));
  }
  return block_grid(scales.transposed ? data.transposed() : data, scales.block);
}

std::vector<uint32_t> pack_e8m0(E8m0Packing packing, std::span<const float> scales) {
  if (scales.size() % 4 != 0)
    throw InputError({}, fmt::format("E8M0 packing: {} scales are not a multiple of 4", scales.size()));
  constexpr Format kE8m0 = format_named("e8m0");
  constexpr Policy kTruncate{.rounding = Rounding::toward_zero, .overflow = Overflow::saturate};
  std::vector<uint32_t> words(scales.size() / 4);
  for (uint64_t i = 0; i < scales.size(); ++i) {
    const uint32_t bits = bit_cast<uint32_t>(scales[i]);
    // Not equal also where there is no code: 0, Inf, NaN, negative.
    const uint32_t code = encode(kE8m0, kTruncate, scales[i]);
    if (packing == E8m0Packing::exact && decode(kE8m0, code) != scales[i]) {
      throw InputError({},
                       fmt::format("scale {} is {} (0x{:08x}, mantissa 0x{:06x}): expected a power of two, 2^-127 to "
                                   "2^127; truncating it would change every product with its block",
                                   i, scales[i], bits, bits & 0x7f'ffff));
    }
    words[i / 4] |= (packing == E8m0Packing::exact ? code : bits >> 23 & 0xff) << (i % 4 * 8);
  }
  return words;
}

std::vector<float> unpack_e8m0(std::span<const uint32_t> words) {
  std::vector<float> scales;
  scales.reserve(4 * words.size());
  for (const uint32_t word : words)
    for (int i = 0; i < 4; ++i) scales.push_back(decode(format_named("e8m0"), word >> (8 * i)));
  return scales;
}

template <class T>
void transpose(Grid grid, std::span<const T> from, std::span<T> to) {
  const uint64_t size = area("transposition", grid);
  require_size("transposition of an array", "elements", size, from.size());
  require_size("transposed array", "elements", size, to.size());
  for (uint64_t row = 0; row < grid.rows; ++row)
    for (uint64_t col = 0; col < grid.cols; ++col) to[col * grid.rows + row] = from[row * grid.cols + col];
}

template void transpose(Grid, std::span<const std::byte>, std::span<std::byte>);
template void transpose(Grid, std::span<const float>, std::span<float>);

}  // namespace halfulp

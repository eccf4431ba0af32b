#pragma once
// Where codes and scales lie in memory: nibble orders, GGUF block records, scale tiles, padding, transposition. Moves
// bytes; reads no values, but for the powers of two that pack_e8m0 takes apart.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lib/host_device.h"

namespace halfulp {

// Shape of a two-dimensional array, row-major unless said otherwise.
struct Grid {
  uint64_t rows;
  uint64_t cols;
  HOST_DEVICE constexpr Grid transposed() const { return {.rows = cols, .cols = rows}; }
  friend constexpr bool operator==(const Grid&, const Grid&) = default;
};

struct GridPosition {
  uint64_t row;
  uint64_t col;
  friend constexpr bool operator==(const GridPosition&, const GridPosition&) = default;
};

HOST_DEVICE constexpr uint64_t divide_up(uint64_t n, uint64_t divisor) { return n / divisor + (n % divisor != 0); }
HOST_DEVICE constexpr uint64_t round_up(uint64_t n, uint64_t multiple) { return divide_up(n, multiple) * multiple; }

// The scales of `elements` in blocks of that shape; the last block of a row or column may be a part of one.
HOST_DEVICE constexpr Grid block_grid(Grid elements, Grid block) {
  return {.rows = divide_up(elements.rows, block.rows), .cols = divide_up(elements.cols, block.cols)};
}

enum class NibbleOrder { even_low, even_high, split_halves };

struct NibbleOrderEntry {
  std::string_view name;
  NibbleOrder order;
  std::string_view meaning;
  std::string_view source;
};

// clang-format off
inline constexpr auto kNibbleOrders = std::to_array<NibbleOrderEntry>({
    {.name = "even-low", .order = NibbleOrder::even_low,
     .meaning = "byte i holds element 2i in its low nibble, 2i+1 in its high one",
     .source = "CUDA math API, __nv_cvt_float2_to_fp4x2; PyTorch float4_e2m1fn_x2; Transformer Engine, compressed-tensors, "
               "ModelOpt, gpt-oss"},
    {.name = "even-high", .order = NibbleOrder::even_high,
     .meaning = "byte i holds element 2i in its high nibble, 2i+1 in its low one",
     .source = "bitsandbytes csrc/kernels.cu, kQuantizeBlockwise to FP4"},
    {.name = "split-halves", .order = NibbleOrder::split_halves,
     .meaning = "byte j of a block holds element j in its low nibble, element j + block/2 in its high one",
     .source = "ggml src/ggml-common.h, block_mxfp4 (block 32) and block_nvfp4 (block 16)"},
});
// clang-format on

// An order and, for split halves, the elements of a block.
struct Nibbles {
  NibbleOrder order;
  uint64_t block = 2;
};

// The nibble in which element i lies: low nibble of byte p / 2 where p is even, else the high one.
HOST_DEVICE constexpr uint64_t nibble_position(const Nibbles& nibbles, uint64_t i) {
  switch (nibbles.order) {
    case NibbleOrder::even_low: return i;
    case NibbleOrder::even_high: return i ^ 1;
    case NibbleOrder::split_halves: {
      const uint64_t half = nibbles.block / 2, within = i % nibbles.block, first = i - within;
      return first + (within < half ? 2 * within : 2 * (within - half) + 1);
    }
  }
  return i;
}

// The same codes in another order. `to` and `from` may not overlap.
void reorder_nibbles(const Nibbles& from_order, std::span<const std::byte> from, const Nibbles& to_order,
                     std::span<std::byte> to);

// A record of a GGUF tensor: its scales, then its codes in split halves of scale_block().
struct BlockRecord {
  std::string_view name;
  int elements;
  int scales;
  std::string_view meaning;
  std::string_view source;

  constexpr uint64_t scale_block() const { return uint64_t(elements / scales); }
  constexpr uint64_t bytes() const { return uint64_t(scales) + uint64_t(elements) / 2; }
};

// The scale byte of block_nvfp4 is UE4M3, where ggml alone reads 0x7f as 0; the tensor's own scale is another tensor.
// clang-format off
inline constexpr auto kBlockRecords = std::to_array<BlockRecord>({
    {.name = "block_mxfp4", .elements = 32, .scales = 1,
     .meaning = "17 bytes: e (E8M0), then 16 bytes of codes",
     .source = "ggml src/ggml-common.h, GGML_TYPE_MXFP4 (39)"},
    {.name = "block_nvfp4", .elements = 64, .scales = 4,
     .meaning = "36 bytes: d[4] (UE4M3, each of 16 elements), then 32 bytes of codes",
     .source = "ggml src/ggml-common.h, GGML_TYPE_NVFP4 (40)"},
});
// clang-format on

// Records to codes (even-low) and scales in the order of the elements, and back. Sizes that do not belong together are
// an InputError.
void unpack_records(const BlockRecord& record, std::span<const std::byte> records, std::span<std::byte> codes,
                    std::span<std::byte> scales);
void pack_records(const BlockRecord& record, std::span<const std::byte> codes, std::span<const std::byte> scales,
                  std::span<std::byte> records);

// Tiles of 128 rows by 4 columns, 512 bytes each, one after the other along a row of tiles. Within a tile the rows r,
// r + 32, r + 64 and r + 96 share 16 bytes. CUTLASS: SfAtom ((32,4),(V,4)):((16,4),(0,1)).
inline constexpr uint64_t kTileRows = 128, kTileCols = 4, kTileBytes = kTileRows * kTileCols;

// Where the scale of (row, col) lies in an array of `cols` columns, padding not counted.
HOST_DEVICE constexpr uint64_t swizzled_offset(uint64_t cols, uint64_t row, uint64_t col) {
  const uint64_t tile = row / kTileRows * divide_up(cols, kTileCols) + col / kTileCols;
  return tile * kTileBytes + row % 32 * 16 + row % kTileRows / 32 * 4 + col % kTileCols;
}

// The inverse. Beyond the array's rows or columns lies padding. Requires cols > 0.
HOST_DEVICE constexpr GridPosition swizzled_position(uint64_t cols, uint64_t offset) {
  const uint64_t tile = offset / kTileBytes, within = offset % kTileBytes, tiles = divide_up(cols, kTileCols);
  return {.row = tile / tiles * kTileRows + within % 16 / 4 * 32 + within / 16,
          .col = tile % tiles * kTileCols + within % kTileCols};
}

enum class ScaleOrder { row_major, tiles };

// Which way the grid lies, for blocks along another dimension of the tensor than the last.
enum class ScaleAxes {
  as_tensor,  // as the tensor does: blocks that follow one another along their dimension are in a column
  axis_last,  // transposed: they are in a row, as matrix instructions want the scales of either operand
};

// How a grid of scales is stored: padded to multiples of pad.rows and pad.cols, in that order. Pad bytes are 0 where
// halfulp writes them, and not looked at where it reads them: kernels leave them as they were.
struct ScaleLayout {
  std::string_view name;
  Grid pad;
  ScaleOrder order;
  ScaleAxes axes;
  std::string_view meaning;
  std::string_view source;
};

// clang-format off
inline constexpr auto kScaleLayouts = std::to_array<ScaleLayout>({
    {.name = "linear", .pad = {1, 1}, .order = ScaleOrder::row_major, .axes = ScaleAxes::as_tensor,
     .meaning = "row-major, not padded",
     .source = "compressed-tensors, ModelOpt and gpt-oss checkpoints"},
    {.name = "padded-128x4", .pad = {128, 4}, .order = ScaleOrder::row_major, .axes = ScaleAxes::axis_last,
     .meaning = "row-major, rows padded to 128 and columns, which are blocks along the axis, to 4",
     .source = "NVIDIA/TransformerEngine pytorch/csrc/quantizer.cpp, get_scale_shape"},
    {.name = "padded-4x128", .pad = {4, 128}, .order = ScaleOrder::row_major, .axes = ScaleAxes::as_tensor,
     .meaning = "row-major, rows padded to 4 and columns to 128, as the tensor lies",
     .source = "NVIDIA/TransformerEngine pytorch/csrc/quantizer.cpp, MXFP8Quantizer::get_scale_shape, columnwise"},
    {.name = "swizzled-128x4", .pad = {kTileRows, kTileCols}, .order = ScaleOrder::tiles, .axes = ScaleAxes::axis_last,
     .meaning = "tiles of 128 rows by 4 columns, which are blocks along the axis, as block-scaled matrix instructions "
                "read them; UE4M3 and E8M0 alike",
     .source = "cuBLAS, 1D block scaling factors layout; CUTLASS include/cutlass/detail/sm100_blockscaled_layout.hpp; "
               "NVIDIA/TransformerEngine common/swizzle/swizzle.cu, which transposes MXFP8's columnwise grid"},
});
// clang-format on

constexpr int find_scale_layout(std::string_view name) {
  for (std::size_t id = 0; id < kScaleLayouts.size(); ++id)
    if (kScaleLayouts[id].name == name) return int(id);
  return -1;
}

consteval ScaleLayout scale_layout_named(std::string_view name) {
  const int id = find_scale_layout(name);
  if (id < 0) throw "no such layout";
  return kScaleLayouts[std::size_t(id)];
}

// The shape with its padding; as many bytes are stored.
HOST_DEVICE constexpr Grid padded_grid(const ScaleLayout& layout, Grid scales) {
  return {.rows = round_up(scales.rows, layout.pad.rows), .cols = round_up(scales.cols, layout.pad.cols)};
}

HOST_DEVICE constexpr uint64_t stored_offset(const ScaleLayout& layout, Grid scales, uint64_t row, uint64_t col) {
  if (layout.order == ScaleOrder::tiles) return swizzled_offset(scales.cols, row, col);
  return row * padded_grid(layout, scales).cols + col;
}

// A row-major, unpadded grid of scales to its stored form, and back. Sizes that do not belong together are an
// InputError.
void store_scales(const ScaleLayout& layout, Grid scales, std::span<const std::byte> linear,
                  std::span<std::byte> stored);
void load_scales(const ScaleLayout& layout, Grid scales, std::span<const std::byte> stored,
                 std::span<std::byte> linear);

// The scales that Transformer Engine keeps beside a tensor of M rows and K columns: for programs that hand it tensors
// or take its own. `halfulp quantize` makes the same shapes from a block, an axis and a layout's name.
struct TeScales {
  std::string_view name;
  Grid block;       // of the data as it lies in memory
  bool transposed;  // the data lies as K x M
  ScaleLayout layout;
  std::string_view source;
};

// To be read by a matrix instruction the columnwise MXFP8 grid is transposed and then swizzled; the others are swizzled
// as they are.
// clang-format off
inline constexpr auto kTeScales = std::to_array<TeScales>({
    {.name = "nvfp4-rowwise", .block = {1, 16}, .transposed = false, .layout = scale_layout_named("padded-128x4"),
     .source = "NVIDIA/TransformerEngine pytorch/csrc/quantizer.cpp, NVFP4Quantizer::get_scale_shape"},
    {.name = "nvfp4-columnwise", .block = {1, 16}, .transposed = true, .layout = scale_layout_named("padded-128x4"),
     .source = "NVIDIA/TransformerEngine pytorch/csrc/quantizer.cpp, NVFP4Quantizer::get_scale_shape"},
    {.name = "mxfp8-rowwise", .block = {1, 32}, .transposed = false, .layout = scale_layout_named("padded-128x4"),
     .source = "NVIDIA/TransformerEngine pytorch/csrc/quantizer.cpp, MXFP8Quantizer::get_scale_shape"},
    {.name = "mxfp8-columnwise", .block = {32, 1}, .transposed = false, .layout = scale_layout_named("padded-4x128"),
     .source = "NVIDIA/TransformerEngine pytorch/csrc/quantizer.cpp, MXFP8Quantizer::get_scale_shape"},
});
// clang-format on

// Their grid without padding. As Transformer Engine does, takes only dimensions that are multiples of the block's
// length, both of them, and throws InputError for others.
Grid te_scale_grid(const TeScales& scales, Grid data);

enum class E8m0Packing {
  exact,     // a value that E8M0 does not have is an InputError
  truncate,  // the exponent field, whatever the sign and mantissa: 0 becomes 2^-127, Inf becomes NaN
};

// Four scales to a word, the first in its low byte: as DeepGEMM passes them. Requires a multiple of four scales, or
// throws InputError.
std::vector<uint32_t> pack_e8m0(E8m0Packing packing, std::span<const float> scales);
std::vector<float> unpack_e8m0(std::span<const uint32_t> words);

// For whole arrays in memory: tools/placement.h moves the panels of a file. The scales of a transposed tensor are its
// transposed scales. A square grid does not tell which way it lies: 250 x 256
// elements in blocks of 128 x 128 have 2 x 2 scales either way.
template <class T>
void transpose(Grid grid, std::span<const T> from, std::span<T> to);

}  // namespace halfulp

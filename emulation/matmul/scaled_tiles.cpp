#include "emulation/matmul/scaled_tiles.h"

#include <algorithm>

#include "emulation/matmul/dot_product.h"
#include "formats/catalog.h"
#include "lib/philox.h"

namespace halfulp {
namespace {

const Format& format(std::string_view name) { return kFormats[std::size_t(find_format(name))].format; }

std::vector<uint32_t> codes(const Format& format, MatrixMode mode, MatrixSide side, int rows, int cols, uint64_t first,
                            uint64_t count) {
  std::vector<uint32_t> codes;
  for (uint64_t tile = first; tile < first + count; ++tile)
    for (uint32_t at = 0; at < uint32_t(rows * cols); ++at)
      codes.push_back(matrix_input(format, mode, side, cols, tile, at));
  return codes;
}

uint32_t scale(const Format& f, MatrixMode mode, MatrixSide side, uint32_t word) {
  const uint32_t one = uint32_t(f.bias) << f.mantissa_bits;
  switch (mode) {
    case MatrixMode::bits: return word & 0xff;
    case MatrixMode::wide:
    case MatrixMode::zeros: return std::min(word & 0xff, f.max_code());
    case MatrixMode::low: return word % 4;
    case MatrixMode::overflow: return f.max_code() - word % 4;
    case MatrixMode::floor:
      if (f.mantissa_bits == 0) return one - (side == MatrixSide::a ? 66 : 67) + word % 16 - 8;
      return word % 8;
    default: return f.mantissa_bits == 0 ? one - 8 + word % 16 : word % (f.max_code() + 1);
  }
}

std::vector<uint32_t> scales(const MatrixForm& is, MatrixMode mode, MatrixSide side, int rows, uint64_t first,
                             uint64_t count) {
  std::vector<uint32_t> scales;
  const uint64_t stream = uint64_t(mode) * 4 + 3 + (side == MatrixSide::b ? 64 : 0);
  for (uint64_t tile = first; tile < first + count; ++tile)
    for (uint64_t at = 0; at < uint64_t(rows) * uint64_t(is.row_scales); ++at)
      scales.push_back(
          scale(format(is.scale), mode, side, random_word(kMatrixSeed, stream, tile * kMatrixTileElements + at)));
  return scales;
}

DotOperand row_of(const MatrixForm& is, std::string_view name, const std::vector<uint32_t>& codes,
                  const std::vector<uint32_t>& scales, std::size_t row) {
  DotOperand x{format(name), &codes[row * std::size_t(is.k)]};
  if (is.row_scales == 0) return x;
  x.scale_format = format(is.scale);
  x.scales = &scales[row * std::size_t(is.row_scales)];
  x.scaled = is.k / is.row_scales;
  return x;
}

}  // namespace

std::string ptx_of(const ScaledInstruction& is) {
  if (is.unit == ScaledUnit::tcgen05) return "tcgen05.mma.cta_group::1." + std::string(is.kind);
  const std::string scale = is.row_scales == 0 ? "" : is.scale == "e8m0" ? ".ue8m0" : ".ue4m3";
  return "mma.sync.aligned." + std::string(is.kind) + ".m16n8k" + std::to_string(is.k) + ".row.col.f32." +
         std::string(is.a) + "." + std::string(is.b) + ".f32" + scale;
}

int find_scaled_instruction(std::string_view ptx, std::string_view a, std::string_view b) {
  for (std::size_t id = 0; id < kScaledInstructions.size(); ++id) {
    const ScaledInstruction& is = kScaledInstructions[id];
    if (is.a == a && is.b == b && ptx_of(is) == ptx) return int(id);
  }
  return -1;
}

ScaledTiles scaled_inputs(const MatrixForm& is, MatrixMode mode, uint64_t first, uint64_t count) {
  return {.a = codes(format(is.a), mode, MatrixSide::a, is.m, is.k, first, count),
          .b = codes(format(is.b), mode, MatrixSide::b, is.n, is.k, first, count),
          .a_scales = scales(is, mode, MatrixSide::a, is.m, first, count),
          .b_scales = scales(is, mode, MatrixSide::b, is.n, first, count),
          .c = codes(format(is.d), mode, MatrixSide::c, is.m, is.n, first, count),
          .d = {}};
}

uint32_t scaled_output(const MatrixForm& is, const Accumulator& row, const ScaledTiles& tiles, std::size_t at) {
  const std::size_t of_a = at / std::size_t(is.n), tile = of_a / std::size_t(is.m);
  const std::size_t of_b = tile * std::size_t(is.n) + at % std::size_t(is.n);
  return dot_product(row, row_of(is, is.a, tiles.a, tiles.a_scales, of_a),
                     row_of(is, is.b, tiles.b, tiles.b_scales, of_b), is.k, tiles.c[at]);
}

}  // namespace halfulp

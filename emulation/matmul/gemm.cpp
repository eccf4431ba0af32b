#include "emulation/matmul/gemm.h"

#include <algorithm>
#include <climits>

#include "emulation/matmul/panels.h"
#include "emulation/matmul/slices.h"
#include "emulation/matmul/tiles.h"
#include "lib/threads.h"

namespace halfulp {
namespace {

// Of formats separated by commas; of none all are.
bool lists(std::string_view formats, const Format& format) {
  if (formats.empty()) return true;
  for (std::string_view rest = formats; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (kFormats[std::size_t(find_format(rest.substr(0, comma)))].format == format) return true;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return false;
}

std::string scale_refusal(const Accumulator& row, const GemmOperand& x) {
  if (row.scales == SumScales::none) return x.scales.empty() ? "" : "takes no scales of blocks";
  if (x.scales.empty()) return keeps_all_bits(row) ? "" : "needs scales of blocks";
  if (!lists(row.scale_inputs, x.scale_format)) return "takes scales of " + std::string(row.scale_inputs);
  const auto unit = std::size_t(row.scales == SumScales::groups ? kSumGroup : row.block);
  if (keeps_all_bits(row) || x.scaled % unit == 0) return "";
  return "needs scales of " + std::to_string(unit) + " elements, or of a multiple of that";
}

// A tile's rows of A are laid out once for all its columns, and columns once for all its rows.
constexpr std::size_t kTileRows = 64, kTileCols = 512;

Tile tile_at(const GemmJob& job, std::size_t row, std::size_t rows, std::size_t col, std::size_t cols) {
  return {.row = row, .rows = std::min(rows, job.m - row), .col = col, .cols = std::min(cols, job.n - col)};
}

void multiply_by_definition(const GemmJob& job, const Tile& tile, std::span<uint32_t> d) {
  for (std::size_t i = tile.row; i < tile.row + tile.rows; ++i)
    for (std::size_t j = tile.col; j < tile.col + tile.cols; ++j) d[i * job.n + j] = gemm_element(job, i, j);
}

}  // namespace

std::string refusal(const GemmJob& job) {
  const Accumulator& row = job.row;
  if (job.k > INT_MAX / 2) return "adds no more than 2^30 products";
  if (!lists(row.inputs, job.a.format) || !lists(row.inputs, job.b.format)) return "takes " + std::string(row.inputs);
  if (row.mix == InputMix::no && job.a.format != job.b.format) return "takes two operands of one format";
  for (const GemmOperand* x : {&job.a, &job.b})
    if (const std::string why = scale_refusal(row, *x); !why.empty()) return why;
  if (row.scales == SumScales::groups && job.k % kSumGroup != 0) return "needs a K that 16 divides";
  if (row.promotion.every < 0 || row.slices < 1)
    return "needs a promotion after 0 or more products and 1 or more slices";
  if (row.block != kAllProducts && row.promotion.every % row.block != 0)
    return "is promoted after multiples of " + std::to_string(row.block) + " products";
  if (adds_in_f32(row) && row.sum.format.bits() != 32) return "has sums in FP16, which are not promoted";
  return "";
}

void gemm(const GemmJob& job, int threads, std::span<uint32_t> d, const std::function<void(uint64_t)>& advance) {
  const bool panels = has_panels(job);
  const TermTables a(job.row, job.a), b(job.row, job.b);
  const std::size_t rows = panels ? kTileRows : 1, cols = panels ? kTileCols : std::max<std::size_t>(job.n, 1);
  const std::size_t across = (job.n + cols - 1) / cols, down = (job.m + rows - 1) / rows;
  parallel_for(down * across, threads, [&](std::size_t at) {
    const Tile tile = tile_at(job, at / across * rows, rows, at % across * cols, cols);
    panels ? multiply_tile(job, a, b, tile, d) : multiply_by_definition(job, tile, d);
    if (advance) advance(uint64_t(tile.rows) * tile.cols * job.k);
  });
}

}  // namespace halfulp

#include "tools/placement.h"

#include "emulation/simd/scalar.h"

namespace halfulp {
namespace {

// Whether the panel's elements lie in the array as they do in the panel.
bool is_contiguous(const MatrixView& view, const Panel& panel) {
  return view.inner == 1 && (panel.shape.cols == view.along || panel.shape.rows == 1);
}

uint64_t first_element(const MatrixView& view, const Panel& panel) {
  return panel.first_row * view.along + panel.first_col;
}

}  // namespace

void place(const MatrixView& view, const Panel& panel, int bits, std::span<const std::byte> elements,
           const Sink& sink) {
  if (is_contiguous(view, panel)) return sink(packed_bytes(bits, first_element(view, panel)), elements);
  if (view.inner == 1) {
    for (uint64_t row = 0; row < panel.shape.rows; ++row)
      sink(packed_bytes(bits, view.position(panel.first_row + row, panel.first_col)),
           elements.subspan(packed_bytes(bits, row * panel.shape.cols), packed_bytes(bits, panel.shape.cols)));
    return;
  }
  const simd::Storage storage{.bits = bits};
  std::vector<std::byte> run;
  for_each_run(view, view, panel, [&](uint64_t row, uint64_t rows, uint64_t) {
    run.resize(packed_bytes(bits, rows));
    for (uint64_t col = 0; col < panel.shape.cols; ++col) {
      for (uint64_t i = 0; i < rows; ++i)
        simd::store_at(storage, run.data(), i,
                       simd::load_at(storage, elements.data(), (row - panel.first_row + i) * panel.shape.cols + col));
      sink(packed_bytes(bits, view.position(row, panel.first_col + col)), run);
    }
  });
}

std::vector<std::byte> gather(const MatrixView& view, const Panel& panel, int bits, std::span<const std::byte> array) {
  const uint64_t size = packed_bytes(bits, panel.shape.elements());
  if (is_contiguous(view, panel)) {
    const auto part = array.subspan(packed_bytes(bits, first_element(view, panel)), size);
    return {part.begin(), part.end()};
  }
  const simd::Storage storage{.bits = bits};
  std::vector<std::byte> elements(size);
  for (uint64_t row = 0; row < panel.shape.rows; ++row)
    for (uint64_t col = 0; col < panel.shape.cols; ++col)
      simd::store_at(storage, elements.data(), row * panel.shape.cols + col,
                     simd::load_at(storage, array.data(), view.position(panel.first_row + row, panel.first_col + col)));
  return elements;
}

void place_values(const TensorLayout& layout, const Panel& panel, std::span<const float> values, const Sink& sink) {
  if (layout.source == layout.padded) return place(layout.source, panel, 32, std::as_bytes(values), sink);
  const uint64_t cols = without_padding(layout, panel).cols;
  if (cols == 0) return;
  std::vector<float> run;
  for_each_run(layout.source, layout.padded, panel, [&](uint64_t row, uint64_t rows, uint64_t source_row) {
    run.resize(rows * cols);
    for (uint64_t i = 0; i < rows; ++i)
      std::ranges::copy(values.subspan((row - panel.first_row + i) * panel.shape.cols, cols), &run[i * cols]);
    const Panel part{.first_row = source_row, .first_col = panel.first_col, .shape = {.rows = rows, .cols = cols}};
    place(layout.source, part, 32, std::as_bytes(std::span(run)), sink);
  });
}

MatrixView scale_view(const Recipe& recipe, const MatrixView& view, ScaleAxes axes) {
  const Matrix grid = scale_grid(recipe, view.shape());
  if (view.inner == 1 || axes == ScaleAxes::axis_last) return {.outer = grid.rows, .along = grid.cols, .inner = 1};
  if (recipe.block.rows > 1) return {.outer = 1, .along = grid.cols, .inner = grid.rows};
  return {.outer = view.outer, .along = grid.cols, .inner = view.inner};
}

Panel scale_panel(const Recipe& recipe, const MatrixView& view, const Panel& panel) {
  return {.first_row = panel.first_row / uint64_t(recipe.block.rows),
          .first_col = panel.first_col / block_cols(recipe, view.shape()),
          .shape = scale_grid(recipe, panel.shape)};
}

}  // namespace halfulp

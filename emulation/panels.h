#pragma once
// A tensor as a matrix whose columns lie along one of its axes, in panels of whole blocks: bounded memory, any number
// of threads, and panels that depend on the tensor and the recipe alone.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "emulation/blocks/quantize.h"
#include "emulation/elements.h"
#include "lib/tensor_source.h"
#include "lib/threads.h"

namespace halfulp {

// Element (outer, along, inner) of a tensor is element (outer * inner_size + inner, along) of the matrix.
struct MatrixView {
  uint64_t outer;
  uint64_t along;
  uint64_t inner;

  Matrix shape() const { return {.rows = outer * inner, .cols = along}; }
  // Where element (row, col) of the matrix is in the tensor.
  uint64_t position(uint64_t row, uint64_t col) const { return (row / inner * along + col) * inner + row % inner; }
};

// The view with columns along `axis`, counted from the end: -rank <= axis <= -1; rank 0 is one element. A recipe
// without blocks sees one row.
MatrixView view_along(const Recipe& recipe, std::span<const uint64_t> shape, int axis);

// Rows and columns of a matrix, from element (first_row, first_col) on.
struct Panel {
  uint64_t first_row;
  uint64_t first_col;
  Matrix shape;
};

// How a matrix is divided: panels of whole block rows, or of whole blocks of one row where rows are long.
class Panels {
 public:
  Panels(const Recipe& recipe, const Matrix& shape);
  uint64_t count() const { return row_panels_ * col_panels_; }
  Panel operator[](uint64_t number) const;

 private:
  Matrix shape_;
  uint64_t rows_, cols_;  // of a panel
  uint64_t row_panels_, col_panels_;
};

// The random bits of a tensor from a panel's first element on.
Randomness panel_randomness(const Randomness& tensor, const Recipe& recipe, const MatrixView& view, const Panel& panel);

// Element (row, col) of the panel is out[row * panel.shape.cols + col].
template <class Source>
void load_panel(const Tensor& tensor, const MatrixView& view, const Panel& panel, std::span<Source> out) {
  if (view.inner == 1)
    return load_elements<Source>(tensor.dtype, tensor.bytes.data(), panel.first_row * view.along + panel.first_col,
                                 out);
  std::vector<Source> run;
  const uint64_t end = panel.first_row + panel.shape.rows;
  for (uint64_t row = panel.first_row; row < end;) {
    run.resize(std::min(end - row, view.inner - row % view.inner));  // rows that lie side by side in the tensor
    for (uint64_t col = 0; col < panel.shape.cols; ++col) {
      load_elements<Source>(tensor.dtype, tensor.bytes.data(), view.position(row, panel.first_col + col), run);
      Source* const to = &out[(row - panel.first_row) * panel.shape.cols + col];
      for (std::size_t i = 0; i < run.size(); ++i) to[i * panel.shape.cols] = run[i];
    }
    row += run.size();
  }
}

// Calls fn(panel, elements) for each panel, on `threads` threads at the same time, and gives back the memory of what
// was read.
template <class Source, class Fn>
void for_each_panel(const Recipe& recipe, const Tensor& tensor, const MatrixView& view, int threads, Fn&& fn) {
  const Panels panels(recipe, view.shape());
  const uint64_t bits = uint64_t(row(tensor.dtype).bits);
  parallel_for(panels.count(), threads, [&](std::size_t number) {
    const Panel panel = panels[number];
    std::vector<Source> elements(panel.shape.elements());
    load_panel<Source>(tensor, view, panel, elements);
    fn(panel, std::span<const Source>(elements));
    if (view.inner > 1) return;
    const uint64_t first = panel.first_row * view.along + panel.first_col;
    tensor.release(first * bits / 8, (first + elements.size()) * bits / 8);
  });
}

}  // namespace halfulp

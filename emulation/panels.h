#pragma once
// A tensor as a matrix whose columns lie along one of its axes, in panels of whole blocks: bounded memory, any number
// of threads, and panels that depend on the tensor and the recipe alone.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "emulation/blocks/hadamard.h"
#include "emulation/blocks/quantize.h"
#include "emulation/elements.h"
#include "lib/tensor_source.h"
#include "lib/threads.h"

namespace halfulp {

// Element (outer, along, inner) of an array is element (outer * inner_size + inner, along) of the matrix.
struct MatrixView {
  uint64_t outer;
  uint64_t along;
  uint64_t inner;

  Matrix shape() const { return {.rows = outer * inner, .cols = along}; }
  uint64_t row(uint64_t outer_index, uint64_t inner_index) const { return outer_index * inner + inner_index; }
  // Where element (row, col) of the matrix is in the array.
  uint64_t position(uint64_t row, uint64_t col) const { return (row / inner * along + col) * inner + row % inner; }
  friend bool operator==(const MatrixView&, const MatrixView&) = default;
};

// What is done to rows before they are quantized: a Hadamard transform whose groups share one vector of signs.
using Rotation = std::optional<Hadamard>;

// What becomes of a tensor that is not whole blocks.
enum class Padding { none, zeros };

// In which order codes are stored.
enum class CodeOrder {
  as_tensor,
  axis_last,  // with the axis that blocks lie along as the last: a transposed copy
};

// A tensor as the matrix that a recipe sees, and as the array that its codes make.
struct TensorLayout {
  std::vector<uint64_t> code_shape;  // in elements
  int axis;                          // from the end: -1 is the last
  MatrixView source;                 // the tensor
  MatrixView padded;                 // the same with its padding: what the recipe sees
  MatrixView codes;                  // the array of codes, whose rows and columns are those of `padded`
};

// `axis` counts from the end: -rank <= axis <= -1; rank 0 is one element. A recipe without blocks sees one row, unless
// rows are rotated or the copy is transposed. Rows are padded too where the tensor is a matrix.
TensorLayout tensor_layout(const Recipe& recipe, const std::vector<uint64_t>& shape, int axis,
                           Padding padding = Padding::none, CodeOrder order = CodeOrder::as_tensor,
                           const Rotation& rotation = {});

// Rows and columns of a matrix, from element (first_row, first_col) on.
struct Panel {
  uint64_t first_row;
  uint64_t first_col;
  Matrix shape;
};

// How much of a panel is not padding: its first rows and columns. Of a row's end as much as whole groups of `group`
// elements need.
Matrix without_padding(const TensorLayout& layout, const Panel& panel, uint64_t group = 1);

// How a matrix is divided: panels of whole rows of blocks, or of whole blocks of one row where rows are long. Where the
// axis is not the tensor's last, panels are as high as makes what lies side by side in the tensor worth reading.
class Panels {
 public:
  // Rows are divided at multiples of `group`, as well as of blocks.
  Panels(const Recipe& recipe, const MatrixView& view, uint64_t group = 1);
  uint64_t count() const { return row_panels_ * col_panels_; }
  Panel operator[](uint64_t number) const;

 private:
  Matrix shape_;
  uint64_t rows_, cols_;  // of a panel
  uint64_t row_panels_, col_panels_;
};

// The random bits of a tensor from a panel's first element on.
Randomness panel_randomness(const Randomness& tensor, const Recipe& recipe, const Matrix& shape, const Panel& panel);

// Calls fn(row, rows, source row) for runs of a panel's rows that lie side by side in the array `source`, of which
// `padded` is the same array with its padding, or itself: element (row + i, col) of the matrix is
// source.position(source row, col) + i.
template <class Fn>
void for_each_run(const MatrixView& source, const MatrixView& padded, const Panel& panel, Fn&& fn) {
  const uint64_t end = panel.first_row + panel.shape.rows;
  for (uint64_t row = panel.first_row; row < end;) {
    const uint64_t outer = row / padded.inner, inner = row % padded.inner;
    const uint64_t rows = std::min(end - row, padded.inner - inner);
    if (outer < source.outer && inner < source.inner)
      fn(row, std::min(rows, source.inner - inner), source.row(outer, inner));
    row += rows;
  }
}

// Element (row, col) of the panel is out[row * panel.shape.cols + col]; padding is zero.
template <class Source>
void load_panel(const Tensor& tensor, const TensorLayout& layout, const Panel& panel, std::span<Source> out) {
  const MatrixView& source = layout.source;
  const bool side_by_side = panel.shape.cols == source.along || panel.shape.rows == 1;
  if (side_by_side && source.inner == 1 && source == layout.padded)
    return load_elements<Source>(tensor.dtype, tensor.bytes.data(), panel.first_row * source.along + panel.first_col,
                                 out);
  const uint64_t cols = without_padding(layout, panel).cols;
  std::vector<Source> run;
  for_each_run(source, layout.padded, panel, [&](uint64_t row, uint64_t rows, uint64_t source_row) {
    Source* const to = &out[(row - panel.first_row) * panel.shape.cols];
    if (source.inner == 1)
      return load_elements<Source>(tensor.dtype, tensor.bytes.data(), source.position(source_row, panel.first_col),
                                   std::span(to, cols));
    run.resize(rows);
    for (uint64_t col = 0; col < cols; ++col) {
      load_elements<Source>(tensor.dtype, tensor.bytes.data(), source.position(source_row, panel.first_col + col), run);
      for (std::size_t i = 0; i < rows; ++i) to[i * panel.shape.cols + col] = run[i];
    }
  });
}

// Calls fn(panel, elements) for each panel, on `threads` threads at the same time, and gives back the memory of what
// was read.
template <class Source, class Fn>
void for_each_panel(const Recipe& recipe, const Tensor& tensor, const TensorLayout& layout, const Rotation& rotation,
                    int threads, Fn&& fn) {
  const Panels panels(recipe, layout.padded, rotation ? uint64_t(rotation->size) : 1);
  const uint64_t bits = uint64_t(row(tensor.dtype).bits);
  parallel_for(panels.count(), threads, [&](std::size_t number) {
    const Panel panel = panels[number];
    std::vector<Source> elements(panel.shape.elements());
    load_panel<Source>(tensor, layout, panel, elements);
    if constexpr (std::is_same_v<Source, float>)
      if (rotation) hadamard(*rotation, panel.shape.cols, elements, elements);
    fn(panel, std::span<const Source>(elements));
    if (layout.source.inner > 1 || !(layout.source == layout.padded)) return;
    const uint64_t first = panel.first_row * layout.source.along + panel.first_col;
    tensor.release(first * bits / 8, (first + elements.size()) * bits / 8);
  });
}

}  // namespace halfulp

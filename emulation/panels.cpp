#include "emulation/panels.h"

namespace halfulp {
namespace {

constexpr uint64_t kPanelElements = uint64_t{1} << 18;

uint64_t divided(uint64_t count, uint64_t by) { return (count + by - 1) / by; }

}  // namespace

MatrixView view_along(std::span<const uint64_t> shape, int axis) {
  if (shape.empty()) return {.outer = 1, .along = 1, .inner = 1};
  const std::size_t along = std::size_t(axis < 0 ? axis + int(shape.size()) : axis);
  MatrixView view{.outer = 1, .along = shape[along], .inner = 1};
  for (std::size_t i = 0; i < along; ++i) view.outer *= shape[i];
  for (std::size_t i = along + 1; i < shape.size(); ++i) view.inner *= shape[i];
  return view;
}

Panels::Panels(const Recipe& recipe, const Matrix& shape) : shape_(shape), rows_(1), cols_(shape.cols) {
  const uint64_t height = uint64_t(recipe.block.rows);
  const uint64_t unit = std::max(block_cols(recipe, shape), uint64_t(recipe.correction.group));
  if (height == 1 && shape.cols > kPanelElements && unit <= kPanelElements) {
    cols_ = kPanelElements / unit * unit;
  } else if (shape.cols > 0) {
    rows_ = std::max(kPanelElements / shape.cols / height, uint64_t{1}) * height;
  }
  row_panels_ = shape.elements() == 0 ? 0 : divided(shape.rows, rows_);
  col_panels_ = shape.elements() == 0 ? 0 : divided(shape.cols, cols_);
}

Panel Panels::operator[](uint64_t number) const {
  const uint64_t row = number / col_panels_ * rows_, col = number % col_panels_ * cols_;
  return {.first_row = row,
          .first_col = col,
          .shape = {.rows = std::min(rows_, shape_.rows - row), .cols = std::min(cols_, shape_.cols - col)}};
}

}  // namespace halfulp

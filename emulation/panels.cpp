#include "emulation/panels.h"

namespace halfulp {
namespace {

constexpr uint64_t kPanelElements = uint64_t{1} << 18;

uint64_t divided(uint64_t count, uint64_t by) { return (count + by - 1) / by; }

}  // namespace

MatrixView view_along(const Recipe& recipe, std::span<const uint64_t> shape, int axis) {
  MatrixView view{.outer = 1, .along = 1, .inner = 1};
  if (!has_scale(recipe) || shape.empty()) {
    for (const uint64_t extent : shape) view.along *= extent;
    return view;
  }
  const std::size_t along = std::size_t(axis + int(shape.size()));
  view.along = shape[along];
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

Randomness panel_randomness(const Randomness& tensor, const Recipe& recipe, const MatrixView& view,
                            const Panel& panel) {
  Randomness random = tensor;
  random.first_element += panel.first_row * view.along + panel.first_col;
  const uint64_t width = block_cols(recipe, view.shape());
  random.first_block += panel.first_row * divided(view.along, width) + panel.first_col / width;
  if (!random.words.empty()) random.words = random.words.subspan(random.first_element / 4);
  return random;
}

}  // namespace halfulp

#include "emulation/panels.h"

#include <algorithm>
#include <numeric>

#include "emulation/blocks/layout.h"

namespace halfulp {
namespace {

constexpr uint64_t kPanelElements = uint64_t{1} << 18;

std::vector<uint64_t> padded_shape(const Recipe& recipe, std::vector<uint64_t> shape, std::size_t axis) {
  const Matrix row{.rows = 1, .cols = shape[axis]};
  shape[axis] =
      round_up(shape[axis], std::max(block_cols(recipe, row), uint64_t(std::max(recipe.correction.group, 1))));
  if (shape.size() == 2) shape[1 - axis] = round_up(shape[1 - axis], uint64_t(recipe.block.rows));
  return shape;
}

MatrixView view_along(const std::vector<uint64_t>& shape, std::size_t axis) {
  MatrixView view{.outer = 1, .along = shape[axis], .inner = 1};
  for (std::size_t i = 0; i < axis; ++i) view.outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.size(); ++i) view.inner *= shape[i];
  return view;
}

}  // namespace

TensorLayout tensor_layout(const Recipe& recipe, const std::vector<uint64_t>& shape, int axis, Padding padding,
                           CodeOrder order, const Rotation& rotation) {
  TensorLayout layout{.code_shape = shape, .axis = axis, .source = {1, 1, 1}, .padded = {1, 1, 1}, .codes = {1, 1, 1}};
  const bool rows = has_scale(recipe) || rotation || order == CodeOrder::axis_last;
  if (!rows || shape.empty()) {
    for (const uint64_t extent : shape) layout.source.along *= extent;
    layout.padded = layout.codes = layout.source;
    return layout;
  }
  const std::size_t along = std::size_t(axis + int(shape.size()));
  if (has_scale(recipe) && padding == Padding::zeros) layout.code_shape = padded_shape(recipe, shape, along);
  layout.source = view_along(shape, along);
  layout.codes = layout.padded = view_along(layout.code_shape, along);
  if (order == CodeOrder::as_tensor) return layout;
  std::rotate(layout.code_shape.begin() + std::ptrdiff_t(along), layout.code_shape.begin() + std::ptrdiff_t(along) + 1,
              layout.code_shape.end());
  layout.axis = -1;
  layout.codes = {.outer = layout.padded.outer * layout.padded.inner, .along = layout.padded.along, .inner = 1};
  return layout;
}

Matrix without_padding(const TensorLayout& layout, const Panel& panel, uint64_t group) {
  const auto part = [](uint64_t first, uint64_t size, uint64_t end) {
    return std::min(first + size, end) - std::min(first, end);
  };
  return {.rows = part(panel.first_row, panel.shape.rows, layout.source.shape().rows),
          .cols = part(panel.first_col, panel.shape.cols, round_up(layout.source.along, group))};
}

Panels::Panels(const Recipe& recipe, const MatrixView& view, uint64_t group)
    : shape_(view.shape()), rows_(1), cols_(view.along) {
  constexpr uint64_t kSideBySide = 256;
  const uint64_t height = uint64_t(recipe.block.rows), cols = std::max<uint64_t>(view.along, 1);
  const uint64_t unit =
      std::lcm(std::lcm(block_cols(recipe, shape_), uint64_t(std::max(recipe.correction.group, 1))), group);
  if (view.inner > 1 && (is_random(recipe) || unit >= cols)) {
    // Random bits are numbered along whole rows. An even number of rows keeps codes of 4 bits in whole bytes.
    rows_ = round_up(std::max<uint64_t>(kPanelElements / cols, 1), std::lcm(height, uint64_t{2}));
  } else if (view.inner > 1) {
    rows_ = round_up(std::max(kSideBySide, kPanelElements / cols), std::lcm(height, kSideBySide));
    cols_ = std::min(cols_, std::max(kPanelElements / rows_ / unit, uint64_t{1}) * unit);
  } else if (height == 1 && cols > kPanelElements && unit <= kPanelElements) {
    cols_ = kPanelElements / unit * unit;
  } else {
    rows_ = std::max(kPanelElements / cols / height, uint64_t{1}) * height;
  }
  row_panels_ = shape_.elements() == 0 ? 0 : divide_up(shape_.rows, rows_);
  col_panels_ = shape_.elements() == 0 ? 0 : divide_up(shape_.cols, cols_);
}

Panel Panels::operator[](uint64_t number) const {
  const uint64_t row = number / col_panels_ * rows_, col = number % col_panels_ * cols_;
  return {.first_row = row,
          .first_col = col,
          .shape = {.rows = std::min(rows_, shape_.rows - row), .cols = std::min(cols_, shape_.cols - col)}};
}

Randomness panel_randomness(const Randomness& tensor, const Recipe& recipe, const Matrix& shape, const Panel& panel) {
  Randomness random = tensor;
  random.first_element += panel.first_row * shape.cols + panel.first_col;
  const uint64_t width = block_cols(recipe, shape);
  random.first_block += panel.first_row * divide_up(shape.cols, width) + panel.first_col / width;
  if (!random.words.empty()) random.words = random.words.subspan(random.first_element / 4);
  return random;
}

}  // namespace halfulp

#include "tools/quantized.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/placement.h"

namespace halfulp {
namespace {

// The scales' shape: the codes' with fewer along the axis; of tiles, and of a tensor of rank 0, that of the matrix.
std::vector<uint64_t> scales_shape(const Recipe& recipe, const TensorLayout& layout) {
  std::vector<uint64_t> shape = layout.code_shape;
  if (recipe.block.rows > 1 || shape.empty()) {
    const Grid grid = scale_matrix(recipe, layout, ScaleAxes::as_tensor);
    return {grid.rows, grid.cols};
  }
  shape[std::size_t(int(shape.size()) + layout.axis)] = scale_view(recipe, layout.codes, ScaleAxes::as_tensor).along;
  return shape;
}

}  // namespace

Grid scale_matrix(const Recipe& recipe, const TensorLayout& layout, ScaleAxes axes) {
  const MatrixView view = scale_view(recipe, layout.codes, axes);
  return axes == ScaleAxes::axis_last || layout.axis == -1 ? Grid{.rows = view.outer, .cols = view.along}
                                                           : Grid{.rows = view.outer * view.along, .cols = view.inner};
}

std::string rotation_text(const Hadamard& rotation) {
  const auto named = std::ranges::find(kHadamardSigns, rotation.signs, &HadamardSignsEntry::signs);
  return fmt::format("{} {}", rotation.size, named->name);
}

QuantizedParts quantized_parts(const Recipe& recipe, const std::string& name, const TensorLayout& layout,
                               const ScaleLayout& scales) {
  const FormatEntry& element = recipe.element.entry();
  QuantizedParts parts;
  parts.codes = {name + ".codes", Dtype::u8, layout.code_shape};
  if (element.storage_bits < 8) {
    parts.codes.shape.back() /= 8 / uint64_t(element.storage_bits);
  } else if (const auto dtype = dtype_named(element.dtype)) {
    parts.codes.dtype = *dtype;
  }
  if (has_scale(recipe)) {
    const auto dtype = dtype_named(recipe.scale.entry().dtype);
    std::vector<uint64_t> shape = scales_shape(recipe, layout);
    if (!is_linear(scales)) {
      const Grid stored = padded_grid(scales, scale_matrix(recipe, layout, scales.axes));
      shape = {stored.rows, stored.cols};
    }
    parts.scales = {{name + ".scales", dtype ? *dtype : Dtype::u8, shape}};
  }
  if (has_outer_scale(recipe)) {
    parts.tensor_scale = {{name + ".global_scale", Dtype::f32, {}}, {name + ".amax", Dtype::f32, {}}};
  }
  return parts;
}

}  // namespace halfulp

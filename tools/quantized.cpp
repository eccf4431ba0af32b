#include "tools/quantized.h"

#include "tools/placement.h"

namespace halfulp {
namespace {

// The scales' shape: the tensor's with fewer along the axis; of tiles, and of a tensor of rank 0, that of the matrix.
std::vector<uint64_t> scales_shape(const Recipe& recipe, std::vector<uint64_t> shape, int axis) {
  const MatrixView view = scale_view(recipe, view_along(recipe, shape, axis));
  if (recipe.block.rows > 1 || shape.empty())
    return view.inner == 1 ? std::vector{view.outer, view.along} : std::vector{view.along, view.inner};
  shape[std::size_t(int(shape.size()) + axis)] = view.along;
  return shape;
}

}  // namespace

QuantizedParts quantized_parts(const Recipe& recipe, const std::string& name, const std::vector<uint64_t>& shape,
                               int axis) {
  const FormatEntry& element = recipe.element.entry();
  QuantizedParts parts;
  parts.codes = {name + ".codes", Dtype::u8, shape};
  if (element.storage_bits < 8) {
    parts.codes.shape.back() /= 8 / uint64_t(element.storage_bits);
  } else if (const auto dtype = dtype_named(element.dtype)) {
    parts.codes.dtype = *dtype;
  }
  if (has_scale(recipe)) {
    const auto dtype = dtype_named(recipe.scale.entry().dtype);
    parts.scales = {{name + ".scales", dtype ? *dtype : Dtype::u8, scales_shape(recipe, shape, axis)}};
  }
  if (has_outer_scale(recipe)) {
    parts.tensor_scale = {{name + ".global_scale", Dtype::f32, {}}, {name + ".amax", Dtype::f32, {}}};
  }
  return parts;
}

}  // namespace halfulp

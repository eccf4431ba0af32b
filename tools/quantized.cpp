#include "tools/quantized.h"

namespace halfulp {

QuantizedParts quantized_parts(const Recipe& recipe, const std::string& name, const std::vector<uint64_t>& shape) {
  const FormatEntry& element = element_of(recipe);
  QuantizedParts parts;
  parts.codes = {name + ".codes", Dtype::u8, shape};
  if (element.storage_bits < 8) {
    parts.codes.shape.back() /= 8 / uint64_t(element.storage_bits);
  } else if (const auto dtype = dtype_named(element.dtype)) {
    parts.codes.dtype = *dtype;
  }
  if (has_scale(recipe)) {
    std::vector<uint64_t> blocks = shape;
    blocks.back() /= uint64_t(recipe.block);
    parts.scales = {{name + ".scales", *dtype_named(scale_of(recipe).dtype), blocks}};
  }
  if (has_outer_scale(recipe)) {
    parts.tensor_scale = {{name + ".global_scale", Dtype::f32, {}}, {name + ".amax", Dtype::f32, {}}};
  }
  return parts;
}

}  // namespace halfulp

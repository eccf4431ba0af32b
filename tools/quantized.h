#pragma once
// The file that `quantize` writes and `dequantize` reads: for a tensor T its T.codes, T.scales, T.global_scale and
// T.amax, and metadata that says how they came about.

#include <cstdint>
#include <string>
#include <vector>

#include "emulation/blocks/layout.h"
#include "emulation/panels.h"
#include "lib/dtype.h"
#include "lib/safetensors.h"

namespace halfulp {

// The tensors of the file that stand for one quantized tensor, in this order; those that the recipe has.
struct QuantizedParts {
  TensorSpec codes;
  std::vector<TensorSpec> scales;        // none or one
  std::vector<TensorSpec> tensor_scale;  // none, or global_scale (the decode factor) and amax
};

// Codes that share a byte are stored as U8, two to a byte along the last dimension. Any layout of the scales but the
// linear one is of a matrix.
QuantizedParts quantized_parts(const Recipe& recipe, const std::string& name, const TensorLayout& layout,
                               const ScaleLayout& scales);

// The scales as the matrix that a layout is of. As the tensor lies its columns are the dimensions behind the axis, or
// the axis where it is the last.
Grid scale_matrix(const Recipe& recipe, const TensorLayout& layout, ScaleAxes axes);

// The rotation as the metadata names it: its size and the name of its signs.
std::string rotation_text(const Hadamard& rotation);

constexpr bool is_linear(const ScaleLayout& layout) {
  return layout.pad == Grid{.rows = 1, .cols = 1} && layout.order == ScaleOrder::row_major;
}

// Metadata keys. RECIPE, AXIS and ROUNDING are the file's; a tensor's are prefixed with its name and a dot.
inline constexpr char kFormatKey[] = "halfulp.quantized";
inline constexpr char kFormatVersion[] = "1";
inline constexpr char kRecipeKey[] = "recipe";
inline constexpr char kDefinitionKey[] = "recipe_definition";  // in TOML, where the recipe is not of the catalog
inline constexpr char kAxisKey[] = "axis";
inline constexpr char kRoundingKey[] = "rounding";
inline constexpr char kSeedKey[] = "seed";
inline constexpr char kPaddingKey[] = "padding";
inline constexpr char kOrderKey[] = "code_order";
inline constexpr char kAxisLast[] = "axis-last";  // an order
inline constexpr char kScaleLayoutKey[] = "scale_layout";
inline constexpr char kScaleOrderKey[] = "scale_order";
inline constexpr char kHadamardKey[] = "hadamard";
inline constexpr char kNibblesKey[] = "nibbles";
inline constexpr char kShapeKey[] = "shape";
inline constexpr char kDtypeKey[] = "dtype";

}  // namespace halfulp

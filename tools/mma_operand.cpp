#include "tools/mma_operand.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "emulation/blocks/formula.h"
#include "emulation/blocks/quantize.h"
#include "emulation/elements.h"
#include "emulation/simd/scalar.h"
#include "lib/error.h"
#include "lib/utf8.h"
#include "tools/inputs.h"
#include "tools/number_text.h"
#include "tools/options.h"
#include "tools/placement.h"
#include "tools/quantized_file.h"

namespace halfulp {
namespace {

struct Extents {
  std::size_t tiles, rows, k;
};

Extents extents_of(const Where& place, const std::vector<uint64_t>& shape) {
  if (shape.size() != 2 && shape.size() != 3)
    throw InputError(place, fmt::format("shape {}: an operand is a matrix [rows, K], or [tiles, rows, K] for one "
                                        "instruction on each tile",
                                        shape_text(shape)));
  const std::size_t first = shape.size() - 2;
  return {.tiles = first == 0 ? 1 : std::size_t(shape[0]),
          .rows = std::size_t(shape[first]),
          .k = std::size_t(shape[first + 1])};
}

// Where an element's first byte is in its file; none where the file has its elements in another order.
std::optional<uint64_t> byte_of(const Tensor& tensor, std::size_t index) {
  if (tensor.copy) return std::nullopt;
  return uint64_t(tensor.bytes.data() - tensor.mapping->bytes().data()) + index * uint64_t(row(tensor.dtype).bits) / 8;
}

std::string index_text(const std::vector<uint64_t>& shape, std::size_t index) {
  std::string text;
  for (std::size_t d = shape.size(); d-- > 0; index /= std::max<std::size_t>(shape[d], 1))
    text = fmt::format("{}{}{}", index % std::max<std::size_t>(shape[d], 1), text.empty() ? "" : ", ", text);
  return "[" + text + "]";
}

uint32_t code_of(const Format& f, double x, Rounding rounding) {
  return encode(f, {.rounding = rounding, .overflow = Overflow::saturate}, x);
}

bool holds(const Format& f, uint32_t code, double x) {
  const double value = double(decode(f, code));
  return value == x ? std::signbit(value) == std::signbit(x) || x == 0 : std::isnan(value) && std::isnan(x);
}

std::string neighbours_text(const Format& f, double x) {
  if (std::isnan(x)) return "it has no NaN";
  if (std::isinf(x)) return fmt::format("it has no Inf; its largest is {}", code_and_value(f, f.max_code()));
  const uint32_t below = code_of(f, x, Rounding::down), above = code_of(f, x, Rounding::up);
  if (below == above) return fmt::format("its nearest is {}", code_and_value(f, below));
  return fmt::format("its neighbours are {} and {}", code_and_value(f, below), code_and_value(f, above));
}

[[noreturn]] void refuse_value(const Tensor& tensor, std::size_t index, double x, const FormatEntry& format,
                               std::string_view option) {
  Where place = where(tensor);
  place.byte = byte_of(tensor, index);
  const std::string hint =
      option.empty() ? "" : fmt::format("; 'halfulp quantize' rounds, or {} names another format", option);
  throw InputError(place, fmt::format("element {} is {}, which {} does not hold: {}{}", index_text(tensor.shape, index),
                                      decimal(x), format.name, neighbours_text(format.format, x), hint));
}

// The format that the row takes where it takes one only.
std::string_view only_input(const Accumulator& row) {
  return row.inputs.find(',') == std::string_view::npos ? row.inputs : std::string_view();
}

const FormatEntry& format_of_values(const Arguments& arguments, const Tensor& tensor, std::string_view option,
                                    const Accumulator& row_of_sum) {
  if (arguments.has(option)) return kFormats[std::size_t(format_of(arguments.string(option)))];
  for (const FormatEntry& format : kFormats)
    if (format.dtype == row(tensor.dtype).name && (format.dtype != "F32" || row_of_sum.inputs.empty())) return format;
  if (const std::string_view only = only_input(row_of_sum); !only.empty())
    return kFormats[std::size_t(find_format(only))];
  throw UsageError(fmt::format("{} is needed: {} holds {} elements, and {} takes {}", option, printable(tensor.file),
                               row(tensor.dtype).name, row_of_sum.name,
                               row_of_sum.inputs.empty() ? "every format" : row_of_sum.inputs));
}

std::vector<uint32_t> numbers_of(std::span<const std::byte> bytes, int bits, std::size_t count) {
  std::vector<uint32_t> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = simd::load_at({.bits = bits}, bytes.data(), i);
  return numbers;
}

// Whether elements are bits of codes, not numbers.
bool are_codes(const Tensor& tensor) {
  return tensor.dtype == Dtype::u8 || tensor.dtype == Dtype::u16 || tensor.dtype == Dtype::u32;
}

// Codes as a register or a byte has them; of tf32 the low 13 bits are nobody's.
std::vector<uint32_t> stored_codes(const Tensor& tensor, const FormatEntry& format) {
  const int bits = std::max(format.storage_bits, 8);
  if (row(tensor.dtype).bits != bits)
    throw InputError(where(tensor), fmt::format("has {} elements, which are bits; codes of {} are U{}",
                                                row(tensor.dtype).name, format.name, bits));
  std::vector<uint32_t> codes = numbers_of(tensor.bytes, bits, tensor.elements());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if ((codes[i] >> format.storage_shift & ~format.format.code_mask()) != 0)
      throw InputError(where(tensor),
                       fmt::format("element {} is 0x{:x}; a code of {} has {} bits", index_text(tensor.shape, i),
                                   codes[i], format.name, format.format.bits()));
    codes[i] >>= format.storage_shift;
  }
  return codes;
}

MmaOperand operand_of_values(const Arguments& arguments, const std::string& spec, std::string_view option,
                             const Accumulator& row) {
  const Tensor tensor = open_input(arguments, spec);
  const Extents is = extents_of(where(tensor), tensor.shape);
  const FormatEntry& format = format_of_values(arguments, tensor, option, row);
  return {.spec = spec,
          .recipe = {},
          .format = &format,
          .rank = int(tensor.shape.size()),
          .tiles = is.tiles,
          .rows = is.rows,
          .k = is.k,
          .codes = exact_codes(tensor, format, option),
          .shape = tensor.shape,
          .source = {.outer = is.tiles * is.rows, .along = is.k, .inner = 1}};
}

// The tensor that FILE[:TENSOR] names, by the name it had before it was quantized.
QuantizedTensor quantized_tensor(const TensorPlace& place) {
  std::vector<QuantizedTensor> tensors = QuantizedFile(place.path, Rotated::kept).tensors();
  if (!place.tensor && tensors.size() == 1) return std::move(tensors[0]);
  const std::string wanted = place.tensor.value_or("");
  for (QuantizedTensor& tensor : tensors)
    if (tensor.name == wanted || tensor.name + ".codes" == wanted) return std::move(tensor);
  throw InputError({.file = place.path},
                   fmt::format("{}; name one, such as {}:{}",
                               place.tensor ? "has no quantized tensor '" + wanted + "'"
                                            : fmt::format("has {} quantized tensors", tensors.size()),
                               place.path, tensors[0].name));
}

// How codes, and the tensor that they came from, lie as rows whose elements are along K.
struct OperandViews {
  MatrixView codes, source;
};

// A recipe that sees a tensor as one row has rows along its last dimension.
OperandViews views_of(const QuantizedTensor& tensor) {
  const TensorLayout& layout = tensor.layout;
  const bool one_row = !has_scale(*tensor.recipe) && layout.codes.outer == 1 && layout.codes.inner == 1;
  if (!one_row) return {.codes = layout.codes, .source = layout.source};
  MatrixView rows{.outer = 1, .along = layout.code_shape.back(), .inner = 1};
  for (std::size_t d = 0; d + 1 < layout.code_shape.size(); ++d) rows.outer *= layout.code_shape[d];
  return {.codes = rows, .source = layout.code_shape == tensor.shape ? rows : layout.source};
}

std::vector<uint32_t> gathered_codes(const QuantizedTensor& tensor, const MatrixView& view) {
  const FormatEntry& format = tensor.recipe->element.entry();
  const Matrix shape = view.shape();
  const Panel all{.first_row = 0, .first_col = 0, .shape = shape};
  std::vector<std::byte> bytes = gather(view, all, format.storage_bits, tensor.codes.bytes);
  if (tensor.nibbles.order != NibbleOrder::even_low) {
    const std::vector<std::byte> stored = bytes;
    reorder_nibbles(tensor.nibbles, stored, {.order = NibbleOrder::even_low}, bytes);
  }
  std::vector<uint32_t> codes = numbers_of(bytes, format.storage_bits, shape.elements());
  for (uint32_t& code : codes) code >>= format.storage_shift;
  return codes;
}

// One scale for each row and each `width` elements of it, though tiles of several rows share one.
std::vector<uint32_t> gathered_scales(const QuantizedTensor& tensor) {
  const Recipe& recipe = *tensor.recipe;
  const MatrixView& codes = tensor.layout.codes;
  const MatrixView view = scale_view(recipe, codes, tensor.scale_axes);
  const Matrix grid = scale_grid(recipe, codes.shape());
  const std::vector<std::byte> bytes =
      gather(view, {.first_row = 0, .first_col = 0, .shape = grid}, recipe.scale.entry().storage_bits, tensor.scales);
  const std::vector<uint32_t> of_blocks = numbers_of(bytes, recipe.scale.entry().storage_bits, grid.elements());
  std::vector<uint32_t> of_rows;
  for (uint64_t row = 0; row < codes.shape().rows; ++row)
    for (uint64_t col = 0; col < grid.cols; ++col)
      of_rows.push_back(of_blocks[row / uint64_t(recipe.block.rows) * grid.cols + col]);
  return of_rows;
}

std::string rows_with(SumScales scales) {
  std::string names;
  for (const Accumulator& row : kAccumulators)
    if (row.scales == scales && row.kept_bits != kAllBits) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

std::string scale_text(const QuantizedTensor& tensor) {
  const Recipe& recipe = *tensor.recipe;
  return fmt::format("recipe {} has {} scales of {} elements along K", recipe.name, recipe.scale.name(),
                     recipe.block.cols);
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Why the row's hardware takes no such scales; empty where it does.
std::string scale_refusal(const QuantizedTensor& tensor, const Accumulator& row) {
  const Recipe& recipe = *tensor.recipe;
  const std::string_view name = recipe.scale.name();
  if (row.scales == SumScales::none)
    return fmt::format("{}, and {} takes none; these do: {}, {}, and every ref row", scale_text(tensor), row.name,
                       rows_with(SumScales::products), rows_with(SumScales::groups));
  if (row.scales == SumScales::products && row.kept_bits != kAllBits && name != "e8m0")
    return fmt::format("{}, and {} takes e8m0 ones", scale_text(tensor), row.name);
  if ((row.scales == SumScales::groups || row.scales == SumScales::products) && !is_one_of(name, {"e8m0", "ue4m3"}))
    return fmt::format("{}, and {} takes ue4m3 and e8m0 ones", scale_text(tensor), row.name);
  return "";
}

std::vector<float> values_of(const FormatEntry& format, const std::vector<uint32_t>& codes) {
  std::vector<float> values;
  for (const uint32_t code : codes) values.push_back(decode(format.format, code));
  return values;
}

enum class ScaleMeaning { factor, divisor };

// A matrix instruction multiplies codes by scales; a recipe may mean otherwise, and a kernel's caller may take
// reciprocals of the scales of whole rows (pytorch/ao float8/float8_ops.py).
ScaleMeaning meaning_of(const QuantizedTensor& tensor) {
  const Recipe& r = *tensor.recipe;
  constexpr float kScale = 2, kTolerance = 0x1p-18f;  // publishers round their products once or twice
  const uint32_t one = code_of(r.element.format(), 1, Rounding::nearest_even);
  const TensorScale of_one = has_outer_scale(r) ? tensor_scale(r, 1) : TensorScale{};
  const float factor = has_outer_scale(r) ? of_one.decode : 1, scale = has_scale(r) ? kScale : 1;
  const float value = decode_element(r, of_one, scale, one), expected = scale * factor;
  if (std::fabs(value - expected) <= kTolerance * std::fabs(expected) || !std::isfinite(expected))
    return ScaleMeaning::factor;
  if (value == factor / scale && r.block.cols == Extent::kWhole) return ScaleMeaning::divisor;
  throw InputError(
      {.file = tensor.file, .tensor = tensor.name, .byte = {}},
      fmt::format("under recipe {} code 1 with scale {} stands for {}, not for their product {}: no matrix "
                  "instruction's operand",
                  r.name, scale, value, expected));
}

void add_scales(const QuantizedTensor& tensor, const Accumulator& row, MmaOperand& operand) {
  const Recipe& recipe = *tensor.recipe;
  const Where place{.file = tensor.file, .tensor = tensor.name, .byte = {}};
  std::vector<uint32_t> scales = gathered_scales(tensor);
  const FormatEntry& format = recipe.scale.entry();
  if (recipe.block.cols == Extent::kWhole) {
    operand.row_factors = values_of(format, scales);
    if (meaning_of(tensor) == ScaleMeaning::divisor)
      for (float& factor : operand.row_factors) factor = 1 / factor;
    return;
  }
  if (row.promotion.step == PromotionStep::scaled && row.promotion.every != 0) {
    if (recipe.block.cols != row.promotion.every)
      throw InputError(place,
                       fmt::format("{}; {} promotes after {}", scale_text(tensor), row.name, row.promotion.every));
    operand.promotion_scales = values_of(format, scales);
    return;
  }
  if (const std::string why = scale_refusal(tensor, row); !why.empty()) throw InputError(place, why);
  operand.scale_format = &format;
  operand.scales = std::move(scales);
  operand.scaled = std::size_t(recipe.block.cols);
}

// The matrix without rows that padding added.
void drop_padding(const QuantizedTensor& tensor, MmaOperand& operand) {
  const std::size_t rows = tensor.layout.source.shape().rows;
  if (!has_scale(*tensor.recipe) || rows == tensor.layout.padded.shape().rows) return;
  const auto cut = [&](auto& values, std::size_t each) { values.resize(std::min(values.size(), rows * each)); };
  const std::size_t all = tensor.layout.padded.shape().rows;
  cut(operand.codes, operand.k);
  cut(operand.scales, all == 0 ? 0 : operand.scales.size() / all);
  cut(operand.promotion_scales, all == 0 ? 0 : operand.promotion_scales.size() / all);
  cut(operand.row_factors, 1);
  operand.rows = rows;
}

MmaOperand operand_of_codes(const Arguments& arguments, const std::string& spec, std::string_view option,
                            const Accumulator& row) {
  const QuantizedTensor tensor = quantized_tensor(split_tensor_spec(spec));
  const Where place{.file = tensor.file, .tensor = tensor.name, .byte = {}};
  const Extents is = extents_of(place, tensor.shape);
  const FormatEntry& format = tensor.recipe->element.entry();
  if (arguments.has(option) && format_of(arguments.string(option)) != find_format(format.name))
    throw UsageError(fmt::format("{}: the codes of {} are {}, by their metadata", option, spec, format.name));
  const OperandViews views = views_of(tensor);
  const Matrix shape = views.codes.shape();
  if (tensor.shape.size() == 3 && shape.rows % std::max<std::size_t>(is.tiles, 1) != 0)
    throw InputError(place, "its blocks lie along its first dimension, which are the tiles; K is another");
  meaning_of(tensor);  // refuses what is no operand
  MmaOperand operand{.spec = spec,
                     .recipe = std::string(tensor.recipe->name),
                     .format = &format,
                     .rank = int(tensor.shape.size()),
                     .tiles = is.tiles,
                     .rows = is.tiles == 0 ? 0 : std::size_t(shape.rows) / is.tiles,
                     .k = std::size_t(shape.cols),
                     .codes = gathered_codes(tensor, views.codes),
                     .shape = tensor.shape,
                     .source = views.source};
  if (has_outer_scale(*tensor.recipe)) operand.factor = tensor.scale.decode, operand.amax = tensor.scale.amax;
  if (has_scale(*tensor.recipe)) add_scales(tensor, row, operand);
  operand.rotation = tensor.kept_rotation;
  drop_padding(tensor, operand);
  return operand;
}

}  // namespace

std::vector<double> exact_values(const Tensor& tensor) {
  std::vector<double> values(tensor.elements());
  bool exact = true;
  with_element_type(tensor.dtype, [&]<class Source>() {
    std::vector<Source> elements(values.size());
    load_elements<Source>(tensor.dtype, tensor.bytes.data(), 0, std::span(elements));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = double(elements[i]);
      if constexpr (std::is_integral_v<Source>)
        exact = exact && static_cast<__int128>(values[i]) == static_cast<__int128>(elements[i]);
    }
  });
  if (element_kind(tensor.dtype) == ElementKind::none)
    throw InputError(where(tensor), fmt::format("{} elements are no numbers", row(tensor.dtype).name));
  if (!exact) throw InputError(where(tensor), "has integers of more than 53 bits");
  return values;
}

std::vector<uint32_t> exact_codes(const Tensor& tensor, const FormatEntry& format, std::string_view option) {
  if (are_codes(tensor)) return stored_codes(tensor, format);
  const std::vector<double> values = exact_values(tensor);
  std::vector<uint32_t> codes(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    codes[i] = encode(format.format, {.rounding = Rounding::toward_zero, .overflow = Overflow::to_special}, values[i]);
    if (!holds(format.format, codes[i], values[i])) refuse_value(tensor, i, values[i], format, option);
  }
  return codes;
}

std::vector<double> read_source(const Arguments& arguments, const std::string& spec, const MmaOperand& operand) {
  const Tensor tensor = open_input(arguments, spec);
  if (tensor.shape != operand.shape)
    throw InputError(where(tensor), fmt::format("has shape {}; what {} was quantized from has {}",
                                                shape_text(tensor.shape), operand.spec, shape_text(operand.shape)));
  const std::vector<double> values = exact_values(tensor);
  std::vector<double> rows(operand.tiles * operand.rows * operand.k);
  const Matrix matrix = operand.source.shape();
  for (uint64_t row = 0; row < matrix.rows; ++row)
    for (uint64_t col = 0; col < matrix.cols; ++col)
      rows[row * operand.k + col] = values[operand.source.position(row, col)];
  return rows;
}

MmaOperand read_operand(const Arguments& arguments, const std::string& spec, std::string_view format,
                        const Accumulator& row) {
  const TensorPlace place = split_tensor_spec(spec);
  return is_quantized_file(place.path) ? operand_of_codes(arguments, spec, format, row)
                                       : operand_of_values(arguments, spec, format, row);
}

GemmOperand MmaOperand::tile(std::size_t number) const {
  const auto part = [&](const auto& all) {
    const std::size_t size = tiles == 0 ? 0 : all.size() / tiles;
    return std::span(all).subspan(number * size, size);
  };
  GemmOperand operand{.format = format->format, .codes = part(codes)};
  if (scale_format != nullptr) operand.scale_format = scale_format->format;
  operand.scales = part(scales);
  operand.scaled = scaled;
  operand.promotion_scales = part(promotion_scales);
  return operand;
}

std::vector<double> MmaOperand::values(std::size_t number, const Promotion& promotion) const {
  const GemmOperand is = tile(number);
  const auto every = std::size_t(std::max(promotion.every, 1));
  const std::size_t blocks = scaled == 0 ? 0 : (k + scaled - 1) / scaled, promotions = (k + every - 1) / every;
  std::vector<double> exact(rows * k);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t at = 0; at < k; ++at) {
      double x = double(decode(is.format, is.codes[i * k + at]));
      if (!is.scales.empty()) x *= double(decode(is.scale_format, is.scales[i * blocks + at / scaled]));
      if (!is.promotion_scales.empty()) x *= double(is.promotion_scales[i * promotions + at / every]);
      if (!row_factors.empty()) x *= double(row_factors[number * rows + i]);
      exact[i * k + at] = x;
    }
  return exact;
}

}  // namespace halfulp

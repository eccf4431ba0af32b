#include "emulation/blocks/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include "emulation/blocks/block_sums.h"
#include "emulation/blocks/formula_arrays.h"
#include "emulation/elements.h"
#include "emulation/simd/simd.h"
#include "formats/packing.h"
#include "lib/philox.h"

namespace halfulp {
namespace {

simd::Storage storage_of(const FormatEntry& format) {
  return {.bits = format.storage_bits, .shift = format.storage_shift};
}

simd::NanMagnitude nan_magnitude(AmaxNan nan) {
  return nan == AmaxNan::propagates ? simd::NanMagnitude::propagates : simd::NanMagnitude::ignored;
}

Columns columns_of(const TensorScale& tensor) { return {.constants = values_of(tensor)}; }

// A factor for all elements: a block as long as the array.
simd::BlockFactors same_factor(const float& factor, std::size_t count, simd::FactorUse use) {
  return {.values = {&factor, 1}, .block = std::bit_ceil(std::max<std::size_t>(count, 16)), .use = use};
}

// Each block's value, once for each of its elements; one value for all where there are no blocks.
std::vector<float> per_element(const Recipe& recipe, const Matrix& shape, std::span<const float> of_blocks) {
  if (!has_scale(recipe)) return std::vector<float>(shape.elements(), of_blocks[0]);
  std::vector<float> values(shape.elements());
  const uint64_t width = block_cols(recipe, shape), cols = scale_grid(recipe, shape).cols;
  for (uint64_t row = 0; row < shape.rows; ++row) {
    const float* const blocks = of_blocks.data() + row / uint64_t(recipe.block.rows) * cols;
    for (uint64_t col = 0; col < shape.cols; col += width)
      std::fill_n(&values[row * shape.cols + col], std::min(width, shape.cols - col), blocks[col / width]);
  }
  return values;
}

// Whether rows are whole blocks that follow one another without a gap.
bool is_contiguous(const Recipe& recipe, const Matrix& shape) {
  return recipe.block.rows == 1 && shape.cols % block_cols(recipe, shape) == 0;
}

// The values of codes times one weight of each block, or of all.
void decode_products(const Recipe& recipe, const Matrix& shape, std::span<const std::byte> codes,
                     std::span<const float> weights, std::span<float> y) {
  const FormatEntry& element = recipe.element.entry();
  const simd::Storage storage = storage_of(element);
  if (!has_scale(recipe))
    return simd::decode_blocks(element.format, storage, codes,
                               same_factor(weights[0], y.size(), simd::FactorUse::multiply), y);
  const uint64_t width = block_cols(recipe, shape), cols = scale_grid(recipe, shape).cols;
  if (std::has_single_bit(width) && is_contiguous(recipe, shape))
    return simd::decode_blocks(element.format, storage, codes, {.values = weights, .block = width}, y);
  for (uint64_t row = 0; row < shape.rows; ++row) {
    const auto of_row = weights.subspan(row / uint64_t(recipe.block.rows) * cols, cols);
    if (std::has_single_bit(width)) {
      simd::decode_blocks(element.format, storage, codes.subspan(packed_bytes(storage.bits, row * shape.cols)),
                          {.values = of_row, .block = width}, y.subspan(row * shape.cols, shape.cols));
      continue;
    }
    for (uint64_t col = 0; col < shape.cols; col += width) {
      const uint64_t count = std::min(width, shape.cols - col), first = row * shape.cols + col;
      simd::decode_blocks(element.format, storage, codes.subspan(packed_bytes(storage.bits, first)),
                          same_factor(of_row[col / width], count, simd::FactorUse::multiply), y.subspan(first, count));
    }
  }
}

// Blocks of one part of a matrix, all their arithmetic done side by side. The scales of a part come from its own
// elements only, so that a part is whole block rows, or whole blocks of one row.
class Part {
 public:
  Part(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape, std::span<const float> x,
       const Randomness& random)
      : r_(recipe),
        tensor_(tensor),
        shape_(shape),
        x_(x),
        random_(random),
        grid_(scale_grid(recipe, shape)),
        width_(block_cols(recipe, shape)) {}

  void quantize(std::span<std::byte> codes, std::span<std::byte> scales) {
    if (!has_scale(r_)) return encode_elements(x_, codes);
    find_statistics();
    form_scales(r_.unrounded);
    encode_blocks(codes);
    if (has_choice(r_)) choose(codes);
    if (has_correction(r_)) correct(codes);
    std::ranges::copy(scale_codes_, scales.begin());
  }

 private:
  bool contiguous() const { return is_contiguous(r_, shape_); }

  void find_statistics() {
    amax_.assign(grid_.elements(), 0);
    if (contiguous()) {
      simd::block_amax(x_, width_, nan_magnitude(r_.amax_nan), amax_);
    } else {
      find_amax_by_rows();
    }
    const bool sums =
        std::ranges::any_of(std::array{&r_.unrounded, &r_.choice.alternative, &r_.factor},
                            [](const Formula* f) { return f->uses(Symbol::sum) || f->uses(Symbol::squares); });
    if (r_.amax_nan != AmaxNan::propagates_from_all && !sums) return;
    sum_.resize(grid_.elements());
    squares_.resize(grid_.elements());
    for (uint64_t i = 0; i < grid_.elements(); ++i) {
      const uint64_t row = i / grid_.cols * height(), col = i % grid_.cols * width_;
      const BlockStatistics s =
          block_statistics(r_, &x_[row * shape_.cols + col], std::min(height(), shape_.rows - row),
                           std::min(width_, shape_.cols - col), shape_.cols);
      amax_[i] = s.amax;
      sum_[i] = s.sum;
      squares_[i] = s.squares;
    }
  }

  void find_amax_by_rows() {
    std::vector<float> row_amax(grid_.cols);
    for (uint64_t row = 0; row < shape_.rows; ++row) {
      simd::block_amax(row_of(row), width_, nan_magnitude(r_.amax_nan), row_amax);
      float* const amax = &amax_[row / height() * grid_.cols];
      for (uint64_t col = 0; col < grid_.cols; ++col)
        amax[col] = larger_magnitude(r_.amax_nan, amax[col], row_amax[col]);
    }
  }

  // Codes of the scales, their values and the elements' factors.
  void form_scales(const Formula& unrounded) {
    const FormatEntry& format = r_.scale.entry();
    std::vector<float> d(grid_.elements());
    scale_.resize(d.size());
    factor_.resize(d.size());
    scale_codes_.resize(d.size() * std::size_t(format.storage_bits) / 8);
    Columns columns =
        columns_of(tensor_).with(Symbol::a, amax_).with(Symbol::sum, sum_).with(Symbol::squares, squares_);
    evaluate(unrounded, columns, d);
    simd::encode_blocks(format.format, r_.scale_policy, storage_of(format), d, {}, scale_codes_);
    simd::decode_blocks(format.format, storage_of(format), scale_codes_, {}, scale_);
    evaluate(r_.factor, columns.with(Symbol::d, d).with(Symbol::s, scale_), factor_);
  }

  void encode_blocks(std::span<std::byte> codes) {
    const bool plain = std::has_single_bit(width_) && r_.scaled == Formula("x * m");
    const bool quotient = std::has_single_bit(width_) && r_.scaled == Formula("x / m");
    if (!plain && !quotient) return encode_elements(scaled(), codes);
    const auto use = plain ? simd::FactorUse::multiply : simd::FactorUse::divide;
    if (contiguous()) return encode(x_, {.values = factor_, .block = width_, .use = use}, 0, codes);
    const int bits = r_.element.entry().storage_bits;
    for (uint64_t row = 0; row < shape_.rows; ++row) {
      const auto factors = std::span<const float>(factor_).subspan(row / height() * grid_.cols, grid_.cols);
      encode(row_of(row), {.values = factors, .block = width_, .use = use}, row * shape_.cols,
             codes.subspan(packed_bytes(bits, row * shape_.cols)));
    }
  }

  // The values that are converted to codes, of every element.
  std::vector<float> scaled() const {
    std::vector<float> y(x_.size());
    const std::vector<float> factors = per_element(r_, shape_, factor_);
    evaluate(r_.scaled, columns_of(tensor_).with(Symbol::x, x_).with(Symbol::m, factors), y);
    return y;
  }

  void encode_elements(std::span<const float> x, std::span<std::byte> codes) {
    if (has_scale(r_) || r_.scaled.empty()) return encode(x, {}, 0, codes);
    if (r_.scaled == Formula("x * S_enc"))
      return encode(x, same_factor(tensor_.encode, x.size(), simd::FactorUse::multiply), 0, codes);
    std::vector<float> y(x.size());
    evaluate(r_.scaled, columns_of(tensor_).with(Symbol::x, x), y);
    encode(y, {}, 0, codes);
  }

  // Converts elements from number `first` of the part on.
  void encode(std::span<const float> x, const simd::BlockFactors& factors, uint64_t first, std::span<std::byte> codes) {
    const FormatEntry& format = r_.element.entry();
    if (!is_stochastic(r_.policy.rounding)) {
      simd::encode_blocks(format.format, r_.policy, storage_of(format), x, factors, codes);
    } else if (r_.random == RandomSource::ideal) {
      const simd::PhiloxWords words{
          .seed = random_.seed, .stream = random_.stream, .first = random_.first_element + first};
      simd::encode_blocks(format.format, r_.policy, storage_of(format), x, factors, words, codes);
    } else {
      const std::vector<uint32_t> words = words_of_fours(first, x.size());
      simd::encode_blocks(format.format, r_.policy, storage_of(format), x, factors, simd::WordOfFour{.words = words},
                          codes);
    }
  }

  // Requires that blocks are whole fours.
  std::vector<uint32_t> words_of_fours(uint64_t first, std::size_t count) const {
    std::vector<uint32_t> words((count + 3) / 4);
    if (!random_.words.empty()) {
      std::ranges::copy(random_.words.subspan(first / 4, words.size()), words.begin());
      return words;
    }
    const uint64_t per_row = (shape_.cols + width_ - 1) / width_;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const uint64_t element = first + 4 * i, row = element / shape_.cols, col = element % shape_.cols;
      const uint64_t block = random_.first_block + row * per_row + col / width_, word = col % width_ / 4;
      words[i] = random_block(random_.seed, block, random_.stream + word / 4)[word % 4];
    }
    return words;
  }

  // Replaces the blocks whose alternative has the smaller loss.
  void choose(std::span<std::byte> codes) {
    const std::vector<float> loss = losses(codes);
    const std::vector<std::byte> first_codes(codes.begin(), codes.end()), first_scales = scale_codes_;
    const std::vector<float> first_scale = scale_, first_factor = factor_;
    form_scales(r_.choice.alternative);
    encode_blocks(codes);
    const std::vector<float> other = losses(codes);
    const std::size_t scale_size = scale_codes_.size() / grid_.elements();
    for (std::size_t block = 0; block < loss.size(); ++block) {
      if (other[block] < loss[block]) continue;
      std::copy_n(&first_scales[block * scale_size], scale_size, &scale_codes_[block * scale_size]);
      scale_[block] = first_scale[block];
      factor_[block] = first_factor[block];
      restore_block(block, first_codes, codes);
    }
  }

  // One row of a block is whole bytes, unless it is the last and the tensor is not whole blocks.
  void restore_block(std::size_t block, std::span<const std::byte> from, std::span<std::byte> to) const {
    const int bits = r_.element.entry().storage_bits;
    const uint64_t first_row = block / grid_.cols * height(), col = block % grid_.cols * width_;
    const uint64_t count = std::min(width_, shape_.cols - col);
    for (uint64_t row = first_row; row < std::min(first_row + height(), shape_.rows); ++row) {
      const uint64_t begin = packed_bytes(bits, row * shape_.cols + col);
      const uint64_t end = packed_bytes(bits, row * shape_.cols + col + count + (bits == 4 ? count % 2 : 0));
      std::copy(&from[begin], from.data() + end, &to[begin]);
    }
  }

  // The loss of each block under its present codes and scales.
  std::vector<float> losses(std::span<const std::byte> codes) const {
    const std::vector<float> c = values_of_codes(codes), s = per_element(r_, shape_, scale_),
                             m = per_element(r_, shape_, factor_);
    std::vector<float> v(x_.size());
    Columns columns = columns_of(tensor_).with(Symbol::x, x_).with(Symbol::m, m).with(Symbol::c, c).with(Symbol::s, s);
    evaluate(r_.choice.estimate, columns, v);
    std::vector<float> loss(x_.size());
    evaluate(r_.choice.loss, columns.with(Symbol::v, v), loss);
    std::vector<float> sums(grid_.elements());
    for (std::size_t block = 0; block < sums.size(); ++block) sums[block] = sum_of_block(block, loss);
    return sums;
  }

  float sum_of_block(std::size_t block, std::span<const float> values) const {
    const uint64_t first_row = block / grid_.cols * height(), col = block % grid_.cols * width_;
    const uint64_t count = std::min(width_, shape_.cols - col);
    if (r_.block.rows == 1) return total_of_losses(r_.choice.total, &values[first_row * shape_.cols + col], count);
    std::vector<float> of_block;
    for (uint64_t row = first_row; row < std::min(first_row + height(), shape_.rows); ++row)
      of_block.insert(of_block.end(), &values[row * shape_.cols + col], &values[row * shape_.cols + col] + count);
    return total_of_losses(r_.choice.total, of_block.data(), of_block.size());
  }

  std::vector<float> values_of_codes(std::span<const std::byte> codes) const {
    std::vector<float> c(x_.size());
    const FormatEntry& format = r_.element.entry();
    simd::decode_blocks(format.format, storage_of(format), codes, {}, c);
    return c;
  }

  void correct(std::span<const std::byte> codes) {
    const std::vector<float> y = scaled(), c = values_of_codes(codes);
    const std::size_t group = std::size_t(r_.correction.group);
    std::vector<float> v(scale_.size());
    for (std::size_t block = 0; block < v.size(); ++block) {
      const std::size_t first = block * width_ / group * group;
      v[block] = correction_factor(&y[first], &c[first], group);
    }
    std::vector<float> corrected(scale_.size());
    evaluate(r_.correction.scale, columns_of(tensor_).with(Symbol::s, scale_).with(Symbol::v, v), corrected);
    const FormatEntry& format = r_.scale.entry();
    const simd::PhiloxWords words{.seed = random_.seed, .stream = random_.scale_stream, .first = random_.first_block};
    simd::encode_blocks(format.format, r_.correction.policy, storage_of(format), corrected, {}, words, scale_codes_);
  }

  uint64_t height() const { return uint64_t(r_.block.rows); }
  std::span<const float> row_of(uint64_t row) const { return x_.subspan(row * shape_.cols, shape_.cols); }

  const Recipe& r_;
  const TensorScale& tensor_;
  Matrix shape_;
  std::span<const float> x_;
  Randomness random_;
  Matrix grid_;
  uint64_t width_;
  std::vector<float> amax_, sum_, squares_, scale_, factor_;  // of each block
  std::vector<std::byte> scale_codes_;
};

// Elements of parts into which whole blocks, following one another, are divided: few enough to stay in a core's cache.
constexpr uint64_t kPartElements = 4096;

uint64_t part_elements(const Recipe& recipe, const Matrix& shape) {
  const uint64_t unit = std::max({block_cols(recipe, shape), uint64_t(recipe.correction.group), uint64_t{4}});
  const bool divisible = recipe.block.rows == 1 && recipe.block.cols != Extent::kWhole && shape.cols % unit == 0;
  return divisible ? std::max(kPartElements / unit, uint64_t{1}) * unit : shape.elements();
}

// Calls fn(first element, shape) for each part: the whole, or pieces of one row that are whole blocks.
template <class Fn>
void for_each_part(const Recipe& recipe, const Matrix& shape, Fn&& fn) {
  if (shape.elements() == 0) return;
  const uint64_t size = part_elements(recipe, shape);
  if (size >= shape.elements()) return fn(0, shape);
  for (uint64_t first = 0; first < shape.elements(); first += size)
    fn(first, Matrix{.rows = 1, .cols = std::min(size, shape.elements() - first)});
}

// Bytes of codes and scales before and of a part.
struct Range {
  uint64_t first;
  uint64_t size;
  template <class Byte>
  std::span<Byte> of(std::span<Byte> bytes) const {
    return bytes.subspan(first, size);
  }
};

Range code_range(const Recipe& recipe, uint64_t first, const Matrix& part) {
  return {.first = first == 0 ? 0 : code_bytes(recipe, {.rows = 1, .cols = first}), .size = code_bytes(recipe, part)};
}

Range scale_range(const Recipe& recipe, uint64_t first, const Matrix& part) {
  return {.first = first == 0 ? 0 : scale_bytes(recipe, {.rows = 1, .cols = first}), .size = scale_bytes(recipe, part)};
}

void quantize_floats(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape, std::span<const float> x,
                     const Randomness& random, std::span<std::byte> codes, std::span<std::byte> scales) {
  for_each_part(recipe, shape, [&](uint64_t first, const Matrix& part) {
    Randomness here = random;
    here.first_element += first;
    here.first_block += first / block_cols(recipe, shape);
    if (!here.words.empty()) here.words = here.words.subspan(first / 4);
    Part(recipe, tensor, part, x.subspan(first, part.elements()), here)
        .quantize(code_range(recipe, first, part).of(codes), scale_range(recipe, first, part).of(scales));
  });
}

template <class Source>
void quantize_numbers(const Recipe& recipe, std::span<const Source> x, const Randomness& random,
                      std::span<std::byte> codes) {
  const FormatEntry& element = recipe.element.entry();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const RandomBits bits{.word = is_stochastic(recipe.policy.rounding)
                                      ? random_word(random.seed, random.stream, random.first_element + i)
                                      : 0,
                          .count = 32};
    const uint32_t code = encode(element.format, recipe.policy, x[i], bits) << element.storage_shift;
    switch (element.storage_bits) {
      case 4: store_code<4>(codes.data(), i, code); break;
      case 8: store_code<8>(codes.data(), i, code); break;
      case 16: store_code<16>(codes.data(), i, code); break;
      default: store_code<32>(codes.data(), i, code);
    }
  }
}

}  // namespace

uint64_t block_cols(const Recipe& recipe, const Matrix& shape) {
  return recipe.block.cols == Extent::kWhole ? std::max<uint64_t>(shape.cols, 1) : uint64_t(recipe.block.cols);
}

Matrix scale_grid(const Recipe& recipe, const Matrix& shape) {
  if (!has_scale(recipe)) return {.rows = 0, .cols = 0};
  const uint64_t height = uint64_t(recipe.block.rows), width = block_cols(recipe, shape);
  return {.rows = (shape.rows + height - 1) / height, .cols = (shape.cols + width - 1) / width};
}

uint64_t code_bytes(const Recipe& recipe, const Matrix& shape) {
  return packed_bytes(recipe.element.entry().storage_bits, shape.elements());
}

uint64_t scale_bytes(const Recipe& recipe, const Matrix& shape) {
  if (!has_scale(recipe)) return 0;
  return scale_grid(recipe, shape).elements() * uint64_t(recipe.scale.entry().storage_bits) / 8;
}

std::string refusal(const Recipe& recipe, Dtype dtype) {
  if (element_kind(dtype) == ElementKind::none)
    return fmt::format("{} elements are not numbers that halfulp can round", row(dtype).name);
  const bool floats = dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
  if (floats || (!has_scale(recipe) && !has_outer_scale(recipe))) return "";
  return fmt::format("recipe {} takes F32, F16 or BF16, not {}; convert the tensor first, saying how it is rounded",
                     recipe.name, row(dtype).name);
}

std::string refusal(const Recipe& recipe, const Matrix& shape) {
  const uint64_t width = block_cols(recipe, shape), height = uint64_t(recipe.block.rows);
  const uint64_t group = uint64_t(recipe.correction.group);
  if (recipe.edge == Edge::refused && shape.cols % width != 0)
    return fmt::format("rows of {} are not a multiple of {}, the block of recipe {}", shape.cols, width, recipe.name);
  if (recipe.edge == Edge::refused && shape.rows % height != 0)
    return fmt::format("{} rows are not a multiple of {}, the rows of a block of recipe {}", shape.rows, height,
                       recipe.name);
  if (group > 0 && shape.cols % group != 0)
    return fmt::format("rows of {} are not a multiple of {}, over which recipe {} corrects its scales", shape.cols,
                       group, recipe.name);
  if (recipe.random == RandomSource::te && shape.cols % 4 != 0)
    return fmt::format("rows of {} are not whole fours, to which random = te gives one word", shape.cols);
  if (recipe.element.entry().storage_bits == 4 && shape.cols % 2 != 0 && shape.elements() > 0)
    return fmt::format("rows of {} codes of 4 bits are not whole bytes", shape.cols);
  return "";
}

float largest_magnitude(const Recipe& recipe, float amax, std::span<const float> x) {
  return simd::amax(x, nan_magnitude(recipe.amax_nan), amax);
}

template <class Source>
void quantize(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape, std::span<const Source> x,
              const Randomness& random, std::span<std::byte> codes, std::span<std::byte> scales) {
  if constexpr (std::is_same_v<Source, float>) {
    quantize_floats(recipe, tensor, shape, x, random, codes, scales);
  } else {
    quantize_numbers(recipe, x, random, codes);
  }
}

template void quantize(const Recipe&, const TensorScale&, const Matrix&, std::span<const float>, const Randomness&,
                       std::span<std::byte>, std::span<std::byte>);
template void quantize(const Recipe&, const TensorScale&, const Matrix&, std::span<const double>, const Randomness&,
                       std::span<std::byte>, std::span<std::byte>);
template void quantize(const Recipe&, const TensorScale&, const Matrix&, std::span<const int64_t>, const Randomness&,
                       std::span<std::byte>, std::span<std::byte>);
template void quantize(const Recipe&, const TensorScale&, const Matrix&, std::span<const uint64_t>, const Randomness&,
                       std::span<std::byte>, std::span<std::byte>);

namespace {

void dequantize_part(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape,
                     std::span<const std::byte> codes, std::span<const std::byte> scales, std::span<float> y) {
  const FormatEntry& element = recipe.element.entry();
  const Matrix grid = scale_grid(recipe, shape);
  std::vector<float> s(std::max<uint64_t>(grid.elements(), 1), 1.f);
  if (has_scale(recipe)) {
    const FormatEntry& scale = recipe.scale.entry();
    simd::decode_blocks(scale.format, storage_of(scale), scales, {}, s);
  }
  if (recipe.value.is_on(Symbol::c, Op::multiply)) {
    evaluate(recipe.value.other_operand(), columns_of(tensor).with(Symbol::s, s), s);
    return decode_products(recipe, shape, codes, s, y);
  }
  simd::decode_blocks(element.format, storage_of(element), codes, {}, y);
  if (recipe.value.empty()) return;
  const std::vector<float> of_elements = per_element(recipe, shape, s);
  evaluate(recipe.value, columns_of(tensor).with(Symbol::c, y).with(Symbol::s, of_elements), y);
}

}  // namespace

void dequantize(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape, std::span<const std::byte> codes,
                std::span<const std::byte> scales, std::span<float> y) {
  for_each_part(recipe, shape, [&](uint64_t first, const Matrix& part) {
    dequantize_part(recipe, tensor, part, code_range(recipe, first, part).of(codes),
                    scale_range(recipe, first, part).of(scales), y.subspan(first, part.elements()));
  });
}

}  // namespace halfulp

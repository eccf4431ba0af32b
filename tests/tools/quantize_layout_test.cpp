// Where `halfulp quantize` puts codes and scales, against a tensor that the test itself moved, padded or rotated, and
// against places computed here from the layouts' definitions.

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "emulation/blocks/layout.h"
#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipes.h"
#include "lib/philox.h"
#include "tests/tools/stored_tensors.h"

namespace halfulp {
namespace {

// Bytes of one code, 0 for half a byte, and of one scale.
struct Sizes {
  std::size_t code;
  std::size_t scale;
};

struct Layout {
  std::string recipe;
  Sizes sizes;
  Words options = {};
  friend void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.recipe; }
};

const std::vector<Layout> kLayouts{{"nvfp4/te", {0, 1}},
                                   {"nvfp4/te+block=1x8+scale=f32", {0, 4}},
                                   {"mxfp8/te+rounding=stochastic", {1, 1}, {"--seed", "5"}}};

std::string name_of(const Layout& layout) {
  std::string name;
  for (const char c : layout.recipe) name += std::isalnum(c) ? c : '_';
  return name;
}

void expect_same(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  EXPECT_EQ(raw_bytes(got), raw_bytes(expected));
}

// A tensor of that rank, 64 long along the axis, with an even last dimension.
Shape shape_with(std::size_t rank, std::size_t axis) {
  const Shape others{3, 2, 5, 4};
  Shape shape(others.end() - std::ptrdiff_t(rank), others.end());
  shape[axis] = 64;
  return shape;
}

void for_each_axis(const std::function<void(const Shape&, std::size_t axis)>& fn) {
  for (std::size_t rank = 1; rank <= 4; ++rank)
    for (std::size_t axis = 0; axis < rank; ++axis) {
      SCOPED_TRACE(shape_tuple(shape_with(rank, axis)) + " along " + std::to_string(axis));
      fn(shape_with(rank, axis), axis);
    }
}

Shape in_elements(const StoredTensor& codes, const Sizes& sizes) {
  Shape shape = codes.shape;
  if (sizes.code == 0) shape.back() *= 2;
  return shape;
}

class QuantizeAxis : public testing::TestWithParam<Layout> {};

INSTANTIATE_TEST_SUITE_P(Recipes, QuantizeAxis, testing::ValuesIn(kLayouts),
                         [](const auto& instance) { return name_of(instance.param); });

// The codes and scales of tensor `got`, whose blocks lie along `axis`, are those of its moved copy.
void expect_moved(const Quantization& got, const Quantization& moved, const Sizes& sizes, std::size_t axis) {
  EXPECT_EQ(axis_last(elements_of(got.codes().bytes, sizes.code), in_elements(got.codes(), sizes), axis),
            elements_of(moved.codes().bytes, sizes.code));
  EXPECT_EQ(axis_last(elements_of(got.scales().bytes, sizes.scale), got.scales().shape, axis),
            elements_of(moved.scales().bytes, sizes.scale));
}

TEST_P(QuantizeAxis, IsQuantizingTheTensorWithTheAxisLast) {
  for_each_axis([](const Shape& shape, std::size_t axis) {
    const Array w = uneven_values(shape);
    const Quantization got(w, GetParam().recipe, joined({"--axis", std::to_string(axis)}, GetParam().options));
    const Quantization moved(axis_last(w, axis), GetParam().recipe, GetParam().options);
    EXPECT_EQ(in_elements(got.codes(), GetParam().sizes), shape);
    expect_moved(got, moved, GetParam().sizes, axis);
    expect_same(axis_last(got.values(), shape, axis), moved.values());
  });
}

TEST_P(QuantizeAxis, ATransposedCopyIsTheMovedTensorsOwn) {
  for_each_axis([](const Shape& shape, std::size_t axis) {
    const Array w = uneven_values(shape);
    const Quantization got(w, GetParam().recipe,
                           joined({"--axis", std::to_string(axis), "--transpose"}, GetParam().options));
    const Quantization moved(axis_last(w, axis), GetParam().recipe, GetParam().options);
    EXPECT_EQ(got.file.tensors, moved.file.tensors);
    expect_same(axis_last(got.values(), shape, axis), moved.values());
  });
}

// Transformer Engine transposes what is under one scale, too.
TEST(QuantizeTransposed, CodesUnderOneScaleAreTheMovedTensorsOwn) {
  for_each_axis([](const Shape& shape, std::size_t axis) {
    const Array w = uneven_values(shape);
    for (const std::string recipe : {"fp8/te", "bf16", "fp8/te+rounding=stochastic"}) {
      const Words seed = recipe.ends_with("stochastic") ? Words{"--seed", "5"} : Words{};
      const Quantization got(w, recipe, joined({"--axis", std::to_string(axis), "--transpose"}, seed));
      const Quantization moved(axis_last(w, axis), recipe, seed);
      EXPECT_EQ(got.file.tensors, moved.file.tensors) << recipe;
      expect_same(axis_last(got.values(), shape, axis), moved.values());
    }
  });
}

TEST(QuantizeAxisOption, CountsFromTheEndIfNegative) {
  for_each_axis([](const Shape& shape, std::size_t axis) {
    const Array w = uneven_values(shape);
    const std::string from_end = std::to_string(int(axis) - int(shape.size()));
    EXPECT_EQ(Quantization(w, "nvfp4/te", {"--axis", from_end}).file.tensors,
              Quantization(w, "nvfp4/te", {"--axis", std::to_string(axis)}).file.tensors);
  });
}

// Tiles of a matrix: both ways the same tiles, so that the scales are each other's transposed.
TEST(QuantizeTiles, AlongRowsAreTheTransposedMatrixsOwn) {
  const Array w = uneven_values({96, 64});
  for (const Layout& layout : {Layout{"nvfp4/te-2d", {0, 1}}, Layout{"mxfp8/te+block=4x32", {1, 1}}}) {
    const Quantization got(w, layout.recipe, {"--axis", "0"}), moved(axis_last(w, 0), layout.recipe);
    expect_moved(got, moved, layout.sizes, 0);
    expect_same(axis_last(got.values(), w.shape, 0), moved.values());
  }
}

struct PaddedShape {
  Shape shape;
  int axis;
  Shape padded;
  std::string recipe;
  Words options = {};
  friend void PrintTo(const PaddedShape& test, std::ostream* out) {
    *out << test.recipe << " " << shape_tuple(test.shape) << " along " << test.axis;
  }
};

class QuantizePad : public testing::TestWithParam<PaddedShape> {};

INSTANTIATE_TEST_SUITE_P(
    Shapes, QuantizePad,
    testing::Values(PaddedShape{{50}, 0, {64}, "mxfp8/te"}, PaddedShape{{5, 50}, 1, {5, 64}, "nvfp4/te"},
                    PaddedShape{{5, 50}, 0, {16, 50}, "nvfp4/te"}, PaddedShape{{5, 51}, 0, {32, 51}, "mxfp8/te"},
                    PaddedShape{{5, 50}, 1, {16, 64}, "nvfp4/te-2d"}, PaddedShape{{5, 50}, 0, {16, 64}, "nvfp4/te-2d"},
                    PaddedShape{{3, 5, 7}, 1, {3, 32, 7}, "mxfp8/te"},
                    PaddedShape{{3, 5, 7}, 0, {32, 5, 7}, "mxfp8/te"},
                    PaddedShape{{130, 3}, 0, {256, 128}, "fp8/deepseek-128x128"},
                    PaddedShape{{2, 100}, 1, {2, 102}, "mxfp8/te+block=1x3"},
                    PaddedShape{{2, 130}, 1, {2, 256}, "nvfp4/ms-eden", {"--seed", "9"}},
                    PaddedShape{{2, 64}, 1, {2, 64}, "mxfp8/te"}, PaddedShape{{3, 0}, 1, {3, 0}, "mxfp8/te"},
                    PaddedShape{{2, 1, 3, 40}, 3, {2, 1, 3, 64}, "mxfp8/ocp-e5m2"}));

// Calls fn(element of the small tensor, element of the large one) for each that both have.
void for_each_common(const Shape& small, const Shape& large, const std::function<void(uint64_t, uint64_t)>& fn) {
  for (uint64_t i = 0; i < product(small, 0, small.size()); ++i) {
    uint64_t rest = i, stride = 1, place = 0;
    for (std::size_t d = small.size(); d-- > 0;) {
      place += rest % small[d] * stride;
      rest /= small[d];
      stride *= large[d];
    }
    fn(i, place);
  }
}

TEST_P(QuantizePad, IsQuantizingTheTensorWithZerosAdded) {
  const PaddedShape& test = GetParam();
  const Array w = uneven_values(test.shape);
  Array large{.shape = test.padded, .x = std::vector<float>(product(test.padded, 0, test.padded.size()))};
  for_each_common(test.shape, test.padded, [&](uint64_t i, uint64_t place) { large.x[place] = w.x[i]; });
  const Words axis = joined({"--axis", std::to_string(test.axis)}, test.options);
  const Quantization got(w, test.recipe, joined(axis, {"--pad"})), expected(large, test.recipe, axis);
  EXPECT_EQ(got.file.tensors, expected.file.tensors);

  const std::vector<float> y = expected.values();
  std::vector<float> cropped(w.x.size());
  for_each_common(test.shape, test.padded, [&](uint64_t i, uint64_t place) { cropped[i] = y[place]; });
  expect_same(got.values(), cropped);
}

// A grid of scales, and a tensor whose scales it is. A matrix instruction wants a row for each row of the operand, and
// a column for each block along the dimension that it sums over.
struct ScaleGrid {
  std::string name;
  std::string recipe;
  Shape shape;
  Words options;
  uint64_t rows, cols;  // as the tensor lies, columns being what is behind the axis, or the axis where it is last
  std::optional<std::size_t> axis = {};  // of the linear scales, where blocks lie along another than the last
};

const std::vector<ScaleGrid> kGrids{{"Rows", "nvfp4/te", {300, 80}, {}, 300, 5},
                                    {"OneScale", "mxfp8/te", {32}, {}, 1, 1},
                                    {"WholeTiles", "mxfp8/te", {128, 128}, {}, 128, 4},
                                    {"RankThree", "nvfp4/te", {2, 75, 80}, {}, 150, 5},
                                    {"AlongRows", "mxfp8/te", {160, 130}, {"--axis", "0"}, 5, 130, 0},
                                    {"OneColumn", "mxfp8/te", {160, 1}, {"--axis", "0"}, 5, 1, 0},
                                    {"AlongTheFirst", "mxfp8/te", {96, 7, 20}, {"--axis", "0"}, 3, 140, 0},
                                    {"AlongTheMiddle", "nvfp4/te", {3, 80, 44}, {"--axis", "-2"}, 15, 44, 1},
                                    {"TilesAlongRows", "nvfp4/te-2d", {80, 2080}, {"--axis", "0"}, 5, 130, 0},
                                    {"PaddedAlongRows", "mxfp8/te", {129, 130}, {"--axis", "0", "--pad"}, 5, 130, 0},
                                    {"Transposed", "nvfp4/te", {80, 130}, {"--axis", "0", "--transpose"}, 130, 5},
                                    {"Tiles", "nvfp4/te-2d", {48, 80}, {}, 3, 5},
                                    {"Padded", "nvfp4/te", {130, 33}, {"--pad"}, 130, 3}};

using Offset = std::function<uint64_t(uint64_t row, uint64_t col, uint64_t cols)>;

class QuantizeScales : public testing::TestWithParam<ScaleGrid> {
 protected:
  void SetUp() override {
    w_ = uneven_values(GetParam().shape);
    linear_.emplace(w_, GetParam().recipe, GetParam().options);
    for (const char byte : linear_->scales().bytes) scales_.push_back(byte);
  }

  // The grid in the linear layout, as the tensor lies.
  void expect_as_tensor(const std::string& name, Shape pad, const Offset& offset) {
    expect_layout(name, pad, {GetParam().rows, GetParam().cols}, offset);
    EXPECT_FALSE(metadata_.contains("scale_order"));
  }

  // The grid with blocks along the axis in a row.
  void expect_axis_last(const std::string& name, Shape pad, const Offset& offset) {
    Shape grid{GetParam().rows, GetParam().cols};
    if (GetParam().axis) {
      const Shape shape = linear_->scales().shape;
      scales_ = axis_last(scales_, shape, *GetParam().axis);
      grid = {scales_.size() / shape[*GetParam().axis], shape[*GetParam().axis]};
    }
    expect_layout(name, pad, grid, offset);
    EXPECT_EQ(metadata_.at("scale_order"), "axis-last");
  }

 private:
  void expect_layout(const std::string& name, Shape pad, const Shape& grid, const Offset& offset) {
    Quantization got(w_, GetParam().recipe, joined({"--scale-layout", name}, GetParam().options));
    for (std::size_t i = 0; i < 2; ++i) pad[i] *= (grid[i] + pad[i] - 1) / pad[i];
    std::string expected(pad[0] * pad[1], '\0');
    std::vector<bool> is_scale(expected.size());
    ASSERT_EQ(scales_.size(), grid[0] * grid[1]);
    for (uint64_t row = 0; row < grid[0]; ++row) {
      for (uint64_t col = 0; col < grid[1]; ++col) {
        expected[offset(row, col, pad[1])] = scales_[row * grid[1] + col];
        is_scale[offset(row, col, pad[1])] = true;
      }
    }
    EXPECT_EQ(got.scales().shape, pad);
    EXPECT_EQ(got.scales().bytes, expected);
    EXPECT_EQ(got.codes(), linear_->codes());
    metadata_ = got.file.metadata;

    std::string& stored = got.file.tensors["w.scales"].bytes;
    for (std::size_t i = 0; i < stored.size(); ++i)
      if (!is_scale[i]) stored[i] = '\xff';  // kernels leave padding as it was
    expect_same(got.values(), linear_->values());
  }

  Array w_;
  std::optional<Quantization> linear_;
  std::vector<char> scales_;
  SafetensorsMetadata metadata_;
};

INSTANTIATE_TEST_SUITE_P(Grids, QuantizeScales, testing::ValuesIn(kGrids),
                         [](const auto& instance) { return instance.param.name; });

uint64_t row_major(uint64_t row, uint64_t col, uint64_t cols) { return row * cols + col; }

TEST_P(QuantizeScales, Padded128x4HasARowOfBlocksInARow) { expect_axis_last("padded-128x4", {128, 4}, row_major); }

TEST_P(QuantizeScales, Padded4x128IsAsTheTensor) { expect_as_tensor("padded-4x128", {4, 128}, row_major); }

// cuBLAS, 1D block scaling factors layout: within a tile of 128 x 4, offset = (row % 32) * 16 + (row / 32) * 4 + col;
// tiles follow one another along a row of tiles.
TEST_P(QuantizeScales, SwizzledIsTheTensorCoresOrder) {
  expect_axis_last("swizzled-128x4", {128, 4}, [](uint64_t row, uint64_t col, uint64_t cols) {
    const uint64_t r = row % 128;
    return (row / 128 * (cols / 4) + col / 4) * 512 + r % 32 * 16 + r / 32 * 4 + col % 4;
  });
}

// What is asked of the program for a tensor of 160 x 96 is what Transformer Engine keeps beside it.
TEST(QuantizeScalesOfTe, HaveTransformerEnginesShapes) {
  const std::map<std::string_view, std::pair<std::string, Words>> asked{
      {"nvfp4-rowwise", {"nvfp4/te", {}}},
      {"nvfp4-columnwise", {"nvfp4/te", {"--axis", "0", "--transpose"}}},
      {"mxfp8-rowwise", {"mxfp8/te", {}}},
      {"mxfp8-columnwise", {"mxfp8/te", {"--axis", "0"}}}};
  for (const TeScales& scales : kTeScales) {
    const auto& [recipe, options] = asked.at(scales.name);
    const Words layout{"--scale-layout", std::string(scales.layout.name)};
    const Quantization got(uneven_values({160, 96}), recipe, joined(layout, options));
    const Grid grid = padded_grid(scales.layout, te_scale_grid(scales, {.rows = 160, .cols = 96}));
    EXPECT_EQ(got.scales().shape, (Shape{grid.rows, grid.cols})) << scales.name;
    EXPECT_EQ(got.codes().shape[0], scales.transposed ? 96u : 160u) << scales.name;
  }
}

// A matrix instruction does not know how the operand lay in the tensor.
TEST(QuantizeScalesAlong, AnyAxisAreTheMovedTensorsOwnForMatrixInstructions) {
  for_each_axis([](const Shape& shape, std::size_t axis) {
    const Array w = uneven_values(shape);
    for (const std::string name : {"padded-128x4", "swizzled-128x4"}) {
      const Quantization got(w, "nvfp4/te", {"--axis", std::to_string(axis), "--scale-layout", name});
      EXPECT_EQ(got.scales(), Quantization(axis_last(w, axis), "nvfp4/te", {"--scale-layout", name}).scales()) << name;
    }
  });
}

const std::vector<ScaleGrid> kNibbleTensors{{"Rows", "nvfp4/te", {6, 48}, {}, 0, 0},
                                            {"Blocks32", "mxfp4/ocp", {6, 64}, {}, 0, 0},
                                            {"Tiles", "nvfp4/te-2d", {32, 48}, {}, 0, 0},
                                            {"Transposed", "nvfp4/te", {48, 6}, {"--axis", "0", "--transpose"}, 0, 0},
                                            {"Padded", "nvfp4/te", {3, 5}, {"--pad"}, 0, 0}};

class QuantizeNibbles : public testing::TestWithParam<ScaleGrid> {
 protected:
  // nibble(i): in which nibble of the row, low ones first, element i of the row lies.
  void expect_order(const std::string& name, const std::function<uint64_t(uint64_t i)>& nibble) {
    const Array w = uneven_values(GetParam().shape);
    const Quantization plain(w, GetParam().recipe, GetParam().options);
    const Quantization got(w, GetParam().recipe, joined({"--nibbles", name}, GetParam().options));
    const std::vector<uint32_t> in_order = elements_of(plain.codes().bytes, 0);
    const std::vector<uint32_t> stored = elements_of(got.codes().bytes, 0);
    ASSERT_EQ(stored.size(), in_order.size());
    for (std::size_t i = 0; i < in_order.size(); ++i) EXPECT_EQ(stored[nibble(i)], in_order[i]) << "element " << i;
    EXPECT_EQ(got.scales(), plain.scales());
    expect_same(got.values(), plain.values());
  }
};

INSTANTIATE_TEST_SUITE_P(Tensors, QuantizeNibbles, testing::ValuesIn(kNibbleTensors),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(QuantizeNibbles, EvenHighSwapsTheTwoOfAByte) {
  expect_order("even-high", [](uint64_t i) { return i % 2 == 0 ? i + 1 : i - 1; });
}

// Byte j of a block holds element j below and element j + block / 2 above.
TEST_P(QuantizeNibbles, SplitHalvesPairsTheHalvesOfABlock) {
  const uint64_t block = GetParam().recipe == "mxfp4/ocp" ? 32 : 16;
  expect_order("split-halves", [&](uint64_t i) {
    const uint64_t k = i % block, byte = k % (block / 2);
    return i - k + 2 * byte + (k >= block / 2 ? 1 : 0);
  });
}

// Round to nearest, ties to even, of a sum over sqrt(n). Sums are small integers, so that long double separates every
// quotient from every tie: they are irrational, or exact.
float bf16_quotient(long double sum, long double root) {
  const long double exact = sum / root;
  if (exact == 0) return 0;
  int exponent = 0;
  const long double digits = std::ldexp(std::frexp(std::fabs(exact), &exponent), 8);
  const long double below = std::floor(digits), rest = digits - below;
  const bool up = rest > 0.5L || (rest == 0.5L && std::fmod(below, 2.0L) == 1);
  return float(std::copysign(std::ldexp(below + (up ? 1 : 0), exponent - 8), exact));
}

// Groups of n elements of rows: y[j] = sum x[k] signs[k] (-1)^popcount(k & j) / sqrt(n).
Array rotated(const Array& rows, std::size_t n, const std::vector<int>& signs) {
  Array y = rows;
  for (std::size_t first = 0; first < rows.x.size(); first += n) {
    for (std::size_t j = 0; j < n; ++j) {
      long double sum = 0;
      for (std::size_t k = 0; k < n; ++k)
        sum += (std::popcount(k & j) % 2 ? -1 : 1) * signs[k] * (long double)(rows.x[first + k]);
      y.x[first + j] = bf16_quotient(sum, std::sqrt((long double)(n)));
    }
  }
  return y;
}

Array small_integers(const Shape& shape) {
  Array w{.shape = shape, .x = std::vector<float>(product(shape, 0, shape.size()))};
  for (std::size_t i = 0; i < w.x.size(); ++i) w.x[i] = float(int(random_word(4, 0, i) % 2001) - 1000);
  return w;
}

struct RotationCase {
  std::string name;
  std::size_t size;
  Words options;
  std::vector<int> signs;
};

// Transformer Engine, nvfp4_tensor.py, get_wgrad_sign_vector.
const std::vector<int> kTeSigns{1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};

std::vector<int> seeded_signs(uint64_t seed, std::size_t n) {
  std::vector<int> signs;
  for (std::size_t k = 0; k < n; ++k)
    signs.push_back(random_word(seed, stream_of("hadamard signs"), k / 32) >> k % 32 & 1 ? -1 : 1);
  return signs;
}

const std::vector<RotationCase> kRotations{
    {"Te16", 16, {"--hadamard", "16"}, kTeSigns},
    {"Te16Named", 16, {"--hadamard", "16", "--signs", "te"}, kTeSigns},
    {"Plain16", 16, {"--hadamard", "16", "--signs", "none"}, std::vector<int>(16, 1)},
    {"Plain2", 2, {"--hadamard", "2"}, std::vector<int>(2, 1)},
    {"Plain8", 8, {"--hadamard", "8"}, std::vector<int>(8, 1)},
    {"Plain128", 128, {"--hadamard", "128"}, std::vector<int>(128, 1)},
    {"Seeded64", 64, {"--hadamard", "64", "--signs", "seeded", "--seed", "77"}, seeded_signs(77, 64)}};

class QuantizeHadamard : public testing::TestWithParam<RotationCase> {
 protected:
  void expect_rotated(const std::string& recipe, const Shape& shape, std::size_t axis) {
    const Array w = small_integers(shape);
    const Words transpose = recipe == "mxfp8/te" ? Words{"--transpose"} : Words{};
    const Quantization got(w, recipe, joined(joined({"--axis", std::to_string(axis)}, transpose), GetParam().options));
    const Quantization expected(rotated(axis_last(w, axis), GetParam().size, GetParam().signs), recipe);
    EXPECT_EQ(got.file.tensors, expected.file.tensors);
    EXPECT_TRUE(got.file.metadata.contains("hadamard"));
  }
};

INSTANTIATE_TEST_SUITE_P(Signs, QuantizeHadamard, testing::ValuesIn(kRotations),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(QuantizeHadamard, RotatesGroupsOfARow) { expect_rotated("nvfp4/te", {6, 256}, 1); }

TEST_P(QuantizeHadamard, RotatesGroupsAlongTheAxis) { expect_rotated("mxfp8/te", {3, 128, 6}, 1); }

// Groups lie along the axis where there are no blocks, too.
TEST_P(QuantizeHadamard, RotatesGroupsAlongTheAxisUnderOneScale) {
  const Shape shape{3, 128, 6};
  const Array w = small_integers(shape);
  const Array moved = rotated(axis_last(w, 1), GetParam().size, GetParam().signs);
  const std::vector<std::pair<std::string, std::size_t>> recipes{{"bf16", 2}, {"fp8/te", 1}};
  for (const auto& [recipe, code] : recipes) {
    const Quantization got(w, recipe, joined({"--axis", "1"}, GetParam().options)), expected(moved, recipe);
    EXPECT_EQ(axis_last(elements_of(got.codes().bytes, code), shape, 1), elements_of(expected.codes().bytes, code));
    expect_same(axis_last(got.values({"--keep-rotated"}), shape, 1), expected.values());
  }
}

// The transpose of the transform, to FP32. The codes' values span few enough bits that long double holds the sums.
std::vector<float> rotated_back(const std::vector<float>& y, std::size_t n, const std::vector<int>& signs) {
  std::vector<float> x(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t k = i % n, first = i - k;
    long double sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += (std::popcount(k & j) % 2 ? -1 : 1) * (long double)(y[first + j]);
    x[i] = float(signs[k] * sum / std::sqrt((long double)(n))) + 0.0f;
  }
  return x;
}

TEST_P(QuantizeHadamard, IsUndoneInWhatComesBack) {
  const std::vector<std::pair<std::string, Shape>> cases{{"nvfp4/te", {6, 256}}, {"mxfp8/te", {512}}};
  for (const auto& [recipe, shape] : cases) {
    const Quantization got(small_integers(shape), recipe, GetParam().options);
    expect_same(got.values(), rotated_back(got.values({"--keep-rotated"}), GetParam().size, GetParam().signs));
  }
}

// Each sum, over the root of 4, 16 or 64, is a whole number that E4M3 with a scale of a power of two has: so every
// element comes back. Wherever the axis, however it is stored.
TEST(QuantizeHadamardBack, IsTheTensorWhereNothingIsRounded) {
  const std::vector<std::pair<std::string, Words>> cases{
      {"mxfp8/te", {"--hadamard", "4"}},
      {"mxfp8/te", {"--hadamard", "16", "--transpose"}},
      {"bf16", {"--hadamard", "16", "--signs", "none"}},
      {"fp8/torchao-rowwise+scale=e8m0", {"--hadamard", "64", "--signs", "seeded", "--seed", "3"}}};
  for_each_axis([&](const Shape& shape, std::size_t axis) {
    Array w{.shape = shape, .x = std::vector<float>(product(shape, 0, shape.size()))};
    for (std::size_t i = 0; i < w.x.size(); i += 1 + random_word(8, 0, i) % 40) w.x[i] = i % 2 ? 8 : -8;
    for (const auto& [recipe, options] : cases)
      expect_same(Quantization(w, recipe, joined({"--axis", std::to_string(axis)}, options)).values(), w.x);
  });
}

TEST(QuantizeHadamardPad, RotatesThePaddedTensor) {
  const Array w = small_integers({3, 40});
  Array large{.shape = {3, 48}, .x = std::vector<float>(144)};
  for_each_common(w.shape, large.shape, [&](uint64_t i, uint64_t place) { large.x[place] = w.x[i]; });
  const Quantization got(w, "nvfp4/te", {"--hadamard", "16", "--pad"});
  const Quantization expected(rotated(large, 16, kTeSigns), "nvfp4/te");
  EXPECT_EQ(got.file.tensors, expected.file.tensors);
  expect_same(got.values({"--keep-rotated"}), expected.values());

  const std::vector<float> back = rotated_back(expected.values(), 16, kTeSigns);
  std::vector<float> cropped(w.x.size());
  for_each_common(w.shape, large.shape, [&](uint64_t i, uint64_t place) { cropped[i] = back[place]; });
  expect_same(got.values(), cropped);
}

TEST(QuantizeHadamardKept, IsInTheMetadataOfTheValues) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", npy_of(small_integers({16, 4})));
  ASSERT_EQ(run_halfulp({"quantize", folder / "w.npy", "-r", "mxfp8/te", "--axis", "0", "--pad", "--hadamard", "32",
                         "--signs", "seeded", "--seed", "0x10", "-o", folder / "q"})
                .exit_code,
            0);
  ASSERT_EQ(run_halfulp({"dequantize", folder / "q", "-o", folder / "back"}).exit_code, 0);
  EXPECT_FALSE(stored_file(folder / "back").metadata.contains("hadamard"));
  ASSERT_EQ(run_halfulp({"dequantize", folder / "q", "--keep-rotated", "-o", folder / "kept"}).exit_code, 0);
  const SafetensorsMetadata kept = stored_file(folder / "kept").metadata;
  EXPECT_EQ(kept.at("hadamard"), "32 seeded");
  EXPECT_EQ(kept.at("seed"), "0x10");
  EXPECT_EQ(kept.at("axis"), "0");
}

constexpr char kStochastic[] = "nvfp4/te+rounding=stochastic";

TEST(QuantizeSeed, GivesTheSameBytesAgain) {
  const Array w = uneven_values({64, 256});
  for (const std::string recipe : {kStochastic, "nvfp4/ms-eden"})
    EXPECT_EQ(Quantization(w, recipe, {"--seed", "1"}).file.tensors,
              Quantization(w, recipe, {"--seed", "1"}).file.tensors);
}

// The share of elements whose codes differ where only the random bits do: about one in three under 4 bits, so that
// streams that are each other's shifted copy, or the same for half of the elements, would show.
double share_of_other_codes(const StoredTensor& p, const StoredTensor& q) {
  const std::vector<uint32_t> a = elements_of(p.bytes, 0), b = elements_of(q.bytes, 0);
  double other = 0;
  for (std::size_t i = 0; i < a.size(); ++i) other += a[i] != b[i];
  return other / double(a.size());
}

TEST(QuantizeSeed, AnotherSeedGivesOtherCodes) {
  const Array w = uneven_values({64, 256});
  const Quantization one(w, kStochastic, {"--seed", "1"});
  for (const std::string seed : {"2", "0", "0x100000001", "18446744073709551615"})
    EXPECT_GT(share_of_other_codes(one.codes(), Quantization(w, kStochastic, {"--seed", seed}).codes()), 0.1) << seed;
}

TEST(QuantizeSeed, AnotherTensorNameGivesOtherCodes) {
  const TemporaryDirectory folder;
  const StoredTensor w{.dtype = Dtype::f32, .shape = {64, 256}, .bytes = raw_bytes(uneven_values({64, 256}).x)};
  write_stored(folder / "two", {.metadata = {}, .tensors = {{"a", w}, {"b", w}}});
  for (const std::string recipe : {kStochastic, "nvfp4/ms-eden"}) {
    ASSERT_EQ(run_halfulp({"quantize", folder / "two", "-r", recipe, "--seed", "1", "-o", folder / "q"}).exit_code, 0);
    const StoredFile q = stored_file(folder / "q");
    EXPECT_NE(q.tensors.at("a.scales").bytes + q.tensors.at("a.codes").bytes,
              q.tensors.at("b.scales").bytes + q.tensors.at("b.codes").bytes)
        << recipe;
  }
}

// Transformer Engine's own stream goes on from tensor to tensor.
TEST(QuantizeSeed, TheNextTensorHasOtherWordsOfTransformerEnginesStream) {
  const TemporaryDirectory folder;
  const StoredTensor w{.dtype = Dtype::f32, .shape = {64, 256}, .bytes = raw_bytes(uneven_values({64, 256}).x)};
  write_stored(folder / "two", {.metadata = {}, .tensors = {{"a", w}, {"b", w}}});
  const std::string recipe = std::string(kStochastic) + "+random=te";
  ASSERT_EQ(run_halfulp({"quantize", folder / "two", "-r", recipe, "--seed", "1", "-o", folder / "q"}).exit_code, 0);
  const StoredFile q = stored_file(folder / "q");
  EXPECT_GT(share_of_other_codes(q.tensors.at("a.codes"), q.tensors.at("b.codes")), 0.1);
}

TEST(QuantizeSeed, BytesDoNotDependOnTheNumberOfThreads) {
  const Array w = uneven_values({1024, 1024});
  for (const Words& options : {Words{"--axis", "0"}, Words{"--axis", "1", "--hadamard", "16"}}) {
    const Words all = joined({"--seed", "1"}, options);
    const Quantization one(w, kStochastic, joined(all, {"-j", "1"}));
    for (const std::string threads : {"2", "7"})
      EXPECT_EQ(Quantization(w, kStochastic, joined(all, {"-j", threads})).file.tensors, one.file.tensors) << threads;
  }
}

TEST(QuantizeSeed, IsInTheMetadata) {
  const Quantization q(uneven_values({2, 32}), kStochastic, {"--seed", "0x10"});
  EXPECT_EQ(q.file.metadata.at("seed"), "0x10");
  EXPECT_EQ(q.file.metadata.at("rounding"), "stochastic");
}

// Tensors longer than a panel of 2^18 elements, against the library on the whole tensor at once.
struct PanelCase {
  std::string name;
  std::string recipe;
  Shape shape;
  std::size_t axis;
  Words options = {};
  RandomSource random = RandomSource::ideal;
  friend void PrintTo(const PanelCase& test, std::ostream* out) {
    *out << test.recipe << " " << shape_tuple(test.shape) << " along " << test.axis;
  }
};

const std::vector<PanelCase> kPanelCases{
    {"ManyRows", "nvfp4/te", {600, 512}, 1},
    {"OneLongRow", "nvfp4/te", {1, 300032}, 1},
    {"ThreeLongRows", "mxfp8/te", {3, 262176}, 1},
    {"LongRowsOfOddBlocks", "mxfp8/ocp-e5m2", {2, 266272}, 1},
    {"LongRowsAreTheirOwnBlock", "fp8/torchao-rowwise", {2, 300000}, 1},
    {"PartialTiles", "fp8/deepseek-128x128", {1100, 260}, 1},
    {"TilesOfLongRows", "nvfp4/te-2d", {32, 16400}, 1},
    {"AlongRows", "mxfp8/te", {4096, 100}, 0},
    {"AlongRowsOfAVeryTallMatrix", "mxfp8/te", {262176, 2}, 0},
    {"AlongTheMiddle", "mxfp8/te", {2, 4128, 60}, 1},
    {"TilesAlongRows", "nvfp4/te-2d", {4096, 96}, 0},
    {"PartialTilesAlongRows", "fp8/deepseek-128x128", {2050, 260}, 0},
    {"FourBitsAlongRows", "nvfp4/te", {4096, 100}, 0},
    {"FourBitsAlongRowsOf5120", "nvfp4/te", {5120, 64}, 0},
    {"FourBitsAlongRowsOfAVeryTallMatrix", "nvfp4/te", {262176, 2}, 0},
    {"WholeColumns", "fp8/torchao-rowwise", {4099, 100}, 0},
    {"StochasticInLongRows", "mxfp8/te", {2, 300032}, 1, {"--seed", "6"}},
    {"StochasticAlongRows", "mxfp8/te", {4096, 100}, 0, {"--seed", "6"}},
    {"StochasticAlongRowsOfAVeryTallMatrix", "mxfp8/te", {262176, 2}, 0, {"--seed", "6"}},
    {"WordsOfFoursInLongRows", "mxfp8/te", {2, 300032}, 1, {"--seed", "6"}, RandomSource::te},
    {"WordsOfFoursAlongRows", "mxfp8/te", {4096, 100}, 0, {"--seed", "6"}, RandomSource::te},
    {"CorrectedScales", "nvfp4/ms-eden", {2, 262272}, 1, {"--seed", "6"}},
    {"CorrectedScalesAlongRows", "nvfp4/ms-eden", {4096, 100}, 0, {"--seed", "6"}},
};

class QuantizePanels : public testing::TestWithParam<PanelCase> {};

INSTANTIATE_TEST_SUITE_P(Shapes, QuantizePanels, testing::ValuesIn(kPanelCases),
                         [](const auto& instance) { return instance.param.name; });

struct Whole {
  std::string codes, scales;
  std::vector<float> values;
};

Whole quantized_whole(const Recipe& recipe, const Array& rows, uint64_t seed) {
  const Matrix shape{.rows = product(rows.shape, 0, rows.shape.size() - 1), .cols = rows.shape.back()};
  const TensorScale tensor = tensor_scale(recipe, has_outer_scale(recipe) ? largest_magnitude(recipe, 0, rows.x) : 0);
  Whole whole{.codes = std::string(code_bytes(recipe, shape), '\0'),
              .scales = std::string(scale_bytes(recipe, shape), '\0'),
              .values = std::vector<float>(rows.x.size())};
  const auto bytes = [](std::string& text) { return std::as_writable_bytes(std::span(text)); };
  quantize(recipe, tensor, shape, std::span<const float>(rows.x),
           {.seed = seed,
            .stream = recipe.random == RandomSource::te ? 0 : stream_of("w"),
            .scale_stream = stream_of("w.scales")},
           bytes(whole.codes), bytes(whole.scales));
  dequantize(recipe, tensor, shape, bytes(whole.codes), bytes(whole.scales), whole.values);
  return whole;
}

std::size_t bytes_per(int bits) { return std::size_t(bits) / 8; }

TEST_P(QuantizePanels, AreTheWholeTensorsCodesAndScales) {
  const PanelCase& test = GetParam();
  const Array w = uneven_values(test.shape);
  Recipe recipe = kRecipes[std::size_t(find_recipe(test.recipe))];
  std::string name = test.recipe;
  if (!test.options.empty() && !is_random(recipe)) {
    recipe.policy.rounding = Rounding::stochastic;
    name += "+rounding=stochastic";
  }
  recipe.random = test.random;
  if (test.random == RandomSource::te) name += "+random=te";
  const Whole whole = quantized_whole(recipe, axis_last(w, test.axis), 6);
  const Quantization got(w, name, joined({"--axis", std::to_string(test.axis)}, test.options));
  const Sizes sizes{bytes_per(recipe.element.entry().storage_bits), bytes_per(recipe.scale.entry().storage_bits)};
  if (!got.file.tensors.contains("w.codes")) return;
  EXPECT_TRUE(axis_last(elements_of(got.codes().bytes, sizes.code), test.shape, test.axis) ==
              elements_of(whole.codes, sizes.code));
  EXPECT_TRUE(axis_last(elements_of(got.scales().bytes, sizes.scale), got.scales().shape, test.axis) ==
              elements_of(whole.scales, sizes.scale));
  EXPECT_TRUE(raw_bytes(axis_last(got.values(), test.shape, test.axis)) == raw_bytes(whole.values));
}

}  // namespace
}  // namespace halfulp

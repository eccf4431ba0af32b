// Recipes against what the publishers' own packages answer, byte for byte. tests/golden/recipes/README.md says how the
// files were made and what in them is a machine's and not a package's.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipes.h"
#include "emulation/elements.h"
#include "lib/mapped_file.h"
#include "lib/safetensors.h"
#include "lib/tensor_source.h"

namespace halfulp {
namespace {

constexpr char kFolder[] = HALFULP_TEST_DATA "/recipes/";

std::map<std::string, Tensor> tensors_of(const std::string& path) {
  std::map<std::string, Tensor> tensors;
  for (Tensor& tensor : open_tensors(path)) {
    const std::string name = tensor.name;
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

SafetensorsMetadata metadata_of(const std::string& path) {
  const MappedFile file(path);
  return parse_safetensors_header(file.bytes(), path).metadata;
}

std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> x(tensor.elements());
  load_elements<float>(tensor.dtype, tensor.bytes.data(), 0, x);
  return x;
}

// The catalog's name of a file: mxfp8-ocp is mxfp8/ocp.
std::string recipe_of_file(std::string stem) {
  stem[stem.find('-')] = '/';
  return stem;
}

// The row for a tensor of this type: compressed-tensors' arithmetic is that of the weights.
const Recipe* row_for(const std::string& name, Dtype dtype) {
  int id = dtype == Dtype::bf16 ? find_recipe(name + "-bf16") : -1;
  if (id < 0) id = find_recipe(name);
  return id < 0 ? nullptr : &kRecipes[std::size_t(id)];
}

std::vector<std::string> files() {
  std::vector<std::string> stems;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder))
    if (entry.path().extension() == ".safetensors" && entry.path().stem() != "inputs")
      stems.push_back(entry.path().stem().string());
  std::ranges::sort(stems);
  return stems;
}

class Publisher : public testing::TestWithParam<std::string> {
 protected:
  const std::map<std::string, Tensor> inputs_ = tensors_of(std::string(kFolder) + "inputs.safetensors");
  const std::map<std::string, Tensor> answers_ = tensors_of(kFolder + GetParam() + ".safetensors");
  const SafetensorsMetadata metadata_ = metadata_of(kFolder + GetParam() + ".safetensors");
  const std::string recipe_ = recipe_of_file(GetParam());

  const Tensor* answer(const std::string& name) const {
    const auto found = answers_.find(name);
    return found == answers_.end() ? nullptr : &found->second;
  }
};

struct Answer {
  const Recipe& recipe;
  Matrix shape;
  TensorScale scale;
  std::vector<std::byte> codes, scales;
};

Answer ours(const Recipe& recipe, const Tensor& input) {
  const std::vector<float> x = floats_of(input);
  const Matrix shape{.rows = input.shape[0], .cols = input.shape[1]};
  Answer a{.recipe = recipe,
           .shape = shape,
           .scale = tensor_scale(recipe, largest_magnitude(recipe, 0, x)),
           .codes = std::vector<std::byte>(code_bytes(recipe, shape)),
           .scales = std::vector<std::byte>(scale_bytes(recipe, shape))};
  quantize<float>(recipe, a.scale, shape, x, {}, a.codes, a.scales);
  return a;
}

// The value of scale number i, by the format that the file has it in.
float scale_at(const Recipe& recipe, std::span<const std::byte> scales, std::size_t i) {
  const FormatEntry& format = recipe.scale.entry();
  const uint32_t code = format.storage_bits == 8 ? uint32_t(scales[i]) : load_unaligned<uint32_t>(&scales[i * 4]);
  return decode(format.format, code & format.format.code_mask());
}

// Answers that are left out, with the reason.
struct Exclusion {
  std::string_view recipe;
  std::string_view input;
};

constexpr Exclusion kUncompared[] = {
    {"mxfp4/compressed-tensors", "inf_f32"},  // Inf / Inf: a NaN's code, and a 4-bit format has none
};

bool is_excluded(std::string_view recipe, std::string_view input) {
  return std::ranges::any_of(kUncompared, [&](const Exclusion& e) { return e.recipe == recipe && e.input == input; });
}

bool same(float p, float q) {
  return (std::isnan(p) && std::isnan(q)) || bit_cast<uint32_t>(p) == bit_cast<uint32_t>(q);
}

// Which number of a tensor's scale the file's `global_scale` is.
float named_number(const TensorScale& scale, const std::string& name) {
  return name == "decode" ? scale.decode : name == "encode" ? scale.encode : scale.amax;
}

TEST_P(Publisher, HasTheseTensorScales) {
  if (!metadata_.contains("global_scale")) GTEST_SKIP() << "SKIPPED: no scale of the tensor in the file";
  std::size_t compared = 0;
  for (const auto& [name, input] : inputs_) {
    const Tensor* const theirs = answer(name + ".global_scale");
    if (!theirs) continue;
    const float expected = load_unaligned<float>(theirs->bytes.data());
    const float got = named_number(ours(*row_for(recipe_, input.dtype), input).scale, metadata_.at("global_scale"));
    EXPECT_TRUE(same(expected, got)) << name << ": " << expected << " but " << got;
    ++compared;
  }
  EXPECT_GT(compared, 0u);
}

TEST_P(Publisher, AnswersSomeOfTheInputs) {
  for (const std::string member : {".codes", ".scales"})
    EXPECT_TRUE(std::ranges::any_of(inputs_, [&](const auto& input) { return answer(input.first + member); }))
        << member;
}

TEST_P(Publisher, HasTheseScales) {
  for (const auto& [name, input] : inputs_) {
    const Tensor* const theirs = answer(name + ".scales");
    const Recipe* const recipe = row_for(recipe_, input.dtype);
    if (!theirs) continue;
    ASSERT_TRUE(recipe) << recipe_;
    const Answer a = ours(*recipe, input);
    if (!has_scale(*recipe)) {
      EXPECT_TRUE(same(load_unaligned<float>(theirs->bytes.data()), a.scale.encode)) << name;
      continue;
    }
    // A tile's scale may stand once for each of its rows.
    const Matrix grid = scale_grid(*recipe, a.shape);
    const uint64_t copies = theirs->elements() / grid.elements();
    for (std::size_t i = 0; i < theirs->elements(); ++i) {
      const std::size_t own = i / grid.cols / copies * grid.cols + i % grid.cols;
      ASSERT_TRUE(same(scale_at(*recipe, theirs->bytes, i), scale_at(*recipe, a.scales, own)))
          << recipe->name << ' ' << name << " scale " << i << ": " << scale_at(*recipe, theirs->bytes, i) << " but "
          << scale_at(*recipe, a.scales, own);
    }
  }
}

uint32_t code_at(const Recipe& recipe, std::span<const std::byte> codes, std::size_t i) {
  if (recipe.element.entry().storage_bits == 8) return uint32_t(codes[i]);
  return uint32_t(codes[i / 2]) >> (4 * (i % 2)) & 0xf;
}

// A NaN scale leaves 4- and 6-bit codes to the machine.
bool is_compared(const Answer& a, std::size_t i) {
  if (!has_scale(a.recipe) || a.recipe.element.format().has_nan()) return true;
  const Matrix grid = scale_grid(a.recipe, a.shape);
  const uint64_t block =
      i / a.shape.cols / uint64_t(a.recipe.block.rows) * grid.cols + i % a.shape.cols / block_cols(a.recipe, a.shape);
  return !std::isnan(scale_at(a.recipe, a.scales, block)) && !std::isnan(a.scale.decode);
}

TEST_P(Publisher, HasTheseCodes) {
  for (const auto& [name, input] : inputs_) {
    const Tensor* const theirs = answer(name + ".codes");
    const Recipe* const recipe = row_for(recipe_, input.dtype);
    if (!theirs || is_excluded(recipe_, name)) continue;
    ASSERT_TRUE(recipe) << recipe_;
    const std::vector<float> x = floats_of(input);
    const Answer a = ours(*recipe, input);
    const Format format = recipe->element.format();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const uint32_t expected = code_at(*recipe, theirs->bytes, i), got = code_at(*recipe, a.codes, i);
      if (!is_compared(a, i) || (std::isnan(x[i]) && !format.has_nan())) continue;
      if (is_nan_code(format, expected) && is_nan_code(format, got)) continue;
      ASSERT_EQ(expected, got) << recipe->name << ' ' << name << " element " << i << " = " << x[i];
    }
  }
}

TEST_P(Publisher, DecodesToTheseValues) {
  const Tensor* const theirs = answer("gauss_small_bf16.values");
  if (!theirs) GTEST_SKIP() << "SKIPPED: no values in the file";
  const Tensor& input = inputs_.at("gauss_small_bf16");
  const Recipe* const recipe = row_for(recipe_, input.dtype);
  ASSERT_TRUE(recipe) << recipe_;
  const Answer a = ours(*recipe, input);
  std::vector<float> y(input.elements());
  dequantize(*recipe, a.scale, a.shape, a.codes, a.scales, y);
  // Metadata `values` says so where the package's answer is BF16, the input's type.
  const bool bf16 = metadata_.contains("values");
  const std::vector<float> expected = floats_of(*theirs);
  for (std::size_t i = 0; i < y.size(); ++i)
    ASSERT_TRUE(same(expected[i], bf16 ? apply(Op::bf16, y[i]) : y[i])) << i << ": " << expected[i] << " but " << y[i];
}

INSTANTIATE_TEST_SUITE_P(Packages, Publisher, testing::ValuesIn(files()), [](const auto& instance) {
  std::string name = instance.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace halfulp

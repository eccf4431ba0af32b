// What cannot be asked of `halfulp quantize` in the way of axes, padding, rotations, layouts and seeds, and what a
// quantized file cannot say of itself: the exit code, a message that names the option or the key, and nothing written.

#include "tests/tools/stored_tensors.h"

namespace halfulp {
namespace {

void expect_says(const ProgramRun& run, int exit_code, const Words& says) {
  EXPECT_EQ(run.exit_code, exit_code) << run.err;
  EXPECT_EQ(run.out, "");
  for (const std::string& words : says)
    EXPECT_NE(run.err.find(words), std::string::npos) << "'" << words << "' is not in: " << run.err;
}

struct Refusal {
  std::string name;
  Words options;
  Words says;
  Shape shape = {4, 64};
  friend void PrintTo(const Refusal& test, std::ostream* out) { *out << testing::PrintToString(test.options); }
};

// Faults of the command line, whatever the tensor.
const std::vector<Refusal> kUsage{
    {"AxisIsNoNumber", {"-r", "nvfp4/te", "--axis", "x"}, {"--axis", "'x'"}},
    {"AxisTwice", {"-r", "nvfp4/te", "--axis", "0", "--axis", "1"}, {"--axis is given 2 times"}},
    {"HadamardIsNoNumber", {"-r", "nvfp4/te", "--hadamard", "x"}, {"--hadamard", "'x'"}},
    {"HadamardIsNoPower", {"-r", "nvfp4/te", "--hadamard", "24"}, {"--hadamard", "24", "2, 4, 8, 16, 32, 64, 128"}},
    {"HadamardTooLarge", {"-r", "nvfp4/te", "--hadamard", "256"}, {"--hadamard", "'256'", "2, 4, 8, 16, 32, 64, 128"}},
    {"SignsWithoutHadamard", {"-r", "nvfp4/te", "--signs", "te"}, {"--signs", "--hadamard"}},
    {"SignsUnknown", {"-r", "nvfp4/te", "--hadamard", "16", "--signs", "t"}, {"--signs", "none, te, seeded"}},
    {"TeSignsOfAnotherSize", {"-r", "nvfp4/te", "--hadamard", "32", "--signs", "te"}, {"--signs", "16", "32"}},
    {"SeededSignsWithoutSeed", {"-r", "nvfp4/te", "--hadamard", "16", "--signs", "seeded"}, {"--signs", "--seed"}},
    {"SeedForNothing", {"-r", "nvfp4/te", "--seed", "1"}, {"--seed", "stochastically"}},
    {"SeedForFixedSigns", {"-r", "nvfp4/te", "--hadamard", "16", "--seed", "1"}, {"--seed"}},
    {"NoSeed", {"-r", "nvfp4/ms-eden"}, {"--seed is needed", "nvfp4/ms-eden"}},
    {"SeedNegative", {"-r", "bf16+rounding=stochastic", "--seed", "-1"}, {"--seed", "'-1'"}},
    {"SeedTooLarge",
     {"-r", "bf16+rounding=stochastic", "--seed", "18446744073709551616"},
     {"--seed", "'18446744073709551616'"}},
    {"ScaleLayoutUnknown",
     {"-r", "nvfp4/te", "--scale-layout", "swizzled"},
     {"--scale-layout", "'swizzled'", "did you mean 'swizzled-128x4'?"}},
    {"ScaleLayoutWithoutScales",
     {"-r", "bf16", "--scale-layout", "swizzled-128x4"},
     {"--scale-layout swizzled-128x4", "recipe bf16 has no scales of one byte"}},
    {"ScaleLayoutOfWideScales",
     {"-r", "fp8/deepseek-1x128", "--scale-layout", "padded-128x4"},
     {"--scale-layout padded-128x4", "fp8/deepseek-1x128"}},
    {"NibblesUnknown", {"-r", "nvfp4/te", "--nibbles", "odd"}, {"--nibbles", "even-low, even-high, split-halves"}},
    {"NibblesOfBytes", {"-r", "mxfp8/te", "--nibbles", "even-high"}, {"--nibbles", "mxfp8/te are no nibbles"}},
    {"HalvesOfWholeRows",
     {"-r", "nvfp4/te+block=1xrow", "--nibbles", "split-halves"},
     {"--nibbles split-halves", "nvfp4/te+block=1xrow"}},
    {"HalvesOfPartialBlocks",
     {"-r", "mxfp4/ocp+edge=partial", "--nibbles", "split-halves"},
     {"--nibbles split-halves", "mxfp4/ocp+edge=partial"},
     {4, 48}},
    {"CodesWithoutType", {"-r", "bf16+element=tf32"}, {"tf32", "bf16+element=tf32"}},
    {"ScalesWithoutType", {"-r", "mxfp8/te+scale=tf32"}, {"tf32", "mxfp8/te+scale=tf32"}},
};

// Faults of a tensor under these options, which is named with its file.
const std::vector<Refusal> kTensors{
    {"AxisBeyondTheRank", {"-r", "nvfp4/te", "--axis", "2"}, {"(4, 64)", "no dimension 2", "--axis"}},
    {"AxisBeforeTheFirst", {"-r", "nvfp4/te", "--axis", "-3"}, {"(4, 64)", "no dimension -3", "--axis"}},
    {"NotWholeBlocksAlongTheAxis",
     {"-r", "mxfp8/te", "--axis", "0"},
     {"(4, 64)", "rows of 4 are not a multiple of 32", "--pad"}},
    {"NotWholeBlocks", {"-r", "nvfp4/te"}, {"(4, 33)", "rows of 33 are not a multiple of 16", "--pad"}, {4, 33}},
    {"OddLastDimension", {"-r", "nvfp4/te", "--axis", "0"}, {"(16, 3)", "odd", "two codes share a byte"}, {16, 3}},
    {"OddLastDimensionPadded", {"-r", "nvfp4/te", "--axis", "0", "--pad"}, {"(16, 3)", "odd"}, {5, 3}},
    {"TilesOfTensors", {"-r", "nvfp4/te-2d", "--axis", "0"}, {"(16, 16, 16)", "matrices"}, {16, 16, 16}},
    {"TilesOfAVector", {"-r", "nvfp4/te-2d", "--pad"}, {"(32,)", "1 rows are not a multiple of 16"}, {32}},
    {"HadamardOfPartialGroups", {"-r", "nvfp4/te", "--hadamard", "128"}, {"(4, 64)", "128"}},
    {"HadamardOfPartialGroupsAlongTheAxis", {"-r", "bf16", "--hadamard", "16", "--axis", "0"}, {"(4, 64)", "16"}},
    {"HadamardAcrossRows", {"-r", "fp8/te", "--hadamard", "16"}, {"(4, 24)", "16"}, {4, 24}},
    {"CorrectionGroups",
     {"-r", "nvfp4/ms-eden", "--seed", "1"},
     {"(4, 64)", "rows of 64 are not a multiple of 128", "nvfp4/ms-eden"}},
    {"WordsOfFours",
     {"-r", "mxfp8/te+rounding=stochastic+random=te+edge=partial", "--seed", "1"},
     {"(4, 66)", "rows of 66 are not whole fours"},
     {4, 66}},
    {"Scalar", {"-r", "nvfp4/te", "--hadamard", "2"}, {"()"}, {}},
};

class RefusedUsage : public testing::TestWithParam<Refusal> {};
class RefusedTensor : public testing::TestWithParam<Refusal> {};

std::string name_of(const testing::TestParamInfo<Refusal>& instance) { return instance.param.name; }

INSTANTIATE_TEST_SUITE_P(Options, RefusedUsage, testing::ValuesIn(kUsage), name_of);
INSTANTIATE_TEST_SUITE_P(Options, RefusedTensor, testing::ValuesIn(kTensors), name_of);

void expect_refused(const Refusal& test, int exit_code, const Words& says) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", npy_of(uneven_values(test.shape)));
  expect_says(run_halfulp(joined({"quantize", folder / "w.npy", "-o", folder / "q"}, test.options)), exit_code,
              joined(test.says, says));
  EXPECT_EQ(folder.file_count(), 1u) << "something was left behind";
}

TEST_P(RefusedUsage, NamesTheOption) { expect_refused(GetParam(), 2, {"try 'halfulp quantize --help'"}); }

TEST_P(RefusedTensor, NamesTheFileAndTheTensor) { expect_refused(GetParam(), 3, {"w.npy: tensor 'w': "}); }

TEST(RefusedElements, AreNotRotated) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", npy_vector("<f8", std::vector<double>(16)));
  expect_says(run_halfulp({"quantize", folder / "w.npy", "-r", "bf16", "--hadamard", "16", "-o", folder / "q"}), 3,
              {"w.npy: tensor 'w': ", "F64"});
}

StoredTensor zeros(const Shape& shape) {
  return {.dtype = Dtype::f32, .shape = shape, .bytes = std::string(4 * product(shape, 0, shape.size()), '\0')};
}

// Tensor w.scales would take its elements' words from where w takes those of its scales.
TEST(RefusedNames, ThatWouldShareRandomBits) {
  const TemporaryDirectory folder;
  write_stored(folder / "m", {.metadata = {}, .tensors = {{"w", zeros({2, 128})}, {"w.scales", zeros({2, 128})}}});
  expect_says(run_halfulp({"quantize", folder / "m", "-r", "nvfp4/ms-eden", "--seed", "1", "-o", folder / "q"}), 3,
              {"m: tensor 'w", "random bits"});
  EXPECT_EQ(folder.file_count(), 1u);
  EXPECT_EQ(run_halfulp({"quantize", folder / "m", "-r", "nvfp4/te", "-o", folder / "q"}).exit_code, 0);
}

TEST(ErrorAlongAnAxis, SkipsTensorsWithoutIt) {
  const TemporaryDirectory folder;
  write_stored(folder / "m", {.metadata = {}, .tensors = {{"bias", zeros({64})}, {"w", zeros({2, 64})}}});
  const ProgramRun run = run_halfulp({"error", folder / "m", "-r", "mxfp8/te", "--axis", "1"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.err.find("skipped bias"), std::string::npos) << run.err;
  EXPECT_EQ(run.out.find("bias"), std::string::npos) << run.out;
}

// Codes and scales are several tensors, of which a .npy file holds one.
TEST(QuantizeOutput, IsNoNpyFile) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", npy_of(uneven_values({4, 64})));
  expect_says(run_halfulp({"quantize", folder / "w.npy", "-r", "nvfp4/te", "-o", folder / "q.npy"}), 2,
              {"--output", ".safetensors", ".npy"});
  EXPECT_EQ(folder.file_count(), 1u);
}

// Hostile names survive the way there and back.
TEST(QuantizeNames, OfAnyKindComeBack) {
  const TemporaryDirectory folder;
  for (const std::string name : {"a+b=c", "w.codes", "w.scales", "", "a:b", "../w", " ", "line\nbreak", "\xc3\xa9"}) {
    write_stored(folder / "m", {.metadata = {}, .tensors = {{name, zeros({2, 32})}, {"v", zeros({1, 64})}}});
    ASSERT_EQ(run_halfulp({"quantize", folder / "m", "-r", "nvfp4/te", "-o", folder / "q"}).exit_code, 0) << name;
    ASSERT_EQ(run_halfulp({"dequantize", folder / "q", "-o", folder / "y"}).exit_code, 0) << name;
    EXPECT_EQ(stored_file(folder / "y").tensors, stored_file(folder / "m").tensors) << name;
  }
}

// A quantized file with one of its metadata written by hand.
struct Spoilt {
  std::string name;
  std::string recipe;
  std::string key;
  std::string value;
  Words says;
  Words options = {};
  friend void PrintTo(const Spoilt& test, std::ostream* out) { *out << test.recipe << ", " << test.key; }
};

const std::vector<Spoilt> kSpoilt{
    {"AxisIsNoNumber", "nvfp4/te", "axis", "1e0", {"'1e0'", "axis"}},
    {"AxisBeyondTheRank", "nvfp4/te", "axis", "2", {"tensor 'w'", "'2'", "(32, 128)"}},
    {"AxisHuge", "nvfp4/te", "axis", "99999999999999", {"tensor 'w'", "99999999999999"}},
    {"OtherAxis", "nvfp4/te", "axis", "0", {"tensor 'w.scales'", "expected F8_E4M3 (2, 128)"}},
    {"PaddingUnknown", "nvfp4/te", "padding", "ones", {"'padding'", "'ones'"}},
    {"OrderUnknown", "nvfp4/te", "code_order", "first", {"'code_order'", "'first'"}},
    {"ScaleLayoutUnknown", "nvfp4/te", "scale_layout", "zigzag", {"'scale_layout'", "'zigzag'"}},
    {"OtherScaleLayout", "nvfp4/te", "scale_layout", "swizzled-128x4", {"tensor 'w.scales'", "(128, 8)"}},
    {"ScaleLayoutOfWideScales",
     "fp8/torchao-rowwise",
     "scale_layout",
     "padded-128x4",
     {"tensor 'w.scales'", "(128, 4)"}},
    {"NibblesUnknown", "nvfp4/te", "nibbles", "odd", {"'nibbles'", "'odd'"}},
    {"NibblesOfBytes", "mxfp8/te", "nibbles", "even-high", {"'nibbles'", "mxfp8/te"}},
    {"HalvesOfBytes", "mxfp8/te", "nibbles", "split-halves", {"'nibbles'", "mxfp8/te"}},
    {"HalvesWithoutBlocks", "bf16", "nibbles", "split-halves", {"'nibbles'", "bf16"}},
    {"HalvesOfWholeRows", "nvfp4/te+block=1xrow", "nibbles", "split-halves", {"'nibbles'"}},
    {"RecipeThatIsStated", "nvfp4/te", "recipe", "nvfp4/te+d=a", {"tensor 'w'", "'nvfp4/te+d=a'"}},
    {"RecipeThatIsAFile", "nvfp4/te", "recipe", "/etc/passwd.toml", {"tensor 'w'", "'/etc/passwd.toml'"}},
    {"ShapeOfOtherOrder", "nvfp4/te", "w.shape", "[128,32]", {"tensor 'w.codes'", "(128, 16)"}},
    {"ShapeTooLarge", "fp8/te", "w.shape", "[4294967296,4294967296]", {"tensor 'w.codes'"}},
    {"ShapeOfNothing", "nvfp4/te", "w.shape", "[0,18446744073709551615]", {"tensor 'w'"}},
    {"ShapeOfHalfABytePerRow", "nvfp4/te", "w.shape", "[32,129]", {"tensor 'w'", "(32, 129)", "odd"}, {"--axis", "0"}},
    {"ShapeOfPartialGroups",
     "fp8/te",
     "w.shape",
     "[128,32]",
     {"tensor 'w'", "(128, 32)", "128"},
     {"--hadamard", "128"}},
    {"HadamardWithoutSigns", "nvfp4/te", "hadamard", "16", {"'hadamard'", "'16'"}},
    {"HadamardIsNoPower", "nvfp4/te", "hadamard", "24 none", {"'hadamard'", "'24 none'"}},
    {"TeSignsOfAnotherSize", "nvfp4/te", "hadamard", "32 te", {"'hadamard'", "'32 te'"}},
    {"SeededSignsWithoutSeed", "nvfp4/te", "hadamard", "32 seeded", {"seeded signs", "no seed"}},
    {"SeedIsNoNumber",
     "nvfp4/te",
     "seed",
     "one",
     {"'seed'", "'one'"},
     {"--hadamard", "32", "--signs", "seeded", "--seed", "1"}},
    {"ScaleOrderUnknown", "nvfp4/te", "scale_order", "first", {"'scale_order'", "'first'"}},
    {"ShapeNested", "nvfp4/te", "w.shape", std::string(100000, '['), {"tensor 'w'", "not a shape"}},
};

class SpoiltMetadata : public testing::TestWithParam<Spoilt> {};

INSTANTIATE_TEST_SUITE_P(Keys, SpoiltMetadata, testing::ValuesIn(kSpoilt),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(SpoiltMetadata, IsNamed) {
  const TemporaryDirectory folder;
  StoredFile file = Quantization(uneven_values({32, 128}), GetParam().recipe, GetParam().options).file;
  file.metadata[GetParam().key] = GetParam().value;
  write_stored(folder / "q.safetensors", file);
  expect_says(run_halfulp({"dequantize", folder / "q.safetensors", "-o", folder / "y.npy"}), 3,
              joined({"q.safetensors: "}, GetParam().says));
  EXPECT_EQ(folder.file_count(), 1u) << "something was left behind";
}

}  // namespace
}  // namespace halfulp

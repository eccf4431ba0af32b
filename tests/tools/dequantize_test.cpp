#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "lib/safetensors.h"
#include "tests/lib/test_files.h"
#include "tests/tools/npy_bytes.h"
#include "tests/tools/run_program.h"

namespace halfulp {
namespace {

// A quantized tensor 'w' of nvfp4/te, 2 rows of 16, with parts that a test can spoil before it is written.
struct QuantizedW {
  SafetensorsMetadata metadata{{"halfulp.quantized", "1"}, {"recipe", "nvfp4/te"}, {"w.shape", "[2,16]"}};
  std::vector<TensorSpec> specs{{"w.codes", Dtype::u8, {2, 8}},
                                {"w.scales", Dtype::f8_e4m3, {2, 1}},
                                {"w.global_scale", Dtype::f32, {}},
                                {"w.amax", Dtype::f32, {}}};
  // Codes 1.0 (0x2) and 6 (0x7), scale 1 (0x38), decode factor 1, amax 2688.
  std::vector<std::string> bytes{std::string(16, '\x72'), "\x38\x38", raw_bytes<float>({1}), raw_bytes<float>({2688})};

  void write(const std::string& path) const {
    std::vector<TensorData> tensors;
    for (std::size_t i = 0; i < specs.size(); ++i) tensors.push_back({specs[i], bytes_of(bytes[i])});
    write_safetensors(path, tensors, metadata);
  }
};

ProgramRun dequantize(const TemporaryDirectory& folder, const std::string& output = "y.npy") {
  return run_halfulp({"dequantize", folder / "q.safetensors", "-o", folder / output, "--progress", "none"});
}

// What the program says of the spoilt file, after checking that it ends with 3 and writes nothing.
std::string refused(const QuantizedW& file) {
  const TemporaryDirectory folder;
  file.write(folder / "q.safetensors");
  const ProgramRun run = dequantize(folder);
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_EQ(folder.file_count(), 1u) << "something was left behind";
  EXPECT_NE(run.err.find("q.safetensors"), std::string::npos) << run.err;
  return run.err;
}

void expect_says(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << text;
}

TEST(DequantizeVerb, GivesTheValuesOfCodesTimesScales) {
  const TemporaryDirectory folder;
  QuantizedW().write(folder / "q.safetensors");
  ASSERT_EQ(dequantize(folder).exit_code, 0);
  std::vector<float> expected;
  for (int i = 0; i < 16; ++i) expected.insert(expected.end(), {1, 6});
  EXPECT_EQ(read_file(folder / "y.npy"), npy_file("<f4", "(2, 16)", raw_bytes(expected)));
}

TEST(DequantizeVerb, GivesTheTensorBackUnderItsName) {
  const TemporaryDirectory folder;
  QuantizedW().write(folder / "q.safetensors");
  ASSERT_EQ(dequantize(folder, "y.safetensors").exit_code, 0);
  const std::string file = read_file(folder / "y.safetensors");
  const SafetensorsHeader header = parse_safetensors_header(bytes_of(file), "y");
  ASSERT_EQ(header.tensors.size(), 1u);
  EXPECT_EQ(header.tensors[0].name, "w");
  EXPECT_EQ(header.tensors[0].shape, (std::vector<uint64_t>{2, 16}));
}

TEST(DequantizeVerb, BytesDoNotDependOnTheNumberOfThreads) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", npy_file("<f4", "(1000, 1024)", std::string(4096000, '\x3e')));
  ASSERT_EQ(run_halfulp({"quantize", folder / "w.npy", "-r", "nvfp4/te", "-o", folder / "q"}).exit_code, 0);
  for (const std::string threads : {"1", "2", "3", "7", "16"}) {
    ASSERT_EQ(run_halfulp({"dequantize", folder / "q", "-o", folder / threads, "-j", threads}).exit_code, 0);
    EXPECT_EQ(read_file(folder / threads), read_file(folder / "1")) << threads << " threads";
  }
}

TEST(DequantizeVerb, MissingScalesAreNamed) {
  QuantizedW file;
  file.specs.erase(file.specs.begin() + 1), file.bytes.erase(file.bytes.begin() + 1);
  expect_says(refused(file), "tensor 'w.scales': is missing");
}

TEST(DequantizeVerb, CodesOfAnotherDtypeAreRefused) {
  QuantizedW file;
  file.specs[0].dtype = Dtype::i8;
  expect_says(refused(file), "tensor 'w.codes': is I8 (2, 8), expected U8 (2, 8)");
}

// Public report C15: a BF16 scale read as FP32 is another number.
TEST(DequantizeVerb, ATensorScaleOfAnotherDtypeIsRefused) {
  QuantizedW file;
  file.specs[2].dtype = Dtype::bf16;
  file.bytes[2] = "\x28\x44";
  expect_says(refused(file), "tensor 'w.global_scale': is BF16 (), expected F32 ()");
}

TEST(DequantizeVerb, ScalesOfAnotherShapeAreRefused) {
  QuantizedW file;
  file.specs[1].shape = {1, 2};
  expect_says(refused(file), "tensor 'w.scales': is F8_E4M3 (1, 2), expected F8_E4M3 (2, 1)");
}

// UE4M3 has seven bits.
TEST(DequantizeVerb, ANegativeScaleIsNamedByItsByte) {
  QuantizedW file;
  file.bytes[1][1] = '\xb8';
  const std::string text = refused(file);
  expect_says(text, "tensor 'w.scales': byte 1");
  expect_says(text, "0xb8");
}

TEST(DequantizeVerb, AnUnknownRecipeIsNamed) {
  QuantizedW file;
  file.metadata["recipe"] = "nvfp4/nobody";
  expect_says(refused(file), "'nvfp4/nobody'");
}

TEST(DequantizeVerb, AFaultOfAStatedRecipeIsNamedWithItsPlace) {
  QuantizedW file;
  file.metadata["recipe_definition"] = "name = \"mine\"\nblok = \"1x16\"\n";
  expect_says(refused(file), "q.safetensors: recipe_definition: line 2: a recipe has no field 'blok'");
}

TEST(DequantizeVerb, AShapeThatIsNotWholeBlocksIsRefused) {
  QuantizedW file;
  file.metadata["w.shape"] = "[2,8]";
  expect_says(refused(file), "shape (2, 8): rows of 8 are not a multiple of 16");
}

TEST(DequantizeVerb, AShapeThatIsNoShapeIsRefused) {
  QuantizedW file;
  file.metadata["w.shape"] = "[2,-16]";
  expect_says(refused(file), "metadata 'w.shape' is '[2,-16]', not a shape");
}

TEST(DequantizeVerb, AShapeThatDoesNotFit64BitsIsRefused) {
  QuantizedW file;
  file.metadata["w.shape"] = "[4294967296,4294967296,16]";
  refused(file);
}

TEST(DequantizeVerb, AnotherSafetensorsFileIsRefused) {
  QuantizedW file;
  file.metadata.erase("halfulp.quantized");
  expect_says(refused(file), "was not written by 'halfulp quantize'");
}

TEST(DequantizeVerb, AFileWithoutCodesIsRefused) {
  QuantizedW file;
  file.specs.erase(file.specs.begin()), file.bytes.erase(file.bytes.begin());
  expect_says(refused(file), "has no tensor called T.codes");
}

TEST(DequantizeVerb, ANpyFileIsRefused) {
  const TemporaryDirectory folder;
  write_file(folder / "q.safetensors", npy_vector<float>("<f4", {1}));
  const ProgramRun run = dequantize(folder);
  EXPECT_EQ(run.exit_code, 3);
  expect_says(run.err, "was not written by 'halfulp quantize'");
}

TEST(DequantizeVerb, AForeignFileIsNamed) {
  const TemporaryDirectory folder;
  write_file(folder / "q.safetensors", std::string("GGUF\3\0\0\0\0\0\0\0\0\0\0\0", 16));
  const ProgramRun run = dequantize(folder);
  EXPECT_EQ(run.exit_code, 3);
  expect_says(run.err, "a GGUF file");
}

TEST(DequantizeVerb, ANpyFileHoldsOneTensor) {
  const TemporaryDirectory folder;
  write_file(folder / "a.npy", npy_vector<float>("<f4", {1}));
  write_file(folder / "b.npy", npy_vector<float>("<f4", {2}));
  ASSERT_EQ(run_halfulp({"quantize", folder.path(), "-r", "bf16", "-o", folder / "q.safetensors"}).exit_code, 0);
  EXPECT_EQ(dequantize(folder).exit_code, 2);
}

}  // namespace
}  // namespace halfulp

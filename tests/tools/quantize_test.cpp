#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "lib/json.h"
#include "lib/random_values.h"
#include "lib/safetensors.h"
#include "tests/lib/test_files.h"
#include "tests/tools/npy_bytes.h"
#include "tests/tools/run_program.h"

namespace halfulp {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> normals(std::size_t count) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = float(normal(1, 0, i));
  return x;
}

// A file of one F32 tensor 'w' of 4 rows of 64.
std::string small_file(const TemporaryDirectory& folder) {
  const std::string path = folder / "w.npy";
  write_file(path, npy_file("<f4", "(4, 64)", raw_bytes(normals(4 * 64))));
  return path;
}

SafetensorsHeader quantized(const std::string& input, const std::string& recipe, const std::string& output,
                            std::vector<std::string> more = {}) {
  std::vector<std::string> words{"quantize", input, "-r", recipe, "-o", output, "--progress", "none"};
  words.insert(words.end(), more.begin(), more.end());
  const ProgramRun run = run_halfulp(words);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::string file = read_file(output);
  return parse_safetensors_header(bytes_of(file), output);
}

// "name dtype shape" of each tensor, by name.
std::vector<std::string> tensors_of(const SafetensorsHeader& header) {
  std::vector<std::string> lines;
  for (const SafetensorsEntry& entry : header.tensors)
    lines.push_back(entry.name + " " + std::string(row(entry.dtype).name) + " " + Json(entry.shape).dump());
  std::ranges::sort(lines);
  return lines;
}

struct Contents {
  std::string recipe;
  std::vector<std::string> tensors;
};

class Quantize : public testing::TestWithParam<Contents> {};

TEST_P(Quantize, WritesTheTensorsOfItsContract) {
  const TemporaryDirectory folder;
  const SafetensorsHeader header = quantized(small_file(folder), GetParam().recipe, folder / "q.safetensors");
  EXPECT_EQ(tensors_of(header), GetParam().tensors);
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, Quantize,
    testing::Values(Contents{"bf16", {"w.codes BF16 [4,64]"}}, Contents{"f16", {"w.codes F16 [4,64]"}},
                    Contents{"mxfp8/te", {"w.codes F8_E4M3 [4,64]", "w.scales F8_E8M0 [4,2]"}},
                    Contents{"mxfp8/ocp-e5m2", {"w.codes F8_E5M2 [4,64]", "w.scales F8_E8M0 [4,2]"}},
                    Contents{
                        "nvfp4/te",
                        {"w.amax F32 []", "w.codes U8 [4,32]", "w.global_scale F32 []", "w.scales F8_E4M3 [4,4]"}}));

TEST(QuantizeVerb, MetadataSaysHowTheCodesCameAbout) {
  const TemporaryDirectory folder;
  const SafetensorsMetadata expected{
      {"halfulp.quantized", "1"}, {"recipe", "nvfp4/te"}, {"axis", "-1"},    {"rounding", "nearest-even"},
      {"shape", "[4,64]"},        {"w.shape", "[4,64]"},  {"w.dtype", "F32"}};
  EXPECT_EQ(quantized(small_file(folder), "nvfp4/te", folder / "q.safetensors").metadata, expected);
}

// Enough elements for several chunks, with a last one that is not whole.
TEST(QuantizeVerb, BytesDoNotDependOnTheNumberOfThreads) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", npy_file("<f4", "(1000, 1024)", raw_bytes(normals(1000 * 1024))));
  for (const std::string recipe : {"bf16", "mxfp8/ocp", "nvfp4/te"}) {
    quantized(folder / "w.npy", recipe, folder / "1", {"--threads", "1"});
    const std::string one = read_file(folder / "1");
    for (const std::string threads : {"2", "3", "7", "16"}) {
      quantized(folder / "w.npy", recipe, folder / threads, {"--threads", threads});
      EXPECT_EQ(read_file(folder / threads), one) << recipe << ", " << threads << " threads";
    }
  }
}

TEST(QuantizeVerb, DataMayLieAtAnyAddress) {
  const TemporaryDirectory folder;
  const std::vector<float> x = normals(64);
  write_file(folder / "w.npy", npy_file("<f4", "(64,)", raw_bytes(x)));
  const std::string header = R"({"w":{"dtype":"F32","shape":[64],"data_offsets":[0,256]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8 + 1, ' ');
  write_file(folder / "odd.safetensors",
             std::string(1, char(padded.size())) + std::string(7, '\0') + padded + raw_bytes(x));
  quantized(folder / "w.npy", "nvfp4/te", folder / "a");
  quantized(folder / "odd.safetensors", "nvfp4/te", folder / "b");
  EXPECT_EQ(read_file(folder / "a"), read_file(folder / "b"));
}

// The four bytes of an F32 scalar of the file.
float scalar(const std::string& path, const std::string& name) {
  const std::string file = read_file(path);
  float value = 0;
  for (const SafetensorsEntry& entry : parse_safetensors_header(bytes_of(file), path).tensors)
    if (entry.name == name) std::memcpy(&value, file.data() + entry.begin, sizeof value);
  return value;
}

// 2688 / 5376 = 1/2, so the decode factor is 2.
TEST(QuantizeVerb, TakesTheTensorScaleFromAmax) {
  const TemporaryDirectory folder;
  quantized(small_file(folder), "nvfp4/te", folder / "q", {"--amax", "5376"});
  EXPECT_EQ(scalar(folder / "q", "w.amax"), 5376);
  EXPECT_EQ(scalar(folder / "q", "w.global_scale"), 2);
}

TEST(QuantizeVerb, RefusesAmaxForARecipeWithoutATensorScale) {
  const TemporaryDirectory folder;
  const ProgramRun run = run_halfulp({"quantize", small_file(folder), "-r", "bf16", "--amax", "1", "-o", folder / "q"});
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(QuantizeVerb, RoundsTheAmaxGivenToFp32) {
  const TemporaryDirectory folder;
  quantized(small_file(folder), "nvfp4/te", folder / "q", {"--amax", "0.1"});
  EXPECT_EQ(scalar(folder / "q", "w.amax"), 0.1f);
  // Just above the tie between 1 and the next FP32 number: by way of FP64 it would be the tie.
  quantized(small_file(folder), "nvfp4/te", folder / "q", {"--amax", "1.00000005960464477539062500001"});
  EXPECT_EQ(scalar(folder / "q", "w.amax"), 0x1.000002p0f);
}

TEST(QuantizeVerb, AnAmaxBeyondFp32IsRefused) {
  const TemporaryDirectory folder;
  for (const char* amax : {"1e300", "1e-60"})
    EXPECT_EQ(
        run_halfulp({"quantize", small_file(folder), "-r", "nvfp4/te", "--amax", amax, "-o", folder / "q"}).exit_code,
        2);
}

TEST(QuantizeVerb, AnEmptyTensorHasNoCodes) {
  const TemporaryDirectory folder;
  write_file(folder / "e.npy", npy_file("<f4", "(0, 64)", ""));
  const std::vector<std::string> expected{"e.amax F32 []", "e.codes U8 [0,32]", "e.global_scale F32 []",
                                          "e.scales F8_E4M3 [0,4]"};
  EXPECT_EQ(tensors_of(quantized(folder / "e.npy", "nvfp4/te", folder / "q")), expected);
}

TEST(QuantizeVerb, ElementwiseRecipesTakeAScalar) {
  const TemporaryDirectory folder;
  write_file(folder / "s.npy", npy_file("<f8", "()", raw_bytes(std::vector<double>{1.5})));
  EXPECT_EQ(tensors_of(quantized(folder / "s.npy", "bf16", folder / "q")), std::vector<std::string>{"s.codes BF16 []"});
}

TEST(QuantizeVerb, CountsNaNAndInf) {
  const TemporaryDirectory folder;
  std::vector<float> x(32, 1);
  x[0] = std::nanf(""), x[7] = -kInf;
  write_file(folder / "w.npy", npy_vector("<f4", x));
  const ProgramRun run = run_halfulp({"quantize", folder / "w.npy", "-r", "mxfp8/te", "-o", folder / "q"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.err.find("tensor 'w' has 2 elements that are NaN or Inf"), std::string::npos) << run.err;
}

TEST(QuantizeVerb, OutputMayReplaceTheInput) {
  const TemporaryDirectory folder;
  const std::string input = folder / "w";
  std::filesystem::rename(small_file(folder), input);
  quantized(input, "nvfp4/te", folder / "q");
  quantized(input, "nvfp4/te", input);
  EXPECT_EQ(read_file(input), read_file(folder / "q"));
}

// 256 MiB of zeros; the program holds a few chunks of them at a time.
TEST(QuantizeVerb, MemoryIsBoundedByTheChunksNotByTheFile) {
  const TemporaryDirectory folder;
  const std::string header = R"({"w":{"dtype":"BF16","shape":[131072,1024],"data_offsets":[0,268435456]}} )";
  write_file(folder / "big", std::string(1, char(header.size())) + std::string(7, '\0') + header);
  std::filesystem::resize_file(folder / "big", 8 + header.size() + (std::uintmax_t{256} << 20));
  quantized(folder / "big", "mxfp8/te", folder / "q");
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  EXPECT_LT(usage.ru_maxrss / 1024, 128) << "MiB";
}

TEST(QuantizeVerb, RefusesTwoTensorsOfOneName) {
  const TemporaryDirectory folder;
  const std::string input = small_file(folder);
  const ProgramRun run = run_halfulp({"quantize", input, input, "-r", "bf16", "-o", folder / "q"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("tensor 'w'"), std::string::npos) << run.err;
}

TEST(QuantizeVerb, TakesOneRecipe) {
  const TemporaryDirectory folder;
  const ProgramRun run = run_halfulp({"quantize", small_file(folder), "-r", "bf16,f16", "-o", folder / "q"});
  EXPECT_EQ(run.exit_code, 2);
}

}  // namespace
}  // namespace halfulp

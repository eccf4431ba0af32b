// What cannot work: the exit code as designed, a message that names the file, the tensor and the byte, and nothing left
// behind.

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/lib/test_files.h"
#include "tests/tools/npy_bytes.h"
#include "tests/tools/run_program.h"

namespace halfulp {
namespace {

std::string safetensors_file(const std::string& header, const std::string& data = "") {
  std::string file;
  for (int shift = 0; shift < 64; shift += 8) file += char(header.size() >> shift & 0xff);
  return file + header + data;
}

std::string entry(const std::string& name, const std::string& shape, const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

struct BadFile {
  std::string name;
  std::string bytes;
  std::vector<std::string> says;  // beside the file's name
};

const std::vector<BadFile> kBadFiles{
    {"Empty", "", {"is empty"}},
    {"Truncated",
     safetensors_file("{" + entry("t", "[32]", "[0,128]") + "}", std::string(100, 'x')),
     {"128", "(MetadataIncompleteBuffer)"}},
    {"TruncatedInTheHeader",
     safetensors_file("{" + entry("t", "[32]", "[0,128]") + "}").substr(0, 20),
     {"byte 0", "(InvalidHeaderLength)"}},
    {"Oversized", safetensors_file("{" + entry("t", "[1]", "[0,4]") + "}", "12345"), {"(MetadataIncompleteBuffer)"}},
    {"OversizedHeader", std::string("\xff\xff\xff\xff\xff\0\0\0{}", 10), {"byte 0", "(HeaderTooLarge)"}},
    {"Overlapping",
     safetensors_file("{" + entry("a", "[1]", "[0,4]") + "," + entry("b", "[1]", "[2,6]") + "}", "123456"),
     {"tensor 'b'", "byte ", "(InvalidOffset)"}},
    {"Misaligned",
     safetensors_file(R"({"t":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", "12"),
     {"tensor 't'", "(MisalignedSlice)"}},
    {"SizeOfTheShape",
     safetensors_file("{" + entry("t", "[2]", "[0,4]") + "}", "1234"),
     {"tensor 't'", "(TensorInvalidInfo)"}},
    {"DuplicateKey",
     safetensors_file("{" + entry("t", "[1]", "[0,4]") + "," + entry("t", "[1]", "[4,8]") + "}", "12345678"),
     {"'t' stands twice", "byte "}},
    {"NotUtf8", safetensors_file("{" + entry("\xff", "[1]", "[0,4]") + "}", "1234"), {"byte 10", "not UTF-8"}},
    {"NotJson", safetensors_file("{]"), {"byte 9", "not JSON"}},
    {"NoTensors", safetensors_file("{}"), {"has no tensors"}},
    {"Foreign", "PK\x03\x04 and so on", {"a zip archive"}},
};

class BadFiles : public testing::TestWithParam<BadFile> {};

TEST_P(BadFiles, AreRefusedByName) {
  const TemporaryDirectory folder;
  write_file(folder / "m.safetensors", GetParam().bytes);
  const ProgramRun run = run_halfulp({"quantize", folder / "m.safetensors", "-r", "bf16", "-o", folder / "q"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(folder.file_count(), 1u) << "something was left behind";
  EXPECT_NE(run.err.find("m.safetensors: "), std::string::npos) << run.err;
  for (const std::string& words : GetParam().says) EXPECT_NE(run.err.find(words), std::string::npos) << run.err;
}

INSTANTIATE_TEST_SUITE_P(All, BadFiles, testing::ValuesIn(kBadFiles),
                         [](const auto& instance) { return instance.param.name; });

// One tensor that the recipe does not take.
struct BadTensor {
  std::string name;
  std::string recipe;
  std::string npy;
  std::string says;
};

const std::vector<BadTensor> kBadTensors{
    {"IntegersInBlocks", "nvfp4/te", npy_file("<i4", "(16,)", std::string(64, 'x')), "takes F32, F16 or BF16, not I32"},
    {"DoublesInBlocks", "mxfp8/te", npy_file("<f8", "(32,)", std::string(256, 'x')), "takes F32, F16 or BF16, not F64"},
    {"ComplexNumbers", "bf16", npy_file("<c8", "(4,)", std::string(32, 'x')), "C64"},
    {"RowOfAPartialBlock", "nvfp4/te", npy_file("<f4", "(16, 24)", std::string(1536, 'x')),
     "shape (16, 24): rows of 24 are not a multiple of 16"},
    {"RowShorterThanABlock", "mxfp8/ocp", npy_file("<f4", "(32, 1)", std::string(128, 'x')), "not a multiple of 32"},
    {"ScalarInBlocks", "mxfp8/ocp", npy_file("<f4", "()", "1234"), "not a multiple of 32"},
};

class BadTensors : public testing::TestWithParam<BadTensor> {};

TEST_P(BadTensors, AreRefusedByName) {
  const TemporaryDirectory folder;
  write_file(folder / "w.npy", GetParam().npy);
  const ProgramRun run = run_halfulp({"quantize", folder / "w.npy", "-r", GetParam().recipe, "-o", folder / "q"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(folder.file_count(), 1u) << "something was left behind";
  EXPECT_NE(run.err.find("w.npy: tensor 'w': "), std::string::npos) << run.err;
  EXPECT_NE(run.err.find(GetParam().says), std::string::npos) << run.err;
}

INSTANTIATE_TEST_SUITE_P(All, BadTensors, testing::ValuesIn(kBadTensors),
                         [](const auto& instance) { return instance.param.name; });

// A good tensor 'w' of 64 KiB, and what goes wrong around it.
class BadRun : public testing::Test {
 protected:
  void SetUp() override { write_file(folder_ / "w.npy", npy_file("<f4", "(64, 256)", std::string(65536, '\x3f'))); }

  ProgramRun quantize(const std::string& output, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"quantize", folder_ / "w.npy", "-o", output};
    if (more.empty()) more = {"-r", "mxfp8/te"};
    words.insert(words.end(), more.begin(), more.end());
    return run_halfulp(words);
  }

  TemporaryDirectory folder_;
};

TEST_F(BadRun, MissingInput) {
  const ProgramRun run = run_halfulp({"error", folder_ / "nowhere.npy", "-r", "bf16"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("nowhere.npy"), std::string::npos) << run.err;
}

TEST_F(BadRun, MissingTensorIsNamedWithWhatThereIs) {
  const ProgramRun run = run_halfulp({"error", (folder_ / "w.npy") + ":v", "-r", "bf16"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("has no tensor 'v'; it has w"), std::string::npos) << run.err;
}

TEST_F(BadRun, DirectoryWithoutTensors) {
  std::filesystem::create_directory(folder_ / "empty");
  const ProgramRun run = run_halfulp({"error", folder_ / "empty", "-r", "bf16"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("empty: has no .npy and no .safetensors file"), std::string::npos) << run.err;
}

TEST_F(BadRun, UnknownRecipeSuggestsOne) {
  const ProgramRun run = quantize(folder_ / "q", {"-r", "nvfp4"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("did you mean 'nvfp4/te'?"), std::string::npos) << run.err;
}

TEST_F(BadRun, NegativeAmax) { EXPECT_EQ(quantize(folder_ / "q", {"-r", "nvfp4/te", "--amax", "-1"}).exit_code, 2); }

TEST_F(BadRun, AmaxThatIsNoNumber) {
  EXPECT_EQ(quantize(folder_ / "q", {"-r", "nvfp4/te", "--amax", "big"}).exit_code, 2);
}

TEST_F(BadRun, AmaxOfNaN) { EXPECT_EQ(quantize(folder_ / "q", {"-r", "nvfp4/te", "--amax", "nan"}).exit_code, 2); }

TEST_F(BadRun, NoThreads) { EXPECT_EQ(quantize(folder_ / "q", {"-r", "bf16", "--threads", "0"}).exit_code, 2); }

TEST_F(BadRun, AbsentGpuIsTheEnvironmentsFault) {
  EXPECT_EQ(quantize(folder_ / "q", {"-r", "bf16", "--device", "cuda:77"}).exit_code, 4);
}

TEST_F(BadRun, FullDevice) {
  const ProgramRun run = quantize("/dev/full");
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_NE(run.err.find("/dev/full: cannot be written: No space left on device"), std::string::npos) << run.err;
}

TEST_F(BadRun, MissingOutputDirectory) {
  const ProgramRun run = quantize(folder_ / "nowhere/q");
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_NE(run.err.find("nowhere/q"), std::string::npos) << run.err;
}

TEST_F(BadRun, OutputThatIsADirectory) { EXPECT_EQ(quantize(folder_.path()).exit_code, 4); }

// As somebody who is not root, who may write everywhere.
TEST_F(BadRun, UnwritableDirectory) {
  std::filesystem::create_directory(folder_ / "locked");
  ASSERT_EQ(chmod((folder_ / "locked").c_str(), 0555), 0);
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  std::vector<std::string> words{HALFULP_PROGRAM, "quantize", folder_ / "w.npy",   "-r",
                                 "bf16",          "-o",       folder_ / "locked/q"};
  const std::vector<std::string> nobody{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
  if (geteuid() == 0) words.insert(words.begin(), nobody.begin(), nobody.end());
  const ProgramRun run = run_command(words);
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_NE(run.err.find("locked/q: cannot be created: Permission denied"), std::string::npos) << run.err;
}

TEST_F(BadRun, FullDiskLeavesNothing) {
  const std::string disk = folder_ / "disk";
  std::filesystem::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=16k") != 0) GTEST_SKIP() << "only root can mount a small disk";
  const ProgramRun run = quantize(disk + "/q");
  const bool nothing_left = std::filesystem::is_empty(disk);
  umount(disk.c_str());
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_TRUE(nothing_left);
  EXPECT_NE(run.err.find("q: cannot be written: No space left on device"), std::string::npos) << run.err;
}

TEST_F(BadRun, AFailureKeepsAnOlderOutput) {
  write_file(folder_ / "q", "older");
  write_file(folder_ / "bad.npy", npy_file("<f4", "(3,)", std::string(12, 'x')));
  EXPECT_EQ(run_halfulp({"quantize", folder_ / "bad.npy", "-r", "nvfp4/te", "-o", folder_ / "q"}).exit_code, 3);
  EXPECT_EQ(read_file(folder_ / "q"), "older");
}

// 16 GiB of zeros, which take far longer than the half second before the interrupt, and no disk.
TEST_F(BadRun, InterruptLeavesNothing) {
  const std::string header = R"({"w":{"dtype":"F32","shape":[4194304,1024],"data_offsets":[0,17179869184]}})";
  write_file(folder_ / "big.safetensors", safetensors_file(header));
  std::filesystem::resize_file(folder_ / "big.safetensors", 8 + header.size() + (uint64_t{16} << 30));
  const ProgramRun run = run_command({"timeout", "--preserve-status", "-s", "INT", "0.5", HALFULP_PROGRAM, "quantize",
                                      folder_ / "big.safetensors", "-r", "mxfp8/te", "-o", folder_ / "q"});
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_EQ(folder_.file_count(), 2u) << "something was left behind";
}

}  // namespace
}  // namespace halfulp

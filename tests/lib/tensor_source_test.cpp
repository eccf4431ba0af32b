#include "lib/tensor_source.h"

#include <gtest/gtest.h>

#include "lib/npy.h"
#include "lib/safetensors.h"
#include "tests/lib/test_files.h"

namespace halfulp {
namespace {

void save_safetensors(const std::string& path, const std::vector<std::string>& names) {
  std::vector<TensorData> tensors;
  for (const std::string& name : names) tensors.push_back({{name, Dtype::u8, {1}}, bytes_of(name).first(1)});
  write_safetensors(path, tensors, {});
}

void save_npy(const std::string& path) {
  const uint64_t shape[] = {3};
  write_npy(path, Dtype::u8, shape, bytes_of("abc"));
}

std::vector<std::string> names_of(const std::vector<Tensor>& tensors) {
  std::vector<std::string> names;
  for (const Tensor& tensor : tensors) names.push_back(tensor.name);
  return names;
}

using Names = std::vector<std::string>;

// A model of two shards, w in the first, v and x in the second; its index as given.
class ShardedModel : public testing::Test {
 protected:
  ShardedModel() {
    save_safetensors(directory / "1.safetensors", {"w"});
    save_safetensors(directory / "2.safetensors", {"v", "x"});
  }

  std::string index(const std::string& weight_map) const {
    const std::string path = directory / "model.safetensors.index.json";
    write_file(path, R"({"metadata": {"total_size": 3}, "weight_map": )" + weight_map + "}");
    return path;
  }

  std::string refused(const std::string& weight_map) const {
    const CaughtError error = error_of([&] { open_tensors(index(weight_map)); });
    EXPECT_EQ(error.code, ExitCode::bad_input);
    return error.text.substr(error.text.find("index.json") + 12);
  }

  TemporaryDirectory directory;
};

TEST(TensorSource, NpyTensorIsNamedByTheStem) {
  const TemporaryDirectory directory;
  save_npy(directory / "layer.0.npy");
  const std::vector<Tensor> tensors = open_tensors(directory / "layer.0.npy");
  ASSERT_EQ(names_of(tensors), Names{"layer.0"});
  EXPECT_EQ(text_of(tensors[0].bytes), "abc");
  EXPECT_EQ(tensors[0].elements(), 3u);
}

TEST(TensorSource, BytesOutliveTheOtherTensors) {
  const TemporaryDirectory directory;
  save_safetensors(directory / "m.safetensors", {"a", "b"});
  const Tensor last = open_tensors(directory / "m.safetensors").back();
  EXPECT_EQ(text_of(last.bytes), "b");
}

TEST(TensorSource, FortranOrderComesInCOrder) {
  const Tensor c = open_tensors(golden_file("f4_c.npy")).at(0);
  const Tensor fortran = open_tensors(golden_file("f4_fortran.npy")).at(0);
  EXPECT_EQ(text_of(fortran.bytes), text_of(c.bytes));
}

TEST(TensorSource, CopyDoesNotKeepTheFileMapped) {
  EXPECT_EQ(open_tensors(golden_file("f4_fortran.npy")).at(0).mapping, nullptr);
}

TEST(TensorSource, ReleaseKeepsTheBytes) {
  for (const char* name : {"f4_c.npy", "f4_fortran.npy"}) {
    const Tensor tensor = open_tensors(golden_file(name)).at(0);
    const std::string before = text_of(tensor.bytes);
    tensor.release(0, tensor.bytes.size());
    EXPECT_EQ(text_of(tensor.bytes), before);
  }
}

TEST(TensorSource, NpyDtypeIsPassedOn) {
  EXPECT_EQ(open_tensors(golden_file("bfloat16.npy"), {.npy_dtype = Dtype::bf16}).at(0).dtype, Dtype::bf16);
}

TEST(TensorSource, ContentBeatsTheExtension) {
  const TemporaryDirectory directory;
  save_npy(directory / "x.safetensors");
  save_safetensors(directory / "y.npy", {"a"});
  save_safetensors(directory / "z", {"b"});
  EXPECT_EQ(names_of(open_tensors(directory / "x.safetensors")), Names{"x"});
  EXPECT_EQ(names_of(open_tensors(directory / "y.npy")), Names{"a"});
  EXPECT_EQ(names_of(open_tensors(directory / "z")), Names{"b"});
}

// Its header length begins with the magic of a pickle, 0x80 0x02.
TEST(TensorSource, SafetensorsWithAPicklesFirstBytesIsSafetensors) {
  const TemporaryDirectory directory;
  write_file(directory / "x", std::string("\x80\x02\0\0\0\0\0\0{}", 10) + std::string(638, ' '));
  EXPECT_TRUE(open_tensors(directory / "x").empty());
}

TEST(TensorSource, CutOffSafetensorsIsNamedByItsReader) {
  const TemporaryDirectory directory;
  write_file(directory / "x.safetensors", read_file(golden_file("names.safetensors")).substr(0, 100));
  const CaughtError error = error_of([&] { open_tensors(directory / "x.safetensors"); });
  EXPECT_TRUE(error.text.ends_with("(InvalidHeaderLength)")) << error.text;
}

struct Foreign {
  std::string content;
  const char* seems;
};

class ForeignFile : public testing::TestWithParam<Foreign> {};

TEST_P(ForeignFile, IsNamed) {
  const TemporaryDirectory directory;
  write_file(directory / "x.safetensors", GetParam().content);
  const CaughtError error = error_of([&] { open_tensors(directory / "x.safetensors"); });
  EXPECT_EQ(error.code, ExitCode::bad_input);
  EXPECT_NE(error.text.find(GetParam().seems), std::string::npos) << error.text;
}

INSTANTIATE_TEST_SUITE_P(TensorSource, ForeignFile,
                         testing::Values(Foreign{"", "is empty"},
                                         Foreign{std::string("GGUF\x03\0\0\0\0\0", 10), "GGUF"},
                                         Foreign{std::string("PK\x03\x04\x14\0\0\0\0\0", 10), "zip archive"},
                                         Foreign{"\x80\x02}q.", "pickle"}, Foreign{"\x89HDF\r\n\x1a\n", "HDF5"},
                                         Foreign{"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"},
                                         Foreign{"<!DOCTYPE html>", "HTML"}));

TEST(TensorSource, UnknownFileIsRefused) {
  const TemporaryDirectory directory;
  write_file(directory / "x", "8 bytes:{ and no header of that length");
  EXPECT_NE(error_of([&] { open_tensors(directory / "x"); }).text.find("expected .npy, .safetensors"),
            std::string::npos);
}

TEST(TensorSource, MissingFileIsBadInput) {
  EXPECT_EQ(error_of([] { open_tensors("/nonexistent/x"); }).code, ExitCode::bad_input);
}

TEST(TensorSource, DirectoryGivesItsFilesByName) {
  const TemporaryDirectory directory;
  save_safetensors(directory / "b.safetensors", {"t"});
  save_npy(directory / "c.npy");
  save_npy(directory / "a.npy");
  write_file(directory / "readme.md", "");
  EXPECT_EQ(names_of(open_tensors(directory.path())), (Names{"a", "t", "c"}));
}

TEST(TensorSource, DirectoryWithoutTensorsIsBadInput) {
  const TemporaryDirectory directory;
  EXPECT_EQ(error_of([&] { open_tensors(directory.path()); }).code, ExitCode::bad_input);
}

TEST_F(ShardedModel, IndexGivesTheTensorsOfAllShards) {
  const std::string path = index(R"({"v": "2.safetensors", "w": "1.safetensors", "x": "2.safetensors"})");
  EXPECT_EQ(names_of(open_tensors(path)), (Names{"w", "v", "x"}));
}

TEST_F(ShardedModel, DirectoryGoesByItsIndex) {
  index(R"({"w": "1.safetensors"})");
  EXPECT_EQ(names_of(open_tensors(directory.path())), Names{"w"});
}

TEST_F(ShardedModel, ShardMayBeALink) {
  std::filesystem::create_directory(directory / "blobs");
  std::filesystem::rename(directory / "1.safetensors", directory / "blobs/0123");
  std::filesystem::create_symlink("blobs/0123", directory / "1.safetensors");
  EXPECT_EQ(names_of(open_tensors(index(R"({"w": "1.safetensors"})"))), Names{"w"});
}

TEST_F(ShardedModel, TensorMissingFromItsShardIsRefused) {
  EXPECT_EQ(
      refused(R"({"w": "1.safetensors", "u": "1.safetensors"})"),
      "tensor 'u': should be in the shard 1.safetensors, which does not have it; are index and shards of one model?");
}

TEST_F(ShardedModel, TensorMissingFromTheIndexIsRefused) {
  EXPECT_EQ(refused(R"({"v": "2.safetensors"})"),
            "tensor 'x': stands in the shard 2.safetensors but not in the index; open the shard itself to read it");
}

TEST_F(ShardedModel, MissingShardIsRefused) {
  const CaughtError error = error_of([&] { open_tensors(index(R"({"w": "3.safetensors"})")); });
  EXPECT_EQ(error.code, ExitCode::bad_input);
  EXPECT_EQ(error.text, directory / "3.safetensors" + ": cannot be opened: No such file or directory");
}

TEST_F(ShardedModel, ShardOutsideTheDirectoryIsRefused) {
  std::filesystem::create_directory(directory / "sub");
  save_safetensors(directory / "sub/1.safetensors", {"w"});
  for (const std::string& name : {std::string("../1.safetensors"), std::string("sub/1.safetensors"), std::string(".."),
                                  std::string(""), directory / "1.safetensors"}) {
    EXPECT_NE(refused(R"({"w": ")" + name + R"("})").find("is not a plain file name"), std::string::npos) << name;
  }
}

TEST_F(ShardedModel, TensorTwiceInTheIndexIsRefused) {
  EXPECT_EQ(refused(R"({"w": "1.safetensors", "w": "1.safetensors"})"), "the key \"w\" stands twice in one object");
}

TEST_F(ShardedModel, MalformedIndexIsRefused) {
  refused("[]");
  refused("null");
  refused(R"({"w": 1})");
  refused("{");
}

TEST(TensorSpec, PathWithoutTensor) {
  const TensorPlace place = split_tensor_spec("missing.npy");
  EXPECT_EQ(place.path, "missing.npy");
  EXPECT_EQ(place.tensor, std::nullopt);
}

TEST(TensorSpec, TensorAfterAColon) {
  const TemporaryDirectory directory;
  write_file(directory / "m", "");
  const TensorPlace place = split_tensor_spec(directory / "m:layer.0:weight");
  EXPECT_EQ(place.path, directory / "m");
  EXPECT_EQ(place.tensor, "layer.0:weight");
}

TEST(TensorSpec, ExistingPathWithAColonWins) {
  const TemporaryDirectory directory;
  write_file(directory / "m", "");
  write_file(directory / "m:t", "");
  EXPECT_EQ(split_tensor_spec(directory / "m:t").tensor, std::nullopt);
  EXPECT_EQ(split_tensor_spec(directory / "m:t:u").path, directory / "m:t");
}

TEST(TensorSpec, OpensTheOneTensor) {
  const TemporaryDirectory directory;
  save_safetensors(directory / "m", {"a", "b"});
  EXPECT_EQ(names_of(open_tensor_spec(directory / "m:b")), Names{"b"});
}

TEST(TensorSpec, MissingTensorNamesThoseThatExist) {
  const TemporaryDirectory directory;
  save_safetensors(directory / "m", {"a", "b"});
  const CaughtError error = error_of([&] { open_tensor_spec(directory / "m:c"); });
  EXPECT_EQ(error.code, ExitCode::bad_input);
  EXPECT_EQ(error.text, directory / "m" + ": has no tensor 'c'; it has a, b");
}

TEST(LoadUnaligned, ReadsAtAnyAddress) {
  const std::byte bytes[] = {std::byte{0}, std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  EXPECT_EQ(load_unaligned<uint32_t>(bytes + 1), 0x04030201u);
}

}  // namespace
}  // namespace halfulp

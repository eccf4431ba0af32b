// Recordings of matrix instructions: those of an H200, and others made by a device that the models stand in for.

#include "emulation/recordings/matrix_recording.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <string>

#include "emulation/matmul/scaled_tiles.h"
#include "emulation/recordings/probes.h"
#include "lib/error.h"

namespace halfulp {
namespace {

const Accumulator& row_of(int form) { return kAccumulators[std::size_t(accumulator_of_form(form, 90))]; }

ScaledTiles answered_by_the_model(int form, ScaledTiles tiles) {
  tiles.d.clear();
  for (std::size_t i = 0; i < tiles.c.size(); ++i)
    tiles.d.push_back(scaled_output(matrix_form(form), row_of(form), tiles, i));
  return tiles;
}

void answer_scaled(int id, ScaledTiles& tiles) { tiles = answered_by_the_model(kPlainForms + id, tiles); }
MatrixAnswers answer_plain(int id, const MatrixTiles& tiles) {
  const ScaledTiles all =
      answered_by_the_model(id, scaled_inputs(matrix_form(id), tiles.mode, tiles.first, tiles.count));
  return {.a = all.a, .b = all.b, .c = all.c, .d = all.d};
}

std::vector<uint32_t> answer_operands(int id, const MatrixAnswers& x) {
  return answered_by_the_model(id, {.a = x.a, .b = x.b, .a_scales = {}, .b_scales = {}, .c = x.c, .d = {}}).d;
}

Backend backend() {
  Backend backend{};
  backend.multiply_operands = answer_operands;
  backend.multiply_tiles = answer_plain;
  backend.multiply_scaled_tiles = answer_scaled;
  return backend;
}

class MatrixRecordings : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ / "recording.safetensors"; }
  MatrixRecording written_and_read(int form) const {
    write_matrix_recording(path(), record_matrix_instruction(backend(), device_, form, 1));
    return read_matrix_recording(path());
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("halfulp_scaled_" + std::to_string(::getpid()));
  const DeviceInfo device_{
      .name = "a model", .compute = "", .target = "sm_90a", .driver = "1", .cuda = "13.0.88", .native = {}};
};

TEST_F(MatrixRecordings, KeepEveryTileOfEveryInstruction) {
  for (int form = 0; form < kMatrixForms; ++form) {
    const MatrixRecording made = record_matrix_instruction(backend(), device_, form, 1), read = written_and_read(form);
    ASSERT_EQ(read.form, form);
    ASSERT_EQ(read.kinds, made.kinds);
    ASSERT_EQ(read.tile_kinds, made.tile_kinds);
    ASSERT_EQ(read.tiles.a, made.tiles.a);
    ASSERT_EQ(read.tiles.b, made.tiles.b);
    ASSERT_EQ(read.tiles.a_scales, made.tiles.a_scales);
    ASSERT_EQ(read.tiles.b_scales, made.tiles.b_scales);
    ASSERT_EQ(read.tiles.c, made.tiles.c);
    ASSERT_EQ(read.tiles.d, made.tiles.d);
  }
}

TEST_F(MatrixRecordings, AreTheirModelsButForWhatIsOtherwise) {
  MatrixRecording recording = record_matrix_instruction(backend(), device_, 16, 1);
  EXPECT_TRUE(differing_outputs(recording, row_of(16)).empty());
  recording.tiles.d[700] ^= 1;
  EXPECT_EQ(differing_outputs(recording, row_of(16)), std::vector<std::size_t>{700});
}

TEST_F(MatrixRecordings, SayWhereTheyWereMade) {
  const DeviceInfo device = written_and_read(0).device;
  EXPECT_EQ(device.name, "a model");
  EXPECT_EQ(device.target, "sm_90a");
  EXPECT_EQ(device.driver, "1");
  EXPECT_EQ(device.cuda, "13.0.88");
}

TEST_F(MatrixRecordings, AreToldFromOtherFiles) {
  written_and_read(3);
  EXPECT_TRUE(is_matrix_recording(path()));
  EXPECT_THROW(is_matrix_recording(HALFULP_TEST_DATA "/h200/cvt.json"), InputError);
}

TEST(RecordedProbes, AreThoseThatAnInstructionCanBeAsked) {
  const auto count = [](std::string_view ptx, std::string_view format) {
    return probes_of(matrix_form(find_matrix_form(ptx, format, format))).size();
  };
  EXPECT_EQ(count("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "f16"), 30u);
  EXPECT_EQ(count("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32", "tf32"), 48u);
  EXPECT_EQ(count("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "f16"), 0u) << "K is another";
  EXPECT_EQ(count("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", "e2m1"), 23u);
  EXPECT_EQ(count("tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block32", "e4m3"), 17u);
}

// All files of tests/golden/h200/mma.
TEST(RecordedMatrices, AreTheModels) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HALFULP_TEST_DATA "/h200/mma")) {
    if (entry.path().extension() != ".safetensors") continue;
    const MatrixRecording recording = read_matrix_recording(entry.path().string());
    const int row = accumulator_of(recording, entry.path().string());
    EXPECT_TRUE(differing_outputs(recording, kAccumulators[std::size_t(row)]).empty()) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 10u);
}

}  // namespace
}  // namespace halfulp

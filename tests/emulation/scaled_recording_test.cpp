// Recordings of Blackwell's matrix instructions, made by a device that the models stand in for.

#include "emulation/recordings/scaled_recording.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <string>

#include "lib/error.h"

namespace halfulp {
namespace {

const Accumulator& row_of(int id) {
  return kAccumulators[std::size_t(find_accumulator(kScaledInstructions[std::size_t(id)].accumulator))];
}

void answer_as_the_models(int id, ScaledTiles& tiles) {
  tiles.d.clear();
  for (std::size_t i = 0; i < tiles.c.size(); ++i)
    tiles.d.push_back(scaled_output(kScaledInstructions[std::size_t(id)], row_of(id), tiles, i));
}

Backend backend() {
  Backend backend{};
  backend.multiply_scaled_tiles = answer_as_the_models;
  return backend;
}

class ScaledRecordings : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ / "recording.safetensors"; }
  ScaledRecording written_and_read(int id) const {
    write_scaled_recording(path(), record_scaled_instruction(backend(), device_, id, 1));
    return read_scaled_recording(path());
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("halfulp_scaled_" + std::to_string(::getpid()));
  const DeviceInfo device_{
      .name = "a model", .compute = "", .target = "sm_90a", .driver = "1", .cuda = "13.0.88", .native = {}};
};

TEST_F(ScaledRecordings, KeepEveryTileOfEveryInstruction) {
  for (int id = 0; id < int(kScaledInstructions.size()); ++id) {
    const ScaledRecording made = record_scaled_instruction(backend(), device_, id, 1), read = written_and_read(id);
    ASSERT_EQ(read.id, id);
    ASSERT_EQ(read.tile_modes, made.tile_modes);
    ASSERT_EQ(read.tiles.a, made.tiles.a);
    ASSERT_EQ(read.tiles.b, made.tiles.b);
    ASSERT_EQ(read.tiles.a_scales, made.tiles.a_scales);
    ASSERT_EQ(read.tiles.b_scales, made.tiles.b_scales);
    ASSERT_EQ(read.tiles.c, made.tiles.c);
    ASSERT_EQ(read.tiles.d, made.tiles.d);
  }
}

TEST_F(ScaledRecordings, AreTheirModelsButForWhatIsOtherwise) {
  ScaledRecording recording = record_scaled_instruction(backend(), device_, 16, 1);
  EXPECT_TRUE(differing_outputs(recording, row_of(16)).empty());
  recording.tiles.d[700] ^= 1;
  EXPECT_EQ(differing_outputs(recording, row_of(16)), std::vector<std::size_t>{700});
}

TEST_F(ScaledRecordings, SayWhereTheyWereMade) {
  const DeviceInfo device = written_and_read(0).device;
  EXPECT_EQ(device.name, "a model");
  EXPECT_EQ(device.target, "sm_90a");
  EXPECT_EQ(device.driver, "1");
  EXPECT_EQ(device.cuda, "13.0.88");
}

TEST_F(ScaledRecordings, AreToldFromOtherFiles) {
  written_and_read(3);
  EXPECT_TRUE(is_scaled_recording(path()));
  EXPECT_FALSE(is_scaled_recording(HALFULP_TEST_DATA "/h200/mma/mma_m16n8k16_f16.safetensors"));
  EXPECT_THROW(read_scaled_recording(HALFULP_TEST_DATA "/h200/mma/mma_m16n8k16_f16.safetensors"), InputError);
}

}  // namespace
}  // namespace halfulp

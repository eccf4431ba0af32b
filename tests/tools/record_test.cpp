// halfulp record and doctor end to end with a GPU that the models stand in for (fake_gpu.cpp): what is written, what is
// kept, what is refused. HALFULP_PROGRAM is that program here.

#include <gtest/gtest.h>

#include <algorithm>

#include "lib/json.h"
#include "tests/lib/test_files.h"
#include "tests/tools/run_program.h"

namespace halfulp {
namespace {

class Record : public testing::Test {
 protected:
  ProgramRun record(std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"record", "-o", file_});
    return run_halfulp(options);
  }
  Json recorded() { return Json::parse(read_file(file_)); }

  TemporaryDirectory folder_;
  std::string file_ = folder_ / "r.json";
};

TEST_F(Record, WritesWhatReplayAgreesWith) {
  const ProgramRun run = record();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("Every answer is the model's."), std::string::npos) << run.out;
  EXPECT_EQ(run_halfulp({"replay", file_}).exit_code, 0);
}

TEST_F(Record, StatesDeviceVersionAndDefinitions) {
  record();
  const Json json = recorded();
  EXPECT_EQ(json["schema"], "halfulp.recording/1");
  EXPECT_EQ(json["device"], "Fake GPU");
  EXPECT_EQ(json["driver"], "1.2.3");
  EXPECT_EQ(json["target"], "sm_100a");
  EXPECT_FALSE(json["halfulp"].get<std::string>().empty());
  for (const char* key : {"equal", "every", "pairs"}) EXPECT_TRUE(json["inputs"].contains(key)) << key;
}

TEST_F(Record, HasNativeInstructionsOnly) {
  record();
  const Json instructions = recorded()["instructions"];
  EXPECT_TRUE(instructions.contains("cvt.rn.f16x2.e2m1x2"));
  EXPECT_FALSE(instructions.contains("cvt.rn.bf16.f32")) << "emulated on the fake GPU";
}

TEST_F(Record, AddsWhatTheFileLacks) {
  record({"-i", "cvt.rn.f16x2.e2m1x2"});
  const ProgramRun run = record({"-i", "cvt.rn.f16x2.e2m1x2,cvt.rn.f16x2.e4m3x2", "--json"});
  EXPECT_EQ(Json::parse(run.out)["recorded_now"], 1);
  EXPECT_NE(run.err.find("has 1 of the 2 instructions already"), std::string::npos) << run.err;
  EXPECT_EQ(recorded()["instructions"].size(), 2u);
}

TEST_F(Record, RecordsAgainWithForce) {
  record({"-i", "cvt.rn.f16x2.e2m1x2"});
  const ProgramRun run = record({"-i", "cvt.rn.f16x2.e2m1x2", "--force", "--json"});
  EXPECT_EQ(Json::parse(run.out)["recorded_now"], 1);
}

TEST_F(Record, GivesTheSameBytesAgain) {
  record();
  const std::string first = read_file(file_);
  record({"--force"});
  EXPECT_EQ(read_file(file_), first);
}

TEST_F(Record, RefusesToAddToAnotherDevicesRecording) {
  record();
  Json other = recorded();
  other["device"] = "Another GPU";
  write_file(file_, other.dump());
  const ProgramRun run = record();
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("is a recording of Another GPU"), std::string::npos) << run.err;
  EXPECT_EQ(read_file(file_), other.dump());
}

TEST_F(Record, LeavesAFileThatIsNoRecording) {
  write_file(file_, "my notes");
  EXPECT_EQ(record().exit_code, 3);
  EXPECT_EQ(read_file(file_), "my notes");
}

TEST_F(Record, RefusesAnInstructionThatIsEmulated) {
  const ProgramRun run = record({"-i", "cvt.rn.bf16.f32"});
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_NE(run.err.find("what is emulated there is not recorded"), std::string::npos) << run.err;
  EXPECT_EQ(folder_.file_count(), 0u);
}

TEST_F(Record, SuggestsAnInstruction) {
  const ProgramRun run = record({"-i", "cvt.rn.f16x2.e2m1x4"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("did you mean"), std::string::npos) << run.err;
}

TEST_F(Record, RefusesADevice) { EXPECT_EQ(run_halfulp({"record", "-o", "/dev/null"}).exit_code, 2); }

TEST_F(Record, FailsBeforeTheWorkWhereNothingCanBeWritten) {
  EXPECT_EQ(run_halfulp({"record", "-o", folder_ / "none/r.json"}).exit_code, 4);
}

TEST(DoctorWithAGpu, TellsWhatIsNativeThere) {
  const Json json = Json::parse(run_halfulp({"doctor", "--json"}).out);
  ASSERT_EQ(json["devices"].size(), 1u);
  EXPECT_EQ(json["devices"][0]["name"], "Fake GPU");
  const Json& rows = json["conversions"];
  const auto row = std::ranges::find_if(rows, [](const Json& r) { return r["instruction"] == "cvt.rn.f16x2.e2m1x2"; });
  ASSERT_NE(row, rows.end());
  EXPECT_EQ((*row)["cuda:0"], "native");
}

}  // namespace
}  // namespace halfulp

// halfulp record and doctor end to end with a GPU that the models stand in for (fake_gpu.cpp): what is written, what is
// kept, what is refused. HALFULP_PROGRAM is that program here.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "lib/json.h"
#include "tests/lib/test_files.h"
#include "tests/tools/golden.h"
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
  EXPECT_NE(run.out.find("Everything is the model's."), std::string::npos) << run.out;
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

// The fake GPU has tcgen05, of 19 kinds and formats.
TEST_F(Record, RecordsMatrixInstructionsThatReplayAgreesWith) {
  const std::string matrices = folder_ / "matrices";
  const ProgramRun run = record({"-i", "cvt.rn.f16x2.e2m1x2", "--matrices", matrices, "--quick", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Json rows = Json::parse(run.out)["matrices"];
  ASSERT_EQ(rows.size(), 19u);
  for (const Json& row : rows) EXPECT_EQ(row["mismatches"], 0) << row["instruction"];
  const std::string nvfp4 =
      matrices + "/tcgen05_mma_cta_group_1_kind_mxf4nvf4_block_scale_block16_e2m1_e2m1.safetensors";
  const ProgramRun replayed = run_halfulp({"replay", nvfp4, "--json"});
  EXPECT_EQ(replayed.exit_code, 0) << replayed.err;
  EXPECT_EQ(Json::parse(replayed.out)["matrices"][0]["outputs"], (2 * 9 + 23) * 128 * 16) << "modes and probes";
}

TEST_F(Record, ShowsWhatMatrixInstructionsAnswerOtherwise) {
  const std::string matrices = folder_ / "matrices";
  const ProgramRun run =
      run_halfulp({"record", "-o", file_, "-i", "cvt.rn.f16x2.e2m1x2", "--matrices", matrices, "--quick"},
                  {.environment = {"HALFULP_WRONG_MATRIX=1"}});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const ProgramRun replayed =
      run_halfulp({"replay", matrices + "/tcgen05_mma_cta_group_1_kind_f16_f16_f16.safetensors"});
  EXPECT_EQ(replayed.exit_code, 1);
  EXPECT_NE(replayed.out.find("First outputs of "), std::string::npos) << replayed.out;
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
  EXPECT_NE(run.err.find("has 1 of the 2 instructions and kernels already"), std::string::npos) << run.err;
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

// "nvfp4/te" with stochastic rounding and "nvfp4/te-2d" are the fake GPU's kernels, and bf16.
constexpr const char* kStochastic = "nvfp4/te+rounding=stochastic+random=te";

class RecordKernels : public Record {
 protected:
  ProgramRun record_wrongly(std::vector<std::string> options) {
    options.insert(options.begin(), {"record", "-o", file_});
    return run_halfulp(options, {.environment = {"HALFULP_WRONG_KERNEL=nvfp4/te"}});
  }
};

TEST_F(RecordKernels, AreRecordedAfterTheConversionsFromEachDtype) {
  EXPECT_EQ(record({"--quick"}).exit_code, 0);
  const Json recipes = recorded()["kernels"]["recipes"];
  EXPECT_EQ(recipes.size(), 3u);
  for (const char* dtype : {"F32", "F16", "BF16"}) {
    const Json& kernel = recipes[kStochastic][dtype];
    EXPECT_EQ(kernel["form"], Json({{"elements", "native"}, {"scales", "software"}})) << dtype;
    EXPECT_EQ(kernel["codes"].size(), 8u);
    EXPECT_EQ(kernel["scales"].size(), 8u);
  }
  EXPECT_FALSE(recipes["bf16"]["F32"]["form"].contains("scales"));
}

TEST_F(RecordKernels, ReplayAgreesWithThem) {
  record({"-r", kStochastic});
  const ProgramRun run = run_halfulp({"replay", file_});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.out.find("3 kernels: 12,582,912 elements compared by checksum. No mismatch."), std::string::npos)
      << run.out;
}

TEST_F(RecordKernels, ShowAWrongOneAtOnceAndInReplay) {
  const ProgramRun run = record_wrongly({"-r", kStochastic, "--quick"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.out.find("1027 "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("0 conversions, 1 recipes"), std::string::npos) << run.out;
  const ProgramRun replay = run_halfulp({"replay", "r.json"}, {.folder = folder_.path()});
  EXPECT_EQ(replay.exit_code, 1);
  EXPECT_EQ(Json::parse(run_halfulp({"replay", file_, "--json"}).out)["files"][0]["kernels"][0]["wrong_chunks"],
            Json::array({0}));
  expect_golden("replay_wrong_kernel.txt", replay.out.substr(replay.out.find('\n')));
}

TEST_F(RecordKernels, AddWhatTheFileLacks) {
  record({"--quick", "-r", "bf16"});
  const ProgramRun run = record({"--quick", "-r", std::string("bf16,") + kStochastic, "--json"});
  EXPECT_EQ(Json::parse(run.out)["recorded_now"], 3) << run.out;
  EXPECT_EQ(Json::parse(record({"-r", "bf16", "--json"}).out)["recorded_now"], 3) << "more chunks";
}

TEST_F(RecordKernels, AreLeftOutWhereInstructionsAreNamed) {
  record({"-i", "cvt.rn.f16x2.e2m1x2"});
  EXPECT_FALSE(recorded().contains("kernels"));
}

TEST_F(RecordKernels, RefuseARecipeWithoutAKernel) {
  const ProgramRun run = record({"-r", "nvfp4/cutlass"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("nvfp4/cutlass: has no kernel of its own"), std::string::npos) << run.err;
}

TEST_F(RecordKernels, ReplayRefusesWhatIsNoRecipe) {
  record({"--quick", "-r", "bf16"});
  for (const char* name : {"bf17", "mine.toml"}) {
    Json json = recorded();
    json["kernels"]["recipes"][name] = json["kernels"]["recipes"]["bf16"];
    write_file(folder_ / "bad.json", json.dump());
    const ProgramRun run = run_halfulp({"replay", folder_ / "bad.json"});
    EXPECT_EQ(run.exit_code, 3) << run.err;
    EXPECT_NE(run.err.find(std::string("kernels/recipes/") + name), std::string::npos) << run.err;
  }
}

TEST_F(RecordKernels, DoctorSaysWhichAreProven) {
  record({"-r", "bf16"});
  record_wrongly({"-r", kStochastic});
  const Json json = Json::parse(run_halfulp({"doctor", file_, "--json"}).out);
  std::map<std::string, std::string> states;
  for (const Json& row : json["recordings"][0]["kernels"]) states[row["recipe"]] = row["state"];
  EXPECT_EQ(states, (std::map<std::string, std::string>{
                        {"bf16", "proven"}, {kStochastic, "differs"}, {"nvfp4/te-2d", "not recorded"}}));
}

TEST_F(RecordKernels, AQuickOneIsProvenInPart) {
  record({"-r", "bf16", "--quick"});
  EXPECT_NE(run_halfulp({"doctor", file_}).out.find("proven in part"), std::string::npos);
}

TEST(DoctorWithAGpu, TellsHowEachKernelConverts) {
  const Json kernels = Json::parse(run_halfulp({"doctor", "--json"}).out)["kernels"];
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(kernels[1]["recipe"], "nvfp4/te-2d");
  EXPECT_EQ(kernels[1]["cuda:0_elements"], "native");
  EXPECT_EQ(kernels[1]["cuda:0_scales"], "software");
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

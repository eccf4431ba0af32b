// halfulp replay, record and doctor end to end, without a GPU. What an H200 answered is compared by sample here, and in
// full by tests/exhaustive/golden_test.cpp.

#include <gtest/gtest.h>

#include <algorithm>

#include "emulation/recordings/kernels.h"
#include "emulation/recordings/record.h"
#include "lib/json.h"
#include "tests/emulation/fake_device.h"
#include "tests/lib/test_files.h"
#include "tests/tools/golden.h"
#include "tests/tools/run_program.h"

namespace halfulp {
namespace {

const std::string kH200 = std::string(HALFULP_TEST_DATA) + "/h200/";

class Replay : public testing::Test {
 protected:
  ~Replay() override { wrong_instruction() = {}; }

  ProgramRun replay(const std::string& recording, std::vector<std::string> options = {}) {
    write_file(folder_ / "r.json", recording);
    options.insert(options.begin(), {"replay", "r.json"});
    return run_halfulp(options, {.folder = folder_.path()});
  }

  static std::string recorded(const std::string& instruction) {
    Recording recording = begin_recording(kFakeBackend.open(0), "test");
    record_instruction(kFakeBackend, find_ptx_cvt(instruction), 1, recording, [](uint64_t) {});
    return recording_text(recording);
  }

  TemporaryDirectory folder_;
};

TEST_F(Replay, FindsNoMismatchInWhatAnH200Answered) {
  for (const char* file : {"cvt.json", "cvt_all.json"}) {
    const ProgramRun run = run_halfulp({"replay", kH200 + file, "--sample", "1", "-i",
                                        "cvt.rn.satfinite.e4m3x2.f32,cvt.rna.tf32.f32,cvt.rz.bf16.f32,"
                                        "cvt.rn.f16x2.e5m2x2"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.out.find("No mismatch."), std::string::npos) << run.out;
  }
}

TEST_F(Replay, FindsNoMismatchInWhatAnH200Computed) {
  const ProgramRun run = run_halfulp({"replay", kH200 + "kernels.json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("51 kernels: 26,738,688 elements compared by checksum. No mismatch."), std::string::npos)
      << run.out;
}

TEST_F(Replay, FindsNoMismatchInWhatAnH200Multiplied) {
  const ProgramRun run = run_halfulp({"replay", kH200 + "mma", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const Json rows = Json::parse(run.out)["matrices"];
  EXPECT_GE(rows.size(), 10u);
  for (const Json& row : rows) EXPECT_EQ(row["mismatches"], 0) << row["file"];
}

TEST_F(Replay, ShowsWhatAnotherAccumulatorMultipliesOtherwise) {
  const ProgramRun run =
      run_halfulp({"replay", kH200 + "mma/wgmma_m64n8k32_e4m3.safetensors", "-a", "sm90.mma_sync_fp8.f32"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.out.find("0xbf085800 (-0.5325927734375)"), std::string::npos) << run.out;
}

TEST_F(Replay, RefusesAnAccumulatorThatDoesNotTakeTheOperands) {
  const std::string e4m3 = kH200 + "mma/wgmma_m64n8k32_e4m3.safetensors";
  for (const char* const row : {"sm100.omma.f32", "sm100.utcqmma_mx.f32", "sm90.hmma.f32", "sm90.qgmma.f16", "ref.fp64",
                                "ref.fp32_pairwise", "cutlass.sm90.fp8"}) {
    const ProgramRun run = run_halfulp({"replay", e4m3, "-a", row});
    EXPECT_EQ(run.exit_code, 3) << row;
    EXPECT_NE(run.err.find(e4m3 + ": --accumulator " + row), std::string::npos) << run.err;
  }
}

// Copies of a matrix recording with one thing wrong, of the same length.
TEST_F(Replay, NamesWhatIsWrongWithAMatrixRecording) {
  const std::string good = read_file(kH200 + "mma/mma_m16n8k32_e4m3.safetensors");
  const auto refused = [&](const std::string& text, const std::string& replacement) {
    std::string bad = good;
    bad.replace(bad.find(text), text.size(), replacement);
    write_file(folder_ / "bad.safetensors", bad);
    const ProgramRun run = run_halfulp({"replay", "bad.safetensors"}, {.folder = folder_.path()});
    EXPECT_EQ(run.exit_code, 3) << run.err;
    return run.err;
  };
  EXPECT_NE(refused("row.col.f32.e4m3", "row.col.f33.e4m3").find("did you mean 'mma.sync.aligned.m16n8k32"),
            std::string::npos);
  EXPECT_NE(refused("\"driver\"", "\"drover\"").find("the metadata has no 'driver'"), std::string::npos);
  EXPECT_NE(refused("[320,16,32]", "[320,32,16]").find("bad.safetensors: tensor 'a': byte "), std::string::npos);
  write_file(folder_ / "bad.safetensors", good.substr(0, good.size() - 1));
  EXPECT_EQ(run_halfulp({"replay", "bad.safetensors"}, {.folder = folder_.path()}).exit_code, 3);
  EXPECT_EQ(run_halfulp({"replay", kH200 + "mma", "-a", "sm90.qgma.f32"}).exit_code, 2);
}

TEST_F(Replay, TellsMatricesInEveryMode) {
  const std::string file = kH200 + "mma/wgmma_m64n8k32_e4m3.safetensors";
  const ProgramRun csv = run_halfulp({"replay", file, "--csv"});
  EXPECT_EQ(csv.exit_code, 0) << csv.err;
  EXPECT_NE(csv.out.find("e4m3,e4m3,NVIDIA H200,sm90.qgmma.f32,40960,0"), std::string::npos) << csv.out;
  const ProgramRun json = run_halfulp({"replay", file, "-a", "sm90.mma_sync_fp8.f32", "--json"});
  EXPECT_EQ(Json::parse(json.out)["matrices"][0]["differing"][0]["recorded"], 0xbf085800u);
  EXPECT_EQ(run_halfulp({"replay", file, "-i", "cvt.rz.bf16.f32"}).exit_code, 2) << "chooses nothing of matrices";
}

TEST_F(Replay, SaysWhatItDidNotCompare) {
  const ProgramRun run = run_halfulp({"replay", kH200 + "cvt_all.json", "--sample", "1", "-i", "cvt.rz.bf16.f32"});
  EXPECT_NE(run.out.find("16,777,216 inputs compared by checksum (4,294,967,296 recorded; --full compares all)"),
            std::string::npos)
      << run.out;
  EXPECT_NE(run.err.find("not compared: lane_pairs"), std::string::npos) << run.err;
}

TEST_F(Replay, NamesTheChunkOfAWrongChecksum) {
  Json recording = Json::parse(read_file(kH200 + "cvt_all.json"));
  recording["ops"]["cvt.rz.bf16.f32"][63] = "0123456789abcdef";
  const ProgramRun run = replay(recording.dump(), {"-i", "cvt.rz.bf16.f32"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.out.find("chunks that differ: 63 (inputs 0x3f000000 to 0x3fffffff)"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("halfulp record --force -i cvt.rz.bf16.f32"), std::string::npos) << run.out;
}

// An instruction that rounds 3 (0x5) to 2 in e2m1's upper lane, as no GPU does.
TEST_F(Replay, ShowsAWrongInstructionBitByBit) {
  wrong_instruction() = {find_ptx_cvt("cvt.rn.f16x2.e2m1x2"), [](const CvtInput& input, uint32_t answer) {
                           return input.sources[1] == 5 ? answer ^ 0x0200'0000 : answer;
                         }};
  const ProgramRun run = replay(recorded("cvt.rn.f16x2.e2m1x2"));
  EXPECT_EQ(run.exit_code, 1);
  expect_golden("replay_wrong.txt", run.out);
}

TEST_F(Replay, ShowsTheRandomBitsOfALane) {
  Recording recording = begin_recording(kFakeBackend.open(0), "test");
  const int id = find_ptx_cvt("cvt.rs.satfinite.e2m1x4.f32");
  const uint32_t answer = model_answer(id, CvtInputs::pairs, 0x1234) ^ 0x10;
  recording.instructions = {{id,
                             {{.inputs = CvtInputs::pairs,
                               .chunks = {},
                               .checksums = {},
                               .sample = {},
                               .mismatches = 1,
                               .differing = {{0x1234, answer}}}}}};
  const ProgramRun run = replay(recording_text(recording), {"--json"});
  EXPECT_EQ(run.exit_code, 1);
  const Json sweep = Json::parse(run.out)["files"][0]["instructions"][0]["sweeps"][0];
  ASSERT_EQ(sweep["wrong_lanes"].size(), 1u) << sweep;
  EXPECT_EQ(sweep["wrong_lanes"][0]["lane"], 1);
  EXPECT_EQ(sweep["wrong_lanes"][0]["random"].get<std::string>().size(), 6u) << sweep;
}

TEST_F(Replay, GivesTheSameForAnyNumberOfThreads) {
  const std::string text = recorded("cvt.rn.f16x2.e4m3x2");
  EXPECT_EQ(replay(text, {"--json", "-j", "1"}).out, replay(text, {"--json", "-j", "7"}).out);
}

TEST_F(Replay, PrintsJsonWithTheSchema) {
  const Json json = Json::parse(replay(recorded("cvt.rn.f16x2.e4m3x2"), {"--json"}).out);
  EXPECT_EQ(json["schema"], "halfulp.replay/1");
  EXPECT_EQ(json["files"][0]["agrees"], true);
  EXPECT_EQ(json["files"][0]["instructions"][0]["sweeps"][1]["inputs_compared"], 65536);
}

TEST_F(Replay, TellsWhatATargetHasThatIsNotRecorded) {
  EXPECT_NE(replay(recorded("cvt.rn.f16x2.e4m3x2")).out.find("sm_100a has 100 more conversions"), std::string::npos);
}

struct BadRecording {
  const char* name;
  const char* path;   // of what is replaced, a JSON pointer
  const char* value;  // by this; nothing: it is erased
  const char* says;
};

const BadRecording kBadRecordings[] = {
    {"WrongSchema", "/schema", R"("halfulp.recording/9")", "expected the schema 'halfulp.recording/1', got"},
    {"NoSchema", "/schema", "", "is no recording"},
    {"NoDevice", "/device", "", "has no member 'device'"},
    {"DeviceIsNoText", "/device", "7", "device: expected a string, got 7"},
    {"SoftwareForm", "/instructions/cvt.rn.f16x2.e4m3x2/form", R"("software")",
     "instructions/cvt.rn.f16x2.e4m3x2/form: expected 'native'"},
    {"UnknownInstruction", "/instructions/cvt.rn.f16x2.e4m3x3", "{}",
     "instructions/cvt.rn.f16x2.e4m3x3: is no conversion that this halfulp knows; did you mean"},
    {"UnknownInputs", "/instructions/cvt.rn.f16x2.e4m3x2/sweeps/pairs", "{}",
     "sweeps/pairs: no inputs of this instruction"},
    {"WrongCountOfInputs", "/instructions/cvt.rn.f16x2.e4m3x2/sweeps/every/inputs", "65535",
     "sweeps/every/inputs: expected 65536, got 65535"},
    {"WrongCountOfChecksums", "/instructions/cvt.rn.f16x2.e4m3x2/sweeps/every/checksums", "[]",
     "sweeps/every/checksums: expected 1 checksums, got 0"},
    {"ChecksumIsNoNumber", "/instructions/cvt.rn.f16x2.e4m3x2/sweeps/every/checksums/0", R"("12zz")",
     "sweeps/every/checksums[0]: expected 64 bits as hexadecimal digits, got '12zz'"},
    {"ChunkBeyondTheLast", "/instructions/cvt.rn.f16x2.e4m3x2/sweeps/every/chunks", "[1]",
     "sweeps/every/chunks[0]: expected a number from 0 to 0, got 1"},
    {"AnswerIsTooWide", "/instructions/cvt.rn.f16x2.e4m3x2/sweeps/equal/sample/3", R"("0x10000")",
     "sweeps/equal/sample[3]: expected 16 bits"},
    {"InputBeyondTheLast", "/instructions/cvt.rn.f16x2.e4m3x2/sweeps/equal/differing",
     R"([{"input":"0x100","answer":"0x0"}])", "differing[0]/input: there are 256 inputs"},
};

// Of a recording with one kernel, "bf16" of F32, of one chunk.
const BadRecording kBadKernels[] = {
    {"NoRecipes", "/kernels/recipes", "", "kernels: has no member 'recipes'"},
    {"UnknownDtype", "/kernels/recipes/bf16/F64", "{}", "kernels/recipes/bf16/F64: expected one of F32, F16, BF16"},
    {"UnknownForm", "/kernels/recipes/bf16/F32/form/elements", R"("emulated")",
     "kernels/recipes/bf16/F32/form/elements: expected 'native' or 'software', got 'emulated'"},
    {"NoChecksums", "/kernels/recipes/bf16/F32/codes", "[]", "codes: expected 1 to 64 checksums, got 0"},
    {"UnequalChecksums", "/kernels/recipes/bf16/F32/scales", "[]", "scales: expected 1 checksums, got 0"},
    {"RunBeyondTheLast", "/kernels/recipes/bf16/F32/differing", R"([{"run":4096,"codes":[],"scale":"0x0"}])",
     "differing[0]/run: expected a number from 0 to 4095, got 4096"},
    {"TooFewCodes", "/kernels/recipes/bf16/F32/differing", R"([{"run":0,"codes":["0x1"],"scale":"0x0"}])",
     "differing[0]/codes: expected 16 codes, got 1"},
};

class BadRecordings : public Replay, public testing::WithParamInterface<BadRecording> {};

TEST_P(BadRecordings, AreRefusedByFileAndEntry) {
  Recording whole = begin_recording(kFakeBackend.open(0), "test");
  record_instruction(kFakeBackend, find_ptx_cvt("cvt.rn.f16x2.e4m3x2"), 1, whole, [](uint64_t) {});
  record_kernel(kFakeBackend, kFakeBackend.kernels[0], Dtype::f32,
                kernel_elements(Dtype::f32, 0, kKernelChunk.elements()), 1, whole);
  Json recording = Json::parse(recording_text(whole));
  const Json::json_pointer place(GetParam().path);
  if (*GetParam().value == '\0') {
    recording[place.parent_pointer()].erase(place.back());
  } else {
    recording[place] = Json::parse(GetParam().value);
  }
  const ProgramRun run = replay(recording.dump());
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("r.json: "), std::string::npos) << run.err;
  EXPECT_NE(run.err.find(GetParam().says), std::string::npos) << run.err;
}

INSTANTIATE_TEST_SUITE_P(Kernels, BadRecordings, testing::ValuesIn(kBadKernels),
                         [](const auto& test) { return std::string(test.param.name); });
INSTANTIATE_TEST_SUITE_P(All, BadRecordings, testing::ValuesIn(kBadRecordings),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(Replay, RefusesACutFile) {
  const std::string text = recorded("cvt.rn.f16x2.e4m3x2");
  const ProgramRun run = replay(text.substr(0, text.size() / 2));
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("was it cut off?"), std::string::npos) << run.err;
}

TEST_F(Replay, RefusesWhatIsNotJson) {
  const ProgramRun run = replay("{\"ops\": oops}");
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("r.json: byte 8: is not JSON"), std::string::npos) << run.err;
}

TEST_F(Replay, RefusesAMissingFile) { EXPECT_EQ(run_halfulp({"replay", folder_ / "none.json"}).exit_code, 3); }

TEST_F(Replay, RefusesBothSampleAndFull) {
  EXPECT_EQ(replay(recorded("cvt.rn.f16x2.e4m3x2"), {"--full", "--sample", "3"}).exit_code, 2);
}

TEST_F(Replay, RefusesAnInstructionThatIsNotInTheFile) {
  EXPECT_EQ(replay(recorded("cvt.rn.f16x2.e4m3x2"), {"-i", "cvt.rn.bf16.f32"}).exit_code, 3);
}

TEST(Record, NeedsAFile) { EXPECT_EQ(run_halfulp({"record"}).exit_code, 2); }

TEST(Record, RefusesTheCpu) {
  const TemporaryDirectory folder;
  EXPECT_EQ(run_halfulp({"record", "-o", folder / "r.json", "--device", "cpu"}).exit_code, 2);
}

TEST(Record, SaysWhatIsMissingAndLeavesNoFile) {
  const TemporaryDirectory folder;
  const ProgramRun run = run_halfulp({"record", "-o", folder / "r.json", "--device", "cuda:99999"});
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_NE(run.err.find("halfulp record: "), std::string::npos) << run.err;
  EXPECT_EQ(folder.file_count(), 0u);
}

TEST(Record, RefusesWhatIsNoDevice) {
  const ProgramRun run = run_halfulp({"record", "-o", "r.json", "--device", "gpu"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("expected cpu or cuda:N"), std::string::npos) << run.err;
}

TEST(Doctor, NeedsNoGpu) { EXPECT_EQ(run_halfulp({"doctor"}).exit_code, 0); }

TEST(Doctor, CountsEveryConversionOnce) {
  const Json json = Json::parse(run_halfulp({"doctor", "--json"}).out);
  EXPECT_EQ(json["schema"], "halfulp.doctor/1");
  std::size_t conversions = 0;
  for (const Json& row : json["evidence"]) conversions += row["conversions"].get<std::size_t>();
  EXPECT_EQ(conversions, kPtxCvts.size());
  EXPECT_EQ(json["conversions"].size(), kPtxCvts.size());
}

TEST(Doctor, ListsWhatIsNotMeasuredAndNothingElse) {
  const std::string out = run_halfulp({"doctor"}).out;
  EXPECT_NE(out.find("cvt.rs.satfinite.e2m1x4.f32"), std::string::npos) << out;
  EXPECT_EQ(out.find("cvt.rn.bf16.f32"), std::string::npos) << out;
}

}  // namespace
}  // namespace halfulp

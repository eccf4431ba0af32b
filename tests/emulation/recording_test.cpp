// Recordings end to end without a GPU: a fake device records, its answers are read back and replayed. Whether the
// models are right is not asked here: tests/tools/replay_test.cpp replays what an H200 answered.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "emulation/recordings/record.h"
#include "emulation/recordings/replay.h"
#include "lib/threads.h"
#include "tests/emulation/fake_device.h"
#include "tests/lib/test_files.h"

namespace halfulp {
namespace {

// 256 values of a lane, 65536 registers.
constexpr int kWidening = find_ptx_cvt("cvt.rn.f16x2.e4m3x2");
constexpr int kOneLane = find_ptx_cvt("cvt.f32.bf16");
constexpr int kFromFloat = find_ptx_cvt("cvt.rn.bf16.f32");
constexpr int kStochastic = find_ptx_cvt("cvt.rs.bf16x2.f32");
constexpr ReplayOptions kAll{.most_chunks = 256, .threads = 2};

class Recordings : public testing::Test {
 protected:
  ~Recordings() override { wrong_instruction() = {}; }

  static Recording record(const std::vector<int>& ids, uint32_t most_chunks = 256) {
    Recording recording = begin_recording(kFakeBackend.open(0), "test");
    for (const int id : ids) record_instruction(kFakeBackend, id, most_chunks, recording, [](uint64_t) {});
    return recording;
  }

  // Through the file.
  Recording stored(const Recording& recording) {
    write_file(folder_ / "r.json", recording_text(recording));
    return read_recording(folder_ / "r.json");
  }

  static std::vector<SweepReplay> replayed(const Recording& recording) {
    return replay(recording, kAll, [](uint64_t) {});
  }

  static bool agrees(const Recording& recording) {
    return std::ranges::all_of(replayed(recording), [](const SweepReplay& sweep) { return sweep.agrees(); });
  }

  // Every lane with this source has its lowest bit flipped.
  static void break_instruction(int id, uint32_t source) {
    wrong_instruction() = {id, [=](const CvtInput& input, uint32_t answer) {
                             const PtxCvt& op = conversion(id);
                             for (int lane = 0; lane < op.lanes; ++lane)
                               if (input.sources[lane] == source) answer ^= uint32_t{1} << (lane * op.to.storage_bits);
                             return answer;
                           }};
  }

  TemporaryDirectory folder_;
};

TEST_F(Recordings, OfTheModelsAgreeWithThem) { EXPECT_TRUE(agrees(stored(record({kWidening, kOneLane})))); }

TEST_F(Recordings, SurviveTheirFile) {
  break_instruction(kWidening, 0x38);
  const Recording recording = record({kWidening, kOneLane});
  EXPECT_EQ(recording_text(stored(recording)), recording_text(recording));
}

TEST_F(Recordings, SweepEqualLanesAndEveryRegister) {
  const Recording recording = record({kWidening});
  ASSERT_EQ(recording.instructions.size(), 1u);
  ASSERT_EQ(recording.instructions[0].sweeps.size(), 2u);
  EXPECT_EQ(recording.instructions[0].sweeps[0].inputs, CvtInputs::equal);
  EXPECT_EQ(recording.instructions[0].sweeps[1].inputs, CvtInputs::every);
  EXPECT_EQ(inputs_of(std::vector{kWidening}, 256), 256u + 65536u);
}

TEST_F(Recordings, SweepNothingTwiceWhereThereIsOneLane) {
  EXPECT_EQ(record({kOneLane}).instructions[0].sweeps.size(), 1u);
}

TEST_F(Recordings, CountAndKeepWhatTheModelDoesNotGive) {
  break_instruction(kWidening, 0x38);
  const Recording recording = record({kWidening});
  const std::vector<RecordedSweep>& sweeps = recording.instructions[0].sweeps;
  EXPECT_EQ(sweeps[0].mismatches, 1u);
  EXPECT_EQ(sweeps[0].differing, (std::vector<RecordedAnswer>{{0x38, 0x3c01}}));
  EXPECT_EQ(sweeps[1].mismatches, 511u);  // 256 with it below, 256 above, one with both
  EXPECT_EQ(sweeps[1].differing.size(), 16u);
}

TEST_F(Recordings, ReplayFindsAWrongInstruction) {
  break_instruction(kWidening, 0x38);
  const std::vector<SweepReplay> sweeps = replayed(stored(record({kWidening, kOneLane})));
  ASSERT_EQ(sweeps.size(), 3u);
  EXPECT_TRUE(sweeps[0].agrees()) << "cvt.f32.bf16";
  EXPECT_EQ(sweeps[1].wrong_chunks, std::vector<uint32_t>{0});
  EXPECT_EQ(sweeps[1].wrong_answers.front().recorded, 0x3c01u);
  EXPECT_EQ(sweeps[1].wrong_answers.front().model, 0x3c00u);
  EXPECT_EQ(sweeps[2].wrong_chunks, std::vector<uint32_t>{0});
}

// One answer of 2^24, far from the sample and from either end of the chunk.
TEST_F(Recordings, ReplayFindsOneWrongAnswerOfAChunk) {
  break_instruction(kFromFloat, 0xff65'4321);
  const Recording recording = stored(record({kFromFloat}, 1));
  EXPECT_EQ(recording.instructions[0].sweeps[0].mismatches, 1u);
  const std::vector<SweepReplay> sweeps = replayed(recording);
  EXPECT_EQ(sweeps[0].wrong_chunks, std::vector<uint32_t>{255});
  ASSERT_EQ(sweeps[0].wrong_answers.size(), 1u);
  EXPECT_EQ(sweeps[0].wrong_answers[0].input, 0xff65'4321u);
  EXPECT_EQ(sweeps[0].inputs_compared, uint64_t{1} << 24);
  EXPECT_EQ(sweeps[0].inputs_in_all, uint64_t{1} << 32);
}

TEST_F(Recordings, ReplayFindsAWrongChecksumWithoutAnswers) {
  Recording recording = record({kWidening});
  recording.instructions[0].sweeps[1].checksums[0] ^= 1;
  const std::vector<SweepReplay> sweeps = replayed(recording);
  EXPECT_TRUE(sweeps[0].agrees());
  EXPECT_EQ(sweeps[1].wrong_chunks, std::vector<uint32_t>{0});
  EXPECT_TRUE(sweeps[1].wrong_answers.empty());
}

TEST_F(Recordings, ReplayFindsAWrongAnswerOfTheSample) {
  Recording recording = record({kWidening});
  recording.instructions[0].sweeps[1].sample[5].answer ^= 0x8000;
  const std::vector<SweepReplay> sweeps = replayed(recording);
  EXPECT_EQ(sweeps[1].answers_compared, kSamples);
  EXPECT_EQ(sweeps[1].wrong_answers.size(), 1u);
  EXPECT_TRUE(sweeps[1].wrong_chunks.empty());
}

TEST_F(Recordings, ReplayComparesChunksThatDifferedEvenIfTheyAreNotInTheSample) {
  Recording recording = record({kWidening});
  RecordedSweep sweep{.inputs = CvtInputs::equal, .chunks = {}, .checksums = {}, .sample = {}, .differing = {}};
  for (uint32_t chunk = 0; chunk < 256; ++chunk) sweep.chunks.push_back(chunk);
  sweep.checksums.resize(256);
  sweep.differing = {{0x1234'5678, 0}};
  recording.instructions = {{kFromFloat, {sweep}}};
  EXPECT_EQ(plan_replay(recording, 1)[0].chunks, (std::vector<uint32_t>{0x12, 255}));
}

TEST_F(Recordings, AreNotMadeTwice) {
  const Recording recording = record({kWidening});
  const RecordJob job{.ptx_cvt_ids = {kOneLane, kWidening}, .most_chunks = 256, .recorded = Recorded::skip};
  EXPECT_EQ(missing_instructions(recording, job), std::vector{kOneLane});
}

TEST_F(Recordings, AreMadeAgainWhereThatIsAskedFor) {
  const RecordJob job{.ptx_cvt_ids = {kWidening}, .most_chunks = 256, .recorded = Recorded::again};
  EXPECT_EQ(missing_instructions(record({kWidening}), job), std::vector{kWidening});
}

TEST_F(Recordings, OfSomeChunksDoNotStandForAll) {
  const Recording quick = record({kFromFloat}, 1);
  const auto missing = [&](uint32_t most_chunks) {
    return missing_instructions(quick, {.ptx_cvt_ids = {kFromFloat}, .most_chunks = most_chunks});
  };
  EXPECT_TRUE(missing(1).empty());
  EXPECT_EQ(missing(2), std::vector{kFromFloat});
}

TEST_F(Recordings, ReplaceAnInstructionThatIsRecordedAgain) {
  Recording recording = record({kWidening, kOneLane});
  record_instruction(kFakeBackend, kWidening, 256, recording, [](uint64_t) {});
  EXPECT_EQ(recording.instructions.size(), 2u);
}

TEST_F(Recordings, StayAsTheyWereWhereTheWorkIsInterrupted) {
  Recording recording = record({kWidening});
  const std::string before = recording_text(recording);
  request_interrupt();
  const CaughtError error =
      error_of([&] { record_instruction(kFakeBackend, kOneLane, 256, recording, [](uint64_t) {}); });
  clear_interrupt();
  EXPECT_EQ(error.code, ExitCode::interrupted);
  EXPECT_EQ(recording_text(recording), before);
}

// The sum of what convert_register gives one by one.
uint64_t checksum_by_definition(int id, CvtInputs inputs, uint32_t chunk) {
  const CvtDomain domain = domain_of(conversion(id));
  const uint32_t count = uint32_t(chunk_inputs(domain, inputs));
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count; ++i)
    sum += answer_hash(chunk * count + i, model_answer(id, inputs, chunk * count + i));
  return sum;
}

TEST(ModelChecksum, IsTheSumOverTheAnswersOfEveryNarrowConversion) {
  int compared = 0;
  for (int id = 0; id < int(kPtxCvts.size()); ++id) {
    for (const CvtInputs inputs : {CvtInputs::equal, CvtInputs::every}) {
      const PtxCvt& op = conversion(id);
      if (!has_inputs(op, inputs) || count_inputs(domain_of(op), inputs) > 65536) continue;
      EXPECT_EQ(model_checksum(id, inputs, 0), checksum_by_definition(id, inputs, 0)) << kPtxCvts[std::size_t(id)].name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 50);
}

TEST(ModelChecksum, HasTheRandomWordsOfStochasticRounding) {
  EXPECT_EQ(model_checksum(kStochastic, CvtInputs::pairs, 63),
            checksum_by_definition(kStochastic, CvtInputs::pairs, 63));
}

TEST(SpreadChunks, TakesTheLastOfEqualParts) {
  EXPECT_EQ(spread_chunks(256, 4), (std::vector<uint32_t>{63, 127, 191, 255}));
  EXPECT_EQ(spread_chunks(3, 2), (std::vector<uint32_t>{0, 2}));
}

TEST(SpreadChunks, TakesAllWhereThereAreNoMore) {
  EXPECT_EQ(spread_chunks(3, 256), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_TRUE(spread_chunks(0, 4).empty());
}

}  // namespace
}  // namespace halfulp

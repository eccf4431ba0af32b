// halfulp cvt end to end. Expected bytes are the recorded and derived cases of the project's collection: ids T001 to
// T085 name them; T077 to T081 and the ue8m0 rows were recorded on a B200 (jinhongyii/TIRx-harness).

#include <gtest/gtest.h>

#include "lib/philox.h"
#include "tests/lib/test_files.h"
#include "tests/tools/npy_bytes.h"
#include "tests/tools/run_program.h"

namespace halfulp {
namespace {

constexpr std::size_t kNpyHeader = 128;  // bytes, for the shapes here

using Words = std::vector<uint32_t>;

class Cvt : public testing::Test {
 protected:
  // Runs the instruction on an array and returns the output file, or fails.
  std::string output(const std::string& instruction, const std::string& input,
                     const std::vector<std::string>& options = {}) {
    const ProgramRun run = convert(instruction, input, options);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return read_file(folder_ / "out.npy");
  }

  ProgramRun convert(const std::string& instruction, const std::string& input,
                     const std::vector<std::string>& options = {}) {
    write_file(folder_ / "in.npy", input);
    std::vector<std::string> words{"cvt", instruction, folder_ / "in.npy", "-o", folder_ / "out.npy"};
    words.insert(words.end(), options.begin(), options.end());
    return run_halfulp(words);
  }

  // The codes of float32 bit patterns.
  std::vector<uint8_t> bytes(const std::string& instruction, const Words& inputs) {
    const std::string file = output(instruction, npy_vector("<f4", inputs));
    return {file.begin() + kNpyHeader, file.end()};
  }

  std::vector<std::string> random(const Words& words) {
    write_file(folder_ / "words.npy", npy_vector("<u4", words));
    return {"--random", folder_ / "words.npy"};
  }

  // --packed registers of a .rs instruction; inputs from the lowest lane up.
  std::string registers(const std::string& instruction, const Words& inputs, const Words& words) {
    std::vector<std::string> options = random(words);
    options.emplace_back("--packed");
    return output(instruction, npy_vector("<f4", inputs), options);
  }

  TemporaryDirectory folder_;
};

template <class T>
std::string one(const std::string& descr, T value) {
  return npy_vector(descr, std::vector<T>{value});
}

TEST_F(Cvt, E4M3HasTheCodesOfT001ToT017) {
  EXPECT_EQ(
      bytes("cvt.rn.satfinite.e4m3x2.f32",
            {0x00000000, 0x80000000, 0x3a800000, 0x3a800001, 0x3b400000, 0x3ba00000, 0x3c700000, 0x3f880000, 0x3f980000,
             0x43e00000, 0x43e80000, 0x43e80001, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x80000001}),
      (std::vector<uint8_t>{0x00, 0x80, 0x00, 0x01, 0x02, 0x02, 0x08, 0x38, 0x3a, 0x7e, 0x7e, 0x7e, 0x7e, 0xfe, 0x7f,
                            0x7f, 0x80}));
}

TEST_F(Cvt, E5M2HasTheCodesOfT020ToT026) {
  EXPECT_EQ(bytes("cvt.rn.satfinite.e5m2x2.f32",
                  {0x37000000, 0x37000001, 0x3f900000, 0x3fb00000, 0x47700000, 0x7f800000, 0xffffffff}),
            (std::vector<uint8_t>{0x00, 0x01, 0x3c, 0x3e, 0x7b, 0x7b, 0x7f}));
}

TEST_F(Cvt, E2M1HasTheCodesOfT029ToT042) {
  EXPECT_EQ(bytes("cvt.rn.satfinite.e2m1x2.f32",
                  {0x3e800000, 0x3e800001, 0x3f400000, 0x3fa00000, 0x3fe00000, 0x40200000, 0x40600000, 0x40a00000,
                   0x40a00001, 0x40e00000, 0xbe800000, 0x80000000, 0xffc00000, 0xff800000}),
            (std::vector<uint8_t>{0, 1, 2, 2, 4, 4, 6, 6, 7, 7, 8, 8, 7, 0xf}));
}

struct Bf16Case {
  const char* instruction;
  std::vector<uint16_t> expected;
  friend void PrintTo(const Bf16Case& test, std::ostream* out) { *out << test.instruction; }
};

class CvtToBf16 : public Cvt, public testing::WithParamInterface<Bf16Case> {};

TEST_P(CvtToBf16, HasTheCodesOfT047ToT052) {
  const Words inputs{0x3f808000, 0x3f818000, 0x7f7fffff, 0xbf808000, 0x7fa00000, 0x80000001};
  EXPECT_EQ(output(GetParam().instruction, npy_vector("<f4", inputs)), npy_vector("<u2", GetParam().expected));
}

INSTANTIATE_TEST_SUITE_P(Modes, CvtToBf16,
                         testing::Values(Bf16Case{"cvt.rn.bf16.f32", {0x3f80, 0x3f82, 0x7f80, 0xbf80, 0x7fff, 0x8000}},
                                         Bf16Case{"cvt.rz.bf16.f32", {0x3f80, 0x3f81, 0x7f7f, 0xbf80, 0x7fff, 0x8000}},
                                         Bf16Case{"cvt.rp.bf16.f32", {0x3f81, 0x3f82, 0x7f80, 0xbf80, 0x7fff, 0x8000}},
                                         Bf16Case{"cvt.rm.bf16.f32",
                                                  {0x3f80, 0x3f81, 0x7f7f, 0xbf81, 0x7fff, 0x8001}}));

struct Ue8m0Case {
  const char* instruction;
  std::vector<uint8_t> expected;
  friend void PrintTo(const Ue8m0Case& test, std::ostream* out) { *out << test.instruction; }
};

class CvtToUe8m0 : public Cvt, public testing::WithParamInterface<Ue8m0Case> {};

TEST_P(CvtToUe8m0, HasTheCodesOfT053ToT063) {
  EXPECT_EQ(bytes(GetParam().instruction, {0x00000000, 0x00400000, 0x00400001, 0x007fffff, 0x3f800000, 0x3f800001,
                                           0xc0400000, 0x7f000001, 0x7f7fffff, 0x7f800000, 0xffc00000}),
            GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Modes, CvtToUe8m0,
    testing::Values(
        Ue8m0Case{"cvt.rz.ue8m0x2.f32", {0x00, 0x00, 0x00, 0x00, 0x7f, 0x7f, 0x80, 0xfe, 0xfe, 0xff, 0xff}},
        Ue8m0Case{"cvt.rz.satfinite.ue8m0x2.f32", {0x00, 0x00, 0x00, 0x00, 0x7f, 0x7f, 0x80, 0xfe, 0xfe, 0xfe, 0xff}},
        Ue8m0Case{"cvt.rp.ue8m0x2.f32", {0x00, 0x00, 0x01, 0x01, 0x7f, 0x80, 0x81, 0xff, 0xff, 0xff, 0xff}},
        Ue8m0Case{"cvt.rp.satfinite.ue8m0x2.f32", {0x00, 0x00, 0x01, 0x01, 0x7f, 0x80, 0x81, 0xfe, 0xfe, 0xfe, 0xff}}));

TEST_F(Cvt, WidensUe8m0AsT064Says) {
  const std::vector<uint8_t> codes{0x00, 0x01, 0x7f, 0xfe, 0xff};
  EXPECT_EQ(output("cvt.rn.bf16x2.ue8m0x2", npy_vector("|u1", codes)),
            npy_vector("<u2", std::vector<uint16_t>{0x0040, 0x0080, 0x3f80, 0x7f00, 0x7fff}));
}

// Four inputs that end one below and exactly at the threshold which a lane's random field must reach: 1 and k / 2^16 of
// an ulp goes up if k + R >= 2^16.
Words thresholds(const std::vector<uint32_t>& fields, uint32_t below, int mantissa_bits) {
  Words inputs;
  for (const uint32_t field : fields)
    inputs.push_back(0x3f800000 | ((0x10000 - field - below) << (23 - mantissa_bits - 16)));
  return inputs;
}

TEST_F(Cvt, E4M3x4TakesTheFieldsOfT075) {
  const std::vector<uint32_t> fields{0x5678, 0x1e6a, 0x1234, 0x2c48};
  EXPECT_EQ(registers("cvt.rs.satfinite.e4m3x4.f32", thresholds(fields, 0, 3), {0x12345678}),
            one<uint32_t>("<u4", 0x39393939));
  EXPECT_EQ(registers("cvt.rs.satfinite.e4m3x4.f32", thresholds(fields, 1, 3), {0x12345678}),
            one<uint32_t>("<u4", 0x38383838));
}

TEST_F(Cvt, E2M1x4TakesTheFieldsOfT076) {
  const std::vector<uint32_t> fields{0x3478, 0x1e2c, 0x1256, 0x6a48};
  EXPECT_EQ(registers("cvt.rs.satfinite.e2m1x4.f32", thresholds(fields, 0, 1), {0x12345678}),
            one<uint16_t>("<u2", 0x3333));
  EXPECT_EQ(registers("cvt.rs.satfinite.e2m1x4.f32", thresholds(fields, 1, 1), {0x12345678}),
            one<uint16_t>("<u2", 0x2222));
}

TEST_F(Cvt, E2M1x4AnswersAsRecordedInT077) {
  EXPECT_EQ(registers("cvt.rs.satfinite.e2m1x4.f32", {0x3f400000, 0x3f000000, 0x3e800003, 0x3e7ffff9}, {0x00200000}),
            one<uint16_t>("<u2", 0x0011));
}

TEST_F(Cvt, E4M3x4AnswersAsRecordedInT078) {
  EXPECT_EQ(registers("cvt.rs.satfinite.e4m3x4.f32", {0x42c80000, 0x41000000, 0x40ffffff, 0x40e00000}, {0x7f80817e}),
            one<uint32_t>("<u4", 0x4e50506d));
}

TEST_F(Cvt, E5M2x4AnswersAsRecordedInT079) {
  EXPECT_EQ(registers("cvt.rs.satfinite.e5m2x4.f32", {0x42c80000, 0x41000000, 0x40ffffff, 0x40e00000}, {0x7f80817e}),
            one<uint32_t>("<u4", 0x47484856));
}

const Words kSpecials{0xffc00000, 0x7fc00000, 0xff800000, 0x7f800000};

TEST_F(Cvt, E4M3x4AnswersSpecialsAsRecordedInT080) {
  EXPECT_EQ(registers("cvt.rs.satfinite.e4m3x4.f32", kSpecials, {0x00000400}), one<uint32_t>("<u4", 0x7efe7f7f));
}

TEST_F(Cvt, E2M1x4AnswersSpecialsAsRecordedInT081) {
  EXPECT_EQ(registers("cvt.rs.satfinite.e2m1x4.f32", kSpecials, {0x00000400}), one<uint16_t>("<u2", 0x7f77));
}

TEST_F(Cvt, Bf16x2RoundsStochasticallyAsT082ToT085Say) {
  const Words inputs{0x3f808000, 0x3f808000, 0xbf80ffff, 0x7f7fffff}, words{0x80007fff, 0x00010001};
  EXPECT_EQ(output("cvt.rs.bf16x2.f32", npy_vector("<f4", inputs), random(words)),
            npy_vector("<u2", std::vector<uint16_t>{0x3f80, 0x3f81, 0xbf81, 0x7f80}));
}

TEST_F(Cvt, WritesTheRegisterOfTf32) {
  EXPECT_EQ(output("cvt.rna.tf32.f32", npy_vector("<f4", Words{0x3f801000, 0xc0000fff})),
            npy_vector("<u4", Words{0x3f802000, 0xc0000000}));
}

TEST_F(Cvt, KeepsTheShape) {
  const std::vector<float> inputs{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(output("cvt.rn.satfinite.e4m3x2.f32", npy_file("<f4", "(2, 3)", raw_bytes(inputs))),
            npy_file("|u1", "(2, 3)", "\x38\x40\x44\x48\x4a\x4c"));
}

TEST_F(Cvt, TakesAScalar) {
  EXPECT_EQ(output("cvt.rn.satfinite.e4m3x2.f32", npy_file("<f4", "()", raw_bytes(std::vector<float>{1}))),
            npy_file("|u1", "()", "\x38"));
}

TEST_F(Cvt, TakesAnEmptyArray) {
  EXPECT_EQ(output("cvt.rn.satfinite.e4m3x2.f32", npy_file("<f4", "(0, 3)", "")), npy_file("|u1", "(0, 3)", ""));
}

TEST_F(Cvt, WritesGivenElementsOnlyWhereTheLastRegisterIsNotFull) {
  EXPECT_EQ(output("cvt.rn.satfinite.e4m3x2.f32", npy_vector("<f4", std::vector<float>{1, 2, 4})),
            npy_vector("|u1", std::vector<uint8_t>{0x38, 0x40, 0x48}));
}

TEST_F(Cvt, TakesPlusZeroForMissingOperands) {
  EXPECT_EQ(output("cvt.rn.satfinite.e4m3x2.f32", npy_vector("<f4", std::vector<float>{1, 2, -4}), {"--packed"}),
            npy_vector("<u2", std::vector<uint16_t>{0x4038, 0x00c8}));
}

TEST_F(Cvt, ReadsPackedSourcesFromTheLowestLane) {
  const std::vector<uint16_t> halves{0x3c00, 0xc000};
  EXPECT_EQ(output("cvt.rn.satfinite.e2m1x2.f16x2", npy_vector("<f2", halves), {"--packed"}),
            npy_vector("|u1", std::vector<uint8_t>{0xc2}));
}

// A safetensors file with one tensor.
std::string safetensors(const std::string& dtype, const std::string& shape, const std::string& data) {
  std::string header =
      fmt::format(R"({{"t":{{"dtype":"{}","shape":{},"data_offsets":[0,{}]}}}})", dtype, shape, data.size());
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return raw_bytes(std::vector<uint64_t>{header.size()}) + header + data;
}

TEST_F(Cvt, ReadsATensorOfASafetensorsFile) {
  write_file(folder_ / "x.safetensors", safetensors("BF16", "[2]", raw_bytes(std::vector<uint16_t>{0x3f80, 0xc000})));
  const ProgramRun run = run_halfulp({"cvt", "cvt.f32.bf16", folder_ / "x.safetensors:t", "-o", folder_ / "out.npy"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(read_file(folder_ / "out.npy"), npy_vector("<u4", Words{0x3f800000, 0xc0000000}));
}

TEST_F(Cvt, ReadsPackedF4TheEvenElementLow) {
  write_file(folder_ / "x.safetensors", safetensors("F4", "[4]", "\x21\xf7"));
  const ProgramRun run =
      run_halfulp({"cvt", "cvt.rn.f16x2.e2m1x2", folder_ / "x.safetensors", "-o", folder_ / "out.npy"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(read_file(folder_ / "out.npy"), npy_vector("<u2", std::vector<uint16_t>{0x3800, 0x3c00, 0x4600, 0xc600}));
}

// More than two chunks of the program, and not whole registers.
constexpr std::size_t kMany = 2 * (1 << 18) + 7;

Words many_inputs() {
  Words inputs;
  for (std::size_t i = 0; i < kMany; ++i) inputs.push_back(random_word(7, 0, i));
  return inputs;
}

TEST_F(Cvt, GivesTheSameForAnyNumberOfThreads) {
  const std::string input = npy_vector("<f4", many_inputs());
  const std::string expected = output("cvt.rs.satfinite.e2m1x4.f32", input, {"--seed", "5", "--threads", "1"});
  for (const char* threads : {"2", "3", "7", "16"})
    EXPECT_EQ(output("cvt.rs.satfinite.e2m1x4.f32", input, {"--seed", "5", "--threads", threads}), expected) << threads;
}

TEST_F(Cvt, TakesWordsOfTheSeedInTheOrderOfRegisters) {
  Words words;
  for (std::size_t i = 0; i < (kMany + 3) / 4; ++i)
    words.push_back(random_word(5, stream_of("cvt.rs.satfinite.e2m1x4.f32"), i));
  const std::string input = npy_vector("<f4", many_inputs());
  EXPECT_EQ(output("cvt.rs.satfinite.e2m1x4.f32", input, {"--seed", "5"}),
            output("cvt.rs.satfinite.e2m1x4.f32", input, random(words)));
}

TEST_F(Cvt, TakesTheWordsOfARegisterWhereverItLies) {
  constexpr std::size_t kCut = 300'000;
  Words inputs = many_inputs(), words;
  for (std::size_t i = 0; i < (kMany + 3) / 4; ++i) words.push_back(random_word(9, 0, i));
  const std::string whole = output("cvt.rs.satfinite.e2m1x4.f32", npy_vector("<f4", inputs), random(words));
  inputs.erase(inputs.begin(), inputs.begin() + kCut);
  words.erase(words.begin(), words.begin() + kCut / 4);
  const std::string tail = output("cvt.rs.satfinite.e2m1x4.f32", npy_vector("<f4", inputs), random(words));
  EXPECT_EQ(whole.substr(kNpyHeader + kCut), tail.substr(kNpyHeader));
}

TEST_F(Cvt, PacksTheCodesThatItWritesByElement) {
  const std::string input = npy_vector("<f4", many_inputs());
  const std::string codes = output("cvt.rs.satfinite.e4m3x4.f32", input, {"--seed", "5"}).substr(kNpyHeader);
  const std::string packed = output("cvt.rs.satfinite.e4m3x4.f32", input, {"--seed", "5", "--packed"});
  EXPECT_EQ(packed.substr(kNpyHeader, kMany), codes);  // x4 of 8 bits: a register's bytes are its lanes
}

TEST_F(Cvt, PrintsASmallArray) {
  write_file(folder_ / "in.npy", npy_vector("<f4", std::vector<float>{1, -0.0f, 465}));
  const ProgramRun run = run_halfulp({"cvt", "cvt.rn.satfinite.e4m3x2.f32", folder_ / "in.npy"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out,
            "i  input  input_bits  code  fields      value\n"
            "-  -----  ----------  ----  ----------  -----\n"
            "0      1  0x3f800000  0x38  0|0111|000      1\n"
            "1     -0  0x80000000  0x80  1|0000|000     -0\n"
            "2    465  0x43e88000  0x7e  0|1111|110    448\n");
}

void expect_failure(const ProgramRun& run, int exit_code, const std::vector<std::string>& parts) {
  EXPECT_EQ(run.exit_code, exit_code);
  EXPECT_EQ(run.out, "");
  for (const std::string& part : parts) EXPECT_NE(run.err.find(part), std::string::npos) << part << "\nin: " << run.err;
}

TEST_F(Cvt, RefusesAnotherDtypeNamingBoth) {
  expect_failure(convert("cvt.rn.satfinite.e4m3x2.f32", npy_vector("<f8", std::vector<double>{1})), 3,
                 {"in.npy", "tensor 'in'", "F64", "F32"});
  EXPECT_EQ(folder_.file_count(), 1u) << "only the input";
}

TEST_F(Cvt, RefusesACodeThatIsTooWide) {
  expect_failure(convert("cvt.rn.f16x2.e2m1x2", npy_vector("|u1", std::vector<uint8_t>{1, 2, 0x31})), 3,
                 {"element 2 is 0x31", "e2m1 has 4 bits"});
}

TEST_F(Cvt, LeavesNoFileAfterAFaultInALaterChunk) {
  std::vector<uint8_t> codes(kMany, 1);
  codes.back() = 0x10;
  expect_failure(convert("cvt.rn.f16x2.e2m1x2", npy_vector("|u1", codes)), 3, {"element 524294 is 0x10"});
  EXPECT_EQ(folder_.file_count(), 1u) << "only the input";
}

TEST_F(Cvt, SuggestsTheRightSpelling) {
  expect_failure(convert("cvt.rn.satfinit.e4m3x2.f32", one<float>("<f4", 1)), 2,
                 {"did you mean 'cvt.rn.satfinite.e4m3x2.f32'?"});
}

TEST_F(Cvt, SuggestsTheRightOrderOfModifiers) {
  expect_failure(convert("cvt.satfinite.relu.rs.e4m3x4.f32", one<float>("<f4", 1)), 2,
                 {"PTX spells it 'cvt.rs.relu.satfinite.e4m3x4.f32'"});
}

TEST_F(Cvt, NeedsRandomWordsForStochasticRounding) {
  expect_failure(convert("cvt.rs.bf16x2.f32", one<float>("<f4", 1)), 2, {"--random", "--seed"});
}

TEST_F(Cvt, RefusesRandomWordsForOtherRoundings) {
  expect_failure(convert("cvt.rn.bf16x2.f32", one<float>("<f4", 1), {"--seed", "1"}), 2, {"takes no random words"});
}

TEST_F(Cvt, RefusesAWrongNumberOfRandomWords) {
  expect_failure(convert("cvt.rs.bf16x2.f32", npy_vector("<f4", std::vector<float>{1, 2, 3}), random({1, 2, 3})), 3,
                 {"words.npy", "has 3 words", "2 registers of 2 lanes"});
}

TEST_F(Cvt, RefusesRandomWordsOfAnotherType) {
  write_file(folder_ / "words.npy", one<float>("<f4", 1));
  expect_failure(convert("cvt.rs.bf16x2.f32", one<float>("<f4", 1), {"--random", folder_ / "words.npy"}), 3,
                 {"words.npy", "F32", "U32 or I32"});
}

TEST_F(Cvt, DoesNotFloodTheScreen) {
  write_file(folder_ / "in.npy", npy_vector("<f4", std::vector<float>(65, 1)));
  expect_failure(run_halfulp({"cvt", "cvt.rn.bf16.f32", folder_ / "in.npy"}), 2, {"65 elements", "-o OUT.npy"});
}

TEST_F(Cvt, RefusesToWriteAnotherKindOfFile) {
  write_file(folder_ / "in.npy", one<float>("<f4", 1));
  expect_failure(run_halfulp({"cvt", "cvt.rn.bf16.f32", folder_ / "in.npy", "-o", folder_ / "out.safetensors"}), 2,
                 {".npy"});
}

TEST_F(Cvt, RefusesToPrintAndWrite) {
  expect_failure(convert("cvt.rn.bf16.f32", one<float>("<f4", 1), {"--json"}), 2, {"--json", "-o"});
}

TEST_F(Cvt, FailsOnAFullDisk) {
  write_file(folder_ / "in.npy", npy_vector("<f4", std::vector<float>(1000, 1)));
  expect_failure(run_halfulp({"cvt", "cvt.rn.bf16.f32", folder_ / "in.npy", "-o", "/dev/full"}), 4, {"/dev/full"});
}

TEST_F(Cvt, FailsWhereTheOutputFolderIsMissing) {
  write_file(folder_ / "in.npy", one<float>("<f4", 1));
  expect_failure(run_halfulp({"cvt", "cvt.rn.bf16.f32", folder_ / "in.npy", "-o", folder_ / "no/out.npy"}), 4,
                 {"no/out.npy"});
}

}  // namespace
}  // namespace halfulp

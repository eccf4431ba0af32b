// Conversions whose answers were recorded on an H200, printed by the CUDA 13.0 host headers, or published as B200
// recordings (jinhongyii/TIRx-harness). The id in a test's name is the case's number in the project's list of cases.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "formats/catalog.h"
#include "formats/codec.h"
#include "formats/ptx_cvt.h"

namespace halfulp {
namespace {

// One lane of a PTX instruction.
struct LaneCase {
  std::string_view id;
  std::string_view instruction;
  uint32_t input;  // bits of the f32, or the source code
  uint32_t expected;
};

constexpr std::string_view kE4m3 = "cvt.rn.satfinite.e4m3x2.f32";
constexpr std::string_view kE5m2 = "cvt.rn.satfinite.e5m2x2.f32";
constexpr std::string_view kE2m1 = "cvt.rn.satfinite.e2m1x2.f32";

const std::vector<LaneCase> kLaneCases{
    {"T001", kE4m3, 0x0000'0000, 0x00},  // +0
    {"T002", kE4m3, 0x8000'0000, 0x80},  // -0
    {"T003", kE4m3, 0x3a80'0000, 0x00},  // 2^-10, a tie
    {"T004", kE4m3, 0x3a80'0001, 0x01},
    {"T005", kE4m3, 0x3b40'0000, 0x02},  // 1.5 * 2^-9, a tie
    {"T006", kE4m3, 0x3ba0'0000, 0x02},  // 2.5 * 2^-9, a tie
    {"T007", kE4m3, 0x3c70'0000, 0x08},  // 7.5 * 2^-9, a tie with the smallest normal value
    {"T008", kE4m3, 0x3f88'0000, 0x38},  // 1.0625, a tie
    {"T009", kE4m3, 0x3f98'0000, 0x3a},  // 1.1875, a tie
    {"T010", kE4m3, 0x43e0'0000, 0x7e},  // 448
    {"T011", kE4m3, 0x43e8'0000, 0x7e},  // 464, a tie
    {"T012", kE4m3, 0x43e8'0001, 0x7e},
    {"T013", kE4m3, 0x7f80'0000, 0x7e},  // +Inf
    {"T014", kE4m3, 0xff80'0000, 0xfe},  // -Inf
    {"T015", kE4m3, 0x7fc0'0000, 0x7f},
    {"T016", kE4m3, 0xffc0'0000, 0x7f},
    {"T017", kE4m3, 0x8000'0001, 0x80},  // -2^-149
    {"T020", kE5m2, 0x3700'0000, 0x00},  // 2^-17, a tie
    {"T021", kE5m2, 0x3700'0001, 0x01},
    {"T022", kE5m2, 0x3f90'0000, 0x3c},  // 1.125, a tie
    {"T023", kE5m2, 0x3fb0'0000, 0x3e},  // 1.375, a tie
    {"T024", kE5m2, 0x4770'0000, 0x7b},  // 61440, the tie above the largest value
    {"T025", kE5m2, 0x7f80'0000, 0x7b},
    {"T026", kE5m2, 0xffff'ffff, 0x7f},
    {"T029", kE2m1, 0x3e80'0000, 0x0},  // 0.25, a tie
    {"T030", kE2m1, 0x3e80'0001, 0x1},
    {"T031", kE2m1, 0x3f40'0000, 0x2},  // 0.75
    {"T032", kE2m1, 0x3fa0'0000, 0x2},  // 1.25
    {"T033", kE2m1, 0x3fe0'0000, 0x4},  // 1.75
    {"T034", kE2m1, 0x4020'0000, 0x4},  // 2.5
    {"T035", kE2m1, 0x4060'0000, 0x6},  // 3.5
    {"T036", kE2m1, 0x40a0'0000, 0x6},  // 5
    {"T037", kE2m1, 0x40a0'0001, 0x7},
    {"T038", kE2m1, 0x40e0'0000, 0x7},                           // 7, past the range
    {"T039", kE2m1, 0xbe80'0000, 0x8},                           // -0.25
    {"T040", kE2m1, 0x8000'0000, 0x8},                           // -0
    {"T041", kE2m1, 0xffc0'0000, 0x7},                           // -NaN
    {"T042", kE2m1, 0xff80'0000, 0xf},                           // -Inf
    {"T044", "cvt.rn.satfinite.e2m3x2.f32", 0x40f8'0000, 0x1f},  // 7.75
    {"T045", "cvt.rn.satfinite.e3m2x2.f32", 0x3e60'0000, 0x04},  // 0.21875, a tie
    {"T046", "cvt.rn.satfinite.e3m2x2.f32", 0xffc0'0000, 0x1f},
    {"T064_00", "cvt.rn.bf16x2.ue8m0x2", 0x00, 0x0040},
    {"T064_01", "cvt.rn.bf16x2.ue8m0x2", 0x01, 0x0080},
    {"T064_7f", "cvt.rn.bf16x2.ue8m0x2", 0x7f, 0x3f80},
    {"T064_fe", "cvt.rn.bf16x2.ue8m0x2", 0xfe, 0x7f00},
    {"T064_ff", "cvt.rn.bf16x2.ue8m0x2", 0xff, 0x7fff},
};

PtxCvt instruction_named(std::string_view name) {
  const int id = find_ptx_cvt(name);
  if (id < 0) throw std::invalid_argument("no such instruction: " + std::string(name));
  return ptx_cvt(kPtxCvts[size_t(id)]);
}

template <class Case>
std::string id_of(const testing::TestParamInfo<Case>& instance) {
  return std::string(instance.param.id);
}

class Lane : public testing::TestWithParam<LaneCase> {};

TEST_P(Lane, HasTheRecordedCode) {
  const auto& [id, name, input, expected] = GetParam();
  EXPECT_EQ(convert_lane(instruction_named(name), input, 0, 0), expected)
      << id << ' ' << name << std::hex << " 0x" << input;
}

INSTANTIATE_TEST_SUITE_P(Spec, Lane, testing::ValuesIn(kLaneCases), id_of<LaneCase>);

// One input through several instructions: rn rz rp rm to bf16; rz, rz.satfinite, rp, rp.satfinite to ue8m0.
struct ModesCase {
  std::string_view id;
  std::array<std::string_view, 4> instructions;
  uint32_t input;
  std::array<uint32_t, 4> expected;
};

constexpr std::array<std::string_view, 4> kBf16{"cvt.rn.bf16.f32", "cvt.rz.bf16.f32", "cvt.rp.bf16.f32",
                                                "cvt.rm.bf16.f32"};
constexpr std::array<std::string_view, 4> kUe8m0{"cvt.rz.ue8m0x2.f32", "cvt.rz.satfinite.ue8m0x2.f32",
                                                 "cvt.rp.ue8m0x2.f32", "cvt.rp.satfinite.ue8m0x2.f32"};

const std::vector<ModesCase> kModesCases{
    {"T047", kBf16, 0x3f80'8000, {0x3f80, 0x3f80, 0x3f81, 0x3f80}},
    {"T048", kBf16, 0x3f81'8000, {0x3f82, 0x3f81, 0x3f82, 0x3f81}},
    {"T049", kBf16, 0x7f7f'ffff, {0x7f80, 0x7f7f, 0x7f80, 0x7f7f}},
    {"T050", kBf16, 0xbf80'8000, {0xbf80, 0xbf80, 0xbf80, 0xbf81}},
    {"T051", kBf16, 0x7fa0'0000, {0x7fff, 0x7fff, 0x7fff, 0x7fff}},
    {"T052", kBf16, 0x8000'0001, {0x8000, 0x8000, 0x8000, 0x8001}},
    {"T053", kUe8m0, 0x0000'0000, {0x00, 0x00, 0x00, 0x00}},
    {"T054", kUe8m0, 0x0040'0000, {0x00, 0x00, 0x00, 0x00}},
    {"T055", kUe8m0, 0x0040'0001, {0x00, 0x00, 0x01, 0x01}},
    {"T056", kUe8m0, 0x007f'ffff, {0x00, 0x00, 0x01, 0x01}},
    {"T057", kUe8m0, 0x3f80'0000, {0x7f, 0x7f, 0x7f, 0x7f}},
    {"T058", kUe8m0, 0x3f80'0001, {0x7f, 0x7f, 0x80, 0x80}},
    {"T059", kUe8m0, 0xc040'0000, {0x80, 0x80, 0x81, 0x81}},
    {"T060", kUe8m0, 0x7f00'0001, {0xfe, 0xfe, 0xff, 0xfe}},
    {"T061", kUe8m0, 0x7f7f'ffff, {0xfe, 0xfe, 0xff, 0xfe}},
    {"T062", kUe8m0, 0x7f80'0000, {0xff, 0xfe, 0xff, 0xfe}},
    {"T063", kUe8m0, 0xffc0'0000, {0xff, 0xff, 0xff, 0xff}},
};

class Modes : public testing::TestWithParam<ModesCase> {};

TEST_P(Modes, HaveTheRecordedCodes) {
  const auto& [id, instructions, input, expected] = GetParam();
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(convert_lane(instruction_named(instructions[i]), input, 0, 0), expected[i]) << id << instructions[i];
}

INSTANTIATE_TEST_SUITE_P(Spec, Modes, testing::ValuesIn(kModesCases), id_of<ModesCase>);

// What the CUDA 13.0 host headers offer and PTX does not.
constexpr Policy kNosat{.rounding = Rounding::nearest_even, .overflow = Overflow::to_special};

TEST(Spec, T018_E4m3NosatKeepsTheTieBelowTheOverflow) {
  EXPECT_EQ(encode(format_named("e4m3"), kNosat, bit_cast<float>(0x43e8'0000)), 0x7eu);
}
TEST(Spec, T019_E4m3NosatAboveTheTieIsNan) {
  EXPECT_EQ(encode(format_named("e4m3"), kNosat, bit_cast<float>(0x43e8'0001)), 0x7fu);
}
TEST(Spec, T027_E5m2NosatTieAboveTheRangeIsInf) {
  EXPECT_EQ(encode(format_named("e5m2"), kNosat, bit_cast<float>(0x4770'0000)), 0x7cu);
}
TEST(Spec, T028_E5m2OfADoubleNanKeepsSignAndPayload) {
  const Policy policy{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate, .nan = NanInput::payload};
  EXPECT_EQ(encode(format_named("e5m2"), policy, bit_cast<double>(uint64_t{0xfff8'0000'0000'0000})), 0xfeu);
}
TEST(Spec, T043_E2m1TowardZero) {
  EXPECT_EQ(encode(format_named("e2m1"), {Rounding::toward_zero, Overflow::saturate}, 5.999f), 0x6u);
}

// One value under two 16-bit random fields, the last that rounds down and the first that rounds up.
struct RandomCase {
  std::string_view id;
  std::string_view format;
  float input;
  std::array<uint32_t, 2> fields;
  std::array<uint32_t, 2> expected;
};

const std::vector<RandomCase> kRandomCases{
    {"T065", "e2m1", 0.75f, {0x7fff, 0x8000}, {0x1, 0x2}},
    {"T066", "e2m1", 0.1f, {0xcccc, 0xcccd}, {0x0, 0x1}},
    {"T067", "e2m1", -0.3f, {0x6666, 0x6667}, {0x8, 0x9}},
    {"T068", "e2m1", 5.9f, {0x0ccc, 0x0ccd}, {0x6, 0x7}},
    {"T069", "e2m1", 6.5f, {0x0000, 0xffff}, {0x7, 0x7}},
    {"T070", "e4m3", 1.0625f, {0x7fff, 0x8000}, {0x38, 0x39}},
    {"T071", "e4m3", 0x1p-10f, {0x7fff, 0x8000}, {0x00, 0x01}},
    {"T072", "e4m3", 0x1p-17f, {0xfeff, 0xff00}, {0x00, 0x01}},
    {"T073", "e4m3", 470.0f, {0x0000, 0xffff}, {0x7e, 0x7e}},
    {"T074", "e4m3", 1 + 0x1p-19f, {0xfffe, 0xffff}, {0x38, 0x39}},
};

class RandomField16 : public testing::TestWithParam<RandomCase> {};

TEST_P(RandomField16, TurnsAtTheRecordedWord) {
  const auto& [id, name, input, fields, expected] = GetParam();
  const Policy policy{.rounding = Rounding::stochastic, .overflow = Overflow::saturate};
  for (size_t i = 0; i < fields.size(); ++i)
    EXPECT_EQ(encode(kFormats[size_t(find_format(name))].format, policy, input, {.word = fields[i], .count = 16}),
              expected[i])
        << id << std::hex << " field 0x" << fields[i];
}

INSTANTIATE_TEST_SUITE_P(Spec, RandomField16, testing::ValuesIn(kRandomCases), id_of<RandomCase>);

// Operands in PTX order: a, b, e, f. Lane 0 is f.
using Operands = std::array<uint32_t, 4>;

void expect_random_fields(std::string_view instruction, uint32_t word, const Operands& expected) {
  const PtxCvt op = instruction_named(instruction);
  for (int lane = 0; lane < 4; ++lane)
    EXPECT_EQ(random_bits(op, word, lane).word, expected[size_t(3 - lane)]) << instruction << " lane " << lane;
}

TEST(Spec, T075_RandomFieldsOfE4m3x4) {
  expect_random_fields("cvt.rs.satfinite.e4m3x4.f32", 0x1234'5678, {0x2c48, 0x1234, 0x1e6a, 0x5678});
}
TEST(Spec, T076_RandomFieldsOfE2m1x4) {
  expect_random_fields("cvt.rs.satfinite.e2m1x4.f32", 0x1234'5678, {0x6a48, 0x1256, 0x1e2c, 0x3478});
}

uint32_t converted(std::string_view instruction, Operands operands, uint32_t word) {
  std::reverse(operands.begin(), operands.end());
  return convert_register(instruction_named(instruction), operands.data(), word);
}

TEST(Spec, T077_StochasticE2m1x4) {
  EXPECT_EQ(converted("cvt.rs.satfinite.e2m1x4.f32", {0x3e7f'fff9, 0x3e80'0003, 0x3f00'0000, 0x3f40'0000}, 0x0020'0000),
            0x0011u);
}

constexpr Operands kRow40{0x40e0'0000, 0x40ff'ffff, 0x4100'0000, 0x42c8'0000};
constexpr Operands kSpecials{0x7f80'0000, 0xff80'0000, 0x7fc0'0000, 0xffc0'0000};

TEST(Spec, T078_StochasticE4m3x4) {
  EXPECT_EQ(converted("cvt.rs.satfinite.e4m3x4.f32", kRow40, 0x7f80'817e), 0x4e50'506du);
}
TEST(Spec, T079_StochasticE5m2x4) {
  EXPECT_EQ(converted("cvt.rs.satfinite.e5m2x4.f32", kRow40, 0x7f80'817e), 0x4748'4856u);
}
TEST(Spec, T080_StochasticE4m3x4OfSpecials) {
  EXPECT_EQ(converted("cvt.rs.satfinite.e4m3x4.f32", kSpecials, 0x0000'0400), 0x7efe'7f7fu);
}
TEST(Spec, T081_StochasticE2m1x4OfSpecials) {
  EXPECT_EQ(converted("cvt.rs.satfinite.e2m1x4.f32", kSpecials, 0x0000'0400), 0x7f77u);
}

uint32_t stochastic_bf16(uint32_t input, uint32_t half) {
  return convert_lane(instruction_named("cvt.rs.bf16x2.f32"), input, half, 0);
}

TEST(Spec, T082_StochasticBf16StaysBelowTheCarry) { EXPECT_EQ(stochastic_bf16(0x3f80'8000, 0x7fff), 0x3f80u); }
TEST(Spec, T083_StochasticBf16MovesOnTheCarry) { EXPECT_EQ(stochastic_bf16(0x3f80'8000, 0x8000), 0x3f81u); }
TEST(Spec, T084_StochasticBf16IsSymmetric) { EXPECT_EQ(stochastic_bf16(0xbf80'ffff, 0x0001), 0xbf81u); }
TEST(Spec, T085_StochasticBf16CanCarryToInf) { EXPECT_EQ(stochastic_bf16(0x7f7f'ffff, 0x0001), 0x7f80u); }

}  // namespace
}  // namespace halfulp

// The models of formats/ptx_cvt.h against what an H200 answered (tests/golden/h200): every float32 input, every half
// and bfloat16, every code of eight bits. Instructions that differ only in their number of lanes share a model, which
// is walked once.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <ios>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/ptx_cvt.h"
#include "tests/exhaustive/sweep.h"

namespace halfulp {
namespace {

using Json = nlohmann::json;

Json read(const char* name) { return Json::parse(std::ifstream(std::string(HALFULP_TEST_DATA "/h200/") + name)); }

// The recordings of each instruction: checksums as hexadecimal strings.
using Recordings = std::multimap<std::string, std::vector<std::string>>;

const Recordings& recordings() {
  static const Recordings kRecordings = [] {
    Recordings all;
    for (const char* file : {"cvt.json", "cvt_all.json"}) {
      const Json recording = read(file);
      for (const auto& [name, sums] : recording.at("ops").items()) all.emplace(name, sums);
    }
    return all;
  }();
  return kRecordings;
}

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014: one step from state z.
constexpr uint64_t splitmix64(uint64_t z) {
  z += 0x9e37'79b9'7f4a'7c15;
  z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
  z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
  return z ^ (z >> 31);
}

// The sum of the hashes of (input, code) does not depend on their order.
constexpr uint64_t hash(uint64_t input, uint32_t code) { return splitmix64(input << 32 | code); }

constexpr bool same_model(const PtxCvt& a, const PtxCvt& b) {
  return a.from.name == b.from.name && a.to.name == b.to.name && a.policy == b.policy && a.relu == b.relu;
}

// Whether a row is the first of the catalog with its model, measured, and from float32.
constexpr bool is_swept(int id) {
  const PtxCvtRow& row = kPtxCvts[size_t(id)];
  const PtxCvt op = ptx_cvt(row);
  if (row.evidence != Evidence::measured || op.from.name != "f32") return false;
  for (int earlier = 0; earlier < id; ++earlier)
    if (same_model(ptx_cvt(kPtxCvts[size_t(earlier)]), op)) return false;
  return true;
}

// One lane as the instruction leaves it in a register: tf32 above 13 zero bits.
template <int id>
uint32_t stored_lane(uint32_t input) {
  return convert_lane(kPtxCvtAt<id>, input, 0, 0) << kPtxCvtAt<id>.to.storage_shift;
}

// With HALFULP_EXHAUSTIVE_STRIDE every other chunk of an instruction, the even ones of one and the odd ones of the
// next.
bool is_walked(int id, uint64_t chunk) { return exhaustive_stride() == 1 || (chunk + uint64_t(id)) % 2 == 0; }

template <int id>
std::vector<uint64_t> checksums() {
  return for_each_chunk<uint64_t>([](uint64_t first, uint64_t end) {
    uint64_t sum = 0;
    if (!is_walked(id, first / kChunkInputs)) return sum;
    for (uint64_t bits = first; bits < end; ++bits) sum += hash(bits, stored_lane<id>(uint32_t(bits)));
    return sum;
  });
}

using Checksums = std::vector<uint64_t>;

struct Sweep {
  int id;
  Checksums (*checksums)();
};

template <int id>
void add_sweep(std::vector<Sweep>& sweeps) {
  if constexpr (is_swept(id)) sweeps.push_back({id, &checksums<id>});
}

std::vector<Sweep> every_sweep() {
  std::vector<Sweep> sweeps;
  [&]<int... id>(std::integer_sequence<int, id...>) { (add_sweep<id>(sweeps), ...); }
  (std::make_integer_sequence<int, int(kPtxCvts.size())>{});
  return sweeps;
}

std::string test_name(std::string_view instruction) {
  std::string name{instruction};
  for (char& c : name)
    if (c == '.') c = '_';
  return name;
}

std::string sweep_name(const testing::TestParamInfo<Sweep>& instance) {
  return test_name(kPtxCvts[size_t(instance.param.id)].name);
}

// How many recorded checksums differ from ours; the first of them is shown.
uint64_t wrong_chunks(const std::string& instruction, const std::vector<std::string>& recorded, const Checksums& ours,
                      const std::function<bool(uint64_t)>& walked) {
  EXPECT_EQ(recorded.size(), ours.size()) << instruction;
  uint64_t wrong = 0;
  for (size_t chunk = 0; chunk < std::min(recorded.size(), ours.size()); ++chunk)
    if (const uint64_t sum = std::stoull(recorded[chunk], nullptr, 16);
        walked(chunk) && sum != ours[chunk] && wrong++ == 0)
      ADD_FAILURE() << instruction << ": chunk " << chunk << " of 2^24 inputs: recorded checksum 0x" << std::hex << sum
                    << " ours 0x" << ours[chunk];
  return wrong;
}

class EveryFloat : public testing::TestWithParam<Sweep> {};

// A checksum says in which chunk the model is wrong, not at which input.
TEST_P(EveryFloat, HasTheCodeOfTheH200) {
  const auto& [id, checksums] = GetParam();
  const PtxCvt op = ptx_cvt(kPtxCvts[size_t(id)]);
  const Checksums ours = checksums();
  int checked = 0;
  for (const auto& [name, recorded] : recordings()) {
    if (!same_model(op, ptx_cvt(kPtxCvts[size_t(find_ptx_cvt(name))]))) continue;
    ++checked;
    const uint64_t wrong = wrong_chunks(name, recorded, ours, [&](uint64_t chunk) { return is_walked(id, chunk); });
    uint64_t walked = 0;
    for (uint64_t chunk = 0; chunk < kChunks; ++chunk) walked += is_walked(id, chunk);
    std::cout << name << ": " << walked * kChunkInputs << " inputs compared, " << wrong << " of " << walked
              << " chunks with mismatches\n";
  }
  EXPECT_GT(checked, 0) << "the catalog says measured, but there is no recording";
}

INSTANTIATE_TEST_SUITE_P(H200, EveryFloat, testing::ValuesIn(every_sweep()), sweep_name);

TEST(H200, EveryRecordedInstructionIsMeasuredInTheCatalog) {
  for (const auto& [name, sums] : recordings()) {
    const int id = find_ptx_cvt(name);
    ASSERT_GE(id, 0) << name;
    EXPECT_EQ(kPtxCvts[size_t(id)].evidence, Evidence::measured) << name;
  }
}

// The checksum over every input of a source of 16 or 8 bits.
uint64_t checksum_of_codes(const PtxCvt& op) {
  uint64_t sum = 0;
  for (uint32_t code = 0; code < uint32_t{1} << op.from.format.bits(); ++code)
    sum += hash(code, convert_lane(op, code, 0, 0) << op.to.storage_shift);
  return sum;
}

TEST(H200, EveryCodeOfTheNarrowSources) {
  int checked = 0;
  for (const auto& [name, recorded] : recordings()) {
    const PtxCvt op = ptx_cvt(kPtxCvts[size_t(find_ptx_cvt(name))]);
    if (op.from.format.bits() > 16) continue;
    ++checked;
    EXPECT_EQ(wrong_chunks(name, recorded, {checksum_of_codes(op)}, [](uint64_t) { return true; }), 0u) << name;
  }
  EXPECT_EQ(checked, 10);
}

TEST(H200, EveryHalfToE4m3AndE5m2AsRecordedFirst) {
  for (const auto& [key, name] : {std::pair{"f16_to_e4m3_all", "cvt.rn.satfinite.e4m3x2.f16x2"},
                                  std::pair{"f16_to_e5m2_all", "cvt.rn.satfinite.e5m2x2.f16x2"}})
    EXPECT_EQ(checksum_of_codes(ptx_cvt(kPtxCvts[size_t(find_ptx_cvt(name))])),
              std::stoull(read("cvt.json").at(key).get<std::string>(), nullptr, 16))
        << name;
}

void expect_table(std::string_view instruction, const Json& table) {
  const PtxCvt op = ptx_cvt(kPtxCvts[size_t(find_ptx_cvt(instruction))]);
  ASSERT_EQ(table.size(), 256u) << instruction;
  for (uint32_t code = 0; code < 256; ++code)
    EXPECT_EQ(convert_lane(op, code, 0, 0), table[code].get<uint32_t>()) << instruction << " code " << code;
}

TEST(H200, EveryCodeOfTheTables) {
  expect_table("cvt.rn.f16x2.e4m3x2", read("cvt.json").at("e4m3_to_f16"));
  expect_table("cvt.rn.f16x2.e5m2x2", read("cvt.json").at("e5m2_to_f16"));
  const Json all = read("cvt_all.json");
  for (const auto& [name, table] : all.at("tables").items()) expect_table(name, table);
}

}  // namespace
}  // namespace halfulp

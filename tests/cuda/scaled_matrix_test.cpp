// One instruction to a tile, whatever the GPU has for it, against the definition on the CPU, and on published probes.

#include "cuda/scaled_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cuda/cvt_check.h"

namespace halfulp {
namespace {

const Accumulator& accumulator(const ScaledInstruction& is) {
  return kAccumulators[std::size_t(find_accumulator(is.accumulator))];
}

std::string difference(int id, const ScaledTiles& tiles) {
  const ScaledInstruction& is = kScaledInstructions[std::size_t(id)];
  const auto m = std::size_t(is.m), n = std::size_t(is.n);
  for (std::size_t i = 0; i < tiles.d.size(); ++i) {
    const uint32_t expected = scaled_output(is, accumulator(is), tiles, i);
    if (tiles.d[i] != expected)
      return "tile " + std::to_string(i / (m * n)) + ", row " + std::to_string(i / n % m) + ", column " +
             std::to_string(i % n) + " is " + std::to_string(tiles.d[i]) + ", not " + std::to_string(expected);
  }
  return "";
}

class ScaledInstructions : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  }
  const ScaledInstruction& is_ = kScaledInstructions[std::size_t(GetParam())];
};

TEST_P(ScaledInstructions, AnswerAsTheirAccumulators) {
  const uint64_t count = is_.unit == ScaledUnit::mma_sync ? 8 : 1;
  for (std::size_t mode = 0; mode < kMatrixModeNames.size(); ++mode) {
    ScaledTiles tiles = scaled_inputs(is_, MatrixMode(mode), 0, count);
    multiply_scaled_tiles(GetParam(), tiles);
    ASSERT_EQ(difference(GetParam(), tiles), "") << ptx_of(is_) << ", mode " << kMatrixModeNames[mode];
  }
}

// A tile for each element of K, which is alone in its row.
TEST_P(ScaledInstructions, MultiplyEachElementOfKByItsOwnScale) {
  ScaledTiles tiles = scaled_inputs(is_, MatrixMode::narrow, 0, uint64_t(is_.k));
  for (std::size_t i = 0; i < tiles.a.size(); ++i)
    if (int(i) % is_.k != int(i) / is_.k / is_.m) tiles.a[i] = 0;
  std::ranges::fill(tiles.c, 0u);
  multiply_scaled_tiles(GetParam(), tiles);
  EXPECT_EQ(difference(GetParam(), tiles), "");
}

INSTANTIATE_TEST_SUITE_P(Rows, ScaledInstructions, testing::Range(0, int(kScaledInstructions.size())),
                         [](const auto& instance) {
                           const ScaledInstruction& is = kScaledInstructions[std::size_t(instance.param)];
                           std::string name(is.unit == ScaledUnit::mma_sync ? "mma_sync_" : "tcgen05_");
                           name += std::string(is.kind) + "_" + std::string(is.a) + "_" + std::string(is.b);
                           std::ranges::replace_if(
                               name, [](char c) { return c == '.' || c == ':'; }, '_');
                           return name;
                         });

// The rows of probes_blockscaled.tsv: operands in one row and column, the rest zero.

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::vector<uint32_t> hex_list(const std::string& text) {
  std::vector<uint32_t> values;
  for (const std::string& part : split(text, ',')) values.push_back(uint32_t(std::stoul(part, nullptr, 16)));
  return values;
}

struct Probe {
  bool fp4;
  std::string name, scale;
  std::vector<uint32_t> a, b, a_scales, b_scales;
  uint32_t c, expected;
};

std::vector<Probe> probes() {
  std::ifstream stream(HALFULP_TEST_DATA "/../../emulation/recordings/probes_blockscaled.tsv");
  std::vector<Probe> all;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> is = split(line, '\t');
    const std::size_t sa = is[4].find("sa="), sb = is[4].find(" sb=");
    all.push_back({is[0] == "FP4", is[1], is[4].starts_with("ue4m3") ? "ue4m3" : "e8m0", hex_list(is[2]),
                   hex_list(is[3]), hex_list(is[4].substr(sa + 3, sb - sa - 3)), hex_list(is[4].substr(sb + 4)),
                   hex_list(is[5])[0], hex_list(is[6])[0]});
  }
  return all;
}

// Those that an instruction's scales can say: probes state one for each 16 elements of FP4.
bool takes(const ScaledInstruction& is, const Probe& probe) {
  if (is.scale != probe.scale || (is.k == 64) != probe.fp4 || (!probe.fp4 && (is.a != "e4m3" || is.b != "e4m3")))
    return false;
  const std::size_t shared = probe.a_scales.size() / std::size_t(is.row_scales);
  for (std::size_t i = 0; i < probe.a_scales.size(); ++i)
    if (probe.a_scales[i] != probe.a_scales[i / shared * shared] ||
        probe.b_scales[i] != probe.b_scales[i / shared * shared])
      return false;
  return true;
}

ScaledTiles tile_of(const ScaledInstruction& is, const Probe& probe, std::size_t row, std::size_t col) {
  const auto m = std::size_t(is.m), n = std::size_t(is.n), k = std::size_t(is.k), s = std::size_t(is.row_scales);
  const uint32_t one = is.scale == "e8m0" ? 127 : 0x38;
  ScaledTiles tile{.a = std::vector<uint32_t>(m * k),
                   .b = std::vector<uint32_t>(n * k),
                   .a_scales = std::vector<uint32_t>(m * s, one),
                   .b_scales = std::vector<uint32_t>(n * s, one),
                   .c = std::vector<uint32_t>(m * n),
                   .d = {}};
  std::ranges::copy(probe.a, tile.a.begin() + long(row * k));
  std::ranges::copy(probe.b, tile.b.begin() + long(col * k));
  for (std::size_t i = 0; i < s; ++i) {
    tile.a_scales[row * s + i] = probe.a_scales[i * probe.a_scales.size() / s];
    tile.b_scales[col * s + i] = probe.b_scales[i * probe.b_scales.size() / s];
  }
  tile.c[row * n + col] = probe.c;
  return tile;
}

TEST(ScaledProbes, AreAnsweredAsPublishedInEveryRow) {
  if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  std::size_t compared = 0;
  for (std::size_t id = 0; id < kScaledInstructions.size(); ++id) {
    const ScaledInstruction& is = kScaledInstructions[id];
    for (const Probe& probe : probes()) {
      if (!takes(is, probe)) continue;
      const std::size_t row = compared * 37 % std::size_t(is.m), col = compared * 5 % std::size_t(is.n);
      ScaledTiles tile = tile_of(is, probe, row, col);
      multiply_scaled_tiles(int(id), tile);
      EXPECT_EQ(tile.d[row * std::size_t(is.n) + col], probe.expected) << is.kind << ": " << probe.name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 2 * 17u + 2 * 23u + 3 * 4u);
}

}  // namespace
}  // namespace halfulp

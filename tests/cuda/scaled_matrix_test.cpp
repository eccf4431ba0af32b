// One instruction to a tile, whatever the GPU has for it, against the definition on the CPU, and on published probes.

#include "cuda/scaled_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "cuda/cvt_check.h"
#include "emulation/matmul/dot_product.h"
#include "formats/catalog.h"

namespace halfulp {
namespace {

const FormatEntry& entry(std::string_view name) { return kFormats[std::size_t(find_format(name))]; }
const Accumulator& accumulator(const ScaledInstruction& is) {
  return kAccumulators[std::size_t(find_accumulator(is.accumulator))];
}

// What codes and scales are drawn from.
enum class Draw { any, numbers, near_one, scattered };

class RandomTiles {
 public:
  RandomTiles(const ScaledInstruction& is, std::size_t count, Draw draw, unsigned seed) : random_(seed), draw_(draw) {
    const std::size_t m = count * std::size_t(is.m), n = count * std::size_t(is.n), k = std::size_t(is.k);
    tiles.a = codes(entry(is.a).format, m * k);
    tiles.b = codes(entry(is.b).format, n * k);
    tiles.a_scales = scales(is, m);
    tiles.b_scales = scales(is, n);
    for (std::size_t i = 0; i < m * std::size_t(is.n); ++i)
      tiles.c.push_back(uint32_t(random_()) & (draw == Draw::any ? ~0u : 0xc1ff'ffffu));
  }
  ScaledTiles tiles;

 private:
  std::vector<uint32_t> codes(const Format& f, std::size_t count) {
    std::vector<uint32_t> codes;
    for (std::size_t i = 0; i < count; ++i) {
      const uint32_t any = uint32_t(random_()) & f.code_mask(), one = uint32_t(f.bias) << f.mantissa_bits;
      const uint32_t near = (any & f.sign_mask()) | (one + uint32_t(random_()) % (2 * f.hidden()));
      const uint32_t number = (any & f.magnitude_mask()) > f.max_code() ? 0 : any;
      codes.push_back(draw_ == Draw::any ? any : draw_ == Draw::near_one ? near : number);
    }
    return codes;
  }
  std::vector<uint32_t> scales(const ScaledInstruction& is, std::size_t rows) {
    std::vector<uint32_t> scales;
    for (std::size_t i = 0; i < rows * std::size_t(is.row_scales); ++i) {
      const uint32_t any = uint32_t(random_()) & 0xff, one = is.scale == "e8m0" ? 127 : 0x38;
      scales.push_back(draw_ == Draw::any         ? any
                       : draw_ == Draw::scattered ? std::min(any, entry(is.scale).format.max_code())
                                                  : one - 4 + any % 8);
    }
    return scales;
  }
  std::mt19937 random_;
  Draw draw_;
};

DotOperand operand(const ScaledInstruction& is, std::string_view name, const std::vector<uint32_t>& codes,
                   const std::vector<uint32_t>& scales, std::size_t row) {
  DotOperand x{entry(name).format, &codes[row * std::size_t(is.k)]};
  if (is.row_scales == 0) return x;
  x.scale_format = entry(is.scale).format;
  x.scales = &scales[row * std::size_t(is.row_scales)];
  x.scaled = is.k / is.row_scales;
  return x;
}

std::string difference(int id, const ScaledTiles& tiles) {
  const ScaledInstruction& is = kScaledInstructions[std::size_t(id)];
  const auto m = std::size_t(is.m), n = std::size_t(is.n);
  for (std::size_t i = 0; i < tiles.d.size(); ++i) {
    const std::size_t row = i / n, tile = row / m;
    const uint32_t expected =
        dot_product(accumulator(is), operand(is, is.a, tiles.a, tiles.a_scales, row),
                    operand(is, is.b, tiles.b, tiles.b_scales, tile * n + i % n), is.k, tiles.c[i]);
    if (tiles.d[i] != expected)
      return "tile " + std::to_string(tile) + ", row " + std::to_string(row % m) + ", column " + std::to_string(i % n) +
             " is " + std::to_string(tiles.d[i]) + ", not " + std::to_string(expected);
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
  const std::size_t count = is_.unit == ScaledUnit::mma_sync ? 10 : 2;
  for (const Draw draw : {Draw::any, Draw::numbers, Draw::near_one, Draw::scattered}) {
    RandomTiles random(is_, count, draw, unsigned(GetParam()) * 4 + unsigned(draw));
    multiply_scaled_tiles(GetParam(), random.tiles);
    ASSERT_EQ(difference(GetParam(), random.tiles), "") << is_.kind << " drawn " << int(draw);
  }
}

// A bit of each operand's and scale's position: every element of K, alone, in a row and a column of its own.
TEST_P(ScaledInstructions, MultiplyEachElementOfKByItsOwnScale) {
  RandomTiles random(is_, std::size_t(is_.k), Draw::numbers, 1);
  ScaledTiles& tiles = random.tiles;
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
  std::ifstream stream(HALFULP_TEST_DATA "/probes_blockscaled.tsv");
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

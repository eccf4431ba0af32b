// Where codes and scales lie. The oracle of the scale tiles is CUTLASS's own description of them, evaluated by a layout
// algebra of this file; published offsets and public bug reports are read as tables.

#include "emulation/blocks/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "lib/bits.h"
#include "lib/error.h"
#include "lib/philox.h"
#include "tests/emulation/reports.h"

namespace halfulp {
namespace {

using Bytes = std::vector<std::byte>;
using reports::expected;
using reports::input;

Bytes bytes_of_hex(const std::string& text) {
  Bytes bytes;
  std::istringstream in(text);
  for (std::string token; in >> token;) bytes.push_back(std::byte(std::stoul(token, nullptr, 16)));
  return bytes;
}

Bytes random_bytes(uint64_t count, uint64_t stream = 0) {
  Bytes bytes(count);
  for (uint64_t i = 0; i < count; ++i) bytes[i] = std::byte(random_word(1, stream, i));
  return bytes;
}

Grid grid_of(const nlohmann::json& shape) {
  return {.rows = shape.at(0).get<uint64_t>(), .cols = shape.at(1).get<uint64_t>()};
}

// The message of the InputError that fn throws, or what else it does.
template <class Fn>
std::string input_error(Fn&& fn) {
  try {
    fn();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

// ASCII, so that the tests may look at names with find().
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// CuTe's layouts, as far as needed: a dimension is a list of (shape, stride), the first one fastest; an offset is the
// sum over dimensions of the digits of the coordinate in these shapes times the strides.
struct Digit {
  uint64_t shape;
  uint64_t stride;
};
using Mode = std::vector<Digit>;

uint64_t offset_of(const Mode& mode, uint64_t coordinate) {
  uint64_t offset = 0;
  for (const Digit& digit : mode) {
    offset += coordinate % digit.shape * digit.stride;
    coordinate /= digit.shape;
  }
  return offset;
}

// SfAtom ((32,4),(V,4)):((16,4),(0,1)) tiled over (rows, k elements), k tiles next to each other (Step<_2,_1>). V
// elements of k share a scale: stride 0.
struct CutlassLayout {
  Mode m{{32, 16}, {4, 4}};
  Mode k;
  CutlassLayout(uint64_t rows, uint64_t elements, uint64_t v) : k{{v, 0}, {4, 1}} {
    const uint64_t k_tiles = (elements + 4 * v - 1) / (4 * v), m_tiles = (rows + 127) / 128;
    k.push_back({.shape = k_tiles, .stride = 512});
    m.push_back({.shape = m_tiles, .stride = 512 * k_tiles});
  }
  uint64_t offset(uint64_t row, uint64_t element) const { return offset_of(m, row) + offset_of(k, element); }
};

constexpr Grid kGrids[] = {{1, 1},    {1, 4},    {1, 5},   {2, 3},     {31, 3},  {32, 4},  {33, 4},
                           {100, 4},  {127, 7},  {128, 4}, {128, 8},   {129, 1}, {130, 5}, {256, 12},
                           {257, 13}, {384, 20}, {40, 5},  {3, 64},    {0, 4},   {5, 0},   {512, 1},
                           {1000, 9}, {4, 128},  {7, 200}, {640, 129}, {255, 3}};

// T139 to T148 of the format reference: row, column, columns, offset.
TEST(Swizzle, HasTheOffsetsOfTheReference) {
  constexpr uint64_t kCases[][4] = {{0, 0, 8, 0},      {1, 0, 8, 16},    {32, 0, 8, 4},  {31, 3, 8, 499},
                                    {33, 1, 8, 21},    {127, 3, 8, 511}, {0, 4, 8, 512}, {128, 0, 8, 1024},
                                    {129, 6, 8, 1554}, {40, 5, 5, 645}};
  for (const auto& [row, col, cols, offset] : kCases)
    EXPECT_EQ(swizzled_offset(cols, row, col), offset) << row << ' ' << col << ' ' << cols;
}

TEST(Swizzle, IsCutlassScaleFactorAtom) {
  for (const uint64_t v : {16u, 32u}) {
    for (const Grid& grid : kGrids) {
      const CutlassLayout oracle(grid.rows, grid.cols * v, v);
      for (uint64_t row = 0; row < grid.rows; ++row)
        for (uint64_t element = 0; element < grid.cols * v; element += v / 2)
          ASSERT_EQ(swizzled_offset(grid.cols, row, element / v), oracle.offset(row, element))
              << grid.rows << " x " << grid.cols << ": " << row << ' ' << element;
    }
  }
}

TEST(Swizzle, IsABijectionOntoThePaddedGrid) {
  for (const Grid& grid : kGrids) {
    const Grid padded = padded_grid(scale_layout_named("swizzled-128x4"), grid);
    std::vector<int> hits(padded.rows * padded.cols);
    for (uint64_t row = 0; row < padded.rows; ++row)
      for (uint64_t col = 0; col < padded.cols; ++col) ++hits.at(swizzled_offset(grid.cols, row, col));
    EXPECT_TRUE(std::ranges::all_of(hits, [](int n) { return n == 1; })) << grid.rows << " x " << grid.cols;
  }
}

TEST(Swizzle, PositionIsTheInverseOfOffset) {
  for (const Grid& grid : kGrids) {
    const Grid padded = padded_grid(scale_layout_named("swizzled-128x4"), grid);
    for (uint64_t offset = 0; offset < padded.rows * padded.cols; ++offset) {
      const GridPosition at = swizzled_position(grid.cols, offset);
      ASSERT_TRUE(at.row < padded.rows && at.col < padded.cols);
      ASSERT_EQ(swizzled_offset(grid.cols, at.row, at.col), offset);
    }
  }
}

TEST(Swizzle, IsAConstantExpression) {
  static_assert(swizzled_offset(8, 129, 6) == 1554);
  static_assert(swizzled_position(8, 1554) == GridPosition{.row = 129, .col = 6});
  static_assert(padded_grid(scale_layout_named("swizzled-128x4"), {130, 5}) == Grid{256, 8});
}

class EveryScaleLayout : public testing::TestWithParam<ScaleLayout> {
 protected:
  Bytes stored(Grid grid, const Bytes& linear, std::byte before = std::byte{0xa5}) const {
    const Grid padded = padded_grid(GetParam(), grid);
    Bytes bytes(padded.rows * padded.cols, before);
    store_scales(GetParam(), grid, linear, bytes);
    return bytes;
  }
  Bytes loaded(Grid grid, const Bytes& bytes) const {
    Bytes linear(grid.rows * grid.cols);
    load_scales(GetParam(), grid, bytes, linear);
    return linear;
  }
};

TEST_P(EveryScaleLayout, RoundTrips) {
  for (const Grid& grid : kGrids) {
    const Bytes scales = random_bytes(grid.rows * grid.cols);
    EXPECT_EQ(loaded(grid, stored(grid, scales)), scales) << grid.rows << " x " << grid.cols;
  }
}

TEST_P(EveryScaleLayout, PadsToItsMultiples) {
  for (const Grid& grid : kGrids) {
    const Grid padded = padded_grid(GetParam(), grid), pad = GetParam().pad;
    EXPECT_EQ(padded.rows % pad.rows, 0u);
    EXPECT_EQ(padded.cols % pad.cols, 0u);
    EXPECT_TRUE(grid.rows <= padded.rows && padded.rows < grid.rows + pad.rows) << grid.rows;
    EXPECT_TRUE(grid.cols <= padded.cols && padded.cols < grid.cols + pad.cols) << grid.cols;
  }
}

// Scales without a 0 among them, so that the zeros are the padding; and no byte is lost or doubled.
TEST_P(EveryScaleLayout, PadsWithZerosAlone) {
  for (const Grid& grid : kGrids) {
    Bytes scales = random_bytes(grid.rows * grid.cols);
    for (std::byte& scale : scales) scale |= std::byte{1};
    Bytes bytes = stored(grid, scales);
    const auto zeros = uint64_t(std::ranges::count(bytes, std::byte{0}));
    EXPECT_EQ(zeros, bytes.size() - scales.size());
    std::ranges::sort(bytes);
    std::ranges::sort(scales);
    EXPECT_TRUE(std::equal(scales.begin(), scales.end(), bytes.begin() + std::ptrdiff_t(zeros)));
  }
}

// Public report D14: a reference must not see what kernels leave in the padding.
TEST_P(EveryScaleLayout, LooksAtNoPadding) {
  for (const Grid& grid : kGrids) {
    const Bytes scales = random_bytes(grid.rows * grid.cols);
    Bytes bytes = stored(grid, scales);
    const Bytes mask = stored(grid, Bytes(scales.size(), std::byte{1}));
    for (uint64_t i = 0; i < bytes.size(); ++i)
      if (mask[i] == std::byte{0}) bytes[i] = std::byte{0xff};
    EXPECT_EQ(loaded(grid, bytes), scales);
  }
}

TEST_P(EveryScaleLayout, NamesTheBytesOfAGridThatItDoesNotFit) {
  Bytes bytes(1);
  const std::string linear = input_error([&] { store_scales(GetParam(), {130, 5}, Bytes(649), bytes); });
  EXPECT_TRUE(contains(linear, "expected 650 bytes for 130 x 5, got 649")) << linear;
  Bytes scales(650);
  const std::string message = input_error([&] { load_scales(GetParam(), {130, 5}, Bytes(7), scales); });
  EXPECT_TRUE(contains(message, GetParam().name) && contains(message, "got 7")) << message;
}

// 2^32 x 2^32 is 0 modulo 2^64.
TEST_P(EveryScaleLayout, RefusesAGridBeyond64Bits) {
  const Grid huge{.rows = uint64_t{1} << 32, .cols = uint64_t{1} << 32};
  const std::string message = input_error([&] { store_scales(GetParam(), huge, {}, {}); });
  EXPECT_TRUE(contains(message, "4294967296 x 4294967296")) << message;
}

std::string layout_name(const testing::TestParamInfo<ScaleLayout>& info) {
  std::string name(info.param.name);
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Layouts, EveryScaleLayout, testing::ValuesIn(kScaleLayouts), layout_name);

TEST(ScaleLayout, SwizzledTilesFollowTheOffsetFunction) {
  const Grid grid{130, 5};
  const Bytes scales = random_bytes(grid.rows * grid.cols);
  Bytes bytes(2048);
  store_scales(scale_layout_named("swizzled-128x4"), grid, scales, bytes);
  for (uint64_t row = 0; row < grid.rows; ++row)
    for (uint64_t col = 0; col < grid.cols; ++col)
      ASSERT_EQ(bytes[swizzled_offset(grid.cols, row, col)], scales[row * grid.cols + col]);
}

TEST(ScaleLayout, PaddedRowsAreARowOfThePaddedGridApart) {
  Bytes bytes(128 * 4);
  store_scales(scale_layout_named("padded-128x4"), {2, 3}, bytes_of_hex("01 02 03 04 05 06"), bytes);
  EXPECT_EQ(Bytes(bytes.begin(), bytes.begin() + 9), bytes_of_hex("01 02 03 00 04 05 06 00 00"));
}

template <class Catalog>
void expect_named_and_sourced(const Catalog& catalog) {
  std::set<std::string_view> names;
  for (const auto& entry : catalog) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.source.empty()) << entry.name;
  }
}

TEST(LayoutCatalogs, NameEachRowOnceWithItsSource) {
  expect_named_and_sourced(kNibbleOrders);
  expect_named_and_sourced(kBlockRecords);
  expect_named_and_sourced(kScaleLayouts);
  expect_named_and_sourced(kTeScales);
}

TEST(LayoutCatalogs, FindLayoutsByName) {
  for (std::size_t id = 0; id < kScaleLayouts.size(); ++id)
    EXPECT_EQ(find_scale_layout(kScaleLayouts[id].name), int(id));
  EXPECT_EQ(find_scale_layout("swizzled"), -1);
}

// Eight elements 0 to 7 as each order writes them, split halves in one block of 8.
TEST(Nibbles, OfEightElementsLieAsTheOrderSays) {
  const Bytes even_low = bytes_of_hex("10 32 54 76");
  const std::map<NibbleOrder, std::string> expected_bytes{{NibbleOrder::even_low, "10 32 54 76"},
                                                          {NibbleOrder::even_high, "01 23 45 67"},
                                                          {NibbleOrder::split_halves, "40 51 62 73"}};
  for (const NibbleOrderEntry& entry : kNibbleOrders) {
    Bytes bytes(4);
    reorder_nibbles({NibbleOrder::even_low}, even_low, {entry.order, 8}, bytes);
    EXPECT_EQ(bytes, bytes_of_hex(expected_bytes.at(entry.order))) << entry.name;
  }
}

TEST(Nibbles, RoundTripThroughEveryOrder) {
  for (const NibbleOrderEntry& from : kNibbleOrders) {
    for (const NibbleOrderEntry& to : kNibbleOrders) {
      for (const uint64_t block : {2u, 8u, 16u, 32u}) {
        const Bytes codes = random_bytes(3 * 16);
        Bytes reordered(codes.size(), std::byte{0xff}), back(codes.size(), std::byte{0xff});
        reorder_nibbles({from.order, block}, codes, {to.order, block}, reordered);
        reorder_nibbles({to.order, block}, reordered, {from.order, block}, back);
        EXPECT_EQ(back, codes) << from.name << " to " << to.name << ", block " << block;
      }
    }
  }
}

TEST(Nibbles, OfHalvesNeedWholeEvenBlocks) {
  Bytes to(12);
  const auto reorder = [&](uint64_t block) {
    return input_error([&] {
      reorder_nibbles({NibbleOrder::even_low}, Bytes(12), {NibbleOrder::split_halves, block}, to);
    });
  };
  EXPECT_TRUE(contains(reorder(16), "24 elements are not a multiple of the block, 16")) << reorder(16);
  EXPECT_TRUE(contains(reorder(3), "even block, got 3")) << reorder(3);
  EXPECT_TRUE(contains(reorder(0), "even block, got 0")) << reorder(0);
}

TEST(Nibbles, AreAsManyAfterAsBefore) {
  Bytes to(3);
  const std::string message =
      input_error([&] { reorder_nibbles({NibbleOrder::even_low}, Bytes(4), {NibbleOrder::even_high}, to); });
  EXPECT_TRUE(contains(message, "expected 4 bytes, got 3")) << message;
}

// The codes of a record's elements, one a byte, by ggml's description of the record.
Bytes elements_by_description(const BlockRecord& record, const Bytes& bytes) {
  Bytes elements(std::size_t(record.elements));
  const int block = record.elements / record.scales;
  for (int i = 0; i < record.elements; ++i) {
    const int within = i % block, byte = record.scales + i / block * (block / 2) + within % (block / 2);
    elements[std::size_t(i)] = bytes[std::size_t(byte)] >> (within < block / 2 ? 0 : 4) & std::byte{0xf};
  }
  return elements;
}

Bytes one_code_a_byte(const Bytes& codes) {
  Bytes elements;
  for (const std::byte pair : codes) {
    elements.push_back(pair & std::byte{0xf});
    elements.push_back(pair >> 4);
  }
  return elements;
}

TEST(BlockRecords, HaveTheBytesOfGgml) {
  EXPECT_EQ(kBlockRecords[0].bytes(), 17u);
  EXPECT_EQ(kBlockRecords[1].bytes(), 36u);
}

TEST(BlockRecords, UnpackAsDescribed) {
  for (const BlockRecord& record : kBlockRecords) {
    const Bytes bytes = random_bytes(record.bytes());
    Bytes codes(std::size_t(record.elements) / 2), scales(std::size_t(record.scales));
    unpack_records(record, bytes, codes, scales);
    EXPECT_EQ(one_code_a_byte(codes), elements_by_description(record, bytes)) << record.name;
    EXPECT_EQ(scales, Bytes(bytes.begin(), bytes.begin() + record.scales)) << record.name;
  }
}

TEST(BlockRecords, RoundTrip) {
  for (const BlockRecord& record : kBlockRecords) {
    for (const uint64_t count : {0u, 1u, 2u, 7u}) {
      const Bytes records = random_bytes(count * record.bytes());
      Bytes codes(count * uint64_t(record.elements) / 2), scales(count * uint64_t(record.scales));
      Bytes back(records.size(), std::byte{0xff});
      unpack_records(record, records, codes, scales);
      pack_records(record, codes, scales, back);
      EXPECT_EQ(back, records) << record.name << ' ' << count;
    }
  }
}

TEST(BlockRecords, NameTheBytesThatAreMissing) {
  for (const BlockRecord& record : kBlockRecords) {
    Bytes codes(std::size_t(record.elements) / 2), scales(std::size_t(record.scales));
    const std::string message = input_error([&] { unpack_records(record, Bytes(35), codes, scales); });
    EXPECT_TRUE(contains(message, record.name) && contains(message, "35 bytes are not a multiple")) << message;
  }
  Bytes codes(16), scales(2);
  const std::string message = input_error([&] { unpack_records(kBlockRecords[0], Bytes(34), codes, scales); });
  EXPECT_TRUE(contains(message, "codes of 2 block_mxfp4 records: expected 32 bytes, got 16")) << message;
}

TEST(TeScales, HaveTransformerEnginesShapes) {
  struct Case {
    std::string_view name;
    Grid data, scales, padded;
  };
  constexpr Case kCases[] = {
      {"nvfp4-rowwise", {144, 80}, {144, 5}, {256, 8}},  {"nvfp4-columnwise", {144, 80}, {80, 9}, {128, 12}},
      {"mxfp8-rowwise", {160, 96}, {160, 3}, {256, 4}},  {"mxfp8-columnwise", {160, 96}, {5, 96}, {8, 128}},
      {"nvfp4-rowwise", {256, 128}, {256, 8}, {256, 8}}, {"mxfp8-columnwise", {4096, 4096}, {128, 4096}, {128, 4096}}};
  for (const Case& c : kCases) {
    const auto row = std::ranges::find(kTeScales, c.name, &TeScales::name);
    ASSERT_NE(row, kTeScales.end());
    EXPECT_EQ(te_scale_grid(*row, c.data), c.scales) << c.name;
    EXPECT_EQ(padded_grid(row->layout, c.scales), c.padded) << c.name;
  }
}

// Both dimensions, whichever the blocks lie along.
TEST(TeScales, RefuseDimensionsThatTransformerEngineRefuses) {
  for (const TeScales& scales : kTeScales) {
    for (const Grid data : {Grid{100, 128}, Grid{128, 100}}) {
      const std::string message = input_error([&] { (void)te_scale_grid(scales, data); });
      EXPECT_TRUE(contains(message, scales.name) && contains(message, "100")) << message;
    }
  }
}

TEST(PackE8m0, PutsTheFirstScaleInTheLowByte) {
  EXPECT_EQ(pack_e8m0(E8m0Packing::exact, std::vector<float>{0x1p-127f, 1, 2, 0x1p127f, 4, 4, 4, 0.5f}),
            (std::vector<uint32_t>{0xfe80'7f00, 0x7e81'8181}));
}

TEST(PackE8m0, RoundTripsEveryPowerOfTwo) {
  std::vector<float> scales(256, 1);
  for (int code = 0; code < 255; ++code) scales[std::size_t(code)] = std::ldexp(1.0f, code - 127);
  EXPECT_EQ(unpack_e8m0(pack_e8m0(E8m0Packing::exact, scales)), scales);
}

TEST(PackE8m0, OfAnExactScaleIsTheSameTruncated) {
  std::vector<float> scales;
  for (int e = -126; e < 126; ++e) scales.push_back(std::ldexp(1.0f, e));
  EXPECT_EQ(pack_e8m0(E8m0Packing::truncate, scales), pack_e8m0(E8m0Packing::exact, scales));
}

TEST(PackE8m0, TruncatedIsTheExponentFieldAlone) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(pack_e8m0(E8m0Packing::truncate, std::vector<float>{-3, -0.0f, -kInf, 0x1p-149f}),
            std::vector<uint32_t>{0x00ff'0080});
}

TEST(PackE8m0, RefusesWhatIsNoPowerOfTwoInRange) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float bad : {0.0f, -0.0f, 3.0f, 1 + 0x1p-23f, -1.0f, kInf, -kInf, std::nanf(""), 0x1p-128f, 0x1p-149f,
                          0x1.8p-127f, std::numeric_limits<float>::max()}) {
    const std::vector<float> scales{1, 1, 1, 1, 1, 1, bad, 1};
    const std::string message = input_error([&] { (void)pack_e8m0(E8m0Packing::exact, scales); });
    EXPECT_TRUE(contains(message, "scale 6 is")) << bad << ": " << message;
  }
}

TEST(PackE8m0, NeedsWholeWords) {
  const std::string message = input_error([] {
    (void)pack_e8m0(E8m0Packing::exact, std::vector<float>{1, 1, 1, 1, 1});
  });
  EXPECT_TRUE(contains(message, "5 scales are not a multiple of 4")) << message;
}

TEST(UnpackE8m0, HasANaN) { EXPECT_TRUE(std::isnan(unpack_e8m0(std::vector<uint32_t>{0x7fff'7f7f})[2])); }

TEST(Transpose, IsItsOwnInverse) {
  for (const Grid& grid : kGrids) {
    const Bytes bytes = random_bytes(grid.rows * grid.cols);
    Bytes turned(bytes.size()), back(bytes.size());
    transpose<std::byte>(grid, bytes, turned);
    transpose<std::byte>(grid.transposed(), turned, back);
    EXPECT_EQ(back, bytes) << grid.rows << " x " << grid.cols;
  }
}

TEST(Transpose, NamesTheElementsThatAreMissing) {
  std::vector<float> turned(6);
  const std::string message = input_error([&] { transpose<float>({2, 3}, std::vector<float>(5), turned); });
  EXPECT_TRUE(contains(message, "expected 6 elements, got 5")) << message;
}

TEST(Report, B20_TruncatedExponentsLeakNoMantissa) {
  const std::vector<float> scales(4, bit_cast<float>(reports::hexadecimal(input("B20").at("bits"))));
  EXPECT_EQ(pack_e8m0(E8m0Packing::truncate, scales).at(0), reports::hexadecimal(expected("B20").at("packed_trunc")));
}

TEST(Report, B20_ExactPackingNamesTheMantissa) {
  const std::vector<float> scales(4, bit_cast<float>(reports::hexadecimal(input("B20").at("bits"))));
  const std::string message = input_error([&] { (void)pack_e8m0(E8m0Packing::exact, scales); });
  EXPECT_TRUE(contains(message, "scale 0 is 0.006975") && contains(message, "mantissa 0x648e8a")) << message;
}

TEST(Report, D01_TheTileHas32RowsOf4Groups) {
  const auto cols = input("D01").at("scale_cols").get<uint64_t>();
  for (std::size_t i = 0; i < input("D01").at("row_col").size(); ++i) {
    const auto at = grid_of(input("D01").at("row_col").at(i));
    EXPECT_EQ(swizzled_offset(cols, at.rows, at.cols), expected("D01").at("offsets").at(i).get<uint64_t>());
  }
}

TEST(Report, D01_TheGridIsPadded) {
  const Grid grid{.rows = input("D01").at("M").get<uint64_t>(), .cols = input("D01").at("scale_cols").get<uint64_t>()};
  const Grid padded = padded_grid(scale_layout_named("swizzled-128x4"), grid);
  EXPECT_EQ(padded, grid_of(expected("D01").at("padded_shape")));
  EXPECT_EQ(padded.rows * padded.cols, expected("D01").at("bytes").get<uint64_t>());
}

Bytes unpacked(const BlockRecord& record, const Bytes& bytes) {
  Bytes codes(std::size_t(record.elements) / 2), scales(std::size_t(record.scales));
  unpack_records(record, bytes, codes, scales);
  return one_code_a_byte(codes);
}

// The report gives values; its codes are those of E2M1.
TEST(Report, D05_GgufMxfp4IsInSplitHalves) {
  constexpr double kE2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const Bytes elements = unpacked(kBlockRecords[0], bytes_of_hex(input("D05").at("gguf_block_hex").get<std::string>()));
  for (const auto& [index, value] : expected("D05").at("elements").items())
    EXPECT_EQ(kE2m1[std::size_t(elements.at(std::stoul(index)))], value.get<double>()) << index;
}

TEST(Report, D06_GgufNvfp4HasFourScalesAndHalvesOfSixteen) {
  Bytes record = bytes_of_hex("38 40 30 7f 21");
  record.resize(36);
  Bytes codes(32), scales(4);
  unpack_records(kBlockRecords[1], record, codes, scales);
  EXPECT_EQ(scales, bytes_of_hex("38 40 30 7f"));
  EXPECT_EQ(one_code_a_byte(codes).at(0), std::byte{1});  // 0.5
  EXPECT_EQ(one_code_a_byte(codes).at(8), std::byte{2});  // 1.0
}

// Two heads of 128 x 8 scales, written in tiles and read in tiles; read row by row they are the same bytes in another
// order.
TEST(Report, D11_ReaderAndWriterOfOneLayoutAgreeAndOthersPermute) {
  const Grid heads{.rows = 128 * input("D11").at("heads").get<uint64_t>(), .cols = 8};
  const Bytes scales = random_bytes(heads.rows * heads.cols);
  Bytes swizzled(scales.size()), read(scales.size()), misread(scales.size());
  store_scales(scale_layout_named("swizzled-128x4"), heads, scales, swizzled);
  load_scales(scale_layout_named("swizzled-128x4"), heads, swizzled, read);
  load_scales(scale_layout_named("linear"), heads, swizzled, misread);
  EXPECT_EQ(read, scales);
  EXPECT_NE(misread, scales);
  EXPECT_TRUE(std::ranges::is_permutation(misread, scales));
}

TEST(Report, D12_TheScaleGridIsTransposedWithItsData) {
  const Grid elements = grid_of(input("D12").at("W_shape")), block = grid_of(input("D12").at("block"));
  const Grid grid = block_grid(elements, block);
  ASSERT_EQ(grid, (Grid{2, 2}));
  const auto flat = [](const nlohmann::json& rows) {
    std::vector<float> values;
    for (const auto& row : rows)
      for (const auto& value : row) values.push_back(value.get<float>());
    return values;
  };
  std::vector<float> turned(4);
  transpose<float>(grid, flat(input("D12").at("scale_grid")), turned);
  EXPECT_EQ(turned, flat(expected("D12").at("scale_for_WT")));
}

const TeScales& te_scales(std::string_view name) { return *std::ranges::find(kTeScales, name, &TeScales::name); }

TEST(Report, D13_Mxfp8NamesThePaddingThatItWants) {
  const std::string message = input_error([] { (void)te_scale_grid(te_scales("mxfp8-rowwise"), {128, 48}); });
  EXPECT_TRUE(contains(message, "multiples of 32, got 128 x 48; padded with zeros, 48 would be 64")) << message;
}

TEST(Report, D13_Nvfp4PadsThreeBlocksToFourScales) {
  const TeScales& scales = te_scales("nvfp4-rowwise");
  EXPECT_EQ(te_scale_grid(scales, {128, 48}), (Grid{128, 3}));
  EXPECT_EQ(padded_grid(scales.layout, {128, 3}), (Grid{128, 4}));
}

TEST(Report, D13_RowsArePaddedToTilesOf128) {
  const auto n = input("D13").at("N").get<uint64_t>();
  for (const std::string_view name : {"nvfp4-rowwise", "mxfp8-rowwise"}) {
    const TeScales& scales = te_scales(name);
    EXPECT_EQ(padded_grid(scales.layout, te_scale_grid(scales, {n, 4096})).rows, 98u * 128) << name;
  }
}

TEST(Report, D14_ACompactGridIsPaddedWithZeros) {
  const Grid grid{.rows = input("D14").at("M").get<uint64_t>(), .cols = input("D14").at("K").get<uint64_t>() / 16};
  const ScaleLayout layout = scale_layout_named("swizzled-128x4");
  ASSERT_EQ(padded_grid(layout, grid), grid_of(expected("D14").at("padded")));
  Bytes stored(128 * 4, std::byte{0xcd});
  store_scales(layout, grid, Bytes(grid.rows * grid.cols, std::byte{0x38}), stored);
  EXPECT_EQ(std::ranges::count(stored, std::byte{0x38}), 400);
  EXPECT_EQ(std::ranges::count(stored, std::byte(reports::hexadecimal(expected("D14").at("pad")))), 112);
}

}  // namespace
}  // namespace halfulp

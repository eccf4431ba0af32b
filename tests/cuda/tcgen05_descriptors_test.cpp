// Descriptors of tcgen05 against the PTX ISA's tables, which are written down here once more, field by field.

#include "cuda/arch/tcgen05_descriptors.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

namespace halfulp::arch {
namespace {

// A field's bits, the last included, and what stands there.
struct Field {
  std::string_view name;
  int first, last;
  uint64_t value;
};

uint64_t put_together(const std::vector<Field>& fields) {
  uint64_t bits = 0;
  for (const Field& field : fields) {
    const int width = field.last - field.first + 1;
    EXPECT_LT(field.value, uint64_t{1} << width) << field.name;
    bits |= field.value << field.first;
  }
  return bits;
}

// PTX ISA 9.0, 9.7.16.4.1, table 40, shared memory descriptor layout; also NVIDIA/cutlass
// include/cute/arch/mma_sm100_desc.hpp, SmemDescriptor.
std::vector<Field> shared_matrix_fields(uint64_t start, uint64_t leading, uint64_t stride, uint64_t swizzle) {
  return {{"matrix start address / 16", 0, 13, start / 16},
          {"leading dimension byte offset / 16", 16, 29, leading / 16},
          {"stride dimension byte offset / 16", 32, 45, stride / 16},
          {"fixed 0b001", 46, 48, 1},
          {"matrix base offset", 49, 51, 0},
          {"leading dimension stride mode: relative", 52, 52, 0},
          {"fixed 0", 53, 60, 0},
          {"swizzling mode", 61, 63, swizzle}};
}

TEST(SharedMatrix, HasTheFieldsOfTheTable) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 1000; ++trial)
    for (const uint32_t swizzle : {0u, 2u, 4u, 6u}) {
      const uint32_t start = random() % (1 << 14) * 16, leading = random() % (1 << 14) * 16;
      const uint32_t stride = random() % (1 << 14) * 16;
      const SharedMatrix matrix{start, leading, stride, Tcgen05Swizzle(swizzle)};
      ASSERT_EQ(descriptor_of(matrix), put_together(shared_matrix_fields(start, leading, stride, swizzle)));
      ASSERT_EQ(decode_shared_matrix(descriptor_of(matrix)), matrix);
    }
}

// PTX ISA 9.0, 9.7.16.4.2, table 42; also InstrDescriptor of mma_sm100_desc.hpp.
std::vector<Field> plain_fields(uint64_t a, uint64_t b, uint64_t m, uint64_t n) {
  return {{"sparsity selector", 0, 1, 0},
          {"sparsity: dense", 2, 2, 0},
          {"saturate", 3, 3, 0},
          {"D: F32", 4, 5, 1},
          {"reserved", 6, 6, 0},
          {"A", 7, 9, a},
          {"B", 10, 12, b},
          {"negate A", 13, 13, 0},
          {"negate B", 14, 14, 0},
          {"transpose A: no", 15, 15, 0},
          {"transpose B: no", 16, 16, 0},
          {"N / 8", 17, 22, n / 8},
          {"reserved", 23, 23, 0},
          {"M / 16", 24, 28, m / 16},
          {"reserved", 29, 29, 0},
          {"maximum shift: none", 30, 31, 0}};
}

// PTX ISA 9.0, tables 43 and 44; also InstrDescriptorBlockScaled, which counts M in 16s: the same bits for 128 and 256.
std::vector<Field> scaled_fields(uint64_t a, uint64_t b, uint64_t m, uint64_t n, uint64_t e8m0, uint64_t a_id,
                                 uint64_t b_id) {
  return {{"reserved", 0, 1, 0},
          {"sparsity: dense", 2, 2, 0},
          {"reserved", 3, 3, 0},
          {"scale factor B ID", 4, 5, b_id},
          {"reserved", 6, 6, 0},
          {"A", 7, 9, a},
          {"B", 10, 12, b},
          {"negate A", 13, 13, 0},
          {"negate B", 14, 14, 0},
          {"transpose A: no", 15, 15, 0},
          {"transpose B: no", 16, 16, 0},
          {"N / 8", 17, 22, n / 8},
          {"scales are UE8M0", 23, 23, e8m0},
          {"reserved", 24, 26, 0},
          {"M / 128", 27, 28, m / 128},
          {"scale factor A ID", 29, 30, a_id},
          {"K: not 96", 31, 31, 0}};
}

struct NumberOfFormat {
  Tcgen05Kind kind;
  std::string_view format;
  uint32_t number;
};

// The same tables' rows for the types of A and B.
constexpr NumberOfFormat kNumbers[] = {
    {Tcgen05Kind::f16, "f16", 0},       {Tcgen05Kind::f16, "bf16", 1},      {Tcgen05Kind::tf32, "tf32", 2},
    {Tcgen05Kind::f8f6f4, "e4m3", 0},   {Tcgen05Kind::f8f6f4, "e5m2", 1},   {Tcgen05Kind::f8f6f4, "e2m3", 3},
    {Tcgen05Kind::f8f6f4, "e3m2", 4},   {Tcgen05Kind::f8f6f4, "e2m1", 5},   {Tcgen05Kind::mxf8f6f4, "e4m3", 0},
    {Tcgen05Kind::mxf8f6f4, "e5m2", 1}, {Tcgen05Kind::mxf8f6f4, "e2m3", 3}, {Tcgen05Kind::mxf8f6f4, "e3m2", 4},
    {Tcgen05Kind::mxf8f6f4, "e2m1", 5}, {Tcgen05Kind::mxf4, "e2m1", 1},     {Tcgen05Kind::mxf4nvf4, "e2m1", 1},
};

TEST(Tcgen05Formats, AreNumberedAsInTheTables) {
  std::set<std::pair<int, std::string_view>> known;
  for (const NumberOfFormat& is : kNumbers) {
    EXPECT_EQ(tcgen05_format_number(is.kind, is.format), int(is.number)) << is.format;
    EXPECT_EQ(tcgen05_format(is.kind, is.number), find_format(is.format)) << is.format;
    known.emplace(int(is.kind), is.format);
  }
  for (const FormatEntry& format : kFormats)
    for (std::size_t kind = 0; kind < kTcgen05Kinds.size(); ++kind)
      EXPECT_EQ(tcgen05_format_number(Tcgen05Kind(kind), format.name) >= 0, known.contains({int(kind), format.name}))
          << format.name << " " << kTcgen05Kinds[kind].name;
}

TEST(Tcgen05Instruction, HasTheFieldsOfTheTables) {
  for (const NumberOfFormat& a : kNumbers)
    for (const NumberOfFormat& b : kNumbers)
      for (uint32_t n = 8; n <= 256 && a.kind == b.kind; n += 8) {
        const Tcgen05Instruction is{a.number, b.number, 128, n};
        const bool scaled = a.kind >= Tcgen05Kind::mxf8f6f4;
        const uint64_t e8m0 = a.kind == Tcgen05Kind::mxf4nvf4 ? 0 : 1;
        ASSERT_EQ(descriptor_of(a.kind, is), put_together(scaled ? scaled_fields(a.number, b.number, 128, n, e8m0, 0, 0)
                                                                 : plain_fields(a.number, b.number, 128, n)));
        ASSERT_EQ(decode_instruction(a.kind, descriptor_of(a.kind, is)), is);
      }
}

TEST(Tcgen05Instruction, SelectsScalesByTheirByte) {
  for (uint32_t a_byte = 0; a_byte < 4; ++a_byte)
    for (uint32_t b_byte = 0; b_byte < 4; ++b_byte) {
      const Tcgen05Instruction is{0, 1, 128, 64, a_byte, b_byte};
      const uint32_t bits = descriptor_of(Tcgen05Kind::mxf8f6f4, is);
      EXPECT_EQ(bits, put_together(scaled_fields(0, 1, 128, 64, 1, a_byte, b_byte)));
      EXPECT_EQ(decode_instruction(Tcgen05Kind::mxf8f6f4, bits), is);
    }
}

// Written out by hand from table 44: E2M1 and E2M1, UE4M3 scales, M = 128, N = 128.
TEST(Tcgen05Instruction, IsTheNvfp4OneThatIsWrittenByHand) {
  EXPECT_EQ(descriptor_of(Tcgen05Kind::mxf4nvf4, {1, 1, 128, 128}), 0x0820'0480u);
}

// PTX ISA 9.0, 9.7.16.3 and 9.7.16.10.6: in the pattern of a swizzling mode the 16-byte chunks of a row are those of a
// row without it, XORed with the row (128 bytes), half of it (64) or a quarter (32).
TEST(SharedMatrix, SwizzlesTheChunksOfARowByTheRow) {
  struct Mode {
    Tcgen05Swizzle swizzle;
    uint32_t chunks, rows;  // chunks to a row; rows that share an order
  };
  for (const Mode& mode : {Mode{Tcgen05Swizzle::bytes128, 8, 1}, Mode{Tcgen05Swizzle::bytes64, 4, 2},
                           Mode{Tcgen05Swizzle::bytes32, 2, 4}}) {
    const uint32_t group = 8 * 16 * mode.chunks, start = 2 * group;
    const SharedMatrix matrix{start, 16, group, mode.swizzle};
    for (uint32_t row = 0; row < 64; ++row)
      for (uint32_t chunk = 0; chunk < mode.chunks; ++chunk)
        EXPECT_EQ(chunk_address(matrix, row, chunk),
                  start + row * 16 * mode.chunks + (chunk ^ row % 8 / mode.rows % mode.chunks) * 16);
  }
}

// The next 32 bytes of a row of 128 begin 32 bytes further on.
TEST(SharedMatrix, StepsAlongASwizzledRow) {
  const SharedMatrix whole{2048, 16, 1024, Tcgen05Swizzle::bytes128};
  for (uint32_t step = 0; step < 4; ++step) {
    const SharedMatrix part{2048 + step * 32, 16, 1024, Tcgen05Swizzle::bytes128};
    for (uint32_t row = 0; row < 32; ++row)
      for (uint32_t chunk = 0; chunk < 2; ++chunk)
        EXPECT_EQ(chunk_address(part, row, chunk), chunk_address(whole, row, step * 2 + chunk));
  }
}

// 9.7.16.3: leading is from a chunk to the next, stride from eight rows to the next eight.
TEST(SharedMatrix, WithoutSwizzlingHasEightRowsOfAChunkTogether) {
  const SharedMatrix matrix{4096, 2048, 128};
  EXPECT_EQ(chunk_address(matrix, 0, 0), 4096u);
  EXPECT_EQ(chunk_address(matrix, 1, 0), 4096u + 16);
  EXPECT_EQ(chunk_address(matrix, 7, 0), 4096u + 7 * 16);
  EXPECT_EQ(chunk_address(matrix, 8, 0), 4096u + 128);
  EXPECT_EQ(chunk_address(matrix, 0, 1), 4096u + 2048);
  EXPECT_EQ(chunk_address(matrix, 127, 1), 4096u + 2048 + 15 * 128 + 7 * 16);
}

TEST(TensorAddress, HasTheLaneAboveTheColumn) { EXPECT_EQ(tensor_address(0x20, 96, 5), 0x0060'0025u); }

TEST(Tcgen05Kinds, Take32BytesOfARow) {
  for (const Tcgen05KindEntry& kind : kTcgen05Kinds) {
    EXPECT_EQ(kind.k, 2 * kind.chunk_elements) << kind.name;
    EXPECT_GE(find_accumulator(kind.accumulator), 0) << kind.name;
    EXPECT_EQ(kind.row_scales == 0, kind.scale.empty()) << kind.name;
  }
}

}  // namespace
}  // namespace halfulp::arch

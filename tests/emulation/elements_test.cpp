#include "emulation/elements.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "emulation/chunks.h"

namespace halfulp {
namespace {

// The elements of bytes that lie at an odd address.
template <class Source>
std::vector<Source> elements(Dtype dtype, const std::string& bytes, std::size_t count, uint64_t first = 0) {
  const std::string shifted = "x" + bytes;
  std::vector<Source> out(count);
  load_elements<Source>(dtype, std::as_bytes(std::span(shifted)).data() + 1, first, out);
  return out;
}

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST(Elements, OfE2m1HaveTheEvenOneInTheLowNibble) {
  EXPECT_EQ(elements<float>(Dtype::f4, "\x72\xf9", 4), (std::vector<float>{1, 6, -0.5f, -6}));
}

TEST(Elements, OfE2m1MayBeginInAByte) {
  EXPECT_EQ(elements<float>(Dtype::f4, "\x72\xf9", 2, 1), (std::vector<float>{6, -0.5f}));
}

TEST(Elements, OfEightBitFloatsAreTheirFormats) {
  EXPECT_EQ(elements<float>(Dtype::f8_e4m3, "\x7e\xb8", 2), (std::vector<float>{448, -1}));
  EXPECT_EQ(elements<float>(Dtype::f8_e5m2, "\x7b\xbc", 2), (std::vector<float>{57344, -1}));
  EXPECT_EQ(elements<float>(Dtype::f8_e8m0, "\x7f\x80", 2), (std::vector<float>{1, 2}));
}

TEST(Elements, OfHalvesAreLittleEndian) {
  EXPECT_EQ(elements<float>(Dtype::bf16, std::string("\x80\x3f\x01\x00", 4), 2), (std::vector<float>{1, 0x1p-133f}));
  EXPECT_EQ(elements<float>(Dtype::f16, std::string("\x00\x3c\xff\x7b", 4), 2), (std::vector<float>{1, 65504}));
}

// Loading is no conversion: a NaN keeps its bits, a subnormal its value.
TEST(Elements, OfF32KeepEveryBit) {
  const std::vector<uint32_t> bits{0x7fa0'0001, 0xffff'ffff, 1, 0x8000'0000};
  const std::vector<float> x = elements<float>(Dtype::f32, bytes_of(bits), bits.size());
  EXPECT_EQ(std::memcmp(x.data(), bits.data(), bits.size() * sizeof(float)), 0);
}

TEST(Elements, OfF64AreWhole) {
  EXPECT_EQ(elements<double>(Dtype::f64, bytes_of(std::vector<double>{1e300, -0.1}), 2),
            (std::vector<double>{1e300, -0.1}));
}

TEST(Elements, OfIntegersKeepTheirSign) {
  EXPECT_EQ(elements<int64_t>(Dtype::i8, "\xff", 1), std::vector<int64_t>{-1});
  EXPECT_EQ(elements<int64_t>(Dtype::u8, "\xff", 1), std::vector<int64_t>{255});
  EXPECT_EQ(elements<int64_t>(Dtype::i16, "\xff\xff", 1), std::vector<int64_t>{-1});
  EXPECT_EQ(elements<int64_t>(Dtype::u16, "\xff\xff", 1), std::vector<int64_t>{65535});
  EXPECT_EQ(elements<int64_t>(Dtype::i32, "\xff\xff\xff\xff", 1), std::vector<int64_t>{-1});
  EXPECT_EQ(elements<int64_t>(Dtype::u32, "\xff\xff\xff\xff", 1), std::vector<int64_t>{0xffff'ffff});
  EXPECT_EQ(elements<int64_t>(Dtype::boolean, "\x01", 1), std::vector<int64_t>{1});
}

TEST(Elements, OfSixtyFourBitIntegersAreWhole) {
  const std::string ones(8, '\xff');
  EXPECT_EQ(elements<int64_t>(Dtype::i64, ones, 1), std::vector<int64_t>{-1});
  EXPECT_EQ(elements<uint64_t>(Dtype::u64, ones, 1), std::vector<uint64_t>{~uint64_t{0}});
}

TEST(Elements, OfComplexAndSixBitTypesAreNoNumbers) {
  for (const Dtype dtype : {Dtype::c64, Dtype::f6_e2m3, Dtype::f6_e3m2})
    EXPECT_EQ(element_kind(dtype), ElementKind::none) << row(dtype).name;
}

Tensor tensor_of(const std::vector<float>& x) {
  return {.file = "",
          .name = "",
          .dtype = Dtype::f32,
          .shape = {x.size()},
          .bytes = std::as_bytes(std::span(x)),
          .mapping = nullptr,
          .copy = nullptr};
}

TEST(Chunks, HoldEveryElementOnce) {
  std::vector<float> x(2 * kChunkElements + 5);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i);
  std::vector<float> seen(x.size(), -1);
  for_each_chunk<float>(tensor_of(x), 3, [&](uint64_t first, std::span<const float> chunk) {
    std::copy(chunk.begin(), chunk.end(), seen.begin() + std::ptrdiff_t(first));
  });
  EXPECT_EQ(seen, x);
}

// So that no block of any recipe lies in two chunks.
TEST(Chunks, BeginAtMultiplesOfTheirSize) {
  const std::vector<float> x(2 * kChunkElements + 5);
  std::atomic<uint64_t> off_grid = 0;
  for_each_chunk<float>(tensor_of(x), 2,
                        [&](uint64_t first, std::span<const float>) { off_grid += first % kChunkElements != 0; });
  EXPECT_EQ(off_grid, 0u);
}

TEST(Chunks, OfNothingAreNone) {
  int calls = 0;
  for_each_chunk<float>(tensor_of({}), 2, [&](uint64_t, std::span<const float>) { ++calls; });
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace halfulp

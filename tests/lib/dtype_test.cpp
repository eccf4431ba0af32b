#include "lib/dtype.h"

#include <gtest/gtest.h>

#include "lib/error.h"

namespace halfulp {
namespace {

TEST(Dtype, EveryRowIsFoundByItsName) {
  for (const DtypeRow& r : kDtypes) EXPECT_EQ(dtype_named(r.name), r.dtype) << r.name;
}

// The digits in a safetensors name are the width, except where they name a layout (E2M3).
TEST(Dtype, BitsAreTheNumberInTheName) {
  for (const DtypeRow& r : kDtypes) {
    const size_t digit = r.name.find_first_of("0123456789");
    const int expected = digit == std::string_view::npos ? 8 : std::stoi(std::string(r.name.substr(digit)));
    EXPECT_EQ(r.bits, expected) << r.name;
  }
}

TEST(Dtype, NameInAFileIsExact) { EXPECT_EQ(dtype_named("f32"), std::nullopt); }

TEST(Dtype, NameInAnOptionIgnoresCase) { EXPECT_EQ(dtype_from_option("--dtype", "f8_e4m3"), Dtype::f8_e4m3); }

TEST(Dtype, UnknownNameInAnOptionIsAUsageErrorThatListsTheNames) {
  try {
    dtype_from_option("--dtype", "fp8");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("--dtype: no element type 'fp8'; expected one of BOOL, F4"),
              std::string::npos);
  }
}

TEST(Dtype, RankZeroHasOneElement) { EXPECT_EQ(element_count({}), 1u); }

TEST(Dtype, ElementCountDoesNotWrap) {
  const uint64_t shape[] = {uint64_t{1} << 32, uint64_t{1} << 32};
  EXPECT_EQ(element_count(shape), std::nullopt);
}

TEST(Dtype, BitCountDoesNotWrap) {
  const uint64_t shape[] = {uint64_t{1} << 61};
  EXPECT_EQ(bit_count(Dtype::u8, shape), std::nullopt);
  EXPECT_EQ(bit_count(Dtype::f4, shape), uint64_t{1} << 63);
}

TEST(Dtype, PackedRowsMustEndAtAByte) {
  const uint64_t even[] = {3, 2}, odd[] = {2, 7}, empty[] = {0, 7};
  EXPECT_TRUE(rows_fill_bytes(Dtype::f4, even));
  EXPECT_FALSE(rows_fill_bytes(Dtype::f4, odd));
  EXPECT_TRUE(rows_fill_bytes(Dtype::f4, empty));
  EXPECT_FALSE(rows_fill_bytes(Dtype::f4, {}));
}

TEST(Dtype, ShapesReadLikePythonTuples) {
  const uint64_t one[] = {3}, two[] = {2, 3};
  EXPECT_EQ(shape_text({}), "()");
  EXPECT_EQ(shape_text(one), "(3,)");
  EXPECT_EQ(shape_text(two), "(2, 3)");
}

}  // namespace
}  // namespace halfulp

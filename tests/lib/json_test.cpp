#include "lib/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "lib/bits.h"

namespace halfulp {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(DumpResult, HasTheDocumentedLayout) {
  const Json body = {{"tensors", {{{"shape", {2, 3}}, {"name", "w"}, {"rel_mse", 0.1}}, Json::object()}},
                     {"empty", Json::array()},
                     {"count", 3}};
  EXPECT_EQ(dump_result("error", body), R"({
  "count": 3,
  "empty": [],
  "schema": "halfulp.error/1",
  "tensors": [
    {
      "name": "w",
      "rel_mse": 0.1,
      "shape": [2, 3]
    },
    {}
  ]
}
)");
}

TEST(DumpJson, WritesNonFiniteNumbersAsStrings) {
  EXPECT_EQ(dump_json(Json::array({kNan, kInf, -kInf})), "[\"nan\", \"inf\", \"-inf\"]\n");
}

TEST(DumpJson, WritesTheShortestDecimal) {
  EXPECT_EQ(dump_json(Json::array({0.1, 5e-324, 1e22, -0.0, 1.0})), "[0.1, 5e-324, 1e+22, -0.0, 1.0]\n");
}

TEST(DumpJson, DoublesReadBackToTheSameBits) {
  std::mt19937_64 generator(1);
  for (int i = 0; i < 10'000; ++i) {
    const double x = bit_cast<double>(uint64_t(generator()));
    if (!std::isfinite(x)) continue;
    ASSERT_EQ(bit_cast<uint64_t>(Json::parse(dump_json(x)).get<double>()), bit_cast<uint64_t>(x)) << std::hexfloat << x;
  }
}

TEST(DumpJson, IntegersAreExactTo64Bits) {
  EXPECT_EQ(dump_json(Json::array({~uint64_t{0}, std::numeric_limits<int64_t>::min()})),
            "[18446744073709551615, -9223372036854775808]\n");
}

TEST(DumpJson, EscapesStringsAndKeys) {
  EXPECT_EQ(dump_json(Json{{"a\"b", "c\n\xc3\x97"}}), "{\n  \"a\\\"b\": \"c\\n\xc3\x97\"\n}\n");
}

TEST(DumpJson, ReplacesBytesThatAreNotUtf8) { EXPECT_EQ(dump_json("a\xff"), "\"a\xef\xbf\xbd\"\n"); }

TEST(ToDouble, ReadsWhatDumpJsonWrites) {
  EXPECT_EQ(to_double(Json::parse(dump_json(kInf))), kInf);
  EXPECT_EQ(to_double(Json::parse(dump_json(-kInf))), -kInf);
  EXPECT_TRUE(std::isnan(to_double(Json::parse(dump_json(kNan)))));
  EXPECT_EQ(to_double(Json::parse(dump_json(7))), 7.0);
}

TEST(ToDouble, NullIsNan) { EXPECT_TRUE(std::isnan(to_double(nullptr))); }

TEST(ToDouble, RefusesOtherStrings) { EXPECT_THROW(to_double("12"), std::invalid_argument); }

}  // namespace
}  // namespace halfulp

#include "lib/threshold.h"

#include <gtest/gtest.h>

#include <limits>

#include "lib/error.h"

namespace halfulp {
namespace {

TEST(ParseThreshold, ReadsMetricOperatorAndNumber) {
  const Threshold threshold = parse_threshold("sqnr_db<20");
  EXPECT_EQ(threshold.metric, "sqnr_db");
  EXPECT_EQ(threshold.comparison, Comparison::less);
  EXPECT_EQ(threshold.limit, 20.0);
}

TEST(ParseThreshold, ReadsEveryOperator) {
  EXPECT_EQ(parse_threshold("x<=1").comparison, Comparison::less_equal);
  EXPECT_EQ(parse_threshold("x>1").comparison, Comparison::greater);
  EXPECT_EQ(parse_threshold("x>=1").comparison, Comparison::greater_equal);
}

TEST(ParseThreshold, AllowsSpacesAndSigns) {
  const Threshold threshold = parse_threshold(" mean_error >= -1e-3 ");
  EXPECT_EQ(threshold.metric, "mean_error");
  EXPECT_EQ(threshold.limit, -1e-3);
}

TEST(ParseThreshold, RefusesOtherText) {
  for (const char* text :
       {"", "sqnr_db", "<20", "sqnr_db<", "sqnr_db=20", "sqnr_db==20", "sqnr_db<twenty", "a<<1", "a<nan", "a=<1"}) {
    EXPECT_THROW(parse_threshold(text), UsageError) << text;
  }
}

TEST(Fails, ComparesWithTheLimit) {
  const Json metrics = {{"x", 2.0}};
  EXPECT_TRUE(fails(parse_threshold("x<3"), metrics));
  EXPECT_FALSE(fails(parse_threshold("x<2"), metrics));
  EXPECT_TRUE(fails(parse_threshold("x<=2"), metrics));
  EXPECT_TRUE(fails(parse_threshold("x>1"), metrics));
  EXPECT_FALSE(fails(parse_threshold("x>2"), metrics));
  EXPECT_TRUE(fails(parse_threshold("x>=2"), metrics));
}

TEST(Fails, NanAlwaysDoes) {
  for (const char* text : {"x<1", "x<=1", "x>1", "x>=1"}) {
    EXPECT_TRUE(fails(parse_threshold(text), {{"x", std::numeric_limits<double>::quiet_NaN()}})) << text;
    EXPECT_TRUE(fails(parse_threshold(text), {{"x", "nan"}})) << text;
    EXPECT_TRUE(fails(parse_threshold(text), {{"x", nullptr}})) << text;
  }
}

TEST(Fails, NamesTheMetricsThereAre) {
  try {
    fails(parse_threshold("sqnr<1"), {{"rel_mse", 1}, {"sqnr_db", 2}});
    FAIL() << "nothing thrown";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "--fail-on: no metric 'sqnr'; there are rel_mse, sqnr_db");
  }
}

TEST(Fails, RefusesAMetricThatIsNoNumber) {
  EXPECT_THROW(fails(parse_threshold("shape<1"), {{"shape", {1, 2}}}), UsageError);
}

}  // namespace
}  // namespace halfulp

// The short software forms against the model, over every FP32 number.

#include "cuda/software_check.h"

#include <gtest/gtest.h>

#include <iostream>

#include "cuda/cvt_check.h"
#include "formats/catalog.h"

namespace halfulp {
namespace {

class SoftwareForms : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  }

  static void expect_equal(SoftwareForm form, const char* what) {
    const auto comparison = compare_software(GetParam(), form);
    if (!comparison) GTEST_SKIP() << kFormats[std::size_t(GetParam())].name << " has no " << what;
    EXPECT_GT(comparison->compared, uint64_t{1} << 31);
    EXPECT_EQ(comparison->mismatches, 0u);
    for (const SoftwareMismatch& m : comparison->shown)
      ADD_FAILURE() << std::hex << "0x" << m.bits << " gives 0x" << m.got << ", the model 0x" << m.model;
    std::cout << kFormats[std::size_t(GetParam())].name << ", " << what << ": " << comparison->compared
              << " inputs compared, " << comparison->mismatches << " mismatches\n";
  }
};

TEST_P(SoftwareForms, NearestCodeIsTheModel) { expect_equal(SoftwareForm::nearest_code, "nearest_code"); }
TEST_P(SoftwareForms, NibblesAreTheModel) { expect_equal(SoftwareForm::line_nibbles, "line_nibbles"); }
TEST_P(SoftwareForms, StochasticRegisterIsTheModel) {
  expect_equal(SoftwareForm::stochastic_register, "stochastic_register");
}
TEST_P(SoftwareForms, StochasticNibblesAreTheModel) {
  expect_equal(SoftwareForm::stochastic_nibbles, "stochastic_nibbles");
}
TEST_P(SoftwareForms, ExponentsUpAreTheModel) { expect_equal(SoftwareForm::exponent_up, "exponent_up"); }
TEST_P(SoftwareForms, ExponentsToNearestAreTheModel) {
  expect_equal(SoftwareForm::exponent_nearest, "exponent_nearest");
}

INSTANTIATE_TEST_SUITE_P(Formats, SoftwareForms, testing::Range(0, int(kFormats.size())),
                         [](const auto& test) { return std::string(kFormats[std::size_t(test.param)].name); });

// Without this a form that went missing would only skip its test.
TEST(SoftwareFormsControl, KernelsFormatsHaveTheirForms) {
  if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  for (const char* name : {"e2m1", "e4m3", "e5m2", "ue4m3"})
    EXPECT_TRUE(compare_software(find_format(name), SoftwareForm::nearest_code)) << name;
  for (const char* name : {"e2m1", "e2m3", "e3m2", "e4m3", "e5m2"})
    EXPECT_TRUE(compare_software(find_format(name), SoftwareForm::stochastic_register)) << name;
  EXPECT_TRUE(compare_software(find_format("e2m1"), SoftwareForm::line_nibbles));
  EXPECT_TRUE(compare_software(find_format("e2m1"), SoftwareForm::stochastic_nibbles));
  EXPECT_TRUE(compare_software(find_format("e8m0"), SoftwareForm::exponent_up));
}

// A tie is 0.25, 0.75, 1.25, 1.75, 2.5, 3.5 or 5; four of them go down to an even code, of either sign.
TEST(SoftwareFormsControl, ComparisonCountsEveryTie) {
  if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  const SoftwareComparison comparison = compare_with_ties_away();
  EXPECT_EQ(comparison.compared, uint64_t{1} << 32);
  EXPECT_EQ(comparison.mismatches, 8u);
}

}  // namespace
}  // namespace halfulp

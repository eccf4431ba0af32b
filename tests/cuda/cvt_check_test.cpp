// The catalog's conversions on the GPU. First against the CPU: do launch, flags and compiler keep the bits, whichever
// form the GPU's code has? Then each instruction that this GPU has against its model, over every input of f32 sources
// and every register of packed ones: is the hardware what the catalog says? Not whether the model is right: CPU and GPU
// share it.

#include "cuda/cvt_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "cuda/arch/form.h"
#include "formats/ptx_cvt.h"

namespace halfulp {
namespace {

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  }
};

class EachConversion : public OnGpu, public testing::WithParamInterface<int> {
 protected:
  static int id() { return GetParam(); }
  static const PtxCvtRow& row() { return kPtxCvts[std::size_t(id())]; }
  static PtxCvt op() { return ptx_cvt(row()); }
  static CvtDomain domain() { return domain_of(op()); }
  static std::vector<CvtInputs> kinds() {
    return has_pairs(domain()) ? std::vector{CvtInputs::every, CvtInputs::pairs} : std::vector{CvtInputs::every};
  }
};

std::string text_of(const CvtInput& input) {
  std::ostringstream text;
  text << std::hex << "lowest lane first";
  for (const uint32_t source : input.sources) text << " 0x" << source;
  text << ", random word 0x" << input.word;
  return text.str();
}

TEST_P(EachConversion, GivesTheBitsOfTheCpu) {
  constexpr uint64_t kMost = 1 << 16;
  const uint64_t inputs = count_inputs(domain()), count = std::min(inputs, kMost);
  const uint32_t stride = uint32_t(inputs / count) | 1;  // odd, so that low bits vary too
  for (const CvtInputs kind : kinds()) {
    const std::vector<uint32_t> got = convert_on_gpu(id(), kind, stride, uint32_t(count));
    for (uint32_t i = 0; i < count; ++i) {
      const CvtInput input = cvt_input(domain(), kind, i * stride);
      ASSERT_EQ(convert_register(op(), input.sources, input.word), got[i]) << row().name << ": " << text_of(input);
    }
  }
}

TEST_P(EachConversion, InstructionGivesTheBitsOfItsModel) {
  for (const CvtInputs kind : kinds()) {
    const CvtComparison comparison = compare_forms(id(), kind);
    if (comparison.compared == 0) GTEST_SKIP() << "this GPU's code has no native form of " << row().name;
    EXPECT_EQ(comparison.compared, count_inputs(domain())) << row().name;
    EXPECT_EQ(comparison.mismatches, 0u) << row().name;
    for (const CvtMismatch& m : comparison.shown)
      ADD_FAILURE() << row().name << std::hex << ": 0x" << m.native << ", the model gives 0x" << m.model << ": "
                    << text_of(cvt_input(domain(), kind, m.input));
    std::cout << row().name << (kind == CvtInputs::pairs ? ", pairs: " : ": ") << comparison.compared
              << " inputs compared, " << comparison.mismatches << " mismatches\n";
  }
}

INSTANTIATE_TEST_SUITE_P(Catalog, EachConversion, testing::Range(0, int(kPtxCvts.size())), [](const auto& test) {
  std::string name(kPtxCvts[std::size_t(test.param)].name);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
});

TEST_F(OnGpu, LoadedCodeHasTheInstructionsOfItsTarget) {
  const arch::LoadedForms loaded = arch::loaded_forms();
  std::cout << loaded.target << ": " << std::ranges::count(loaded.forms, arch::Form::native) << " of "
            << kPtxCvts.size() << " conversions are instructions\n";
  ASSERT_TRUE(loaded.target.starts_with("sm_")) << loaded.target;
  for (std::size_t id = 0; id < kPtxCvts.size(); ++id) {
    const bool has = has_target(kSinces[std::size_t(kPtxCvts[id].since)].targets, loaded.target.substr(3));
    EXPECT_EQ(loaded.forms[id] == arch::Form::native, has) << kPtxCvts[id].name;
  }
}

// Every negative number has the sign in one and not in the other: 2^31 codes less the 2^23 - 1 NaNs, which agree.
TEST_F(OnGpu, ComparisonCountsEveryDifference) {
  const CvtComparison comparison = compare_with_wrong_model();
  EXPECT_EQ(comparison.compared, uint64_t{1} << 32);
  EXPECT_EQ(comparison.mismatches, (uint64_t{1} << 31) - (1 << 23) + 1);
  ASSERT_FALSE(comparison.shown.empty());
  for (const CvtMismatch& m : comparison.shown) EXPECT_EQ(m.native >> 15, 1u) << std::hex << m.input;
}

}  // namespace
}  // namespace halfulp

// The catalog's conversions on the GPU against the same on the CPU: do launch, flags and compiler keep the bits, and is
// a native instruction what its model says? Not whether the model is right: CPU and GPU share it.

#include "cuda/codec_check.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "formats/ptx_cvt.h"
#include "lib/philox.h"

namespace halfulp {
namespace {

constexpr uint32_t kRegisters = 1 << 16;

class OnGpu : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  }
};

std::vector<uint32_t> random_words(uint64_t stream, std::size_t count) {
  std::vector<uint32_t> words(count);
  for (std::size_t i = 0; i < count; ++i) words[i] = random_word(1, stream, i);
  return words;
}

void expect_same_registers(int id, CvtForm form) {
  const PtxCvt op = ptx_cvt(kPtxCvts[std::size_t(id)]);
  const std::vector<uint32_t> sources = random_words(0, kRegisters * std::size_t(op.lanes));
  const std::vector<uint32_t> words = random_words(1, kRegisters);
  const std::vector<uint32_t> got = convert_on_gpu(id, form, sources, words);
  for (uint32_t i = 0; i < kRegisters; ++i) {
    const uint32_t* source = &sources[i * std::size_t(op.lanes)];
    ASSERT_EQ(convert_register(op, source, words[i]), got[i])
        << kPtxCvts[std::size_t(id)].name << std::hex << ": lowest lane 0x" << source[0] << ", random word 0x"
        << words[i];
  }
}

TEST_P(OnGpu, ModelGivesTheBitsOfTheCpu) { expect_same_registers(GetParam(), CvtForm::model); }
TEST_P(OnGpu, NativeFormGivesTheBitsOfTheModel) {
  if (!has_native_form(GetParam())) GTEST_SKIP() << "cuda/arch has no native form that this GPU runs";
  expect_same_registers(GetParam(), CvtForm::native);
}

INSTANTIATE_TEST_SUITE_P(Catalog, OnGpu, testing::Range(0, int(kPtxCvts.size())), [](const auto& test) {
  std::string name(kPtxCvts[std::size_t(test.param)].name);
  for (char& c : name)
    if (c == '.') c = '_';
  return name;
});

}  // namespace
}  // namespace halfulp

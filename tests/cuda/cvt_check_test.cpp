// The catalog's conversions on the GPU. First against the CPU: do launch, flags and compiler keep the bits, whichever
// form the GPU's code has? Then each instruction that this GPU has against its model, over every input of f32 sources
// and every register of packed ones: is the hardware what the catalog says? Not whether the model is right: CPU and GPU
// share it. Last against what was recorded on an H200 (tests/golden/README.md), where no model takes part.

#include "cuda/cvt_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
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
    std::vector<CvtInputs> all{CvtInputs::equal, CvtInputs::every, CvtInputs::pairs};
    std::erase_if(all, [](CvtInputs kind) { return !has_inputs(op(), kind); });
    return all;
  }
};

std::string text_of(const CvtInput& input) {
  std::ostringstream text;
  text << std::hex << "lowest lane first";
  for (const uint32_t source : input.sources) text << " 0x" << source;
  text << ", random word 0x" << input.word;
  return text.str();
}

std::vector<uint32_t> every_chunk(const CvtDomain& domain, CvtInputs kind) {
  std::vector<uint32_t> chunks(count_chunks(domain, kind));
  std::iota(chunks.begin(), chunks.end(), 0u);
  return chunks;
}

uint64_t mismatches_in(const std::vector<CvtChunk>& chunks) {
  uint64_t sum = 0;
  for (const CvtChunk& chunk : chunks) sum += chunk.mismatches;
  return sum;
}

TEST_P(EachConversion, GivesTheBitsOfTheCpu) {
  constexpr uint64_t kMost = 1 << 16;
  for (const CvtInputs kind : kinds()) {
    const uint64_t inputs = count_inputs(domain(), kind), count = std::min(inputs, kMost);
    const uint32_t stride = uint32_t(inputs / count) | 1;  // odd, so that low bits vary too
    const uint32_t mask = uint32_t(low_mask(answer_bits(op(), kind)));
    const std::vector<uint32_t> got =
        convert_on_gpu(id(), kind, {.first = 0, .stride = stride, .count = uint32_t(count)});
    for (uint32_t i = 0; i < count; ++i) {
      const CvtInput input = cvt_input(domain(), kind, i * stride);
      ASSERT_EQ(convert_register(op(), input.sources, input.word) & mask, got[i])
          << row().name << ": " << text_of(input);
    }
  }
}

TEST_P(EachConversion, InstructionGivesTheBitsOfItsModel) {
  for (const CvtInputs kind : kinds()) {
    const std::vector<CvtChunk> chunks = sweep_on_gpu(id(), kind, every_chunk(domain(), kind));
    if (chunks.empty()) GTEST_SKIP() << "this GPU's code has no native form of " << row().name;
    EXPECT_EQ(mismatches_in(chunks), 0u) << row().name << "; 'halfulp record' shows them";
    std::cout << row().name << ", " << kCvtInputs[std::size_t(kind)].name << ": "
              << chunks.size() * chunk_inputs(domain(), kind) << " inputs compared, " << mismatches_in(chunks)
              << " mismatches\n";
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
  EXPECT_EQ(mismatches_in(sweep_with_wrong_model()), (uint64_t{1} << 31) - (1 << 23) + 1);
}

// The environment's folder is for a GPU's machine that has the program and not the sources where they were built.
std::string test_data() {
  const char* folder = std::getenv("HALFULP_TEST_DATA");
  return folder ? folder : HALFULP_TEST_DATA;
}

std::vector<uint64_t> numbers(const nlohmann::json& hexadecimal) {
  std::vector<uint64_t> values;
  for (const auto& text : hexadecimal) values.push_back(std::stoull(text.get<std::string>(), nullptr, 16));
  return values;
}

std::vector<uint64_t> checksums(const std::string& name) {
  const int id = find_ptx_cvt(name);
  const CvtDomain domain = domain_of(ptx_cvt(kPtxCvts[std::size_t(id)]));
  std::vector<uint64_t> sums;
  for (const CvtChunk& chunk : sweep_on_gpu(id, CvtInputs::equal, every_chunk(domain, CvtInputs::equal)))
    sums.push_back(chunk.checksum);
  return sums;
}

// Other GPUs may differ where ptxas makes other code of an instruction.
TEST_F(OnGpu, ChecksumsAreTheRecordedOnes) {
  const std::string path = test_data() + "/h200/cvt_all.json";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << ": set HALFULP_TEST_DATA to the folder tests/golden";
  const nlohmann::json recording = nlohmann::json::parse(file);
  if (arch::loaded_forms().target != recording.at("target")) GTEST_SKIP() << "recorded on another target";
  for (const auto& [name, sums] : recording.at("ops").items()) EXPECT_EQ(checksums(name), numbers(sums)) << name;
}

}  // namespace
}  // namespace halfulp

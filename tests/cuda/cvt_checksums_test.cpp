// The instructions of this GPU against what was recorded on an H200 (tests/golden/README.md): does the recorder still
// answer what the recording holds? Shares no code with the recording's script, and no model with the instructions.

#include "cuda/cvt_checksums.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cuda/arch/form.h"
#include "cuda/cvt_check.h"

namespace halfulp {
namespace {

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

// Other GPUs may differ where ptxas makes other code of an instruction.
TEST(CvtChecksums, AreTheRecordedOnes) {
  if (!has_gpu()) GTEST_SKIP() << "SKIPPED: no GPU that this build's code runs on";
  const std::string path = test_data() + "/h200/cvt_all.json";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path << ": set HALFULP_TEST_DATA to the folder tests/golden";
  const nlohmann::json recording = nlohmann::json::parse(file);
  if (arch::loaded_forms().target != recording.at("target")) GTEST_SKIP() << "recorded on another target";
  for (const auto& [name, checksums] : recording.at("ops").items())
    EXPECT_EQ(instruction_checksums(find_ptx_cvt(name)), numbers(checksums)) << name;
}

}  // namespace
}  // namespace halfulp

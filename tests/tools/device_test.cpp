// --device of the verbs that compute recipes, with a GPU that a test can see (fake_gpu.cpp): is it asked, and is
// nothing computed elsewhere? Not what a GPU's kernels give. HALFULP_PROGRAM is that program here.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/json.h"
#include "tests/lib/test_files.h"
#include "tests/tools/npy_bytes.h"
#include "tests/tools/run_program.h"

namespace halfulp {
namespace {

class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<float> x(64);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 7) - 3;
    write_file(floats_, npy_vector("<f4", x));
    write_file(doubles_, npy_vector("<f8", std::vector<double>(64, 1)));
  }

  ProgramRun quantize(const std::string& device, const std::string& output) {
    return run_halfulp({"quantize", floats_, "-r", "mxfp8/te", "-o", folder_ / output, "--device", device});
  }
  ProgramRun error(const std::string& file, const std::string& recipe, const std::string& device) {
    return run_halfulp({"error", file, "-r", recipe, "--json", "--device", device});
  }

  TemporaryDirectory folder_;
  std::string floats_ = folder_ / "w.npy", doubles_ = folder_ / "d.npy";
};

// The GPU of this program changes the lowest bit of the first code.
TEST_F(OnDevice, QuantizeWritesWhatTheDeviceComputed) {
  ASSERT_EQ(quantize("cpu", "c.safetensors").exit_code, 0);
  ASSERT_EQ(quantize("cuda:0", "g.safetensors").exit_code, 0);
  const std::string cpu = read_file(folder_ / "c.safetensors"), gpu = read_file(folder_ / "g.safetensors");
  ASSERT_EQ(cpu.size(), gpu.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < cpu.size(); ++i) different += cpu[i] != gpu[i];
  EXPECT_EQ(different, 1u);
}

TEST_F(OnDevice, ErrorMeasuresWhatTheDeviceComputed) {
  const ProgramRun cpu = error(floats_, "mxfp8/te", "cpu"), gpu = error(floats_, "mxfp8/te", "cuda:0");
  ASSERT_EQ(cpu.exit_code, 0) << cpu.err;
  ASSERT_EQ(gpu.exit_code, 0) << gpu.err;
  EXPECT_GT(Json::parse(gpu.out)["results"][0]["rel_mse"], Json::parse(cpu.out)["results"][0]["rel_mse"]);
}

// The GPU of this program tells every element as clipped.
TEST_F(OnDevice, ErrorAddsUpOnTheDevice) {
  EXPECT_EQ(Json::parse(error(floats_, "mxfp8/te", "cpu").out)["results"][0]["clipped"], 0.0);
  EXPECT_EQ(Json::parse(error(floats_, "mxfp8/te", "cuda:0").out)["results"][0]["clipped"], 1.0);
}

// The GPU of this program changes the lowest bit of the first output.
TEST_F(OnDevice, MmaMultipliesOnTheDevice) {
  const std::string a = folder_ / "a.npy";
  write_file(a, npy_file("<f4", "(8, 8)", raw_bytes(std::vector<float>(64, 1))));
  const auto multiply = [&](const std::string& accumulator, const std::string& device) {
    return run_halfulp({"mma", a, a, "-a", accumulator, "--a-format", "bf16", "--b-format", "bf16", "-o",
                        folder_ / (device.substr(0, 3) + ".npy"), "--device", device});
  };
  ASSERT_EQ(multiply("sm90.hmma.f32", "cpu").exit_code, 0);
  const ProgramRun gpu = multiply("sm90.hmma.f32", "cuda:0");
  ASSERT_EQ(gpu.exit_code, 0) << gpu.err;
  EXPECT_NE(gpu.err.find("cuda:0 (Fake GPU, sm_100a): sm90.hmma.f32 by its model"), std::string::npos) << gpu.err;
  const std::string by_cpu = read_file(folder_ / "cpu.npy"), by_gpu = read_file(folder_ / "cud.npy");
  ASSERT_EQ(by_cpu.size(), by_gpu.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < by_cpu.size(); ++i) different += by_cpu[i] != by_gpu[i];
  EXPECT_EQ(different, 1u);
  EXPECT_EQ(multiply("ref.fp64", "cuda:0").exit_code, 2);
}

TEST_F(OnDevice, SaysWhichDeviceAndHow) {
  EXPECT_NE(error(floats_, "mxfp8/te", "cuda:0").err.find("cuda:0 (Fake GPU, sm_100a): mxfp8/te by the test"),
            std::string::npos);
  EXPECT_EQ(error(floats_, "mxfp8/te", "cpu").err.find("Fake GPU"), std::string::npos);
}

// The CPU could do it, and is not asked.
TEST_F(OnDevice, TooLittleMemoryEndsItWithoutAFile) {
  const ProgramRun run =
      run_halfulp({"quantize", floats_, "-r", "mxfp8/te", "-o", folder_ / "q.safetensors", "--device", "cuda:0"},
                  {.environment = {"HALFULP_GPU_LACKS=memory"}});
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_NE(run.err.find("256 bytes were asked for, 16 bytes of 32 bytes are free"), std::string::npos) << run.err;
  EXPECT_EQ(folder_.file_count(), 2u) << "the inputs";
}

TEST_F(OnDevice, TooOldADriverEndsItAndDoctorSaysWhy) {
  const RunOptions old{.environment = {"HALFULP_GPU_LACKS=driver"}};
  const ProgramRun run = run_halfulp({"error", floats_, "-r", "mxfp8/te", "--device", "cuda:0"}, old);
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_EQ(run.out, "");
  const std::string problem = "the NVIDIA driver is too old: it supports CUDA 12.4, and this build needs 13.0";
  EXPECT_NE(run.err.find(problem), std::string::npos) << run.err;
  const ProgramRun doctor = run_halfulp({"doctor", "--json"}, old);
  EXPECT_EQ(doctor.exit_code, 0);
  EXPECT_TRUE(Json::parse(doctor.out)["devices"][0]["problem"].get<std::string>().starts_with(problem)) << doctor.out;
}

TEST_F(OnDevice, WhatItDoesNotTakeIsRefused) {
  const ProgramRun run = error(doubles_, "bf16", "cuda:0");
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("d.npy"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("F64 elements are computed on the CPU only; use --device cpu"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace halfulp

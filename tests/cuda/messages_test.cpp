// What a user is told where a GPU cannot be used, with the runtime's answers made up: no machine has all of these.

#include "cuda/messages.h"

#include <gtest/gtest.h>

namespace halfulp {
namespace {

TEST(NoGpu, WithoutADriver) {
  EXPECT_EQ(no_gpu_text({.driver = 0, .runtime = 13000, .driver_is_too_old = true, .error = "?"}),
            "no GPU: this machine has no NVIDIA driver");
}

TEST(NoGpu, WithTooOldADriverSaysBothVersions) {
  EXPECT_EQ(no_gpu_text({.driver = 12040, .runtime = 13000, .driver_is_too_old = true, .error = "?"}),
            "the NVIDIA driver is too old: it supports CUDA 12.4, and this build needs 13.0; update the driver");
}

TEST(NoGpu, OtherwiseSaysWhatTheRuntimeSays) {
  EXPECT_EQ(no_gpu_text({.driver = 13000,
                         .runtime = 13000,
                         .driver_is_too_old = false,
                         .error = "no CUDA-capable device is detected"}),
            "no GPU that can be used: no CUDA-capable device is detected");
}

TEST(NoCode, NamesTheTargetToBuildFor) {
  EXPECT_EQ(no_code_text({.gpu = "NVIDIA GB10", .major = 12, .minor = 1, .targets = "sm_80, sm_90a"}),
            "NVIDIA GB10 (compute capability 12.1): this build has code for sm_80, sm_90a only; configure with "
            "-DCMAKE_CUDA_ARCHITECTURES=121a-real");
}

TEST(NoCode, OfAnOlderGpuHasNoVariant) {
  const std::string text = no_code_text({.gpu = "Tesla T4", .major = 7, .minor = 5, .targets = "sm_80"});
  EXPECT_TRUE(text.ends_with("-DCMAKE_CUDA_ARCHITECTURES=75-real")) << text;
}

TEST(OutOfMemory, SaysWhatWasAskedForAndWhatThereIs) {
  EXPECT_EQ(out_of_memory_text(uint64_t{200} << 30, 1023, uint64_t{150} << 30),
            "the GPU's memory is too small: 214748364800 bytes (200.0 GiB) were asked for, 1023 bytes of 161061273600 "
            "bytes (150.0 GiB) are free; end what else uses the GPU, or compute on the CPU (--device cpu)");
}

TEST(Misaligned, SaysWhichPointerLiesWhere) {
  EXPECT_EQ(misaligned_text("codes", 0x7f00'0000'0014, 16),
            "codes lies at 0x7f0000000014, 4 bytes past a multiple of 16");
  EXPECT_EQ(misaligned_text("x", 0x11, 4), "x lies at 0x11, 1 byte past a multiple of 4");
}

}  // namespace
}  // namespace halfulp

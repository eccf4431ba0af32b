// Kernels in recordings end to end without a GPU: a fake device computes, its bytes are checksummed, read back and
// compared with the CPU's. That the CPU is right is asked elsewhere.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "emulation/recordings/kernel_name.h"
#include "emulation/recordings/kernels.h"
#include "emulation/recordings/record.h"
#include "formats/catalog.h"
#include "lib/splitmix.h"
#include "tests/emulation/fake_device.h"
#include "tests/lib/test_files.h"

namespace halfulp {
namespace {

constexpr uint64_t kElements = kKernelChunk.rows * kKernelChunk.cols;

const Recipe& kernel_named(std::string_view name) {
  return *std::ranges::find(kFakeBackend.kernels, name, [](const Recipe& recipe) { return recipe.name; });
}

class RecordedKernels : public testing::Test {
 protected:
  ~RecordedKernels() override { wrong_kernel() = {}; }

  // Eight chunks, which have every kind of element.
  static Recording record(const Recipe& recipe, Dtype dtype) {
    Recording recording = begin_recording(kFakeBackend.open(0), "test");
    record_kernel(kFakeBackend, recipe, dtype, kernel_elements(dtype, 0, kQuickKernelChunks * kElements), 2, recording);
    return recording;
  }

  // Through the file.
  Recording stored(const Recording& recording) {
    write_file(folder_ / "r.json", recording_text(recording));
    return read_recording(folder_ / "r.json");
  }

  static KernelReplay replayed(const Recording& recording, const Recipe& recipe, int threads = 2) {
    KernelReplay replay{.recorded = &recording.kernels.at(0), .recipe = &recipe};
    replay_kernels(std::span(&replay, 1), threads, [](uint64_t) {});
    return replay;
  }

  // One bit of the codes of one element.
  static void break_kernel(std::string_view recipe, uint64_t byte) {
    wrong_kernel() = {recipe, [=](const KernelMatrix&, std::span<std::byte> codes, std::span<std::byte>) {
                        codes[byte] ^= std::byte{1};
                      }};
  }

  TemporaryDirectory folder_;
};

TEST_F(RecordedKernels, OfTheCpuAgreeWithIt) {
  for (const Recipe& recipe : kFakeBackend.kernels) {
    for (const Dtype dtype : kKernelDtypes) {
      const Recording recording = stored(record(recipe, dtype));
      EXPECT_EQ(recording.kernels.at(0).mismatches, 0u) << recipe.name;
      EXPECT_TRUE(replayed(recording, recipe).agrees()) << recipe.name << " " << row(dtype).name;
    }
  }
}

TEST_F(RecordedKernels, SurviveTheirFile) {
  break_kernel("nvfp4/te", 40000);
  const Recording recording = record(kernel_named("nvfp4/te"), Dtype::f16);
  EXPECT_EQ(recording_text(stored(recording)), recording_text(recording));
}

TEST_F(RecordedKernels, CountAndKeepTheRunsThatTheCpuMakesOtherwise) {
  break_kernel("nvfp4/te", 40000);  // of chunk 1, which has 32768 bytes of codes
  const RecordedKernel kernel = record(kernel_named("nvfp4/te"), Dtype::bf16).kernels.at(0);
  EXPECT_EQ(kernel.mismatches, 1u);
  ASSERT_EQ(kernel.differing.size(), 1u);
  EXPECT_EQ(kernel.differing[0].run, 40000u / 8);
}

TEST_F(RecordedKernels, ReplayFindsOneWrongBit) {
  break_kernel("nvfp4/te", 40000);
  const Recipe& recipe = kernel_named("nvfp4/te");
  const Recording recording = stored(record(recipe, Dtype::bf16));
  const KernelReplay replay = replayed(recording, recipe);
  EXPECT_EQ(replay.wrong_chunks, std::vector<uint32_t>{1});
  ASSERT_EQ(replay.wrong_runs.size(), 1u);
  const auto& [recorded, model] = replay.wrong_runs[0];
  EXPECT_EQ(recorded.codes[0] ^ model.codes[0], 1u);
  EXPECT_EQ(std::vector(recorded.codes.begin() + 1, recorded.codes.end()),
            std::vector(model.codes.begin() + 1, model.codes.end()));
}

TEST_F(RecordedKernels, ReplayFindsAWrongScale) {
  wrong_kernel() = {"nvfp4/te-2d", [](const KernelMatrix&, std::span<std::byte>, std::span<std::byte> scales) {
                      scales[5] ^= std::byte{4};
                    }};
  const Recipe& recipe = kernel_named("nvfp4/te-2d");
  const Recording recording = stored(record(recipe, Dtype::f32));
  EXPECT_EQ(recording.kernels[0].mismatches, 16u) << "the rows of a tile";
  const KernelReplay replay = replayed(recording, recipe);
  EXPECT_EQ(replay.wrong_chunks, std::vector<uint32_t>{0});
  ASSERT_EQ(replay.wrong_runs.size(), 1u);
  EXPECT_EQ(replay.wrong_runs[0].recorded.run, 5u);
  EXPECT_EQ(replay.wrong_runs[0].recorded.scale ^ replay.wrong_runs[0].model.scale, 4u);
}

TEST_F(RecordedKernels, ReplayFindsAWrongChecksumWithoutRuns) {
  const Recipe& recipe = kernel_named("bf16");
  Recording recording = record(recipe, Dtype::f32);
  recording.kernels[0].chunks[6].codes ^= 1;
  const KernelReplay replay = replayed(recording, recipe);
  EXPECT_EQ(replay.wrong_chunks, std::vector<uint32_t>{6});
  EXPECT_TRUE(replay.wrong_runs.empty());
}

TEST_F(RecordedKernels, ReplayGivesTheSameForAnyNumberOfThreads) {
  const Recipe& recipe = kernel_named("nvfp4/te");
  Recording recording = record(recipe, Dtype::f32);
  for (KernelChunk& chunk : recording.kernels[0].chunks) chunk.scales ^= 1;
  EXPECT_EQ(replayed(recording, recipe, 7).wrong_chunks, (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(RecordedKernels, OfSomeChunksDoNotStandForAll) {
  const Recording recording = record(kernel_named("bf16"), Dtype::f32);
  EXPECT_TRUE(has_kernel(recording, "bf16", Dtype::f32, kQuickKernelChunks));
  EXPECT_FALSE(has_kernel(recording, "bf16", Dtype::f32, kKernelChunks));
  EXPECT_FALSE(has_kernel(recording, "bf16", Dtype::f16, kQuickKernelChunks));
}

TEST_F(RecordedKernels, ReplaceAKernelThatIsRecordedAgain) {
  Recording recording = record(kernel_named("bf16"), Dtype::f32);
  record_kernel(kFakeBackend, kernel_named("bf16"), Dtype::f32, kernel_elements(Dtype::f32, 0, kElements), 1,
                recording);
  ASSERT_EQ(recording.kernels.size(), 1u);
  EXPECT_EQ(recording.kernels[0].chunks.size(), 1u);
}

TEST(StatedName, OfARowIsItsOwn) { EXPECT_EQ(stated_name(recipe_named("nvfp4/te")), "nvfp4/te"); }

TEST(StatedName, HasTheFieldsThatAreChanged) {
  EXPECT_EQ(stated_name(kernel_named("nvfp4/te")), "nvfp4/te+rounding=stochastic+random=te");
}

// What an element is: bits in memory order, whatever the machine.
uint32_t bits_at(Dtype dtype, uint64_t i) {
  uint32_t bits = 0;
  const std::vector<std::byte> bytes = kernel_elements(dtype, i, 1);
  for (std::size_t k = 0; k < bytes.size(); ++k) bits |= uint32_t(bytes[k]) << 8 * k;
  return bits;
}

// The file says so in words; an element of each kind, by the words.
TEST(KernelElements, AreWhatTheFileSaysInWords) {
  const auto r = [](uint64_t i) { return splitmix64(i); };
  const auto g = [](uint64_t i) { return splitmix64((uint64_t{1} << 63) + i / 16); };
  const auto zeros = [&](uint64_t i) { return uint64_t(std::countr_zero(r(i) >> 23 | uint64_t{1} << 40)); };
  const auto number = [&](uint64_t i, uint64_t e) {  // F32
    return uint32_t(r(i) >> 63 << 31 | (e > zeros(i) ? e - zeros(i) : 0) << 23 | r(i) % (1 << 23));
  };
  for (const uint64_t n : {0, 17, 4711, 65535, 524288 + 77}) {
    const auto in = [&](uint64_t kind) { return kind * kElements + n; };
    EXPECT_EQ(bits_at(Dtype::f32, in(0)), number(in(0), 128));
    EXPECT_EQ(bits_at(Dtype::f32, in(1)), number(in(1), 127 - 8 + g(in(1)) % 17));
    EXPECT_EQ(bits_at(Dtype::f32, in(4)), uint32_t(r(in(4))));
    EXPECT_EQ(bits_at(Dtype::bf16, in(4)), uint32_t(r(in(4)) & 0xffff));
    EXPECT_EQ(bits_at(Dtype::f32, in(5)), number(in(5), g(in(5)) % 24));
    EXPECT_EQ(bits_at(Dtype::f32, in(7)), number(in(7), 254 - g(in(7)) % 8));
  }
}

TEST(KernelElements, DoNotDependOnWhereAPartBegins) {
  const std::vector<std::byte> all = kernel_elements(Dtype::f16, 0, 8 * kElements);
  const std::vector<std::byte> part = kernel_elements(Dtype::f16, 6 * kElements + 48, 1000);
  EXPECT_TRUE(std::ranges::equal(part, std::span(all).subspan(2 * (6 * kElements + 48), part.size())));
}

// Of 2^19 elements: every class of number, in every dtype.
TEST(KernelElements, HaveEveryKindOfNumber) {
  for (const Dtype dtype : kKernelDtypes) {
    const char* name = dtype == Dtype::f32 ? "f32" : dtype == Dtype::f16 ? "f16" : "bf16";
    const Format format = kFormats[std::size_t(find_format(name))].format;
    std::map<std::string, int> count;
    const std::vector<std::byte> bytes = kernel_elements(dtype, 0, 8 * kElements);
    const std::size_t size = bytes.size() / (8 * kElements);
    for (std::size_t i = 0; i < 8 * kElements; ++i) {
      uint32_t bits = 0;
      for (std::size_t k = 0; k < size; ++k) bits |= uint32_t(bytes[i * size + k]) << 8 * k;
      const uint32_t magnitude = bits & format.magnitude_mask(), infinity = format.max_code() + 1;
      ++count[magnitude == 0                ? "zero"
              : magnitude < format.hidden() ? "subnormal"
              : magnitude < infinity        ? "normal"
              : magnitude == infinity       ? "infinity"
                                            : "NaN"];
      count["negative"] += bits != magnitude;
    }
    for (const char* kind : {"zero", "subnormal", "infinity", "NaN"})
      EXPECT_GT(count[kind], 500) << kind << " of " << row(dtype).name;
    EXPECT_GT(count["normal"], int(4 * kElements));
    EXPECT_GT(count["negative"], int(2 * kElements));
  }
}

TEST(BytesChecksum, IsTheSumOverWordsTheLastFilledUp) {
  const std::vector<std::byte> bytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{0xff}};
  EXPECT_EQ(bytes_checksum(bytes), splitmix64(0x0403'0201) + splitmix64(uint64_t{1} << 32 | 0xff));
  EXPECT_EQ(bytes_checksum({}), 0u);
}

}  // namespace
}  // namespace halfulp

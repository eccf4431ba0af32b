#include "lib/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test_files.h"

namespace halfulp {
namespace {

// Of this process, in bytes: the pages of mapped files that are resident.
uint64_t resident_file_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kibibytes = 0;
    if (word == "RssFile:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

TEST(MappedFile, ShowsTheBytes) {
  const TemporaryDirectory directory;
  write_file(directory / "x", "abc");
  EXPECT_EQ(text_of(MappedFile(directory / "x").bytes()), "abc");
}

TEST(MappedFile, EmptyFileIsAnEmptySpan) {
  const TemporaryDirectory directory;
  write_file(directory / "x", "");
  EXPECT_TRUE(MappedFile(directory / "x").bytes().empty());
}

TEST(MappedFile, MissingFileIsBadInput) {
  const CaughtError error = error_of([] { MappedFile("/nonexistent/x"); });
  EXPECT_EQ(error.code, ExitCode::bad_input);
  EXPECT_EQ(error.text, "/nonexistent/x: cannot be opened: No such file or directory");
}

TEST(MappedFile, DirectoryIsBadInput) {
  const TemporaryDirectory directory;
  const CaughtError error = error_of([&] { MappedFile{directory.path()}; });
  EXPECT_EQ(error.code, ExitCode::bad_input);
  EXPECT_NE(error.text.find("is a directory"), std::string::npos) << error.text;
}

TEST(MappedFile, PipeIsBadInputAndIsNotWaitedFor) {
  const TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  const CaughtError error = error_of([&] { MappedFile(directory / "pipe"); });
  EXPECT_EQ(error.code, ExitCode::bad_input);
  EXPECT_NE(error.text.find("is a pipe"), std::string::npos) << error.text;
}

TEST(MappedFile, ReleaseBoundsWhatIsResident) {
  constexpr uint64_t kChunk = 1 << 20, kSize = 64 * kChunk;
  const TemporaryDirectory directory;
  write_file(directory / "x", std::string(kSize, 'x'));
  const MappedFile file(directory / "x");
  const uint64_t before = resident_file_bytes();
  uint64_t most = 0, sum = 0;
  for (uint64_t begin = 0; begin < kSize; begin += kChunk + 1) {  // chunks that end inside a page
    for (std::byte byte : file.bytes().subspan(begin, std::min(kChunk + 1, kSize - begin))) sum += uint64_t(byte);
    most = std::max(most, resident_file_bytes());
    file.release(begin, kChunk + 1);
  }
  EXPECT_EQ(sum, kSize * 'x');
  EXPECT_GE(most, before + kChunk / 2);  // the measure sees the chunk
  EXPECT_LE(most, before + kSize / 4);   // a fault maps up to a large folio around it
}

TEST(MappedFile, ReleasedBytesCanBeReadAgain) {
  const TemporaryDirectory directory;
  write_file(directory / "x", std::string(20'000, 'x'));
  const MappedFile file(directory / "x");
  file.release(0, 20'000);
  EXPECT_EQ(text_of(file.bytes()), std::string(20'000, 'x'));
}

TEST(MappedFile, ReleaseBeyondTheEndIsHarmless) {
  const TemporaryDirectory directory;
  write_file(directory / "x", "abc");
  const MappedFile file(directory / "x");
  file.release(1, ~uint64_t{0});
  file.release(10, 1);
  EXPECT_EQ(text_of(file.bytes()), "abc");
}

}  // namespace
}  // namespace halfulp

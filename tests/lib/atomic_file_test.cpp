#include "lib/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "tests/lib/test_files.h"

namespace halfulp {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat status = {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode;
}

// Runs `body` in another process and returns its exit status.
int in_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The same, never as root: root may write any file, and could replace a device by a mistaken rename.
int in_child_of_ordinary_user(const TemporaryDirectory& directory, const std::function<void()>& body) {
  constexpr uid_t kNobody = 65534;
  return in_child([&] {
    const bool is_root = ::geteuid() == 0;
    if (is_root && (::chown(directory.path().c_str(), kNobody, kNobody) != 0 || ::setuid(kNobody) != 0)) ::_exit(1);
    body();
  });
}

void write_whole(const std::string& path, const std::string& content) {
  AtomicFile file(path);
  file.write(bytes_of(content));
  file.commit();
}

TEST(AtomicFile, CommitMakesTheFile) {
  const TemporaryDirectory directory;
  write_whole(directory / "x", "abc");
  EXPECT_EQ(read_file(directory / "x"), "abc");
  EXPECT_EQ(directory.file_count(), 1u);
}

TEST(AtomicFile, NothingUnderItsNameBeforeCommit) {
  const TemporaryDirectory directory;
  AtomicFile file(directory / "x");
  file.write(bytes_of("abc"));
  EXPECT_FALSE(std::filesystem::exists(directory / "x"));
}

TEST(AtomicFile, OldContentStaysUntilCommit) {
  const TemporaryDirectory directory;
  write_file(directory / "x", "old");
  AtomicFile file(directory / "x");
  file.write(bytes_of("new"));
  EXPECT_EQ(read_file(directory / "x"), "old");
  file.commit();
  EXPECT_EQ(read_file(directory / "x"), "new");
}

TEST(AtomicFile, WithoutCommitNothingIsLeft) {
  const TemporaryDirectory directory;
  { AtomicFile(directory / "x").write(bytes_of("abc")); }
  EXPECT_EQ(directory.file_count(), 0u);
}

TEST(AtomicFile, ThreadsWriteDisjointRanges) {
  const TemporaryDirectory directory;
  AtomicFile file(directory / "x");
  std::vector<std::thread> threads;
  for (int i = 7; i >= 0; --i) {
    threads.emplace_back([&file, i] { file.write_at(uint64_t(i) * 1000, bytes_of(std::string(1000, char('a' + i)))); });
  }
  for (std::thread& thread : threads) thread.join();
  file.commit();
  std::string expected;
  for (int i = 0; i < 8; ++i) expected += std::string(1000, char('a' + i));
  EXPECT_EQ(read_file(directory / "x"), expected);
}

TEST(AtomicFile, NewFileHasTheModeOfTheUmask) {
  const TemporaryDirectory directory;
  const mode_t before = ::umask(027);
  write_whole(directory / "x", "");
  ::umask(before);
  EXPECT_EQ(mode_of(directory / "x") & 07777, 0640u);
}

TEST(AtomicFile, ReplacedFileKeepsItsMode) {
  const TemporaryDirectory directory;
  write_file(directory / "x", "old");
  ASSERT_EQ(::chmod((directory / "x").c_str(), 0604), 0);
  write_whole(directory / "x", "new");
  EXPECT_EQ(mode_of(directory / "x") & 07777, 0604u);
}

TEST(AtomicFile, LinkStaysALink) {
  const TemporaryDirectory directory;
  write_file(directory / "real", "old");
  std::filesystem::create_symlink("real", directory / "link");
  write_whole(directory / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "link"));
  EXPECT_EQ(read_file(directory / "real"), "new");
}

TEST(AtomicFile, LinkToNothingStaysALink) {
  const TemporaryDirectory directory;
  std::filesystem::create_symlink("real", directory / "link");
  write_whole(directory / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(directory / "link"));
  EXPECT_EQ(read_file(directory / "real"), "new");
}

TEST(AtomicFile, LongNameIsWritten) {
  const TemporaryDirectory directory;
  const std::string name(255, 'n');
  write_whole(directory / name, "new");
  EXPECT_EQ(read_file(directory / name), "new");
}

TEST(AtomicFile, NoNameAndDashAreUsageErrors) {
  for (const char* name : {"", "-"}) EXPECT_EQ(error_of([&] { AtomicFile file(name); }).code, ExitCode::usage);
}

TEST(AtomicFile, MissingDirectoryIsAnEnvironmentError) {
  const CaughtError error = error_of([] { AtomicFile("/nonexistent/x"); });
  EXPECT_EQ(error.code, ExitCode::environment);
  EXPECT_NE(error.text.find("/nonexistent/x: cannot be created: No such file or directory"), std::string::npos)
      << error.text;
}

TEST(AtomicFile, DirectoryIsRefused) {
  const TemporaryDirectory directory;
  EXPECT_EQ(error_of([&] { AtomicFile{directory.path()}; }).code, ExitCode::environment);
}

TEST(AtomicFile, FileThatMayNotBeWrittenIsNotReplaced) {
  const TemporaryDirectory directory;
  write_file(directory / "x", "old");
  ASSERT_EQ(::chmod((directory / "x").c_str(), 0444), 0);
  const int status = in_child_of_ordinary_user(directory, [&] {
    const CaughtError error = error_of([&] { write_whole(directory / "x", "new"); });
    ::_exit(int(error.code));
  });
  EXPECT_EQ(status, int(ExitCode::environment));
  EXPECT_EQ(read_file(directory / "x"), "old");
}

TEST(AtomicFile, FullDeviceIsAnEnvironmentError) {
  const TemporaryDirectory directory;
  const int status = in_child_of_ordinary_user(directory, [] {
    const CaughtError error = error_of([] { write_whole("/dev/full", "abc"); });
    const bool has_words = error.text.starts_with("/dev/full: cannot be written: No space left on device");
    ::_exit(has_words ? int(error.code) : 1);
  });
  EXPECT_EQ(status, int(ExitCode::environment));
}

TEST(AtomicFile, FullDiskIsAnEnvironmentErrorAndLeavesNothing) {
  const TemporaryDirectory directory;
  if (::mount("none", directory.path().c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "mounting needs root";
  write_file(directory / "x", "old");
  const CaughtError error = error_of([&] { write_whole(directory / "x", std::string(1 << 20, 'x')); });
  EXPECT_EQ(error.code, ExitCode::environment);
  EXPECT_NE(error.text.find("No space left on device"), std::string::npos) << error.text;
  EXPECT_EQ(directory.file_count(), 1u);
  EXPECT_EQ(read_file(directory / "x"), "old");
  EXPECT_EQ(::umount(directory.path().c_str()), 0);
}

// A pipe that never blocks: it is open at both ends.
class OpenPipe {
 public:
  explicit OpenPipe(const std::string& path) {
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    descriptor_ = ::open(path.c_str(), O_RDWR | O_NONBLOCK);
  }
  OpenPipe(const OpenPipe&) = delete;
  OpenPipe& operator=(const OpenPipe&) = delete;
  ~OpenPipe() { ::close(descriptor_); }

  std::string content() const {
    char buffer[100];
    const ssize_t count = ::read(descriptor_, buffer, sizeof buffer);
    return {buffer, size_t(std::max<ssize_t>(count, 0))};
  }

 private:
  int descriptor_;
};

TEST(AtomicFile, PipeIsWrittenDirectly) {
  const TemporaryDirectory directory;
  const OpenPipe pipe(directory / "pipe");
  write_whole(directory / "pipe", "abc");
  EXPECT_EQ(pipe.content(), "abc");
  EXPECT_TRUE(S_ISFIFO(mode_of(directory / "pipe")));
}

TEST(AtomicFile, PipeRefusesOffsets) {
  const TemporaryDirectory directory;
  const OpenPipe pipe(directory / "pipe");
  const CaughtError error = error_of([&] { AtomicFile(directory / "pipe").write_at(0, bytes_of("abc")); });
  EXPECT_EQ(error.code, ExitCode::environment);
  EXPECT_NE(error.text.find("A pipe takes bytes in order only"), std::string::npos) << error.text;
}

TEST(AtomicFile, StandardOutputContinuesWhereItStands) {
  const TemporaryDirectory directory;
  EXPECT_EQ(in_child([&] {
              const int file = ::open((directory / "x").c_str(), O_WRONLY | O_CREAT, 0600);
              if (::dup2(file, STDOUT_FILENO) < 0 || ::write(STDOUT_FILENO, "before ", 7) != 7) ::_exit(1);
              AtomicFile out("/dev/stdout");
              out.write_at(0, bytes_of("at offset"));
              out.commit();
            }),
            0);
  EXPECT_EQ(read_file(directory / "x"), "before at offset");
}

TEST(AtomicFile, SignalHandlerRemovesUnfinishedFiles) {
  const TemporaryDirectory directory;
  EXPECT_EQ(in_child([&] {
              ::signal(SIGTERM, [](int) {
                remove_unfinished_files();
                ::_exit(130);
              });
              AtomicFile file(directory / "x");
              file.write(bytes_of("abc"));
              ::raise(SIGTERM);
            }),
            130);
  EXPECT_EQ(directory.file_count(), 0u);
}

TEST(AtomicFile, SignalHandlerLeavesCommittedFiles) {
  const TemporaryDirectory directory;
  write_whole(directory / "x", "abc");
  remove_unfinished_files();
  EXPECT_EQ(read_file(directory / "x"), "abc");
}

TEST(AtomicFile, PlacesForUnfinishedFilesAreReused) {
  const TemporaryDirectory directory;
  for (int i = 0; i < 200; ++i) write_whole(directory / "x", "abc");
  EXPECT_EQ(directory.file_count(), 1u);
}

}  // namespace
}  // namespace halfulp

#include "lib/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "lib/error.h"

namespace halfulp {

namespace fs = std::filesystem;

namespace {

// What a signal handler can see of the unfinished files: fixed memory, no locks.
enum class Slot : int { free, filling, armed, removing };

struct Unfinished {
  std::atomic<Slot> state = Slot::free;
  char path[PATH_MAX];
};
static_assert(std::atomic<Slot>::is_always_lock_free);

std::array<Unfinished, 64> unfinished;

int arm(const std::string& path) {
  if (path.size() >= PATH_MAX) throw EnvironmentError(path + ": cannot be created: the path is too long");
  for (size_t i = 0; i < unfinished.size(); ++i) {
    Slot expected = Slot::free;
    if (!unfinished[i].state.compare_exchange_strong(expected, Slot::filling)) continue;
    std::memcpy(unfinished[i].path, path.c_str(), path.size() + 1);
    unfinished[i].state = Slot::armed;
    return int(i);
  }
  throw Error(ExitCode::internal, path + ": more than 64 output files at a time");
}

void disarm(int slot) {
  Slot expected = Slot::armed;
  unfinished[size_t(slot)].state.compare_exchange_strong(expected, Slot::free);
}

std::string random_suffix() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::array<unsigned char, 6> bytes = {};
  if (::getrandom(bytes.data(), bytes.size(), 0) != ssize_t(bytes.size())) throw EnvironmentError("no random bytes");
  std::string suffix;
  for (unsigned char byte : bytes) suffix += kLetters[byte % kLetters.size()];
  return suffix;
}

// The descriptor that a path such as /dev/stdout stands for. Opening the path instead would begin a redirected file
// anew at offset 0.
std::optional<int> inherited_descriptor(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = 0;
    const char* end = path.data() + path.size();
    const auto [stop, error] = std::from_chars(path.data() + folder.size(), end, number);
    if (error == std::errc() && stop == end) return number;
  }
  return std::nullopt;
}

// Of the target's name in the temporary one, so that this one is not too long where that one is not (255 bytes).
constexpr size_t kLongestStem = 200;

// What is to be written: a link's target, which need not exist. A loop is left to fail when it is opened.
std::string follow_links(const std::string& path) {
  fs::path followed = path;
  std::error_code error;
  for (int links = 0; links < 40 && fs::is_symlink(fs::symlink_status(followed, error)); ++links)
    followed = followed.parent_path() / fs::read_symlink(followed, error);
  return followed.string();
}

bool write_all(int descriptor, std::span<const std::byte> bytes, std::optional<uint64_t> offset) {
  while (!bytes.empty()) {
    const ssize_t count = offset ? ::pwrite(descriptor, bytes.data(), bytes.size(), off_t(*offset))
                                 : ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes = bytes.subspan(size_t(count));
    if (offset) *offset += uint64_t(count);
  }
  return true;
}

}  // namespace

void remove_unfinished_files() noexcept {
  for (Unfinished& file : unfinished) {
    Slot expected = Slot::armed;
    if (file.state.compare_exchange_strong(expected, Slot::removing)) ::unlink(file.path);
  }
}

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(follow_links(path)) {
  if (path.empty()) throw UsageError("the output file has no name");
  if (path == "-") throw UsageError("the output file '-' would be called so; to write to stdout say /dev/stdout");
  if (const auto inherited = inherited_descriptor(path)) {
    descriptor_ = ::fcntl(*inherited, F_DUPFD_CLOEXEC, 0);
    check(descriptor_ >= 0, "cannot be opened");
    if (::fcntl(descriptor_, F_GETFL) & O_APPEND)
      throw EnvironmentError(path_ + ": is open for appending, where pieces cannot be put in their places; use '>'");
    const off_t position = ::lseek(descriptor_, 0, SEEK_CUR);
    base_ = position < 0 ? 0 : uint64_t(position);
    return;
  }
  struct stat status = {};
  const bool exists = ::stat(target_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) throw EnvironmentError(path_ + ": is a directory; give the name of a file");
  if (!exists || S_ISREG(status.st_mode)) {
    open_beside();
    return;
  }
  descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
  check(descriptor_ >= 0, "cannot be opened");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (slot_ < 0) return;
  ::unlink(temporary_.c_str());
  disarm(slot_);
}

void AtomicFile::open_beside() {
  // A file that may not be written may not be replaced either.
  check(::access(target_.c_str(), F_OK) != 0 || ::access(target_.c_str(), W_OK) == 0, "cannot be written");
  const fs::path target = target_;
  do {
    if (slot_ >= 0) disarm(slot_);
    const std::string stem = target.filename().string().substr(0, kLongestStem);
    const std::string name = fmt::format(".{}.halfulp-{}", stem, random_suffix());
    temporary_ = (target.parent_path() / name).string();
    slot_ = arm(temporary_);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ >= 0) return;
  const int error = errno;
  disarm(slot_);
  errno = error;
  check(false, "cannot be created");
}

void AtomicFile::check(bool good, const char* action) const {
  if (good) return;
  const int error = errno;
  std::string next = ".";
  if (error == EFBIG) next = ". Raise the limit on file sizes (ulimit -f).";
  if (error == ENOSPC || error == EDQUOT) next = ". Free some space, or write to another directory.";
  if (error == ENOENT) next = ". Make the directory first, or correct the path.";
  if (error == ESPIPE) next = ". A pipe takes bytes in order only: write to a file.";
  throw EnvironmentError(path_ + ": " + action + ": " + std::generic_category().message(error) + next);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  check(write_all(descriptor_, bytes, std::nullopt), "cannot be written");
}

void AtomicFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  check(write_all(descriptor_, bytes, base_ + offset), "cannot be written");
}

void AtomicFile::commit() {
  struct stat status = {};
  if (slot_ >= 0) {
    if (::stat(target_.c_str(), &status) == 0)
      check(::fchmod(descriptor_, status.st_mode & 07777) == 0, "cannot be given its mode");
    check(::fsync(descriptor_) == 0, "cannot be written");
  }
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  check(closed == 0, "cannot be written");
  if (slot_ < 0) return;
  check(::rename(temporary_.c_str(), target_.c_str()) == 0, "cannot be renamed into place");
  disarm(slot_);
  slot_ = -1;
}

}  // namespace halfulp

#include "lib/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "lib/error.h"

namespace halfulp {

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& message) {
  throw InputError({.file = path, .tensor = {}, .byte = {}}, message);
}

std::string system_words(int error) { return std::generic_category().message(error); }

void check_kind(const std::string& path, mode_t mode) {
  if (S_ISREG(mode)) return;
  if (S_ISDIR(mode)) fail(path, "is a directory; expected a file");
  if (S_ISFIFO(mode)) fail(path, "is a pipe; inputs are mapped into memory, so save it to a file first");
  fail(path, "is not a regular file; inputs are mapped into memory, so save it to a file first");
}

// Closed at once: a mapping does not need its descriptor.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0) fail(path, "cannot be opened: " + system_words(errno));
  struct stat status = {};
  if (::fstat(file.value, &status) != 0) fail(path, "cannot be examined: " + system_words(errno));
  check_kind(path, status.st_mode);
  size_ = size_t(status.st_size);
  if (size_ == 0) return;  // mmap refuses an empty range
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.value, 0);
  if (mapped == MAP_FAILED) fail(path, "cannot be mapped: " + system_words(errno));
  data_ = static_cast<const std::byte*>(mapped);
  ::madvise(mapped, size_, MADV_SEQUENTIAL);  // advice: nothing depends on its success
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(uint64_t offset, uint64_t size) const {
  if (offset >= size_) return;
  const uint64_t end = offset + std::min<uint64_t>(size, size_ - offset);
  // Down on both sides: the page that the next chunk begins in stays, the one that the last chunk ended in goes.
  const uint64_t page = uint64_t(::sysconf(_SC_PAGESIZE));
  const uint64_t first = offset / page * page;
  const uint64_t last = end == size_ ? end : end / page * page;
  if (first == last) return;
  ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
}

}  // namespace halfulp

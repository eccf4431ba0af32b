#pragma once
// A regular file mapped for reading. Not a stream: pipes and devices are refused.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace halfulp {

class MappedFile {
 public:
  // Throws InputError where the file is missing, unreadable, or not a regular file.
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Gives the pages of [offset, offset + size) back, so that what is resident is bounded by the chunk in hand and not
  // by the file. The bytes stay readable: reading them again costs a page fault.
  void release(uint64_t offset, uint64_t size) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace halfulp

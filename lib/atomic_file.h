#pragma once
// An output file that appears whole or not at all. A device is written directly; a pipe too, but in order only.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace halfulp {

// Writes beside the target and renames on commit(); without commit() nothing is left. Every failure of the system is an
// EnvironmentError that names the file.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  const std::string& path() const { return path_; }

  // Appends.
  void write(std::span<const std::byte> bytes);

  // Writes at an offset from the beginning. Threads may call it at the same time for disjoint ranges. A pipe cannot be
  // written so.
  void write_at(uint64_t offset, std::span<const std::byte> bytes);

  // Makes the file appear under its name. At most once, and nothing may be written afterwards.
  void commit();

 private:
  void open_beside();
  void check(bool good, const char* action) const;

  std::string path_;       // as the user spelled it, for messages
  std::string target_;     // what is replaced: path_ with links followed
  std::string temporary_;  // empty where the target is written directly
  int descriptor_ = -1;
  int slot_ = -1;
  uint64_t base_ = 0;  // where an inherited descriptor stood
};

// Unlinks what is not committed. Async-signal-safe, for a handler that ends the program.
void remove_unfinished_files() noexcept;

}  // namespace halfulp

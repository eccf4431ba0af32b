#pragma once
// Runs the built halfulp program, as a user would, and tells what it printed and how it ended. Not a shell.
// For files see tests/lib/test_files.h.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace halfulp {

struct ProgramRun {
  int exit_code;  // 128 + n where signal n ended it
  std::string out;
  std::string err;
};

struct RunOptions {
  std::filesystem::path folder = ".";         // where it runs
  std::vector<std::string> environment = {};  // "NAME=value", over the test's own
  std::string stdout_file = {};               // instead of ProgramRun::out
};

namespace detail {
using TemporaryFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

inline TemporaryFile temporary_file() { return {std::tmpfile(), std::fclose}; }

inline std::string text_of(std::FILE* file) {
  std::string text;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += char(c);
  return text;
}

inline std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

inline std::string name_of(const std::string& entry) { return entry.substr(0, entry.find('=')); }

inline std::vector<std::string> environment_with(const std::vector<std::string>& extra) {
  std::vector<std::string> all = extra;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const auto is_replaced = [&](const std::string& other) { return name_of(other) == name_of(*entry); };
    if (std::ranges::none_of(extra, is_replaced)) all.emplace_back(*entry);
  }
  return all;
}

inline int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
}  // namespace detail

// Runs words[0], found by PATH unless it has a slash, with stdin empty.
inline ProgramRun run_command(std::vector<std::string> words, const RunOptions& options = {}) {
  const detail::TemporaryFile out = detail::temporary_file(), err = detail::temporary_file();
  if (!out || !err) throw std::runtime_error("cannot make a temporary file");
  std::vector<std::string> environment = detail::environment_with(options.environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (options.stdout_file.empty()) {
    posix_spawn_file_actions_adddup2(&actions, fileno(out.get()), STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, options.stdout_file.c_str(), O_WRONLY | O_CREAT, 0666);
  }
  posix_spawn_file_actions_adddup2(&actions, fileno(err.get()), STDERR_FILENO);
  posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  pid_t child = 0;
  const int failure = posix_spawnp(&child, words.at(0).c_str(), &actions, nullptr, detail::pointers(words).data(),
                                   detail::pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw std::system_error(failure, std::generic_category(), words[0]);
  const int exit_code = detail::wait_for(child);
  return {.exit_code = exit_code, .out = detail::text_of(out.get()), .err = detail::text_of(err.get())};
}

// Runs the program under test: HALFULP_PROGRAM is its path.
inline ProgramRun run_halfulp(std::vector<std::string> words, const RunOptions& options = {}) {
  words.insert(words.begin(), HALFULP_PROGRAM);
  return run_command(std::move(words), options);
}

}  // namespace halfulp

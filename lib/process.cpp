#include "lib/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <string_view>
#include <system_error>

#include "lib/atomic_file.h"
#include "lib/error.h"
#include "lib/threads.h"

namespace halfulp {
namespace {

// Async-signal-safe.
[[noreturn]] void end_process(std::string_view message, ExitCode code) {
  remove_unfinished_files();
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
  ::_exit(int(code));
}

// A file opened in the place of a closed standard descriptor would get what is printed there. What stands in for one
// fails to be read or written, as the closed one would.
void hold_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

[[noreturn]] void on_terminate() {
  try {
    if (const std::exception_ptr exception = std::current_exception()) std::rethrow_exception(exception);
  } catch (const std::system_error&) {
    end_process("halfulp: the system gives no more threads or memory; try fewer --threads\n", ExitCode::environment);
  } catch (...) {
  }
  end_process("halfulp: internal error: an exception that nothing catches\n", ExitCode::internal);
}

extern "C" void on_bus_error(int) {
  end_process("halfulp: an input file became shorter while it was read\n", ExitCode::bad_input);
}

extern "C" void on_broken_pipe(int signal) {
  remove_unfinished_files();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

void prepare_process() {
  hold_standard_descriptors();
  std::set_terminate(on_terminate);
  std::signal(SIGBUS, on_bus_error);
  if (std::signal(SIGPIPE, on_broken_pipe) == SIG_IGN) std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // the write fails with EFBIG instead
  install_interrupt_handler();
}

}  // namespace halfulp

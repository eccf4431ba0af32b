#include "lib/threads.h"

#include <sched.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <csignal>
#include <exception>
#include <mutex>
#include <thread>

#include "lib/atomic_file.h"
#include "lib/error.h"

namespace halfulp {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "the signal handler stores to it");

extern "C" void on_signal(int signal) {
  if (!interrupted.exchange(true)) return;
  remove_unfinished_files();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// Hands out chunks in ascending order and keeps the lowest failure. When a chunk fails, those below it have been handed
// out already and still run to their end, so the lowest failure of all is always found.
class ChunkQueue {
 public:
  ChunkQueue(size_t chunks, const std::function<void(size_t)>& fn) : end_(chunks), fn_(fn) {}

  void work() {
    while (!interrupted) {
      const size_t chunk = next_++;
      if (chunk >= end_) return;
      try {
        fn_(chunk);
      } catch (...) {
        fail(chunk, std::current_exception());
      }
    }
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void fail(size_t chunk, std::exception_ptr failure) {
    const std::lock_guard lock(failing_);
    if (chunk >= end_) return;
    end_ = chunk;
    failure_ = std::move(failure);
  }

  std::atomic<size_t> next_ = 0;
  std::atomic<size_t> end_;  // chunks from here on are not to run
  const std::function<void(size_t)>& fn_;
  std::mutex failing_;
  std::exception_ptr failure_;
};

// TBB starts no more threads than processors unless a global_control asks for them.
void on_threads(int threads, const std::function<void()>& work) {
  if (threads == 1) return work();
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, size_t(threads));
  tbb::task_arena arena(threads);
  arena.execute([&] {
    tbb::parallel_for(
        0, threads, [&](int) { work(); }, tbb::simple_partitioner());
  });
}

}  // namespace

int default_threads() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return std::max(1, int(std::thread::hardware_concurrency()));
}

void parallel_for(size_t chunks, int threads, const std::function<void(size_t)>& fn) {
  assert(threads >= 1);
  if (chunks == 0) return;
  ChunkQueue queue(chunks, fn);
  on_threads(int(std::min(chunks, size_t(threads))), [&] { queue.work(); });
  queue.rethrow();
  throw_if_interrupted();
}

void request_interrupt() { interrupted = true; }

void clear_interrupt() { interrupted = false; }

void throw_if_interrupted() {
  if (interrupted) throw Error(ExitCode::interrupted, "interrupted");
}

void install_interrupt_handler() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // nohup and background jobs ignore some
  }
}

}  // namespace halfulp

#include "lib/threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/atomic_file.h"
#include "lib/error.h"
#include "tests/lib/test_files.h"

namespace halfulp {
namespace {

using namespace std::chrono_literals;

class ParallelFor : public testing::TestWithParam<int> {
 protected:
  void TearDown() override { clear_interrupt(); }
};

TEST_P(ParallelFor, RunsEachChunkOnce) {
  std::vector<std::atomic<int>> runs(1000);
  parallel_for(runs.size(), GetParam(), [&](size_t chunk) { ++runs[chunk]; });
  for (size_t chunk = 0; chunk < runs.size(); ++chunk) ASSERT_EQ(runs[chunk], 1) << chunk;
}

TEST_P(ParallelFor, WithoutChunksDoesNothing) {
  parallel_for(0, GetParam(), [](size_t) { FAIL(); });
}

// As many chunks as threads, each waiting until all have started. They give up after ten seconds.
TEST_P(ParallelFor, RunsThatManyChunksAtOnce) {
  const auto threads = size_t(GetParam());
  std::mutex mutex;
  std::condition_variable all_started;
  size_t started = 0;
  parallel_for(threads, GetParam(), [&](size_t) {
    std::unique_lock lock(mutex);
    if (++started == threads) all_started.notify_all();
    EXPECT_TRUE(all_started.wait_for(lock, 10s, [&] { return started == threads; }));
  });
}

TEST_P(ParallelFor, RunsNoMoreChunksAtOnce) {
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  parallel_for(200, GetParam(), [&](size_t) {
    const int now = ++running;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
    std::this_thread::yield();
    --running;
  });
  EXPECT_LE(most, GetParam());
}

// Chunk 300 fails at once, chunk 100 late: timing must not decide which one is reported.
TEST_P(ParallelFor, ReportsTheLowestFailure) {
  for (int round = 0; round < 20; ++round) {
    try {
      parallel_for(1000, GetParam(), [](size_t chunk) {
        if (chunk == 100) std::this_thread::sleep_for(1ms);
        if (chunk >= 100 && chunk % 100 == 0) throw InputError({}, "chunk " + std::to_string(chunk));
      });
      FAIL() << "nothing thrown";
    } catch (const InputError& error) {
      ASSERT_STREQ(error.what(), "chunk 100");
    }
  }
}

// Chunk 0 fails while chunk 1 is under way, which then fails too.
TEST_P(ParallelFor, ReportsTheLowestFailureWhenAHigherOneFollows) {
  std::atomic<bool> second_started = false;
  try {
    parallel_for(2, GetParam(), [&](size_t chunk) {
      if (chunk == 1) second_started = true;
      if (chunk == 1) std::this_thread::sleep_for(5ms);
      for (int i = 0; i < 20 && !second_started; ++i) std::this_thread::sleep_for(1ms);
      throw InputError({}, "chunk " + std::to_string(chunk));
    });
    FAIL() << "nothing thrown";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "chunk 0");
  }
}

TEST_P(ParallelFor, StopsAfterAFailure) {
  std::atomic<int> runs = 0;
  EXPECT_THROW(parallel_for(1'000'000, GetParam(),
                            [&](size_t) {
                              ++runs;
                              throw InputError({}, "each");
                            }),
               InputError);
  EXPECT_LE(runs, GetParam());
}

TEST_P(ParallelFor, AnInterruptStopsItBetweenChunks) {
  std::atomic<size_t> runs = 0;
  try {
    parallel_for(1'000'000, GetParam(), [&](size_t) {
      if (++runs == 10) request_interrupt();
    });
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::interrupted);
  }
  EXPECT_LE(runs, 10 + size_t(GetParam()));
}

TEST_P(ParallelFor, Nests) {
  std::atomic<int> runs = 0;
  parallel_for(8, GetParam(), [&](size_t) { parallel_for(8, GetParam(), [&](size_t) { ++runs; }); });
  EXPECT_EQ(runs, 64);
}

INSTANTIATE_TEST_SUITE_P(Threads, ParallelFor, testing::Values(1, 2, 3, 7, 16));

TEST(InterruptHandler, TurnsTheFirstSignalIntoARequest) {
  install_interrupt_handler();
  EXPECT_NO_THROW(throw_if_interrupted());
  raise(SIGINT);
  EXPECT_THROW(throw_if_interrupted(), Error);
  clear_interrupt();
  std::signal(SIGTERM, SIG_DFL);
}

TEST(InterruptHandler, TheSecondSignalLeavesNoUnfinishedFile) {
  const TemporaryDirectory directory;
  EXPECT_EXIT(
      {
        install_interrupt_handler();
        AtomicFile file(directory / "out");
        raise(SIGTERM);
        raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(directory.file_count(), 0u);
}

TEST(InterruptHandler, LeavesTheSecondSignalToTheSystem) {
  EXPECT_EXIT(
      {
        install_interrupt_handler();
        raise(SIGINT);
        raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

// In a thread of its own: affinity belongs to the thread, and the test program keeps its own.
TEST(DefaultThreads, RespectsAffinity) {
  std::thread([] {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    CPU_ZERO(&allowed);
    CPU_SET(first, &allowed);
    ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
    EXPECT_EQ(default_threads(), 1);
  }).join();
}

}  // namespace
}  // namespace halfulp

#pragma once
// Work divided into chunks, run by a given number of threads. Results must depend on the chunk only, never on the
// thread.

#include <cstddef>
#include <functional>

namespace halfulp {

// As many as the processors this process may run on.
int default_threads();

// Calls fn(0) .. fn(chunks - 1), each once, on `threads` >= 1 threads, even where the machine has fewer processors.
// If chunks throw, the exception of the lowest throwing chunk comes out, whatever the timing; chunks above it may not
// have run. After request_interrupt() no further chunk starts and Error with ExitCode::interrupted comes out.
void parallel_for(size_t chunks, int threads, const std::function<void(size_t)>& fn);

// From a signal handler too.
void request_interrupt();
void clear_interrupt();
// For long work outside parallel_for: throws Error with ExitCode::interrupted once an interrupt was requested.
void throw_if_interrupted();

// SIGINT, SIGTERM and SIGHUP, unless they are ignored, request an interrupt; a second one ends the process at once,
// leaving no unfinished output file.
void install_interrupt_handler();

}  // namespace halfulp

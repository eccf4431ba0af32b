#pragma once
// What the program does to its process before anything else, so that no way of ending it leaves a wrong or half-written
// file.

namespace halfulp {

// Keeps the numbers of closed standard descriptors from being given to files, makes SIGINT, SIGTERM and SIGHUP request
// an interrupt (lib/threads.h), and removes unfinished output files where the process must end at once: on a broken
// pipe, on an input that became shorter while it was mapped, on an exception that nothing can catch. A full file system
// and a file size limit are errors of the write.
void prepare_process();

}  // namespace halfulp

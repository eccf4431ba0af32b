#pragma once
// Kernels of recipes for a recording, and against what the CPU makes of the same matrix. Writes no file, prints
// nothing.

#include <functional>
#include <span>
#include <vector>

#include "emulation/recordings/recording.h"

namespace halfulp {

// Codes and scales of a chunk of the matrix.
struct ChunkBytes {
  std::vector<std::byte> codes;
  std::vector<std::byte> scales;
};

// What the CPU makes of a chunk, given its elements.
ChunkBytes model_chunk(const Recipe& recipe, Dtype dtype, uint32_t chunk, std::span<const std::byte> elements);

// A run by its number in the matrix; `chunk` is the one that holds it.
RecordedRun run_of(const Recipe& recipe, const ChunkBytes& chunk, uint32_t run);

// Whether the recording has the kernel, with as many chunks.
bool has_kernel(const Recording& recording, std::string_view recipe, Dtype dtype, uint32_t chunks);

// Adds a kernel, or replaces it, given the elements of the first chunks.
void record_kernel(const Backend& backend, const Recipe& recipe, Dtype dtype, std::span<const std::byte> elements,
                   int threads, Recording& recording);

struct DifferingRun {
  RecordedRun recorded;
  RecordedRun model;
};

struct KernelReplay {
  const RecordedKernel* recorded;
  const Recipe* recipe;
  std::vector<uint32_t> wrong_chunks = {};
  std::vector<DifferingRun> wrong_runs = {};

  bool agrees() const { return wrong_chunks.empty() && wrong_runs.empty(); }
};

uint64_t elements_of(const RecordedKernel& kernel);

// The runs kept by the recording that the CPU makes otherwise.
std::vector<DifferingRun> differing_runs(const RecordedKernel& kernel, const Recipe& recipe);

// Compares every chunk; of each replay recorded and recipe are given. `advance` is told of elements, by any thread.
void replay_kernels(std::span<KernelReplay> replays, int threads, const std::function<void(uint64_t)>& advance);

}  // namespace halfulp

#include "emulation/recordings/kernels.h"

#include <algorithm>
#include <mutex>

#include "emulation/elements.h"
#include "emulation/recordings/kernel_name.h"
#include "emulation/recordings/record.h"
#include "formats/packing.h"
#include "lib/threads.h"

namespace halfulp {
namespace {

constexpr uint64_t kElements = kKernelChunk.rows * kKernelChunk.cols;
constexpr uint32_t kRuns = uint32_t(kElements / kRunElements);
constexpr uint32_t kMostDiffering = 4;

Randomness random_of(const Recipe& recipe, uint32_t chunk) {
  Randomness random = kKernelRandom;
  random.first_element = chunk * kElements;
  random.first_block = chunk * (kElements / block_cols(recipe, kKernelChunk));
  return random;
}

std::vector<std::byte> elements_of_chunk(Dtype dtype, uint32_t chunk) {
  return kernel_elements(dtype, chunk * kElements, kElements);
}

uint32_t code_at(int bits, std::span<const std::byte> codes, uint64_t i) {
  switch (bits) {
    case 4: return load_code<4>(codes.data(), i);
    case 8: return load_code<8>(codes.data(), i);
    case 16: return load_code<16>(codes.data(), i);
    default: return load_code<32>(codes.data(), i);
  }
}

KernelChunk checksums_of(const ChunkBytes& bytes) {
  return {.codes = bytes_checksum(bytes.codes), .scales = bytes_checksum(bytes.scales)};
}

// Where a chunk that a kernel computed and the CPU's part.
struct Comparison {
  KernelChunk checksums;
  uint64_t mismatches = 0;
  std::vector<RecordedRun> first = {};  // of those that differ; none where they agree
};

Comparison compare(const Recipe& recipe, uint32_t chunk, const ChunkBytes& got, const ChunkBytes& model) {
  Comparison result{.checksums = checksums_of(got)};
  if (got.codes == model.codes && got.scales == model.scales) return result;
  for (uint32_t run = chunk * kRuns; run < (chunk + 1) * kRuns; ++run) {
    const RecordedRun here = run_of(recipe, got, run);
    if (here == run_of(recipe, model, run)) continue;
    ++result.mismatches;
    if (result.first.empty()) result.first.push_back(here);
  }
  return result;
}

ChunkBytes part(const ChunkBytes& all, uint32_t chunk, uint32_t chunks) {
  const auto of = [&](const std::vector<std::byte>& bytes) {
    const auto size = std::ptrdiff_t(bytes.size() / chunks);
    return std::vector<std::byte>(bytes.begin() + chunk * size, bytes.begin() + (chunk + 1) * size);
  };
  return {.codes = of(all.codes), .scales = of(all.scales)};
}

ChunkBytes run_on_device(const Backend& backend, const Recipe& recipe, Dtype dtype,
                         std::span<const std::byte> elements) {
  const uint64_t count = elements.size() * 8 / uint64_t(row(dtype).bits);
  const Matrix shape{.rows = count / kKernelChunk.cols, .cols = kKernelChunk.cols};
  ChunkBytes all{.codes = std::vector<std::byte>(code_bytes(recipe, shape)),
                 .scales = std::vector<std::byte>(scale_bytes(recipe, shape))};
  backend.run_kernel(recipe,
                     {.dtype = dtype,
                      .shape = shape,
                      .elements = elements,
                      .tensor = tensor_scale(recipe, kKernelAmax),
                      .random = kKernelRandom},
                     all.codes, all.scales);
  return all;
}

bool is_kernel(const RecordedKernel& kernel, std::string_view recipe, Dtype dtype) {
  return kernel.recipe == recipe && kernel.dtype == dtype;
}

// One chunk of the matrix of a dtype, under every recipe that was recorded on it.
struct Task {
  Dtype dtype;
  uint32_t chunk;
};

std::vector<Task> tasks_of(std::span<const KernelReplay> replays) {
  std::vector<Task> tasks;
  for (const Dtype dtype : kKernelDtypes) {
    std::size_t chunks = 0;
    for (const KernelReplay& replay : replays)
      if (replay.recorded->dtype == dtype) chunks = std::max(chunks, replay.recorded->chunks.size());
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) tasks.push_back({dtype, chunk});
  }
  return tasks;
}

}  // namespace

ChunkBytes model_chunk(const Recipe& recipe, Dtype dtype, uint32_t chunk, std::span<const std::byte> elements) {
  std::vector<float> x(kElements);
  load_elements<float>(dtype, elements.data(), 0, x);
  ChunkBytes bytes{.codes = std::vector<std::byte>(code_bytes(recipe, kKernelChunk)),
                   .scales = std::vector<std::byte>(scale_bytes(recipe, kKernelChunk))};
  quantize<float>(recipe, tensor_scale(recipe, kKernelAmax), kKernelChunk, x, random_of(recipe, chunk), bytes.codes,
                  bytes.scales);
  return bytes;
}

RecordedRun run_of(const Recipe& recipe, const ChunkBytes& chunk, uint32_t run) {
  const uint64_t first = run % kRuns * kRunElements;
  RecordedRun result{.run = run, .codes = {}, .scale = 0};
  for (uint64_t i = first; i < first + kRunElements; ++i)
    result.codes.push_back(code_at(recipe.element.storage_bits(), chunk.codes, i));
  if (has_scale(recipe)) {
    const uint64_t row = first / kKernelChunk.cols / uint64_t(recipe.block.rows);
    const uint64_t col = first % kKernelChunk.cols / block_cols(recipe, kKernelChunk);
    result.scale =
        code_at(recipe.scale.storage_bits(), chunk.scales, row * scale_grid(recipe, kKernelChunk).cols + col);
  }
  return result;
}

bool has_kernel(const Recording& recording, std::string_view recipe, Dtype dtype, uint32_t chunks) {
  return std::ranges::any_of(recording.kernels, [&](const RecordedKernel& kernel) {
    return is_kernel(kernel, recipe, dtype) && kernel.chunks.size() >= chunks;
  });
}

void record_kernel(const Backend& backend, const Recipe& recipe, Dtype dtype, std::span<const std::byte> elements,
                   int threads, Recording& recording) {
  const ChunkBytes all = run_on_device(backend, recipe, dtype, elements);
  const std::size_t of_chunk = kElements * std::size_t(row(dtype).bits) / 8;
  std::vector<Comparison> chunks(elements.size() / of_chunk);
  parallel_for(chunks.size(), threads, [&](std::size_t i) {
    const uint32_t chunk = uint32_t(i);
    chunks[i] = compare(recipe, chunk, part(all, chunk, uint32_t(chunks.size())),
                        model_chunk(recipe, dtype, chunk, elements.subspan(i * of_chunk, of_chunk)));
  });
  RecordedKernel kernel{.recipe = stated_name(recipe),
                        .dtype = dtype,
                        .forms = backend.kernel_forms(recipe),
                        .chunks = {},
                        .differing = {}};
  for (const Comparison& chunk : chunks) {
    kernel.chunks.push_back(chunk.checksums);
    kernel.mismatches += chunk.mismatches;
    if (kernel.differing.size() < kMostDiffering) std::ranges::copy(chunk.first, std::back_inserter(kernel.differing));
  }
  std::erase_if(recording.kernels, [&](const RecordedKernel& other) { return is_kernel(other, kernel.recipe, dtype); });
  recording.kernels.push_back(std::move(kernel));
  std::ranges::sort(recording.kernels, {}, [](const RecordedKernel& k) { return std::pair(k.recipe, k.dtype); });
}

uint64_t elements_of(const RecordedKernel& kernel) { return kernel.chunks.size() * kElements; }

std::vector<DifferingRun> differing_runs(const RecordedKernel& kernel, const Recipe& recipe) {
  std::vector<DifferingRun> runs;
  for (const RecordedRun& run : kernel.differing) {
    const uint32_t chunk = run.run / kRuns;
    const ChunkBytes model = model_chunk(recipe, kernel.dtype, chunk, elements_of_chunk(kernel.dtype, chunk));
    if (const RecordedRun ours = run_of(recipe, model, run.run); ours != run) runs.push_back({run, ours});
  }
  return runs;
}

void replay_kernels(std::span<KernelReplay> replays, int threads, const std::function<void(uint64_t)>& advance) {
  const std::vector<Task> tasks = tasks_of(replays);
  std::mutex mutex;
  parallel_for(tasks.size(), threads, [&](std::size_t i) {
    const auto [dtype, chunk] = tasks[i];
    const std::vector<std::byte> elements = elements_of_chunk(dtype, chunk);
    for (KernelReplay& replay : replays) {
      if (replay.recorded->dtype != dtype || chunk >= replay.recorded->chunks.size()) continue;
      const ChunkBytes model = model_chunk(*replay.recipe, dtype, chunk, elements);
      const std::lock_guard lock(mutex);
      if (checksums_of(model) != replay.recorded->chunks[chunk]) replay.wrong_chunks.push_back(chunk);
      advance(kElements);
    }
  });
  for (KernelReplay& replay : replays) {
    std::ranges::sort(replay.wrong_chunks);
    replay.wrong_runs = differing_runs(*replay.recorded, *replay.recipe);
  }
}

}  // namespace halfulp

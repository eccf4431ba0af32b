#include "cuda/amax.h"

#include <cuda_runtime.h>

#include <algorithm>

#include "cuda/amax.cuh"
#include "cuda/check.h"
#include "cuda/elements.cuh"

namespace halfulp {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kMaxCtas = 132 * 16;  // an H200's 132 processors hold eight each at a time

// Whole runs of 64 bytes, side by side.
template <class Source>
constexpr int kRunOf = 4 * Source::kOf16Bytes;

template <class Source, bool nan_wins>
__global__ void __launch_bounds__(kThreads) amax_of_runs(const void* x, uint64_t runs, float* result) {
  float amax = 0;
  for (uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x; i < runs; i += uint64_t(gridDim.x) * kThreads) {
    const gpu::Run<Source, kRunOf<Source>> run(x, i * kRunOf<Source>);
    float largest = run.largest_magnitude();
    if (!nan_wins && largest != largest) largest = run.largest_number();
    amax = gpu::larger<nan_wins>(amax, largest);
  }
  gpu::raise<nan_wins>(amax, result);
}

// The few elements from `first` on; one warp.
template <class Source, bool nan_wins>
__global__ void amax_of_rest(const void* x, uint64_t first, uint64_t count, float* result) {
  float amax = 0;
  for (uint64_t i = first + threadIdx.x; i < count; i += 32)
    amax = gpu::larger<nan_wins>(amax, gpu::element<Source>(x, i));
  gpu::raise<nan_wins>(amax, result);
}

template <class Source, bool nan_wins>
void run(const void* x, uint64_t count, float* amax) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
  const uint64_t runs = aligned ? count / kRunOf<Source> : 0;
  if (runs > 0) {
    const unsigned ctas = unsigned(std::min<uint64_t>((runs + kThreads - 1) / kThreads, kMaxCtas));
    amax_of_runs<Source, nan_wins><<<ctas, kThreads>>>(x, runs, amax);
  }
  if (runs * kRunOf<Source> < count) amax_of_rest<Source, nan_wins><<<1, 32>>>(x, runs * kRunOf<Source>, count, amax);
  check(cudaGetLastError());
}

template <class Source>
void run(AmaxNan nan, const void* x, uint64_t count, float* amax) {
  if (nan == AmaxNan::propagates) return run<Source, true>(x, count, amax);
  run<Source, false>(x, count, amax);
}

}  // namespace

void raise_largest_magnitude(AmaxNan nan, Dtype dtype, const void* x, uint64_t count, float* amax) {
  gpu::with_source(dtype, [&](auto source) { run<decltype(source)>(nan, x, count, amax); });
}

}  // namespace halfulp

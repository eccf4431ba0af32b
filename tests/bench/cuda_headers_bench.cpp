// The conversions of CUDA's headers on the host, as a peer: the same array, the same thread, elements a second.

#include <benchmark/benchmark.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>

#include <cstddef>
#include <vector>

#include "lib/random_values.h"

namespace {

constexpr std::size_t kElements = std::size_t{1} << 16;

const std::vector<float>& values() {
  static const std::vector<float> kValues = [] {
    std::vector<float> x(kElements);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(halfulp::normal(1, 0, i));
    return x;
  }();
  return kValues;
}

template <class Convert>
void convert_all(benchmark::State& state, Convert convert) {
  std::vector<unsigned char> codes(kElements);
  for (auto _ : state) {
    for (std::size_t i = 0; i < kElements; ++i) codes[i] = convert(values()[i]);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(int64_t(state.iterations()) * int64_t(kElements));
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::RegisterBenchmark("cuda_headers/e4m3", [](benchmark::State& state) {
    convert_all(state, [](float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); });
  });
  benchmark::RegisterBenchmark("cuda_headers/e2m1", [](benchmark::State& state) {
    convert_all(state, [](float x) { return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest); });
  });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

#include "cuda/cvt_checksums.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "cuda/arch/cvt.cuh"
#include "cuda/arch/form.h"
#include "cuda/check.h"
#include "lib/splitmix.h"

namespace halfulp {
namespace {

using Sum = unsigned long long;  // what atomicAdd takes

// blockIdx.y is the chunk.
template <int id>
__global__ void checksum_kernel(uint32_t chunk_inputs, Sum* sums) {
  if constexpr (arch::is_native<id>() && kPtxCvtAt<id>.random == RandomField::none) {
    constexpr PtxCvt op = kPtxCvtAt<id>;
    Sum sum = 0;
#pragma unroll 1
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < chunk_inputs; i += gridDim.x * blockDim.x) {
      const uint32_t input = blockIdx.y * chunk_inputs + i;
      const uint32_t sources[4] = {input, input, input, input};
      const uint32_t answer = arch::convert<id>(sources) & uint32_t(low_mask(op.to.storage_bits));
      sum += splitmix64(uint64_t{input} << 32 | answer);
    }
    atomicAdd(&sums[blockIdx.y], sum);
  }
}

using Kernel = void (*)(uint32_t, Sum*);

template <std::size_t... id>
constexpr std::array<Kernel, sizeof...(id)> kernels(std::index_sequence<id...>) {
  return {checksum_kernel<int(id)>...};
}
constexpr auto kKernels = kernels(std::make_index_sequence<kPtxCvts.size()>{});

struct CudaFree {
  void operator()(Sum* memory) const { cudaFree(memory); }
};

}  // namespace

std::vector<uint64_t> instruction_checksums(int ptx_cvt_id) {
  constexpr unsigned kThreads = 256, kBlocksPerChunk = 32;
  const std::size_t id = std::size_t(ptx_cvt_id);
  const PtxCvt op = ptx_cvt(kPtxCvts[id]);
  if (op.random != RandomField::none || arch::loaded_forms().forms[id] == arch::Form::software) return {};
  const uint64_t inputs = uint64_t{1} << op.from.format.bits();
  const uint64_t chunk_inputs = std::min(inputs, kMostChecksumInputs);
  std::vector<uint64_t> sums(inputs / chunk_inputs);
  Sum* memory = nullptr;
  check(cudaMalloc(&memory, sums.size() * sizeof(Sum)));
  const std::unique_ptr<Sum, CudaFree> on_device(memory);
  check(cudaMemset(memory, 0, sums.size() * sizeof(Sum)));
  kKernels[id]<<<dim3(kBlocksPerChunk, unsigned(sums.size())), kThreads>>>(uint32_t(chunk_inputs), memory);
  check(cudaGetLastError());
  check(cudaMemcpy(sums.data(), memory, sums.size() * sizeof(Sum), cudaMemcpyDeviceToHost));
  return sums;
}

}  // namespace halfulp

#include "cuda/cvt_check.h"

#include <cuda_runtime.h>

#include <array>
#include <numeric>
#include <utility>

#include "cuda/arch/cvt.cuh"
#include "cuda/arch/form.h"
#include "cuda/check.h"
#include "cuda/memory.h"

namespace halfulp {
namespace {

constexpr unsigned kThreads = 256, kBlocks = 4096, kBlocksPerChunk = 64;

template <int id>
constexpr CvtDomain kDomainOf = domain_of(kPtxCvtAt<id>);

// Two hundred kernels: not inlined and not unrolled, they compile in half the time.
__device__ __noinline__ CvtInput input_of(CvtDomain domain, CvtInputs kind, uint32_t i) {
  return cvt_input(domain, kind, i);
}

template <int id>
__global__ void convert_kernel(CvtInputs kind, CvtRange range, uint32_t mask, uint32_t* answers) {
#pragma unroll 1
  for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < range.count; i += gridDim.x * blockDim.x) {
    const CvtInput input = input_of(kDomainOf<id>, kind, range.first + uint32_t(i) * range.stride);
    answers[i] = arch::convert<id>(input.sources, input.word) & mask;
  }
}

struct Sums {
  unsigned long long checksum, mismatches;  // what atomicAdd takes
};

struct ChunkShape {
  uint32_t inputs;
  uint32_t mask;  // of an answer
};

// blockIdx.y is the chunk's place among `chunks`. Nothing where the target has no native form: there the model is what
// arch::convert gives.
template <int id, int model_id>
__global__ void sweep_kernel(CvtInputs kind, ChunkShape shape, const uint32_t* chunks, Sums* sums) {
  if constexpr (arch::is_native<id>()) {
    constexpr PtxCvt op = kPtxCvtAt<model_id>;
    const uint32_t first = chunks[blockIdx.y] * shape.inputs;
    Sums sum = {};
#pragma unroll 1
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < shape.inputs; i += gridDim.x * blockDim.x) {
      const CvtInput input = input_of(kDomainOf<id>, kind, first + i);
      const uint32_t native = arch::convert<id>(input.sources, input.word);
      sum.checksum += answer_hash(first + i, native & shape.mask);
      sum.mismatches += ((native ^ convert_register(op, input.sources, input.word)) & shape.mask) != 0;
    }
    atomicAdd(&sums[blockIdx.y].checksum, sum.checksum);
    if (sum.mismatches != 0) atomicAdd(&sums[blockIdx.y].mismatches, sum.mismatches);
  }
}

struct Kernels {
  void (*convert)(CvtInputs, CvtRange, uint32_t, uint32_t*);
  void (*sweep)(CvtInputs, ChunkShape, const uint32_t*, Sums*);
};

template <std::size_t... id>
constexpr std::array<Kernels, sizeof...(id)> kernels(std::index_sequence<id...>) {
  return {Kernels{convert_kernel<int(id)>, sweep_kernel<int(id), int(id)>}...};
}
constexpr auto kKernels = kernels(std::make_index_sequence<kPtxCvts.size()>{});

uint32_t answer_mask(const PtxCvt& op, CvtInputs inputs) { return uint32_t(low_mask(answer_bits(op, inputs))); }

std::vector<CvtChunk> sweep(decltype(Kernels::sweep) kernel, const PtxCvt& op, CvtInputs inputs,
                            std::span<const uint32_t> chunks) {
  const DeviceArray<uint32_t> numbers(chunks);
  const DeviceArray<Sums> on_device(std::vector<Sums>(chunks.size()));
  const ChunkShape shape{.inputs = uint32_t(chunk_inputs(domain_of(op), inputs)), .mask = answer_mask(op, inputs)};
  kernel<<<dim3(kBlocksPerChunk, unsigned(chunks.size())), kThreads>>>(inputs, shape, numbers.data(), on_device.data());
  check(cudaGetLastError());
  std::vector<CvtChunk> answers;
  for (const Sums& sums : on_device.on_host()) answers.push_back({sums.checksum, sums.mismatches});
  return answers;
}

}  // namespace

bool has_gpu() {
  cudaFuncAttributes attributes;
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0 &&
         cudaFuncGetAttributes(&attributes, kKernels[0].convert) == cudaSuccess;
}

std::vector<uint32_t> convert_on_gpu(int ptx_cvt_id, CvtInputs inputs, CvtRange range) {
  const std::size_t id = std::size_t(ptx_cvt_id);
  const DeviceArray<uint32_t> answers(range.count);
  const uint32_t mask = answer_mask(ptx_cvt(kPtxCvts[id]), inputs);
  kKernels[id].convert<<<kBlocks, kThreads>>>(inputs, range, mask, answers.data());
  check(cudaGetLastError());
  return answers.on_host();
}

std::vector<CvtChunk> sweep_on_gpu(int ptx_cvt_id, CvtInputs inputs, std::span<const uint32_t> chunks) {
  const std::size_t id = std::size_t(ptx_cvt_id);
  if (chunks.empty() || arch::loaded_forms().forms[id] == arch::Form::software) return {};
  return sweep(kKernels[id].sweep, ptx_cvt(kPtxCvts[id]), inputs, chunks);
}

std::vector<CvtChunk> sweep_with_wrong_model() {
  constexpr int kId = find_ptx_cvt("cvt.rn.bf16.f32"), kWrong = find_ptx_cvt("cvt.rn.relu.bf16.f32");
  std::vector<uint32_t> chunks(count_chunks(kDomainOf<kId>, CvtInputs::equal));
  std::iota(chunks.begin(), chunks.end(), 0u);
  return sweep(sweep_kernel<kId, kWrong>, kPtxCvtAt<kId>, CvtInputs::equal, chunks);
}

}  // namespace halfulp

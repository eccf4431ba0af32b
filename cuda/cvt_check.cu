#include "cuda/cvt_check.h"

#include <cuda_runtime.h>

#include <array>
#include <memory>
#include <utility>

#include "cuda/arch/cvt.cuh"
#include "cuda/check.h"

namespace halfulp {
namespace {

constexpr unsigned kThreads = 256, kBlocks = 4096;
constexpr int kShown = 4;

template <int id>
constexpr CvtDomain kDomainOf = domain_of(kPtxCvtAt<id>);

struct Tally {
  unsigned long long compared;
  unsigned long long mismatches;
  CvtMismatch shown[kShown];
};

__device__ void add_mismatch(Tally* tally, const CvtMismatch& mismatch) {
  const unsigned long long number = atomicAdd(&tally->mismatches, 1ull);
  if (number < kShown) tally->shown[number] = mismatch;
}

// 64-bit, because 2^32 inputs end where 32 bits begin anew.
__device__ uint64_t first_input() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ uint64_t input_step() { return gridDim.x * blockDim.x; }

// Two hundred kernels: not inlined and not unrolled, they compile in half the time.
__device__ __noinline__ CvtInput input_of(CvtDomain domain, CvtInputs kind, uint32_t i) {
  return cvt_input(domain, kind, i);
}

template <int id>
__global__ void convert_kernel(CvtInputs kind, uint32_t stride, uint32_t count, uint32_t* registers) {
#pragma unroll 1
  for (uint64_t i = first_input(); i < count; i += input_step()) {
    const CvtInput input = input_of(kDomainOf<id>, kind, uint32_t(i * stride));
    registers[i] = arch::convert<id>(input.sources, input.word);
  }
}

// Nothing where the target has no native form: there the model is what arch::convert gives.
template <int id, int model_id>
__global__ void compare_kernel(CvtInputs kind, uint64_t count, Tally* tally) {
  if constexpr (arch::is_native<id>()) {
    constexpr PtxCvt op = kPtxCvtAt<model_id>;
#pragma unroll 1
    for (uint64_t i = first_input(); i < count; i += input_step()) {
      const CvtInput input = input_of(kDomainOf<id>, kind, uint32_t(i));
      const uint32_t native = arch::convert<id>(input.sources, input.word);
      const uint32_t model = convert_register(op, input.sources, input.word);
      if (native != model) add_mismatch(tally, {uint32_t(i), native, model});
    }
    if (first_input() == 0) tally->compared = count;
  }
}

struct Kernels {
  void (*convert)(CvtInputs, uint32_t, uint32_t, uint32_t*);
  void (*compare)(CvtInputs, uint64_t, Tally*);
};

template <std::size_t... id>
constexpr std::array<Kernels, sizeof...(id)> kernels(std::index_sequence<id...>) {
  return {Kernels{convert_kernel<int(id)>, compare_kernel<int(id), int(id)>}...};
}
constexpr auto kKernels = kernels(std::make_index_sequence<kPtxCvts.size()>{});

struct CudaFree {
  void operator()(void* memory) const { cudaFree(memory); }
};

template <class T>
std::unique_ptr<T[], CudaFree> device_array(std::size_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, count * sizeof(T)));
  std::unique_ptr<T[], CudaFree> owner(static_cast<T*>(memory));
  check(cudaMemset(memory, 0, count * sizeof(T)));
  return owner;
}

CvtComparison compare(decltype(Kernels::compare) kernel, CvtInputs inputs, uint64_t count) {
  const auto on_device = device_array<Tally>(1);
  kernel<<<kBlocks, kThreads>>>(inputs, count, on_device.get());
  check(cudaGetLastError());
  Tally tally;
  check(cudaMemcpy(&tally, on_device.get(), sizeof tally, cudaMemcpyDeviceToHost));
  const uint64_t shown = tally.mismatches < kShown ? tally.mismatches : kShown;
  return {tally.compared, tally.mismatches, {tally.shown, tally.shown + shown}};
}

}  // namespace

bool has_gpu() {
  cudaFuncAttributes attributes;
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0 &&
         cudaFuncGetAttributes(&attributes, kKernels[0].convert) == cudaSuccess;
}

std::vector<uint32_t> convert_on_gpu(int ptx_cvt_id, CvtInputs inputs, uint32_t stride, uint32_t count) {
  const auto registers = device_array<uint32_t>(count);
  kKernels[std::size_t(ptx_cvt_id)].convert<<<kBlocks, kThreads>>>(inputs, stride, count, registers.get());
  check(cudaGetLastError());
  std::vector<uint32_t> result(count);
  check(cudaMemcpy(result.data(), registers.get(), count * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  return result;
}

CvtComparison compare_forms(int ptx_cvt_id, CvtInputs inputs) {
  const std::size_t id = std::size_t(ptx_cvt_id);
  return compare(kKernels[id].compare, inputs, count_inputs(domain_of(ptx_cvt(kPtxCvts[id]))));
}

CvtComparison compare_with_wrong_model() {
  constexpr int kId = find_ptx_cvt("cvt.rn.bf16.f32"), kWrong = find_ptx_cvt("cvt.rn.relu.bf16.f32");
  return compare(compare_kernel<kId, kWrong>, CvtInputs::every, count_inputs(kDomainOf<kId>));
}

}  // namespace halfulp

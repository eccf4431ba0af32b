#include "cuda/codec_check.h"

#include <cuda_runtime.h>

#include <array>
#include <memory>
#include <utility>

#include "cuda/arch/cvt.cuh"
#include "cuda/check.h"

namespace halfulp {
namespace {

template <int id, CvtForm form>
__global__ void convert_kernel(const uint32_t* sources, const uint32_t* words, uint32_t* registers, uint32_t count) {
  constexpr PtxCvt op = kPtxCvtAt<id>;
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  if constexpr (form == CvtForm::native) {
    registers[i] = arch::convert<id>(sources + i * op.lanes, words[i]);
  } else {
    registers[i] = convert_register(op, sources + i * op.lanes, words[i]);
  }
}

using Kernel = void (*)(const uint32_t*, const uint32_t*, uint32_t*, uint32_t);

struct CvtKernels {
  Kernel model;
  Kernel native;  // null where no native form is known
  int since;      // of the native form
};

template <int id>
constexpr CvtKernels kernels_of() {
  Kernel native = nullptr;
  if constexpr (arch::NativeCvt<id>::since != arch::kNever) native = convert_kernel<id, CvtForm::native>;
  return {convert_kernel<id, CvtForm::model>, native, arch::NativeCvt<id>::since};
}

CvtKernels kernels_at(int id) {
  return [&]<std::size_t... row>(std::index_sequence<row...>) {
    return std::array{kernels_of<int(row)>()...}[std::size_t(id)];
  }
  (std::make_index_sequence<kPtxCvts.size()>{});
}

struct CudaFree {
  void operator()(uint32_t* memory) const { cudaFree(memory); }
};
using DeviceWords = std::unique_ptr<uint32_t, CudaFree>;

DeviceWords device_words(std::size_t count) {
  uint32_t* memory = nullptr;
  check(cudaMalloc(&memory, count * sizeof(uint32_t)));
  return DeviceWords(memory);
}

DeviceWords to_device(std::span<const uint32_t> words) {
  DeviceWords copy = device_words(words.size());
  check(cudaMemcpy(copy.get(), words.data(), words.size_bytes(), cudaMemcpyHostToDevice));
  return copy;
}

}  // namespace

bool has_gpu() {
  cudaFuncAttributes attributes;
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0 &&
         cudaFuncGetAttributes(&attributes, kernels_at(0).model) == cudaSuccess;
}

bool has_native_form(int ptx_cvt_id) {
  int device = 0, major = 0, minor = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return major * 100 + minor * 10 >= kernels_at(ptx_cvt_id).since;
}

std::vector<uint32_t> convert_on_gpu(int ptx_cvt_id, CvtForm form, std::span<const uint32_t> sources,
                                     std::span<const uint32_t> words) {
  constexpr uint32_t kThreads = 256;
  const uint32_t count = uint32_t(words.size());
  const DeviceWords source_words = to_device(sources), random_words = to_device(words);
  const DeviceWords registers = device_words(count);
  const CvtKernels kernels = kernels_at(ptx_cvt_id);
  const Kernel kernel = form == CvtForm::native ? kernels.native : kernels.model;
  kernel<<<(count + kThreads - 1) / kThreads, kThreads>>>(source_words.get(), random_words.get(), registers.get(),
                                                          count);
  check(cudaGetLastError());
  std::vector<uint32_t> result(count);
  check(cudaMemcpy(result.data(), registers.get(), count * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  return result;
}

}  // namespace halfulp

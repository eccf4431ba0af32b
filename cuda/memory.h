#pragma once
// Arrays in the memory of a GPU. Not for tensors in files: those come through spans.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cuda/check.h"

namespace halfulp {

// Back to the device's pool, once what was started on the default stream is done.
struct CudaFree {
  void operator()(void* memory) const { cudaFreeAsync(memory, nullptr); }
};

// Makes the pool of a device keep what is given back to it, for the next array.
inline void keep_memory(int device) {
  cudaMemPool_t pool;
  check(cudaDeviceGetDefaultMemPool(&pool, device));
  uint64_t all = ~uint64_t{0};
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
}

// Uninitialised elements, for the default stream. Throws EnvironmentError where there is not enough memory.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size) : size_(size) {
    void* memory = nullptr;
    if (size > 0) check_allocation(cudaMallocAsync(&memory, size * sizeof(T), nullptr), size * sizeof(T));
    memory_.reset(static_cast<T*>(memory));
  }
  explicit DeviceArray(std::span<const T> values) : DeviceArray(values.size()) {
    if (size_ > 0) check(cudaMemcpy(data(), values.data(), values.size_bytes(), cudaMemcpyHostToDevice));
  }

  T* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }

  void copy_to(std::span<T> values) const {
    if (size_ > 0) check(cudaMemcpy(values.data(), data(), values.size_bytes(), cudaMemcpyDeviceToHost));
  }
  std::vector<T> on_host() const {
    std::vector<T> values(size_);
    copy_to(values);
    return values;
  }

 private:
  std::unique_ptr<T[], CudaFree> memory_;
  std::size_t size_;
};

}  // namespace halfulp

#pragma once
// Errors of the CUDA runtime as exceptions.

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>

#include "cuda/messages.h"
#include "lib/error.h"

namespace halfulp {

// Throws with the caller's place unless `error` is cudaSuccess.
inline void check(cudaError_t error, std::source_location where = std::source_location::current()) {
  if (error == cudaSuccess) return;
  throw EnvironmentError(std::string(where.file_name()) + ":" + std::to_string(where.line()) +
                         ": CUDA: " + cudaGetErrorString(error));
}

// Of an allocation: says how many bytes were asked for, and how many there are.
inline void check_allocation(cudaError_t error, std::size_t bytes,
                             std::source_location where = std::source_location::current()) {
  if (error != cudaErrorMemoryAllocation) return check(error, where);
  cudaGetLastError();  // is told here, and not once more by who launches next
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total));
  throw EnvironmentError(out_of_memory_text(bytes, free, total));
}

// Throws for a pointer that does not lie on so many bytes; null does.
inline void check_alignment(std::string_view what, const void* pointer, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address % bytes == 0) return;
  throw EnvironmentError(misaligned_text(what, address, bytes) + ", where it must be (cudaMalloc's memory is)");
}

}  // namespace halfulp

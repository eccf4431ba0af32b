#pragma once
// Errors of the CUDA runtime as exceptions.

#include <cuda_runtime.h>

#include <source_location>
#include <string>

#include "lib/error.h"

namespace halfulp {

// Throws with the caller's place unless `error` is cudaSuccess.
inline void check(cudaError_t error, std::source_location where = std::source_location::current()) {
  if (error == cudaSuccess) return;
  throw EnvironmentError(std::string(where.file_name()) + ":" + std::to_string(where.line()) +
                         ": CUDA: " + cudaGetErrorString(error));
}

}  // namespace halfulp

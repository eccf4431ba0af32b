#pragma once
// The architecture that device code is compiled for, as a value. Not the device's, which is known at run time only.

#include <climits>

namespace halfulp::arch {

// 900 for sm_90; 0 in host code.
__host__ __device__ constexpr int compiled_for() {
#ifdef __CUDA_ARCH__
  return __CUDA_ARCH__;
#else
  return 0;
#endif
}

inline constexpr int kNever = INT_MAX;

}  // namespace halfulp::arch

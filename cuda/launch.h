#pragma once
// Sizes of grids.

#include <cstdint>

namespace halfulp::gpu {

inline constexpr uint64_t kMaxGridRows = 65535;  // CUDA C++ Programming Guide, technical specifications

// CTAs of so many threads that have `threads` between them.
constexpr unsigned ctas(uint64_t threads, unsigned of_cta) { return unsigned((threads + of_cta - 1) / of_cta); }

}  // namespace halfulp::gpu

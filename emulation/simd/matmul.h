#pragma once
// Steps of matrix products on the processor's best instruction set. See matmul_job.h.

#include <cstddef>

#include "emulation/simd/matmul_job.h"

namespace halfulp::simd {

// Columns that a kernel works on together.
std::size_t matmul_lanes();

void add_aligned(const AlignedJob& job);
void add_groups(const GroupsJob& job);

}  // namespace halfulp::simd

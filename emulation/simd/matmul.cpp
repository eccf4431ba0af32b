// Compiled once for each instruction set, as encode.cpp is.
#include "emulation/simd/matmul.h"

#include <hwy/foreach_target.h>

#include "emulation/simd/matmul_kernels.h"

namespace halfulp::simd {
namespace {

HWY_EXPORT(lanes_of_target);
HWY_EXPORT(aligned_steps);
HWY_EXPORT(group_steps);

}  // namespace

std::size_t matmul_lanes() { return HWY_DYNAMIC_DISPATCH(lanes_of_target)(); }
void add_aligned(const AlignedJob& job) { HWY_DYNAMIC_DISPATCH(aligned_steps)(job); }
void add_groups(const GroupsJob& job) { HWY_DYNAMIC_DISPATCH(group_steps)(job); }

}  // namespace halfulp::simd

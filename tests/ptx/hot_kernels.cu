// The kernels that must be fast, to be read as PTX: do they hold the instructions that their recipes ask for? One line
// makes a kernel one of them.

#include "cuda/in_place_kernel.cuh"

namespace halfulp::gpu {

constexpr int kMxfp8 = find_kernel(recipe_named("mxfp8/te"));
constexpr int kMxfp8E5m2 = find_kernel(recipe_named("mxfp8/te-e5m2"));
constexpr int kNvfp4 = find_kernel(recipe_named("nvfp4/te"));
constexpr int kNvfp4Tiles = find_kernel(recipe_named("nvfp4/te-2d"));
constexpr int kNvfp4Stochastic = find_kernel(halfulp::detail::stochastic("nvfp4/te", RandomSource::te));

template __global__ void quantize_kernel<kMxfp8, Bf16>(KernelJob);
template __global__ void quantize_kernel<kMxfp8E5m2, Bf16>(KernelJob);
template __global__ void quantize_kernel<kNvfp4, Bf16>(KernelJob);
template __global__ void quantize_kernel<kNvfp4, F32>(KernelJob);
template __global__ void quantize_kernel<kNvfp4Tiles, Bf16>(KernelJob);
template __global__ void quantize_kernel<kNvfp4Stochastic, Bf16>(KernelJob);
template __global__ void quantize_in_place_kernel<kMxfp8, Bf16>(BothJob);
template __global__ void quantize_both_kernel<kNvfp4, Bf16, ColumnValues::plain>(BothJob);
template __global__ void quantize_both_kernel<kNvfp4, Bf16, ColumnValues::rotated>(BothJob);

}  // namespace halfulp::gpu

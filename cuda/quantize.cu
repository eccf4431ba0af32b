#include "cuda/quantize.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "cuda/check.h"
#include "cuda/elements.cuh"
#include "cuda/memory.h"
#include "cuda/quantize_kernel.cuh"
#include "emulation/blocks/elementwise.h"

namespace halfulp {
namespace {

constexpr unsigned kThreads = 256;

using gpu::ctas;
using gpu::source_index;

// Compiled kernels.

struct CompiledKernel {
  void (*kernel)(gpu::KernelJob);
  gpu::Launch launch;
};

template <int recipe, class Source>
constexpr CompiledKernel compiled_kernel() {
  return {gpu::quantize_kernel<recipe, Source>, gpu::launch_of<recipe>()};
}

template <int recipe>
constexpr std::array<CompiledKernel, 3> kKernelsOf{
    compiled_kernel<recipe, gpu::F32>(), compiled_kernel<recipe, gpu::F16>(), compiled_kernel<recipe, gpu::Bf16>()};

template <std::size_t... recipe>
constexpr auto all_kernels(std::index_sequence<recipe...>) {
  return std::array{kKernelsOf<int(recipe)>...};
}
constexpr auto kCompiled = all_kernels(std::make_index_sequence<kKernelRecipes.size()>{});

// By definition.

template <class Source>
__global__ void to_floats(const void* x, uint64_t count, float* y) {
  const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) y[i] = gpu::element<Source>(x, i);
}

__global__ void define_blocks(Elementwise e, uint64_t blocks, BlockScale* scales, uint32_t* codes) {
  const uint64_t block = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (block >= blocks) return;
  scales[block] = scale_of_block(e, block);
  encode_block(e, scales[block], block, codes);
}

__global__ void define_elements(Elementwise e, uint64_t elements, uint32_t* codes) {
  const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < elements) codes[i] = code_at(e, {}, i / e.cols, i % e.cols);
}

__global__ void define_scale_codes(Elementwise e, uint64_t blocks, const BlockScale* scales, const uint32_t* codes,
                                   uint32_t* scale_codes) {
  const uint64_t block = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (block >= blocks) return;
  scale_codes[block] = e.recipe->correction.group > 0 ? corrected_scale(e, scales, codes, block) : scales[block].code;
}

// One thread a byte: codes of 4 bits share one.
__global__ void pack(const uint32_t* codes, int bits, int shift, uint64_t bytes, std::byte* packed) {
  const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= bytes) return;
  if (bits == 4) {
    packed[i] = std::byte(codes[2 * i] | codes[2 * i + 1] << 4);
  } else {
    const uint64_t of_code = uint64_t(bits / 8);
    packed[i] = std::byte(codes[i / of_code] << shift >> (i % of_code * 8));
  }
}

void pack_codes(const DeviceArray<uint32_t>& codes, int bits, int shift, std::byte* packed) {
  const uint64_t bytes = codes.size() * uint64_t(bits) / 8;
  pack<<<ctas(bytes, kThreads), kThreads>>>(codes.data(), bits, shift, bytes, packed);
  check(cudaGetLastError());
}

__global__ void place_in_tiles(Grid grid, const std::byte* scales, std::byte* tiles) {
  const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < grid.rows * grid.cols) tiles[swizzled_offset(grid.cols, i / grid.cols, i % grid.cols)] = scales[i];
}

void store_scale_codes(const Recipe& recipe, const GpuQuantizeJob& job, const DeviceArray<uint32_t>& codes) {
  if (job.scale_order == ScaleOrder::row_major) return pack_codes(codes, recipe.scale.storage_bits(), 0, job.scales);
  const Matrix grid = scale_grid(recipe, job.shape);
  const DeviceArray<std::byte> scales(codes.size());
  pack_codes(codes, recipe.scale.storage_bits(), 0, scales.data());
  place_in_tiles<<<ctas(codes.size(), kThreads), kThreads>>>({grid.rows, grid.cols}, scales.data(), job.scales);
  check(cudaGetLastError());
}

DeviceArray<float> floats_of(const GpuQuantizeJob& job) {
  DeviceArray<float> y(job.shape.elements());
  gpu::with_source(job.dtype, [&](auto source) {
    to_floats<decltype(source)><<<ctas(y.size(), kThreads), kThreads>>>(job.x, y.size(), y.data());
  });
  check(cudaGetLastError());
  return y;
}

void run_by_definition(const Recipe& recipe, const GpuQuantizeJob& job) {
  const DeviceArray<Recipe> row(std::span(&recipe, 1));
  const DeviceArray<uint32_t> words(job.random.words);
  const DeviceArray<float> x = floats_of(job);
  Elementwise e = elementwise(recipe, job.tensor, job.shape, x.data(), job.random);
  e.recipe = row.data();
  e.words = words.data();
  const DeviceArray<uint32_t> codes(job.shape.elements());
  const uint64_t blocks = scale_grid(recipe, job.shape).elements();
  const DeviceArray<BlockScale> scales(blocks);
  const DeviceArray<uint32_t> scale_codes(blocks);
  if (has_scale(recipe)) {
    define_blocks<<<ctas(blocks, kThreads), kThreads>>>(e, blocks, scales.data(), codes.data());
    define_scale_codes<<<ctas(blocks, kThreads), kThreads>>>(e, blocks, scales.data(), codes.data(),
                                                             scale_codes.data());
    check(cudaGetLastError());
    store_scale_codes(recipe, job, scale_codes);
  } else {
    define_elements<<<ctas(codes.size(), kThreads), kThreads>>>(e, codes.size(), codes.data());
    check(cudaGetLastError());
  }
  pack_codes(codes, recipe.element.storage_bits(), recipe.element.entry().storage_shift, job.codes);
  check(cudaDeviceSynchronize());  // before the arrays go
}

// A compiled kernel moves vectors of 16 bytes, the definition single elements.
void check_pointers(const GpuQuantizeJob& job, Kernel kernel) {
  check_alignment("quantize_on_gpu: x", job.x, kernel == Kernel::compiled ? 16 : std::size_t(row(job.dtype).bits / 8));
  if (kernel == Kernel::definition) return;
  check_alignment("quantize_on_gpu: codes", job.codes, 16);
  check_alignment("quantize_on_gpu: scales", job.scales, 16);
}

}  // namespace

bool has_compiled_kernel(const Recipe& recipe, const GpuQuantizeJob& job) {
  const int id = find_kernel(recipe);
  if (id < 0 || !job.random.words.empty() || job.random.first_element % 4 != 0) return false;
  return kCompiled[std::size_t(id)][source_index(job.dtype)].launch.takes(job.shape) &&
         gpu::lie_on_16_bytes(job.x, job.codes, job.scales);
}

void quantize_on_gpu(const Recipe& recipe, const GpuQuantizeJob& job, Kernel kernel) {
  if (job.shape.elements() == 0) return;
  if (job.scale_order == ScaleOrder::tiles && recipe.scale.storage_bits() != 8)
    throw std::logic_error("recipe " + std::string(recipe.name) + ": scales in tiles are of 8 bits");
  check_pointers(job, kernel);
  if (kernel == Kernel::definition) return run_by_definition(recipe, job);
  if (!has_compiled_kernel(recipe, job))
    throw std::logic_error("no compiled kernel for recipe " + std::string(recipe.name) + " and this matrix");
  const CompiledKernel& is = kCompiled[std::size_t(find_kernel(recipe))][source_index(job.dtype)];
  is.kernel<<<is.launch.grid(job.shape), is.launch.threads>>>(gpu::kernel_job(job));
  check(cudaGetLastError());
}

}  // namespace halfulp

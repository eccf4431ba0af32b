#include "cuda/dequantize.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "cuda/check.h"
#include "cuda/memory.h"
#include "cuda/quantize_kernel.cuh"
#include "formats/packing.h"

namespace halfulp {
namespace {

constexpr unsigned kThreads = 256;

using gpu::ctas;

// A code or scale of `bits` bits.
__device__ uint32_t load_any(int bits, const std::byte* codes, uint64_t i) {
  switch (bits) {
    case 4: return load_code<4>(codes, i);
    case 8: return load_code<8>(codes, i);
    case 16: return load_code<16>(codes, i);
    default: return load_code<32>(codes, i);
  }
}

// A GPU's arithmetic makes every NaN 0x7fff'ffff, a CPU's keeps an operand's; here it is the one that decode() gives.
__device__ float with_one_nan(float y) { return y == y ? y : detail::quiet_nan(); }

// Compiled kernels.

template <int recipe, int words>
__device__ void load_words(const std::byte* codes, uint32_t (&to)[words]) {
  if constexpr (words == 2) {
    const uint2 vector = *reinterpret_cast<const uint2*>(codes);
    to[0] = vector.x, to[1] = vector.y;
  } else {
#pragma unroll
    for (int i = 0; i < words; i += 4) {
      const uint4 vector = reinterpret_cast<const uint4*>(codes)[i / 4];
      to[i] = vector.x, to[i + 1] = vector.y, to[i + 2] = vector.z, to[i + 3] = vector.w;
    }
  }
}

template <int recipe>
__device__ float value_in_block(const TensorScale& tensor, float scale, uint32_t code) {
  constexpr Format format = gpu::Conversion<recipe, gpu::Part::element>::format;
  if constexpr (gpu::kSteps<recipe, gpu::Field::value> == 0) {
    return decode(format, code);
  } else {
    Values values = values_of(tensor);
    values[Symbol::c] = decode(format, code);
    values[Symbol::s] = scale;
    return with_one_nan(gpu::evaluate_row<recipe, gpu::Field::value>(values));
  }
}

template <int recipe>
__device__ float scale_at(const GpuDequantizeJob& job, uint64_t block) {
  using Scale = gpu::Conversion<recipe, gpu::Part::scale>;
  constexpr Format format = Scale::format;
  if constexpr (gpu::Shares<recipe>::has_blocks) return decode(format, load_code<Scale::bits>(job.scales, block));
  return 1;
}

template <int recipe>
__device__ void dequantize_run(const GpuDequantizeJob& job, const gpu::Place& place) {
  using Is = gpu::Shares<recipe>;
  constexpr int bits = gpu::Conversion<recipe, gpu::Part::element>::bits;
  uint32_t codes[Is::run * bits / 32];
  load_words<recipe>(job.codes + place.element * bits / 8, codes);
  const float scale = scale_at<recipe>(job, place.block);
#pragma unroll
  for (int i = 0; i < Is::run; i += 4) {
    float y[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const uint32_t code = codes[(i + k) * bits / 32] >> ((i + k) * bits % 32) & uint32_t(low_mask(bits));
      y[k] = value_in_block<recipe>(job.tensor, scale, code);
    }
    *reinterpret_cast<float4*>(job.y + place.element + i) = make_float4(y[0], y[1], y[2], y[3]);
  }
}

template <int recipe>
__global__ void __launch_bounds__(gpu::Shares<recipe>::threads) dequantize_kernel(GpuDequantizeJob job) {
  const uint64_t rows = job.shape.rows,
                 rows_together = gpu::Shares<recipe>::tiles ? gpu::Shares<recipe>::block_rows : rows;
  for (uint64_t row = blockIdx.y; row < rows / rows_together; row += gridDim.y) {
    const gpu::Place place = gpu::place_of<recipe>(rows, job.shape.cols, row);
    if (place.inside) dequantize_run<recipe>(job, place);
  }
}

struct CompiledKernel {
  void (*kernel)(GpuDequantizeJob);
  gpu::Launch launch;
};

template <std::size_t... recipe>
constexpr auto all_kernels(std::index_sequence<recipe...>) {
  return std::array{CompiledKernel{dequantize_kernel<int(recipe)>, gpu::launch_of<int(recipe)>()}...};
}
constexpr auto kCompiled = all_kernels(std::make_index_sequence<kKernelRecipes.size()>{});

// By definition.

__global__ void define_values(const Recipe* recipe, TensorScale tensor, uint64_t cols, uint64_t height, uint64_t width,
                              uint64_t grid_cols, int shift, GpuDequantizeJob job, uint64_t elements) {
  const uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  float scale = 1;
  if (recipe->scale.storage_bits() > 0) {
    const uint64_t block = i / cols / height * grid_cols + i % cols / width;
    scale = decode(recipe->scale.format(), load_any(recipe->scale.storage_bits(), job.scales, block));
  }
  const uint32_t code = load_any(recipe->element.storage_bits(), job.codes, i) >> shift;
  job.y[i] = with_one_nan(decode_element(*recipe, tensor, scale, code));
}

void run_by_definition(const Recipe& recipe, const GpuDequantizeJob& job) {
  const DeviceArray<Recipe> row(std::span(&recipe, 1));
  const uint64_t elements = job.shape.elements();
  define_values<<<ctas(elements, kThreads), kThreads>>>(
      row.data(), job.tensor, job.shape.cols, uint64_t(recipe.block.rows), block_cols(recipe, job.shape),
      scale_grid(recipe, job.shape).cols, recipe.element.entry().storage_shift, job, elements);
  check(cudaGetLastError());
  check(cudaDeviceSynchronize());  // before the row goes
}

// As in quantize.cu.
void check_pointers(const GpuDequantizeJob& job, Kernel kernel) {
  check_alignment("dequantize_on_gpu: y", job.y, kernel == Kernel::compiled ? 16 : sizeof(float));
  if (kernel == Kernel::definition) return;
  check_alignment("dequantize_on_gpu: codes", job.codes, 16);
  check_alignment("dequantize_on_gpu: scales", job.scales, 16);
}

}  // namespace

bool has_compiled_kernel(const Recipe& recipe, const GpuDequantizeJob& job) {
  const int id = find_kernel(recipe);
  return id >= 0 && kKernelRecipes[std::size_t(id)].value == recipe.value &&
         kCompiled[std::size_t(id)].launch.takes(job.shape) && gpu::lie_on_16_bytes(job.codes, job.scales, job.y);
}

void dequantize_on_gpu(const Recipe& recipe, const GpuDequantizeJob& job, Kernel kernel) {
  if (job.shape.elements() == 0) return;
  check_pointers(job, kernel);
  if (kernel == Kernel::definition) return run_by_definition(recipe, job);
  if (!has_compiled_kernel(recipe, job))
    throw std::logic_error("no compiled kernel for recipe " + std::string(recipe.name) + " and this matrix");
  const CompiledKernel& is = kCompiled[std::size_t(find_kernel(recipe))];
  is.kernel<<<is.launch.grid(job.shape), is.launch.threads>>>(job);
  check(cudaGetLastError());
}

}  // namespace halfulp

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "cuda/both_kernel.cuh"
#include "cuda/check.h"
#include "cuda/in_place_kernel.cuh"
#include "cuda/quantize.h"

namespace halfulp {
namespace {

using gpu::ColumnValues;

// How a kernel for columns is launched, and what block it takes; null where there is none.
struct BothKernel {
  void (*kernel)(gpu::BothJob) = nullptr;
  unsigned threads = 0;
  uint64_t block = 0, cta_rows = 0, cta_cols = 0;
  std::size_t shared_bytes = 0;
};

template <int recipe>
constexpr bool has_columns() {
  constexpr const Recipe& r = kKernelRecipes[recipe];
  return r.block.rows == 1 && (r.block.cols == 16 || r.block.cols == 32) && r.scale.storage_bits() == 8;
}

template <int recipe, class Source, ColumnValues values>
constexpr BothKernel transposed_kernel() {
  constexpr int block = kKernelRecipes[recipe].block.cols;
  if constexpr (has_columns<recipe>() && (values == ColumnValues::plain || block == gpu::kRotated)) {
    using Tile = gpu::Tile<recipe, Source>;
    return {.kernel = gpu::quantize_both_kernel<recipe, Source, values>,
            .threads = 32 * Tile::warps,
            .block = uint64_t(block),
            .cta_rows = Tile::rows * Tile::warps,
            .cta_cols = Tile::cols,
            .shared_bytes = sizeof(Tile) * Tile::warps};
  }
  return {};
}

template <int recipe, class Source>
constexpr BothKernel in_place_kernel() {
  constexpr const Recipe& r = kKernelRecipes[recipe];
  if constexpr (has_columns<recipe>() && r.block.cols == 32 && r.element.storage_bits() == 8 && !is_random(r)) {
    using Tile = gpu::WideTile<recipe, Source>;
    return {.kernel = gpu::quantize_in_place_kernel<recipe, Source>,
            .threads = 32 * Tile::warps,
            .block = uint64_t(r.block.cols),
            .cta_rows = Tile::rows,
            .cta_cols = Tile::cols * Tile::warps,
            .shared_bytes = sizeof(Tile) * Tile::warps};
  }
  return {};
}

template <int recipe, class Source>
constexpr std::array<BothKernel, 3> kOfSource{in_place_kernel<recipe, Source>(),
                                              transposed_kernel<recipe, Source, ColumnValues::plain>(),
                                              transposed_kernel<recipe, Source, ColumnValues::rotated>()};

template <std::size_t... recipe>
constexpr auto all_kernels(std::index_sequence<recipe...>) {
  return std::array{std::array{kOfSource<int(recipe), gpu::F32>, kOfSource<int(recipe), gpu::F16>,
                               kOfSource<int(recipe), gpu::Bf16>}...};
}
constexpr auto kBoth = all_kernels(std::make_index_sequence<kKernelRecipes.size()>{});

bool takes(const Hadamard& rotation) {
  return rotation.size == gpu::kRotated && rotation.vectors == SignVectors::one &&
         rotation.result == HadamardResult::bf16;
}

BothKernel find_both(const Recipe& recipe, Dtype dtype, const GpuColumns& columns) {
  const int id = find_kernel(recipe);
  if (id < 0) return {};
  const auto& kernels = kBoth[std::size_t(id)][gpu::source_index(dtype)];
  if (!columns.rotation) return kernels[std::size_t(columns.layout)];
  return columns.layout == ColumnLayout::transposed && takes(*columns.rotation) ? kernels[2] : BothKernel{};
}

// The job of the columns, on the transpose.
GpuQuantizeJob transposed_job(const GpuQuantizeJob& rows, const GpuColumns& columns) {
  return {.shape = {.rows = rows.shape.cols, .cols = rows.shape.rows},
          .dtype = rows.dtype,
          .x = rows.x,
          .tensor = columns.tensor,
          .random = columns.random,
          .codes = columns.codes,
          .scales = columns.scales,
          .scale_order = columns.scale_order};
}

void check_pointers(const GpuQuantizeJob& rows, const GpuColumns& columns) {
  check_alignment("quantize_both_on_gpu: x", rows.x, 16);
  check_alignment("quantize_both_on_gpu: codes of rows", rows.codes, 16);
  check_alignment("quantize_both_on_gpu: scales of rows", rows.scales, 16);
  check_alignment("quantize_both_on_gpu: codes of columns", columns.codes, 16);
  check_alignment("quantize_both_on_gpu: scales of columns", columns.scales, 16);
}

uint32_t signs_of(const Hadamard& rotation) { return sign_bits(rotation, 0)[0]; }

}  // namespace

bool has_both_kernel(const Recipe& recipe, const GpuQuantizeJob& rows, const GpuColumns& columns) {
  const BothKernel is = find_both(recipe, rows.dtype, columns);
  return is.kernel != nullptr && rows.shape.rows % is.block == 0 && rows.shape.cols < gpu::kMaxTileCols &&
         rows.shape.rows < gpu::kMaxTileCols && has_compiled_kernel(recipe, rows) &&
         has_compiled_kernel(recipe, transposed_job(rows, columns));
}

void quantize_both_on_gpu(const Recipe& recipe, const GpuQuantizeJob& rows, const GpuColumns& columns) {
  if (rows.shape.elements() == 0) return;
  check_pointers(rows, columns);
  if (!has_both_kernel(recipe, rows, columns))
    throw std::logic_error("no kernel for columns of recipe " + std::string(recipe.name) + " and this matrix");
  const BothKernel is = find_both(recipe, rows.dtype, columns);
  const gpu::BothJob job{.rows = gpu::kernel_job(rows),
                         .columns = gpu::kernel_job(transposed_job(rows, columns)),
                         .signs = columns.rotation ? signs_of(*columns.rotation) : 0};
  const dim3 grid(unsigned(divide_up(rows.shape.cols, is.cta_cols)),
                  unsigned(std::min(divide_up(rows.shape.rows, is.cta_rows), gpu::kMaxGridRows)));
  check(cudaFuncSetAttribute(is.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(is.shared_bytes)));
  is.kernel<<<grid, is.threads, is.shared_bytes>>>(job);
  check(cudaGetLastError());
}

void raise_rotated_magnitude(AmaxNan nan, const GpuQuantizeJob& rows, const Hadamard& rotation, float* amax) {
  if (!takes(rotation) || rows.shape.rows % gpu::kRotated != 0 || rows.shape.cols % 2 != 0)
    throw std::logic_error("no kernel for this rotation of this matrix");
  constexpr unsigned kThreads = 128, kBelow = 64;
  const dim3 grid(gpu::ctas(rows.shape.cols / 2, kThreads),
                  unsigned(std::min(divide_up(rows.shape.rows, gpu::kRotated), uint64_t{kBelow})));
  gpu::with_source(rows.dtype, [&](auto source) {
    using Source = decltype(source);
    const auto kernel =
        nan == AmaxNan::propagates ? gpu::largest_rotated<Source, true> : gpu::largest_rotated<Source, false>;
    kernel<<<grid, kThreads>>>(gpu::kernel_job(rows), signs_of(rotation), amax);
  });
  check(cudaGetLastError());
}

}  // namespace halfulp

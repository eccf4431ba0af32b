#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "cuda/both_kernel.cuh"
#include "cuda/check.h"
#include "cuda/quantize.h"

namespace halfulp {
namespace {

constexpr uint64_t kMaxGridRows = 65535;  // CUDA C++ Programming Guide, technical specifications

struct BothKernel {
  void (*kernel)(gpu::BothJob) = nullptr;  // null where there is none
  uint64_t tile_rows = 0, tile_cols = 0;
  std::size_t shared_bytes = 0;
};

template <int recipe, class Source, ColumnLayout layout>
constexpr BothKernel both_kernel() {
  constexpr const Recipe& r = kKernelRecipes[recipe];
  constexpr bool blocks =
      r.block.rows == 1 && (r.block.cols == 16 || r.block.cols == 32) && r.scale.storage_bits() == 8 && !is_random(r);
  constexpr bool fits = layout == ColumnLayout::transposed || r.element.storage_bits() == 8;
  if constexpr (blocks && fits) {
    using Tile = gpu::Tile<recipe, Source>;
    return {gpu::quantize_both_kernel<recipe, Source, layout>, Tile::rows, Tile::cols, sizeof(Tile)};
  }
  return {};
}

using OfRecipe = std::array<std::array<BothKernel, 2>, 3>;  // by source and layout

template <int recipe, class Source>
constexpr std::array<BothKernel, 2> kBySource{both_kernel<recipe, Source, ColumnLayout::in_place>(),
                                              both_kernel<recipe, Source, ColumnLayout::transposed>()};

template <std::size_t... recipe>
constexpr std::array<OfRecipe, sizeof...(recipe)> all_kernels(std::index_sequence<recipe...>) {
  return {OfRecipe{kBySource<int(recipe), gpu::F32>, kBySource<int(recipe), gpu::F16>,
                   kBySource<int(recipe), gpu::Bf16>}...};
}
constexpr auto kBoth = all_kernels(std::make_index_sequence<kKernelRecipes.size()>{});

BothKernel find_both(const Recipe& recipe, Dtype dtype, ColumnLayout layout) {
  const int id = find_kernel(recipe);
  return id < 0 ? BothKernel{} : kBoth[std::size_t(id)][gpu::source_index(dtype)][std::size_t(layout)];
}

}  // namespace

bool has_both_kernel(const Recipe& recipe, const GpuQuantizeJob& rows, const GpuColumns& columns) {
  const BothKernel is = find_both(recipe, rows.dtype, columns.layout);
  return is.kernel != nullptr && has_compiled_kernel(recipe, rows) && rows.shape.rows % is.tile_rows == 0 &&
         rows.shape.cols % is.tile_cols == 0;
}

void quantize_both_on_gpu(const Recipe& recipe, const GpuQuantizeJob& rows, const GpuColumns& columns) {
  if (rows.shape.elements() == 0) return;
  if (!has_both_kernel(recipe, rows, columns))
    throw std::logic_error("no kernel for rows and columns of recipe " + std::string(recipe.name) + " and this matrix");
  const BothKernel is = find_both(recipe, rows.dtype, columns.layout);
  const gpu::BothJob job{.rows = gpu::kernel_job(rows),
                         .column_tensor = columns.tensor,
                         .column_codes = columns.codes,
                         .column_scales = columns.scales};
  check(cudaFuncSetAttribute(is.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(is.shared_bytes)));
  const dim3 grid(unsigned(rows.shape.cols / is.tile_cols),
                  unsigned(std::min(rows.shape.rows / is.tile_rows, kMaxGridRows)));
  is.kernel<<<grid, 256, is.shared_bytes>>>(job);
  check(cudaGetLastError());
}

}  // namespace halfulp

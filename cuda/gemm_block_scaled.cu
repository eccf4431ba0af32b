#include "cuda/gemm_block_scaled.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "cuda/arch/matrix_form.h"
#include "cuda/check.h"
#include "cuda/gemm_block_scaled_kernel.cuh"
#include "cuda/memory.h"

namespace halfulp {
namespace {

using arch::ScaledMma;
using arch::Tcgen05Kind;
using gpu::BlockScaledKernelJob;

// What a kind's operands are, and the instructions that take them.
struct KindEntry {
  std::string_view formats;
  std::size_t block;
  int code_bits;
  ScaledMma mma;
  Tcgen05Kind tcgen05;
};
constexpr KindEntry kKinds[] = {
    {.formats = "e2m1", .block = 16, .code_bits = 4, .mma = ScaledMma::mxf4nvf4_4x, .tcgen05 = Tcgen05Kind::mxf4nvf4},
    {.formats = "e2m1", .block = 32, .code_bits = 4, .mma = ScaledMma::mxf4, .tcgen05 = Tcgen05Kind::mxf4},
    {.formats = "e4m3 e5m2", .block = 32, .code_bits = 8, .mma = ScaledMma::mxf8f6f4, .tcgen05 = Tcgen05Kind::mxf8f6f4},
};
const KindEntry& entry(BlockScaledKind kind) { return kKinds[std::size_t(kind)]; }

std::size_t scale_bytes(const BlockScaledOperand& x, Grid scales) {
  const Grid pad = x.order == ScaleOrder::tiles ? Grid{kTileRows, kTileCols} : Grid{1, 1};
  return round_up(scales.rows, pad.rows) * round_up(scales.cols, pad.cols);
}

std::string operand_refusal(const BlockScaledJob& job, const BlockScaledOperand& x, std::size_t rows,
                            const std::string& name) {
  const KindEntry& kind = entry(job.kind);
  if (!has_target(kind.formats, x.format))
    return name + " is of " + std::string(x.format) +
           ", which the instruction does not take: " + std::string(kind.formats);
  const std::size_t bytes = rows * job.k * std::size_t(kind.code_bits) / 8;
  if (x.codes.size() != bytes)
    return name + " has " + std::to_string(x.codes.size()) + " bytes of codes, not " + std::to_string(bytes);
  const std::size_t scales = scale_bytes(x, {rows, job.k / kind.block});
  if (x.scales.size() != scales)
    return name + " has " + std::to_string(x.scales.size()) + " bytes of scales, not " + std::to_string(scales);
  return "";
}

gpu::BlockScaledRows kernel_rows(const BlockScaledJob& job, const BlockScaledOperand& x, std::size_t rows) {
  const KindEntry& kind = entry(job.kind);
  return {.codes = x.codes.data(),
          .scales = x.scales.data(),
          .rows = int(rows),
          .scale_cols = int(job.k / kind.block),
          .order = x.order,
          .number = uint32_t(arch::tcgen05_format_number(kind.tcgen05, x.format))};
}

BlockScaledKernelJob kernel_job(const BlockScaledJob& job, std::span<std::byte> d) {
  const KindEntry& kind = entry(job.kind);
  const std::size_t row_bytes = job.k * std::size_t(kind.code_bits) / 8;
  const bool f32 = job.output == GemmOutput::f32;
  return {.a = kernel_rows(job, job.a, job.m),
          .b = kernel_rows(job, job.b, job.n),
          .row_bytes = int(row_bytes),
          .steps = int(divide_up(row_bytes, gpu::kInstructionBytes)),
          .alpha = job.alpha,
          .beta = job.beta,
          .c = job.c.data(),
          .f32 = f32 ? reinterpret_cast<float*>(d.data()) : nullptr,
          .bf16 = f32 ? nullptr : reinterpret_cast<uint16_t*>(d.data()),
          .model = nullptr};
}

using Kernel = void (*)(BlockScaledKernelJob);

Kernel mma_sync_kernel(const BlockScaledJob& job) {
  constexpr int e2m1 = find_format("e2m1"), e4m3 = find_format("e4m3"), e5m2 = find_format("e5m2");
  if (job.kind == BlockScaledKind::nvfp4) return gpu::multiply_by_mma_sync<ScaledMma::mxf4nvf4_4x, e2m1, e2m1>;
  if (job.kind == BlockScaledKind::mxfp4) return gpu::multiply_by_mma_sync<ScaledMma::mxf4, e2m1, e2m1>;
  if (job.a.format == "e4m3")
    return job.b.format == "e4m3" ? gpu::multiply_by_mma_sync<ScaledMma::mxf8f6f4, e4m3, e4m3>
                                  : gpu::multiply_by_mma_sync<ScaledMma::mxf8f6f4, e4m3, e5m2>;
  return job.b.format == "e4m3" ? gpu::multiply_by_mma_sync<ScaledMma::mxf8f6f4, e5m2, e4m3>
                                : gpu::multiply_by_mma_sync<ScaledMma::mxf8f6f4, e5m2, e5m2>;
}

Kernel tcgen05_kernel(const BlockScaledJob& job) {
  switch (job.kind) {
    case BlockScaledKind::nvfp4: return gpu::multiply_by_tcgen05<Tcgen05Kind::mxf4nvf4>;
    case BlockScaledKind::mxfp4: return gpu::multiply_by_tcgen05<Tcgen05Kind::mxf4>;
    case BlockScaledKind::mxfp8: return gpu::multiply_by_tcgen05<Tcgen05Kind::mxf8f6f4>;
  }
  throw std::logic_error("no such kind of product");
}

unsigned tiles(std::size_t size, int tile) { return unsigned(divide_up(size, uint64_t(tile))); }

void start_mma_sync(const BlockScaledJob& job, const BlockScaledKernelJob& to) {
  const dim3 grid(tiles(job.n, gpu::kMmaTile), tiles(job.m, gpu::kMmaTile));
  mma_sync_kernel(job)<<<grid, gpu::kBlockScaledThreads>>>(to);
  check(cudaGetLastError());
}

int multiprocessors() {
  int device = 0, count = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

void start_tcgen05(const BlockScaledJob& job, BlockScaledKernelJob to, arch::Form form) {
  const unsigned outputs = tiles(job.m, gpu::kTensorTile) * tiles(job.n, gpu::kTensorTile);
  const unsigned ctas = std::min(outputs, unsigned(multiprocessors()));
  const std::size_t words =
      form == arch::Form::native ? 0 : std::size_t{gpu::kTensorMemoryColumns} * arch::kTensorLanes;
  const DeviceArray<uint32_t> model(words * ctas);
  to.model = model.data();
  const Kernel kernel = tcgen05_kernel(job);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(sizeof(gpu::TensorShared))));
  kernel<<<ctas, gpu::kBlockScaledThreads, sizeof(gpu::TensorShared)>>>(to);
  check(cudaGetLastError());
}

}  // namespace

Accumulator accumulator_of(BlockScaledKind kind, BlockScaledPath path) {
  const std::string_view name = path == BlockScaledPath::mma_sync
                                    ? arch::kScaledMmas[std::size_t(entry(kind).mma)].accumulator
                                    : arch::kTcgen05Kinds[std::size_t(entry(kind).tcgen05)].accumulator;
  return kAccumulators[std::size_t(find_accumulator(name))];
}

BlockScaledPath block_scaled_path() {
  return arch::loaded_matrix_forms().tcgen05 == arch::Form::native ? BlockScaledPath::tcgen05
                                                                   : BlockScaledPath::mma_sync;
}

std::string refusal(const BlockScaledJob& job) {
  const std::size_t block = entry(job.kind).block;
  if (job.k % block != 0)
    return "K = " + std::to_string(job.k) + " is no multiple of the scales' blocks of " + std::to_string(block);
  if (std::max({job.m, job.n, job.k}) > std::size_t{1} << 21) return "a dimension is greater than 2097152";
  if (!job.c.empty() && job.c.size() != job.m * job.n) return "c is not of d's shape";
  const std::string a = operand_refusal(job, job.a, job.m, "a");
  return a.empty() ? operand_refusal(job, job.b, job.n, "b") : a;
}

BlockScaledRun gemm_block_scaled_on_gpu(const BlockScaledJob& job, BlockScaledPath path, std::span<std::byte> d) {
  if (const std::string why = refusal(job); !why.empty()) throw std::logic_error(why);
  if (d.size() != job.m * job.n * (job.output == GemmOutput::f32 ? 4 : 2)) throw std::logic_error("d has another size");
  for (const BlockScaledOperand& x : {job.a, job.b}) check_alignment("an operand", x.codes.data(), gpu::kPieceBytes);
  const arch::MatrixForms forms = arch::loaded_matrix_forms();
  const arch::Form form = path == BlockScaledPath::tcgen05 ? forms.tcgen05 : forms.mma_block_scaled;
  if (!d.empty()) {
    const BlockScaledKernelJob to = kernel_job(job, d);
    path == BlockScaledPath::tcgen05 ? start_tcgen05(job, to, form) : start_mma_sync(job, to);
  }
  return {path, form, forms.target};
}

BlockScaledRun gemm_block_scaled(const BlockScaledJob& job, BlockScaledPath path, std::span<std::byte> d) {
  const DeviceArray<uint8_t> a(job.a.codes), b(job.b.codes), a_scales(job.a.scales), b_scales(job.b.scales);
  const DeviceArray<float> c(job.c);
  const DeviceArray<std::byte> result(d.size());
  BlockScaledJob on_gpu = job;
  on_gpu.a.codes = {a.data(), a.size()}, on_gpu.b.codes = {b.data(), b.size()};
  on_gpu.a.scales = {a_scales.data(), a_scales.size()}, on_gpu.b.scales = {b_scales.data(), b_scales.size()};
  on_gpu.c = {c.data(), c.size()};
  const BlockScaledRun run = gemm_block_scaled_on_gpu(on_gpu, path, {result.data(), result.size()});
  result.copy_to(d);
  return run;
}

}  // namespace halfulp

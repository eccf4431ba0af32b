#include "cuda/gemm.h"

#include <cuda_runtime.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "cuda/check.h"
#include "cuda/gemm_kernel.cuh"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "emulation/matmul/panels.h"
#include "emulation/matmul/slices.h"

namespace halfulp {
namespace {

using gpu::GemmKernelJob;
using gpu::GemmTerms;

constexpr unsigned kThreads = 256;
constexpr std::size_t kMostRows = gpu::kMaxGridRows * gpu::kTileSide;

// Which element of K lies at a position; K or more: none.
__device__ int element_at(const GemmKernelJob& job, int position) {
  if (job.row.order != SumOrder::pairs_of_four) return position;
  const int in_step = position % job.step, half = in_step / (job.step / 2), in_half = in_step % (job.step / 2);
  return position - in_step + in_half / 2 * 4 + half * 2 + in_half % 2;
}

__global__ void lay_out_terms(const __grid_constant__ GemmKernelJob job, const __grid_constant__ GemmTerms to) {
  const int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= int64_t(job.steps) * job.step * to.rows) return;
  const int row = int(at % to.rows), k = element_at(job, int(at / to.rows));
  const bool is = row < to.count && k < job.k;
  const uint32_t code = is ? to.codes.codes[int64_t(row) * job.k + k] & to.codes.format.code_mask() : 0;
  const Operand x = input_of(job.row, to.codes.format, code);
  const bool finite = x.kind == Unpacked::Kind::finite, zero = !is || (finite && x.significand == 0);
  to.values[at] = zero || !finite ? 0 : decode(to.codes.format, code);
  to.exponents[at] = zero ? simd::kZeroExponent : finite ? x.exponent : simd::kSpecialExponent;
}

// Elements of a group that are not zero.
__device__ uint32_t mask_of(const GemmKernelJob& job, const GemmTerms& to, int row, int unit) {
  uint32_t mask = 0;
  for (int i = 0; i < int(simd::kGroupTerms) && unit * int(simd::kGroupTerms) + i < job.k; ++i) {
    const uint32_t code = to.codes.codes[int64_t(row) * job.k + unit * int(simd::kGroupTerms) + i];
    if ((code & to.codes.format.magnitude_mask()) != 0) mask |= 1u << i;
  }
  return mask;
}

// As Panel::fill_scales() has them: `always` is the bit that a NaN of the other operand meets, `nan` that of this
// one's.
__global__ void lay_out_scales(const __grid_constant__ GemmKernelJob job, const __grid_constant__ GemmTerms to,
                               int unit, uint32_t always, uint32_t nan) {
  const int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  const int row = int(at % to.rows), number = int(at / to.rows);
  if (number >= job.steps * job.step / unit) return;
  const bool is = row < to.count && number * unit < job.k;
  const int scales = (job.k + to.codes.scaled - 1) / to.codes.scaled;
  const uint32_t code = is ? to.codes.scales[int64_t(row) * scales + number * unit / to.codes.scaled] : 0;
  const Operand scale = operand_of(to.codes.scale_format, code);
  const bool finite = scale.kind == Unpacked::Kind::finite, zero = !is || (finite && scale.significand == 0);
  to.scale_exponents[at] = zero ? simd::kZeroExponent : finite ? scale.exponent : simd::kSpecialExponent;
  if (to.masks == nullptr) return;
  to.scales[at] = zero || !finite ? 0 : decode(to.codes.scale_format, code & to.codes.scale_format.code_mask());
  to.masks[at] = (zero ? 0 : mask_of(job, to, row, number)) | always | (finite ? 0 : nan);
}

// What the kernel left, element by element (gemm_element()).

__device__ DotOperand operand_row(const GemmTerms& x, int row, int k) {
  DotOperand operand = x.codes;
  operand.codes += int64_t(row) * k;
  if (operand.scales != nullptr) operand.scales += int64_t(row) * ((k + operand.scaled - 1) / operand.scaled);
  return operand;
}

__device__ float chain_exactly(const GemmKernelJob& job, int i, int j, int first, int end, float c) {
  const uint32_t sum = add_products(job.row, operand_row(job.a, i, job.k), operand_row(job.b, j, job.k),
                                    first * job.step, min(job.k, end * job.step), gpu::sum_code(job.row, c));
  return gpu::sum_value(job.row, sum);
}

__device__ float slice_exactly(const GemmKernelJob& job, int i, int j, int first, int end) {
  float total = 0;
  for (int step = first; step < end; step += job.segment) {
    const float sum = chain_exactly(job, i, j, step, min(end, step + job.segment), 0);
    if (job.row.promotion.every == 0) return sum;
    total = gpu::promoted(job, i, j, step / job.segment, sum, total);
  }
  return total;
}

__global__ void do_exactly(const __grid_constant__ GemmKernelJob job, gpu::Sums kind) {
  const int64_t at = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= int64_t(job.a.count) * job.b.count || job.left[at] == 0) return;
  const int i = int(at / job.b.count), j = int(at % job.b.count);
  const float c = job.c == nullptr ? 0 : gpu::sum_value(job.row, job.c[at]);
  float sum = 0;
  if (kind == gpu::Sums::chained) {
    sum = chain_exactly(job, i, j, 0, job.steps, c);
  } else {
    for (int step = 0; step < job.steps; step += job.slice)
      sum += slice_exactly(job, i, j, step, min(job.steps, step + job.slice));
    sum += c;
  }
  job.d[at] = gpu::sum_code(job.row, sum);
}

// The memory of an operand's terms.
class Terms {
 public:
  Terms(const GemmOperand& x, std::size_t count, const GemmKernelJob& job)
      : rows_((int64_t(count) + gpu::kTileSide - 1) / gpu::kTileSide * gpu::kTileSide),
        groups_(job.row.scales == SumScales::groups),
        unit_(groups_ ? kSumGroup : job.step),
        terms_(rows_ * job.steps * job.step),
        units_(job.row.scales == SumScales::none ? 0 : terms_ / unit_),
        values_(std::size_t(terms_)),
        scales_(std::size_t(groups_ ? units_ : 0)),
        exponents_(std::size_t(terms_)),
        scale_exponents_(std::size_t(units_)),
        masks_(std::size_t(groups_ ? units_ : 0)) {
    is_ = {.codes = {x.format, x.codes.data(), x.scale_format, x.scales.data(), int(x.scaled)},
           .count = int(count),
           .rows = rows_,
           .values = values_.data(),
           .scales = scales_.data(),
           .exponents = exponents_.data(),
           .scale_exponents = scale_exponents_.data(),
           .masks = masks_.data(),
           .promotion_scales = x.promotion_scales.data()};
  }
  const GemmTerms& terms() const { return is_; }

  void lay_out(const GemmKernelJob& job, uint32_t always, uint32_t nan) const {
    if (terms_ == 0) return;
    lay_out_terms<<<gpu::ctas(uint64_t(terms_), kThreads), kThreads>>>(job, is_);
    if (units_ != 0) lay_out_scales<<<gpu::ctas(uint64_t(units_), kThreads), kThreads>>>(job, is_, unit_, always, nan);
    check(cudaGetLastError());
  }

 private:
  int64_t rows_;
  bool groups_;
  int unit_;
  int64_t terms_, units_;
  DeviceArray<float> values_, scales_;
  DeviceArray<int> exponents_, scale_exponents_;
  DeviceArray<uint32_t> masks_;
  GemmTerms is_;
};

GemmKernelJob kernel_job(const GemmJob& job, std::span<uint32_t> d, uint8_t* left) {
  const int step = job.row.block, steps = int((job.k + std::size_t(step) - 1) / std::size_t(step));
  GemmKernelJob to{};
  to.row = job.row;
  to.k = int(job.k), to.steps = steps, to.step = step;
  to.part = job.row.order == SumOrder::pairs_of_four ? step / 2 : step;
  to.c = job.c.data(), to.d = d.data();
  to.slice = int(slice_length(job)) / step;
  to.segment = job.row.promotion.every == 0 ? to.slice : job.row.promotion.every / step;
  to.left = left;
  return to;
}

template <class Tile>
void start(const GemmKernelJob& job, gpu::Sums kind) {
  const dim3 grid(unsigned(job.b.rows / gpu::kTileSide), unsigned(job.a.rows / gpu::kTileSide));
  kind == gpu::Sums::chained ? gpu::multiply<Tile, gpu::Sums::chained><<<grid, gpu::kGemmThreads>>>(job)
                             : gpu::multiply<Tile, gpu::Sums::in_f32><<<grid, gpu::kGemmThreads>>>(job);
  check(cudaGetLastError());
}

void finish(const GemmKernelJob& job, gpu::Sums kind) {
  do_exactly<<<gpu::ctas(uint64_t(job.a.count) * uint64_t(job.b.count), kThreads), kThreads>>>(job, kind);
  check(cudaGetLastError());
}

}  // namespace

void gemm_on_gpu(const GemmJob& job, std::span<uint32_t> d) {
  if (keeps_all_bits(job.row)) throw std::logic_error(std::string(job.row.name) + " has no kernel");
  if (job.m == 0 || job.n == 0) return;
  if (job.m > kMostRows) throw std::logic_error("a product has too many rows for one grid");
  const DeviceArray<uint8_t> left(job.m * job.n);
  const DeviceArray<float> totals(adds_in_f32(job.row) ? left.size() : 0);
  GemmKernelJob to = kernel_job(job, d, left.data());
  to.totals = totals.data();
  const Terms a(job.a, job.m, to), b(job.b, job.n, to);
  to.a = a.terms(), to.b = b.terms();
  a.lay_out(to, simd::kNanScaleB, simd::kNanScaleA);
  b.lay_out(to, simd::kNanScaleA, simd::kNanScaleB);
  const gpu::Sums kind = adds_in_f32(job.row) ? gpu::Sums::in_f32 : gpu::Sums::chained;
  if (!has_panels(job)) {
    check(cudaMemset(left.data(), 1, left.size()));
    return finish(to, kind);
  }
  job.row.scales == SumScales::groups ? start<gpu::GroupsTile>(to, kind) : start<gpu::AlignedTile>(to, kind);
  finish(to, kind);
}

void gemm_by_gpu(const GemmJob& job, std::span<uint32_t> d) {
  const DeviceArray<uint32_t> a(job.a.codes), b(job.b.codes), a_scales(job.a.scales), b_scales(job.b.scales), c(job.c);
  const DeviceArray<float> a_promotion(job.a.promotion_scales), b_promotion(job.b.promotion_scales);
  const DeviceArray<uint32_t> result(d.size());
  GemmJob on_gpu = job;
  on_gpu.a.codes = {a.data(), a.size()}, on_gpu.b.codes = {b.data(), b.size()};
  on_gpu.a.scales = {a_scales.data(), a_scales.size()}, on_gpu.b.scales = {b_scales.data(), b_scales.size()};
  on_gpu.a.promotion_scales = {a_promotion.data(), a_promotion.size()};
  on_gpu.b.promotion_scales = {b_promotion.data(), b_promotion.size()};
  on_gpu.c = {c.data(), c.size()};
  gemm_on_gpu(on_gpu, {result.data(), result.size()});
  result.copy_to(d);
}

}  // namespace halfulp

#include "emulation/matmul/tiles.h"

#include <algorithm>
#include <vector>

#include "emulation/matmul/dot_product.h"
#include "emulation/matmul/panels.h"
#include "emulation/matmul/slices.h"
#include "emulation/simd/matmul.h"

namespace halfulp {
namespace {

float value_of(const Accumulator& row, uint32_t code) {
  return row.sum.format.bits() == 32 ? bit_cast<float>(code) : decode(row.sum.format, code);
}
// Exact but for NaN.
uint32_t code_of(const Accumulator& row, float sum) {
  const Policy policy{.rounding = Rounding::nearest_even, .overflow = Overflow::to_special};
  return row.sum.format.bits() == 32 ? f32_code(sum) : encode(row.sum.format, policy, sum, {});
}

// The tile's rows of A against as many rows of B as vectors have lanes.
class Strip {
 public:
  Strip(const GemmJob& job, const TermTables& a, const TermTables& b, const Tile& tile)
      : job_(job),
        tile_(tile),
        lanes_(simd::matmul_lanes()),
        layout_(job),
        a_(Side::a, job, a),
        b_(Side::b, job, b),
        sums_(tile.rows * lanes_) {
    a_.fill(tile.row, tile.rows, tile.rows);
  }

  // Columns from `col` on.
  void multiply(std::size_t col, std::span<uint32_t> d) {
    col_ = col;
    cols_ = std::min(lanes_, tile_.col + tile_.cols - col);
    b_.fill(col, cols_, lanes_);
    adds_in_f32(job_.row) ? add_slices() : add_all();
    for_each([&](std::size_t at, std::size_t i, std::size_t j) { d[i * job_.n + j] = code_of(job_.row, sums_[at]); });
  }

 private:
  template <class Function>
  void for_each(const Function& function) {
    for (std::size_t r = 0; r < tile_.rows; ++r)
      for (std::size_t lane = 0; lane < cols_; ++lane) function(r * lanes_ + lane, tile_.row + r, col_ + lane);
  }
  float c_at(std::size_t i, std::size_t j) const {
    return job_.c.empty() ? 0 : value_of(job_.row, job_.c[i * job_.n + j]);
  }

  void add_all() {
    std::ranges::fill(sums_, 0.0f);
    for_each([&](std::size_t at, std::size_t i, std::size_t j) { sums_[at] = c_at(i, j); });
    add_steps(0, job_.k);
  }

  void add_slices() {
    std::vector<float> total(sums_.size());
    const std::size_t length = slice_length(job_);
    for (std::size_t first = 0; first < job_.k; first += length) {
      add_slice(first, std::min(job_.k, first + length));
      for_each([&](std::size_t at, std::size_t, std::size_t) { total[at] += sums_[at]; });
    }
    for_each([&](std::size_t at, std::size_t i, std::size_t j) { sums_[at] = total[at] + c_at(i, j); });
  }

  void add_slice(std::size_t first, std::size_t end) {
    const auto every = std::size_t(job_.row.promotion.every);
    std::vector<float> total(every == 0 ? 0 : sums_.size());
    for (std::size_t k = first; k < end; k += every == 0 ? end - first : every) {
      std::ranges::fill(sums_, 0.0f);
      add_steps(k, every == 0 ? end : std::min(end, k + every));
      if (every == 0) return;
      for_each([&](std::size_t at, std::size_t i, std::size_t j) {
        total[at] = promote(job_, i, j, k / every, sums_[at], total[at]);
      });
    }
    sums_ = total;
  }

  simd::StepsJob steps_of(std::size_t first, std::size_t end) {
    const Accumulator& row = job_.row;
    return {
        .rows = tile_.rows,
        .first = first / layout_.step,
        .end = (end + layout_.step - 1) / layout_.step,
        .steps = layout_.steps,
        .kept_bits = row.kept_bits,
        .least_exponent = row.least_exponent,
        .unused_bits = row.sum.unused_bits,
        .least_sum_exponent = row.sum.format.min_exponent(),
        .rounding = row.sum.format.bits() == 32 ? simd::StepRounding::f32_toward_zero : simd::StepRounding::f16_nearest,
        .sums = sums_.data(),
        .exactly = add_step_exactly,
        .context = this};
  }

  void add_steps(std::size_t first, std::size_t end) {
    const simd::StepsJob steps = steps_of(first, end);
    if (!a_.masks.empty())
      return simd::add_groups({steps, a_.values.data(), a_.masks.data(), a_.scales.data(), a_.scale_exponents.data(),
                               b_.values.data(), b_.masks.data(), b_.scales.data(), b_.scale_exponents.data()});
    const bool scaled = !a_.scales.empty();
    const std::size_t parts = job_.row.order == SumOrder::pairs_of_four ? 2 : 1;
    simd::add_aligned({steps, layout_.step / parts, parts, a_.values.data(), a_.exponents.data(),
                       scaled ? a_.scale_exponents.data() : nullptr, b_.values.data(), b_.exponents.data(),
                       scaled ? b_.scale_exponents.data() : nullptr});
  }

  static void add_step_exactly(const void* context, std::size_t row, std::size_t at, float* sums) {
    const Strip& strip = *static_cast<const Strip*>(context);
    const GemmJob& job = strip.job_;
    const std::size_t first = at * strip.layout_.step, end = std::min(job.k, first + strip.layout_.step);
    for (std::size_t lane = 0; lane < strip.cols_; ++lane) {
      const DotOperand a = dot_operand(job.a, strip.tile_.row + row, job.k),
                       b = dot_operand(job.b, strip.col_ + lane, job.k);
      const uint32_t c = code_of(job.row, sums[lane]);
      sums[lane] = value_of(job.row, add_products(job.row, a, b, int(first), int(end), c));
    }
  }

  const GemmJob& job_;
  const Tile tile_;
  const std::size_t lanes_;
  const StepLayout layout_;
  Panel a_, b_;
  std::vector<float> sums_;  // [tile's rows, lanes]
  std::size_t col_ = 0, cols_ = 0;
};

}  // namespace

void multiply_tile(const GemmJob& job, const TermTables& a, const TermTables& b, const Tile& tile,
                   std::span<uint32_t> d) {
  Strip strip(job, a, b, tile);
  for (std::size_t col = tile.col; col < tile.col + tile.cols; col += simd::matmul_lanes()) strip.multiply(col, d);
}

}  // namespace halfulp

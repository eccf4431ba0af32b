#include "emulation/matmul/panels.h"

#include <algorithm>

#include "emulation/matmul/dot_product.h"
#include "emulation/matmul/slices.h"
#include "emulation/simd/matmul_job.h"

namespace halfulp {
namespace {

bool adds_groups(const Accumulator& row) { return row.scales == SumScales::groups; }

}  // namespace

Term TermTable::term_of(const Accumulator& row, const Format& format, uint32_t code) {
  const Operand x = input_of(row, format, code);
  if (x.kind != Unpacked::Kind::finite) return {0, simd::kSpecialExponent};
  return {decode(format, code), x.significand == 0 ? simd::kZeroExponent : x.exponent};
}

TermTable::TermTable(const Accumulator& row, const Format& format, std::size_t uses)
    : row_(row), format_(format), mask_(format.code_mask()) {
  if (uses <= mask_) return;
  for (uint32_t code = 0; code <= mask_; ++code) terms_.push_back(term_of(row, format, code));
}

bool has_panels(const GemmJob& job) {
  const Accumulator& row = job.row;
  if (row.order == SumOrder::pairs_of_four && row.sum.format.bits() != 32) return false;
  if (adds_groups(row)) return row.block == int(simd::kStepGroups * simd::kGroupTerms) && row.kept_bits <= 35;
  return row.order != SumOrder::halves && row.kept_bits <= 25 && row.block <= 32;
}

StepLayout::StepLayout(const GemmJob& job)
    : k(job.k),
      step(std::size_t(job.row.block)),
      steps((k + step - 1) / step),
      order(job.row.order),
      unit(adds_groups(job.row) ? simd::kGroupTerms : step) {}

std::size_t StepLayout::position(std::size_t at) const {
  if (order != SumOrder::pairs_of_four) return at;
  const std::size_t half = at % 4 / 2, in_step = at % step;
  return at - in_step + half * (step / 2) + in_step / 4 * 2 + at % 2;
}

Panel::Panel(Side side, const GemmJob& job, const TermTables& tables)
    : side_(side), job_(job), operand_(side == Side::a ? job.a : job.b), layout_(job), tables_(tables) {}

void Panel::fill(std::size_t first, std::size_t count, std::size_t rows) {
  rows_ = rows;
  values.assign(rows * layout_.terms(), 0);
  exponents.assign(adds_groups(job_.row) ? 0 : rows * layout_.terms(), simd::kZeroExponent);
  const std::size_t units = job_.row.scales == SumScales::none ? 0 : rows * layout_.units();
  scales.assign(units, 0);
  scale_exponents.assign(units, 0);
  masks.assign(adds_groups(job_.row) ? units : 0, side_ == Side::a ? simd::kNanScaleB : simd::kNanScaleA);
  for (std::size_t row = 0; row < count; ++row) {
    fill_terms(first + row, row);
    if (units != 0) fill_scales(first + row, row);
  }
}

void Panel::fill_terms(std::size_t from, std::size_t row) {
  const uint32_t* codes = operand_.codes.data() + from * layout_.k;
  for (std::size_t at = 0; at < layout_.k; ++at) {
    const Term term = tables_.terms[codes[at]];
    const std::size_t to = place(row, layout_.position(at), layout_.terms());
    values[to] = term.value;
    if (!exponents.empty()) exponents[to] = term.exponent;
    if (!masks.empty() && term.exponent != simd::kZeroExponent)
      masks[place(row, at / layout_.unit, layout_.units())] |= 1u << at % layout_.unit;
  }
}

void Panel::fill_scales(std::size_t from, std::size_t row) {
  const uint32_t* codes = operand_.scales.data() + from * ((layout_.k + operand_.scaled - 1) / operand_.scaled);
  for (std::size_t unit = 0; unit * layout_.unit < layout_.k; ++unit) {
    const Term scale = tables_.scales[codes[unit * layout_.unit / operand_.scaled]];
    const std::size_t to = place(row, unit, layout_.units());
    scales[to] = scale.value;
    scale_exponents[to] = scale.exponent;
    if (masks.empty()) continue;
    if (scale.exponent == simd::kZeroExponent) masks[to] &= simd::kNanScaleA | simd::kNanScaleB;
    if (scale.exponent == simd::kSpecialExponent) masks[to] |= simd::kNanScaleA | simd::kNanScaleB;
  }
}

}  // namespace halfulp

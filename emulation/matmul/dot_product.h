#pragma once
// A dot product as a row of accumulator.h adds it up: integers throughout.

#include <cstdint>

#include "emulation/matmul/accumulator.h"
#include "formats/codec.h"
#include "formats/format.h"
#include "lib/bits.h"
#include "lib/host_device.h"

namespace halfulp {

// A code taken apart as the hardware sees it: significand * 2^(exponent - fraction_bits), a subnormal's exponent being
// that of the smallest normal. No normalisation.
struct Operand {
  Unpacked::Kind kind;
  bool negative;
  int exponent;
  uint64_t significand;
  int fraction_bits;
};

// Bits beyond the format's are ignored, as the sign bit of a UE4M3 scale is.
HOST_DEVICE constexpr Operand operand_of(const Format& f, uint32_t stored) {
  const uint32_t code = stored & f.code_mask();
  const bool negative = (code & f.sign_mask()) != 0;
  if (is_nan_code(f, code)) return {Unpacked::Kind::nan, negative, 0, 0, 0};
  if (is_inf_code(f, code)) return {Unpacked::Kind::inf, negative, 0, 0, 0};
  const uint32_t field = (code & f.magnitude_mask()) >> f.mantissa_bits, mantissa = code & (f.hidden() - 1);
  const bool subnormal = field == 0 && f.subnormals == Subnormals::yes;
  return {Unpacked::Kind::finite, negative, subnormal ? f.min_exponent() : int(field) - f.bias,
          subnormal ? mantissa : mantissa | f.hidden(), f.mantissa_bits};
}

// A code as a row takes it apart: what is converted to F16 has its leading bit, down to F16's subnormals.
HOST_DEVICE constexpr Operand input_of(const Accumulator& is, const Format& f, uint32_t code) {
  constexpr int kLeastOfF16 = -14;
  Operand x = operand_of(f, code);
  if (is.operands != SumInputs::as_f16 || x.significand == 0) return x;
  for (; x.significand >> x.fraction_bits == 0 && x.exponent > kLeastOfF16; --x.exponent) x.significand <<= 1;
  return x;
}

// Exact where the product's significand fits 64 bits. Inf * 0 is NaN.
HOST_DEVICE constexpr Operand product_of(const Operand& a, const Operand& b) {
  const bool negative = a.negative != b.negative;
  const auto is_zero = [](const Operand& x) { return x.kind == Unpacked::Kind::finite && x.significand == 0; };
  if (a.kind == Unpacked::Kind::finite && b.kind == Unpacked::Kind::finite)
    return {Unpacked::Kind::finite, negative, a.exponent + b.exponent, a.significand * b.significand,
            a.fraction_bits + b.fraction_bits};
  const bool nan = a.kind == Unpacked::Kind::nan || b.kind == Unpacked::Kind::nan || is_zero(a) || is_zero(b);
  return {nan ? Unpacked::Kind::nan : Unpacked::Kind::inf, negative, 0, 0, 0};
}

// The terms of a block are added twice over: first their exponents and specials, then their cut significands, below
// 2^(kept_bits + 2) each (FP4 groups: 2^47), so that 33 of them fit 64 bits.
class BlockSum {
 public:
  HOST_DEVICE constexpr BlockSum(int kept_bits, int least_exponent)
      : kept_bits_(kept_bits), largest_exponent_(least_exponent) {}

  HOST_DEVICE constexpr void see(const Operand& term) {
    nan_ = nan_ || term.kind == Unpacked::Kind::nan;
    if (term.kind == Unpacked::Kind::inf) (term.negative ? minus_inf_ : plus_inf_) = true;
    if (term.kind == Unpacked::Kind::finite && term.significand != 0) see_exponent(term.exponent);
  }
  HOST_DEVICE constexpr void see_exponent(int exponent) {
    if (exponent > largest_exponent_) largest_exponent_ = exponent;
  }

  // What is left of a term, toward zero, in units of 2^(largest_exponent() - kept_bits).
  HOST_DEVICE constexpr int64_t cut(const Operand& term) const {
    const int shift = kept_bits_ + term.exponent - term.fraction_bits - largest_exponent_;
    // Beyond 63 to the left there is nothing but zeros, whose exponent may be above the largest.
    const uint64_t cut = shift >= 0 ? term.significand << (shift & 63) : shift > -64 ? term.significand >> -shift : 0;
    return term.negative ? -int64_t(cut) : int64_t(cut);
  }
  HOST_DEVICE constexpr void add(const Operand& term) { sum_ += cut(term); }

  HOST_DEVICE constexpr int largest_exponent() const { return largest_exponent_; }
  HOST_DEVICE constexpr int64_t sum() const { return sum_; }

  HOST_DEVICE constexpr Unpacked total() const {
    if (nan_ || (plus_inf_ && minus_inf_)) return {0, 0, false, Unpacked::Kind::nan};
    if (plus_inf_ || minus_inf_) return {0, 0, minus_inf_, Unpacked::Kind::inf};
    const bool negative = sum_ < 0;
    return {negative ? ~uint64_t(sum_) + 1 : uint64_t(sum_), largest_exponent_ - kept_bits_, negative,
            Unpacked::Kind::finite};
  }

 private:
  int kept_bits_;
  int largest_exponent_;
  bool nan_ = false, plus_inf_ = false, minus_inf_ = false;
  int64_t sum_ = 0;
};

HOST_DEVICE constexpr uint32_t round_sum(const SumFormat& sum, const Unpacked& x) {
  if (x.kind == Unpacked::Kind::nan) return sum.format.magnitude_mask();
  Format f = sum.format;
  f.mantissa_bits -= sum.unused_bits;
  const bool overflows = x.kind == Unpacked::Kind::inf ||
                         (x.significand != 0 && floor_log2(x.significand) + x.exponent > f.max_exponent());
  const Policy policy{.rounding = sum.rounding, .overflow = Overflow::to_special};
  const uint32_t code = overflows ? with_sign(f, f.max_code() + 1, x.negative) : encode_unpacked(f, policy, x, {});
  return (code & f.magnitude_mask()) == 0 ? 0 : code << sum.unused_bits;  // no zero is negative
}

// Either operand of a dot product: codes, as many as k, in `format`; scales, where the row takes some, one for each
// `scaled` of them.
struct DotOperand {
  Format format;
  const uint32_t* codes;
  Format scale_format{};
  const uint32_t* scales = nullptr;
  int scaled = 0;
};

namespace detail {

// Product k, its exponent that of scaled elements where the row has scales of products.
HOST_DEVICE constexpr Operand product_term(const Accumulator& is, const DotOperand& a, const DotOperand& b, int k) {
  Operand term = product_of(input_of(is, a.format, a.codes[k]), input_of(is, b.format, b.codes[k]));
  if (is.scales != SumScales::products) return term;
  const Operand scale = product_of(operand_of(a.scale_format, a.scales[k / a.scaled]),
                                   operand_of(b.scale_format, b.scales[k / b.scaled]));
  if (scale.kind == Unpacked::Kind::nan) term.kind = Unpacked::Kind::nan;
  term.exponent += scale.exponent;
  return term;
}

// `count` products, number i of them at k = at(i), into the accumulator c.
template <class At>
HOST_DEVICE constexpr uint32_t add_block(const Accumulator& is, const DotOperand& a, const DotOperand& b, int count,
                                         At at, uint32_t c) {
  const Operand start = operand_of(is.sum.format, c);
  BlockSum sum(is.kept_bits, is.least_exponent);
  sum.see(start);
  for (int i = 0; i < count; ++i) sum.see(product_term(is, a, b, at(i)));
  sum.add(start);
  for (int i = 0; i < count; ++i) sum.add(product_term(is, a, b, at(i)));
  return round_sum(is.sum, sum.total());
}

// A group's exact sum times its scales. Its exponent is that of the scales, whether or not the products cancel.
struct GroupTerm {
  Operand term;
  bool counts;  // some product and both scales are not zero
};
HOST_DEVICE constexpr GroupTerm group_term(const DotOperand& a, const DotOperand& b, int first) {
  const Operand scale = product_of(operand_of(a.scale_format, a.scales[first / a.scaled]),
                                   operand_of(b.scale_format, b.scales[first / b.scaled]));
  int64_t sum = 0;
  bool any = false;
  int fraction_bits = 0;
  for (int k = first; k < first + kSumGroup; ++k) {
    const Operand x = operand_of(a.format, a.codes[k]), y = operand_of(b.format, b.codes[k]);
    const int64_t p = int64_t(x.significand * y.significand) << (x.exponent + y.exponent);
    sum += x.negative != y.negative ? -p : p;
    any = any || p != 0;
    fraction_bits = x.fraction_bits + y.fraction_bits;
  }
  const uint64_t magnitude = uint64_t(sum < 0 ? -sum : sum);
  return {{scale.kind, sum < 0, scale.exponent, magnitude * scale.significand, fraction_bits + scale.fraction_bits},
          any && scale.significand != 0};
}

HOST_DEVICE constexpr uint32_t add_groups(const Accumulator& is, const DotOperand& a, const DotOperand& b, int first,
                                          int count, uint32_t c) {
  const Operand start = operand_of(is.sum.format, c);
  BlockSum sum(is.kept_bits, is.least_exponent);
  sum.see(start);
  for (int k = first; k < first + count; k += kSumGroup) {
    const GroupTerm group = group_term(a, b, k);
    sum.see(group.term);
    if (group.counts) sum.see_exponent(group.term.exponent);
  }
  sum.add(start);
  for (int k = first; k < first + count; k += kSumGroup) sum.add(group_term(a, b, k).term);
  return round_sum(is.sum, sum.total());
}

// An addition of two sums, rounded to nearest even: of F16's too, since FP32 has more than twice their bits and two.
HOST_DEVICE constexpr uint32_t add_sums(const SumFormat& sum, uint32_t x, uint32_t y) {
  const float result = decode(sum.format, x) + decode(sum.format, y);
  if (result != result) return sum.format.magnitude_mask();
  const Policy policy{.rounding = Rounding::nearest_even, .overflow = Overflow::to_special};
  return encode(sum.format, policy, result, {});
}

// FP8 as F16: two halves of the products from zero, then c in an addition of its own.
HOST_DEVICE constexpr uint32_t add_pairs_of_four(const Accumulator& is, const DotOperand& a, const DotOperand& b,
                                                 int first, int count, uint32_t c) {
  uint32_t sum = 0;
  for (int half = 0; half < 2; ++half) {
    const int in_last = count % 4 - 2 * half, products = count / 4 * 2 + (in_last > 2 ? 2 : in_last > 0 ? in_last : 0);
    sum = add_block(
        is, a, b, products, [=](int i) { return first + i / 2 * 4 + half * 2 + i % 2; }, sum);
  }
  return add_sums(is.sum, sum, c);
}

}  // namespace detail

// c + sum of a[k] * b[k], first <= k < end, ascending, as codes of the row's sum.format; NaN is the all-ones one. The
// last block is shorter where the products are no multiple of the row's block; groups are whole. What the instructions
// do: promotions and slices are the kernels' (gemm.h). For rows of instructions only.
HOST_DEVICE constexpr uint32_t add_products(const Accumulator& is, const DotOperand& a, const DotOperand& b, int first,
                                            int end, uint32_t c) {
  for (; first < end; first += is.block) {
    const int count = end - first < is.block ? end - first : is.block;
    if (is.order == SumOrder::pairs_of_four) {
      c = detail::add_pairs_of_four(is, a, b, first, count, c);
    } else if (is.scales == SumScales::groups) {
      c = detail::add_groups(is, a, b, first, count, c);
    } else {
      c = detail::add_block(
          is, a, b, count, [=](int i) { return first + i; }, c);
    }
  }
  return c;
}

HOST_DEVICE constexpr uint32_t dot_product(const Accumulator& is, const DotOperand& a, const DotOperand& b, int k,
                                           uint32_t c) {
  return add_products(is, a, b, 0, k, c);
}

}  // namespace halfulp

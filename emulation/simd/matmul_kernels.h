// Matrix products in steps, for one instruction set: each lane a column. Included once for each by matmul.cpp: no
// include guard.
//
// Within the limits of a step every operation below is exact but for the cuts and the rounding that the model asks for:
// products have at most 22 bits; a factor is a power of two; what a factor brings below FP32's normal numbers is below
// the cut. A sum of 16 cut products is below 16 * 4 * 2^25 = 2^31.

#include "emulation/simd/matmul_job.h"
#include "emulation/simd/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace halfulp::simd::HWY_NAMESPACE {

using Doubles = hn::Repartition<double, Floats>;
using HalfFloats = hn::Half<Floats>;
using HalfInts = hn::Half<Ints>;
using VD = hn::Vec<Doubles>;
inline constexpr Doubles kDoubles;
inline constexpr HalfFloats kHalfFloats;
inline constexpr HalfInts kHalfInts;

// A vector of doubles for each half of the lanes.
struct Pair {
  VD low, high;
};
HWY_INLINE Pair doubles_of(VI x) {
  return {hn::PromoteTo(kDoubles, hn::LowerHalf(kHalfInts, x)), hn::PromoteTo(kDoubles, hn::UpperHalf(kHalfInts, x))};
}
HWY_INLINE Pair doubles_of(VF x) {
  return {hn::PromoteTo(kDoubles, hn::LowerHalf(kHalfFloats, x)),
          hn::PromoteTo(kDoubles, hn::UpperHalf(kHalfFloats, x))};
}
HWY_INLINE VF floats_of(Pair x) {
  return hn::Combine(kFloats, hn::DemoteTo(kHalfFloats, x.high), hn::DemoteTo(kHalfFloats, x.low));
}
HWY_INLINE Pair sum_of(Pair x, Pair y) { return {hn::Add(x.low, y.low), hn::Add(x.high, y.high)}; }
HWY_INLINE Pair product_of(Pair x, Pair y) { return {hn::Mul(x.low, y.low), hn::Mul(x.high, y.high)}; }
HWY_INLINE Pair cut(Pair x) { return {hn::Trunc(x.low), hn::Trunc(x.high)}; }

HWY_INLINE VI ints(int32_t x) { return hn::Set(kInts, x); }
HWY_INLINE VF power_of_two(VI exponent) {
  const VI in_range = hn::Min(hn::Max(exponent, ints(-126)), ints(127));
  return hn::BitCast(kFloats, hn::ShiftLeft<23>(hn::Add(in_range, ints(127))));
}

// Exponents of sums as the model sees them: a subnormal has that of the smallest normal, `least`.
HWY_INLINE VI exponents_of(VF x, int least) {
  const VI bits = hn::And(hn::BitCast(kInts, x), ints(0x7fff'ffff));
  const VI exponent = hn::Max(hn::Sub(hn::ShiftRight<23>(bits), ints(127)), ints(least));
  return hn::IfThenElse(hn::Eq(bits, ints(0)), ints(kZeroExponent), exponent);
}

HWY_INLINE bool beyond(VI largest, StepLimits limits) {
  const auto high = hn::Gt(largest, ints(limits.most));
  const auto low = hn::And(hn::Gt(ints(limits.least), largest), hn::Gt(largest, ints(kZeroExponent / 2)));
  return !hn::AllFalse(kInts, hn::Or(high, low));
}

// Doubles with only their upper `bits` bits of significand.
HWY_INLINE VD cut_to(VD x, int bits) {
  return hn::BitCast(kDoubles, hn::And(hn::BitCast(kLongs, x), hn::Set(kLongs, ~uint64_t{0} << (53 - bits))));
}

// To F16's grid, ties to even; beyond its largest number Inf.
HWY_INLINE VD nearest_f16(VD x) {
  const VD magnitude = hn::Max(hn::Abs(x), hn::Set(kDoubles, 1.0 / (1 << 14)));
  const auto binade = hn::And(hn::BitCast(kLongs, magnitude), hn::Set(kLongs, uint64_t{0x7ff} << 52));
  const VD magic = hn::Mul(hn::BitCast(kDoubles, binade), hn::Set(kDoubles, 1.5 * double(uint64_t{1} << 42)));
  const VD rounded = hn::Sub(hn::Add(x, magic), magic);
  const VD inf = hn::CopySign(hn::BitCast(kDoubles, hn::Set(kLongs, uint64_t{0x7ff} << 52)), x);
  return hn::IfThenElse(hn::Gt(hn::Abs(rounded), hn::Set(kDoubles, 65504.0)), inf, rounded);
}

// `sum` * 2^exponent, as the row rounds it.
HWY_INLINE VF rounded(const StepsJob& job, Pair sum, VI exponent) {
  const VF unit = power_of_two(exponent);
  if (job.rounding == StepRounding::f16_nearest) {
    const Pair x = product_of(sum, doubles_of(unit));
    return floats_of({nearest_f16(x.low), nearest_f16(x.high)});
  }
  const int bits = 24 - job.unused_bits;
  return hn::Mul(floats_of({cut_to(sum.low, bits), cut_to(sum.high, bits)}), unit);
}

// The largest exponents of some products, without their scales.
template <int rows>
HWY_INLINE void largest_exponents(const AlignedJob& job, const int32_t* a, const int32_t* b, std::size_t stride,
                                  VI (&most)[rows]) {
  for (int r = 0; r < rows; ++r) most[r] = ints(kZeroExponent);
  for (std::size_t k = 0; k < job.part; ++k) {
    const VI exponents = hn::LoadU(kInts, b + k * kLanes);
    for (int r = 0; r < rows; ++r) most[r] = hn::Max(most[r], hn::Add(exponents, ints(a[std::size_t(r) * stride + k])));
  }
}

// Adds up some products, each cut after it is multiplied by its lane's factor.
template <int rows>
HWY_INLINE void add_cut(const AlignedJob& job, const float* a, const float* b, std::size_t stride,
                        const VF (&factor)[rows], Pair (&sum)[rows]) {
  for (std::size_t first = 0; first < job.part; first += kGroupTerms) {
    VI part[rows];
    for (int r = 0; r < rows; ++r) part[r] = ints(0);
    const std::size_t end = first + kGroupTerms < job.part ? first + kGroupTerms : job.part;
    for (std::size_t k = first; k < end; ++k) {
      const VF values = hn::LoadU(kFloats, b + k * kLanes);
      for (int r = 0; r < rows; ++r) {
        const VF product = hn::Mul(values, hn::Set(kFloats, a[std::size_t(r) * stride + k]));
        part[r] = hn::Add(part[r], hn::ConvertTo(kInts, hn::Mul(product, factor[r])));
      }
    }
    for (int r = 0; r < rows; ++r) sum[r] = sum_of(sum[r], doubles_of(part[r]));
  }
}

// One part of a step, into sums; false, and nothing done, where the exponents of some lane are beyond the limits.
template <int rows>
HWY_INLINE bool add_part(const AlignedJob& job, std::size_t row, std::size_t step, std::size_t half, VF (&sums)[rows]) {
  const StepsJob& steps = job.steps;
  const std::size_t stride = steps.steps * job.part * job.halves, k = (step * job.halves + half) * job.part;
  VI most[rows], exponent[rows];
  largest_exponents<rows>(job, job.a_exponents + row * stride + k, job.b_exponents + k * kLanes, stride, most);
  VF factor[rows];
  Pair sum[rows];
  for (int r = 0; r < rows; ++r) {
    VI scale = ints(0);
    if (job.a_scales != nullptr)
      scale = hn::Add(hn::LoadU(kInts, job.b_scales + step * kLanes),
                      ints(job.a_scales[(row + std::size_t(r)) * steps.steps + step]));
    const VI all = hn::Max(hn::Add(most[r], scale), exponents_of(sums[r], steps.least_sum_exponent));
    if (beyond(all, kAlignedLimits)) return false;
    const int least = steps.least_exponent > kAlignedLimits.least ? steps.least_exponent : kAlignedLimits.least;
    const VI largest = hn::Max(all, ints(least));
    exponent[r] = hn::Sub(largest, ints(steps.kept_bits));
    factor[r] = power_of_two(hn::Sub(scale, exponent[r]));
    sum[r] = doubles_of(hn::ConvertTo(kInts, hn::Mul(sums[r], power_of_two(hn::Neg(exponent[r])))));
  }
  add_cut<rows>(job, job.a + row * stride + k, job.b + k * kLanes, stride, factor, sum);
  for (int r = 0; r < rows; ++r) sums[r] = rounded(steps, sum[r], exponent[r]);
  return true;
}

// FP8 as F16: two parts from zero, then the accumulator in an addition of its own.
template <int rows>
HWY_INLINE bool add_halves(const AlignedJob& job, std::size_t row, std::size_t step, VF (&sums)[rows]) {
  VF parts[rows];
  for (int r = 0; r < rows; ++r) parts[r] = hn::Zero(kFloats);
  for (std::size_t half = 0; half < job.halves; ++half)
    if (!add_part<rows>(job, row, step, half, parts)) return false;
  for (int r = 0; r < rows; ++r) sums[r] = hn::Add(parts[r], sums[r]);
  return true;
}

template <int rows>
HWY_INLINE void load_sums(const StepsJob& job, std::size_t row, VF (&sums)[rows]) {
  for (int r = 0; r < rows; ++r) sums[r] = hn::LoadU(kFloats, job.sums + (row + std::size_t(r)) * kLanes);
}
template <int rows>
HWY_INLINE void store_sums(const StepsJob& job, std::size_t row, const VF (&sums)[rows]) {
  for (int r = 0; r < rows; ++r) hn::StoreU(sums[r], kFloats, job.sums + (row + std::size_t(r)) * kLanes);
}
template <int rows>
HWY_INLINE void do_exactly(const StepsJob& job, std::size_t row, std::size_t step, VF (&sums)[rows]) {
  store_sums(job, row, sums);
  for (std::size_t r = 0; r < std::size_t(rows); ++r)
    job.exactly(job.context, row + r, step, job.sums + (row + r) * kLanes);
  load_sums(job, row, sums);
}

template <int rows>
HWY_INLINE void aligned_rows(const AlignedJob& job, std::size_t row) {
  VF sums[rows];
  load_sums(job.steps, row, sums);
  for (std::size_t step = job.steps.first; step < job.steps.end; ++step) {
    const bool done =
        job.halves == 1 ? add_part<rows>(job, row, step, 0, sums) : add_halves<rows>(job, row, step, sums);
    if (!done) do_exactly(job.steps, row, step, sums);
  }
  store_sums(job.steps, row, sums);
}

void aligned_steps(const AlignedJob& job) {
  std::size_t row = 0;
  for (; row + 4 <= job.steps.rows; row += 4) aligned_rows<4>(job, row);
  for (; row < job.steps.rows; ++row) aligned_rows<1>(job, row);
}

// The exact sum of a group's products: at most 576, in quarters.
HWY_INLINE VF group_sum(const float* a, const float* b) {
  VF even = hn::Zero(kFloats), odd = even;
  for (std::size_t k = 0; k < kGroupTerms; k += 2) {
    even = hn::MulAdd(hn::LoadU(kFloats, b + k * kLanes), hn::Set(kFloats, a[k]), even);
    odd = hn::MulAdd(hn::LoadU(kFloats, b + (k + 1) * kLanes), hn::Set(kFloats, a[k + 1]), odd);
  }
  return hn::Add(even, odd);
}

// Lanes in which group g of some row has a product that is not zero, or a scale that is NaN.
HWY_INLINE auto counts(const GroupsJob& job, std::size_t at, std::size_t g) {
  const VU any = hn::And(words(job.a_masks[at]), hn::LoadU(kWords, job.b_masks + g * kLanes));
  return hn::Ne(ints_of(any), ints(0));
}

HWY_INLINE bool add_groups_of(const GroupsJob& job, std::size_t row, std::size_t step, VF& sums) {
  const StepsJob& steps = job.steps;
  VI all = exponents_of(sums, steps.least_sum_exponent);
  for (std::size_t g = step * kStepGroups; g < (step + 1) * kStepGroups; ++g) {
    const std::size_t at = row * steps.steps * kStepGroups + g;
    const VI exponent = hn::Add(ints(job.a_exponents[at]), hn::LoadU(kInts, job.b_exponents + g * kLanes));
    all = hn::Max(all, hn::IfThenElse(counts(job, at, g), exponent, ints(kZeroExponent)));
  }
  if (beyond(all, kGroupLimits)) return false;
  const VI exponent = hn::Sub(hn::Max(all, ints(kGroupLimits.least)), ints(steps.kept_bits));
  Pair sum = cut(product_of(doubles_of(sums), doubles_of(power_of_two(hn::Neg(exponent)))));
  const VF factor = power_of_two(hn::Neg(exponent));
  for (std::size_t g = step * kStepGroups; g < (step + 1) * kStepGroups; ++g) {
    const std::size_t at = row * steps.steps * kStepGroups + g;
    const VF products = group_sum(job.a + at * kGroupTerms, job.b + g * kGroupTerms * kLanes);
    const VF scale = hn::Mul(hn::LoadU(kFloats, job.b_scales + g * kLanes), hn::Set(kFloats, job.a_scales[at]));
    const VF counted = hn::IfThenElseZero(hn::RebindMask(kFloats, counts(job, at, g)), hn::Mul(scale, factor));
    sum = sum_of(sum, cut(product_of(doubles_of(products), doubles_of(counted))));
  }
  sums = rounded(steps, sum, exponent);
  return true;
}

void group_steps(const GroupsJob& job) {
  for (std::size_t row = 0; row < job.steps.rows; ++row) {
    VF sums[1];
    load_sums(job.steps, row, sums);
    for (std::size_t step = job.steps.first; step < job.steps.end; ++step)
      if (!add_groups_of(job, row, step, sums[0])) do_exactly(job.steps, row, step, sums);
    store_sums(job.steps, row, sums);
  }
}

std::size_t lanes_of_target() { return kLanes; }

}  // namespace halfulp::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

// The largest magnitudes, for one instruction set. Included once for each by amax.cpp: no include guard.

#include <algorithm>

#include "emulation/simd/scalar.h"
#include "emulation/simd/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace halfulp::simd::HWY_NAMESPACE {

// Magnitudes as their bits, which are in the order of the values; a NaN's are above all, or 0 where it is ignored.
template <NanMagnitude nan>
HWY_INLINE VU magnitudes(const float* x) {
  const VU bits = hn::And(bits_of(hn::LoadU(kFloats, x)), words(0x7fff'ffff));
  if constexpr (nan == NanMagnitude::propagates) return bits;
  return hn::IfThenZeroElse(greater(bits, words(0x7f80'0000)), bits);
}

// The largest magnitudes, lane by lane, of a multiple of kLanes elements.
template <NanMagnitude nan>
HWY_INLINE VU lane_maxima(const float* x, std::size_t count) {
  VU most = magnitudes<nan>(x);
  for (std::size_t i = kLanes; i < count; i += kLanes) most = larger_of(most, magnitudes<nan>(x + i));
  return most;
}

// Any NaN is the quiet one.
HWY_INLINE VU quieted(VU bits) { return hn::IfThenElse(greater(bits, words(0x7f80'0000)), words(0x7fc0'0000), bits); }

template <class V>
HWY_INLINE auto largest_of_blocks(V x) {
  using D = hn::DFromV<V>;
  if constexpr (hn::MaxLanes(D()) == 4) {
    return x;
  } else {
    const hn::Half<D> half;
    const hn::RebindToSigned<decltype(half)> ints;
    const auto low = hn::BitCast(ints, hn::LowerHalf(half, x)), high = hn::BitCast(ints, hn::UpperHalf(half, x));
    return largest_of_blocks(hn::BitCast(half, hn::Max(low, high)));
  }
}

// The largest lanes of a, b, c and d: four numbers.
HWY_INLINE auto largest_lanes(VU a, VU b, VU c, VU d) {
  const auto ab = larger_of(hn::InterleaveLower(a, b), hn::InterleaveUpper(kWords, a, b));
  const auto cd = larger_of(hn::InterleaveLower(c, d), hn::InterleaveUpper(kWords, c, d));
  const auto ab2 = hn::BitCast(kLongs, ab), cd2 = hn::BitCast(kLongs, cd);
  const VU abcd = larger_of(hn::BitCast(kWords, hn::InterleaveLower(ab2, cd2)),
                            hn::BitCast(kWords, hn::InterleaveUpper(kLongs, ab2, cd2)));
  return largest_of_blocks(quieted(abcd));
}

// Blocks of a multiple of kLanes elements, four at a time; returns how many were done.
template <NanMagnitude nan>
std::size_t amax_of_fours(const float* x, std::size_t block, std::size_t blocks, float* amax) {
  std::size_t k = 0;
  for (; k + 4 <= blocks; k += 4) {
    const float* from = x + k * block;
    const VU a = lane_maxima<nan>(from, block), b = lane_maxima<nan>(from + block, block);
    const VU c = lane_maxima<nan>(from + 2 * block, block), d = lane_maxima<nan>(from + 3 * block, block);
    const auto most = largest_lanes(a, b, c, d);
    const hn::DFromV<decltype(most)> four;
    const hn::RebindToFloat<decltype(four)> four_floats;
    hn::StoreU(hn::BitCast(four_floats, most), four_floats, amax + k);
  }
  return k;
}

template <NanMagnitude nan>
float amax_of_one(const float* x, std::size_t count, float start) {
  const std::size_t whole = count / kGroup * kGroup;
  float most = start;
  if (whole > 0) {
    VU a = hn::Zero(kWords), b = a, c = a, d = a;
    for (std::size_t i = 0; i < whole; i += kGroup) {
      a = larger_of(a, magnitudes<nan>(x + i));
      b = larger_of(b, magnitudes<nan>(x + i + kLanes));
      c = larger_of(c, magnitudes<nan>(x + i + 2 * kLanes));
      d = larger_of(d, magnitudes<nan>(x + i + 3 * kLanes));
    }
    alignas(64) float lanes[kLanes];
    hn::Store(float_of(larger_of(larger_of(a, b), larger_of(c, d))), kFloats, lanes);
    most = amax_scalar(lanes, nan, most);
  }
  return amax_scalar({x + whole, count - whole}, nan, most);
}

inline float amax_array(std::span<const float> x, NanMagnitude nan, float start) {
  if (nan == NanMagnitude::ignored) return amax_of_one<NanMagnitude::ignored>(x.data(), x.size(), start);
  return amax_of_one<NanMagnitude::propagates>(x.data(), x.size(), start);
}

inline void block_amax_array(std::span<const float> x, std::size_t block, NanMagnitude nan, std::span<float> amax) {
  std::size_t k = 0;
  if (block % kLanes == 0 && nan == NanMagnitude::ignored) {
    k = amax_of_fours<NanMagnitude::ignored>(x.data(), block, x.size() / block, amax.data());
  } else if (block % kLanes == 0) {
    k = amax_of_fours<NanMagnitude::propagates>(x.data(), block, x.size() / block, amax.data());
  }
  for (; k < amax.size(); ++k)
    amax[k] = amax_array(x.subspan(k * block, std::min(block, x.size() - k * block)), nan, 0);
}

}  // namespace halfulp::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

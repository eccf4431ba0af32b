// What the kernels share, for one instruction set. Included once for each by the kernels' headers, so it has no include
// guard. Not for anyone else.

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace halfulp::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;
using Ints = hn::RebindToSigned<Floats>;
using Bytes = hn::Repartition<uint8_t, Words>;
using Halves = hn::Repartition<uint16_t, Words>;
using Longs = hn::Repartition<uint64_t, Words>;
using VF = hn::Vec<Floats>;
using VU = hn::Vec<Words>;
using VI = hn::Vec<Ints>;

inline constexpr Floats kFloats;
inline constexpr Words kWords;
inline constexpr Ints kInts;
inline constexpr Bytes kBytes;
inline constexpr Halves kHalves;
inline constexpr Longs kLongs;

inline constexpr std::size_t kLanes = hn::MaxLanes(kFloats);
inline constexpr std::size_t kGroup = 4 * kLanes;  // elements that are worked on together

HWY_INLINE VU words(uint32_t x) { return hn::Set(kWords, x); }
HWY_INLINE VU bits_of(VF x) { return hn::BitCast(kWords, x); }
HWY_INLINE VF float_of(VU x) { return hn::BitCast(kFloats, x); }
HWY_INLINE VI ints_of(VU x) { return hn::BitCast(kInts, x); }

// Unsigned numbers below 2^31, which every instruction set compares as signed.
HWY_INLINE auto greater(VU a, VU b) { return hn::RebindMask(kWords, hn::Gt(ints_of(a), ints_of(b))); }
HWY_INLINE VU smaller_of(VU a, VU b) { return hn::BitCast(kWords, hn::Min(ints_of(a), ints_of(b))); }
HWY_INLINE VU larger_of(VU a, VU b) { return hn::BitCast(kWords, hn::Max(ints_of(a), ints_of(b))); }

// A count of 0 to 31 bits, the same for all lanes, in the form that the instruction set shifts fastest by.
struct Count {
  int bits;
  VU lanes;
  explicit HWY_INLINE Count(int n) : bits(n), lanes(words(uint32_t(n))) {}
};
inline constexpr bool kShiftsByScalar = HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_EMU128;

HWY_INLINE VU shift_right(VU x, const Count& n) {
  if constexpr (kShiftsByScalar) {
    return hn::ShiftRightSame(x, n.bits);
  } else {
    return hn::Shr(x, n.lanes);
  }
}
HWY_INLINE VU shift_left(VU x, const Count& n) {
  if constexpr (kShiftsByScalar) {
    return hn::ShiftLeftSame(x, n.bits);
  } else {
    return hn::Shl(x, n.lanes);
  }
}

// Bits of `yes` where `mask` has ones, of `no` elsewhere. AVX-512 has one instruction for it, Highway's name for which
// means whole lanes on other instruction sets.
template <class V>
HWY_INLINE V select_bits(V mask, V yes, V no) {
  if constexpr (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL) {
    return hn::IfVecThenElse(mask, yes, no);
  } else {
    return hn::Or(hn::And(mask, yes), hn::AndNot(mask, no));
  }
}

}  // namespace halfulp::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

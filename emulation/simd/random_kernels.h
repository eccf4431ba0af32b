// The random bits of stochastic rounding, in lanes. A part of encode_kernels.h, which includes it
// after vectors.h, once for each instruction set: no include guard.

#include "emulation/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace halfulp::simd::HWY_NAMESPACE {

// words[i / 4] for each element i of four vectors, as 16 bits in every lane.
class FieldsOfFour {
 public:
  explicit HWY_INLINE FieldsOfFour(Storage storage) : nibbles_(storage.bits == 4) {}

  HWY_INLINE void load(const uint32_t* random, VU (&fields)[4]) const {
    const VU given = vectors_to_blocks(hn::LoadU(kWords, random));
    const auto ordered = hn::TableLookupBytes(hn::BitCast(kBytes, given), hn::LoadDup128(kBytes, kFields[nibbles_]));
    const VU plain = hn::BitCast(kWords, ordered), reversed = hn::BitCast(kWords, reverse_bits_in_bytes(ordered));
    const VU lower = hn::InterleaveLower(plain, reversed), upper = hn::InterleaveUpper(kWords, plain, reversed);
    fields[0] = spread(lower, kSpread[0]);
    fields[1] = spread(lower, kSpread[1]);
    fields[2] = spread(upper, kSpread[0]);
    fields[3] = spread(upper, kSpread[1]);
  }

 private:
  // The bytes of four words, each as its two fields: as they are, or the odd and the even bytes apart.
  alignas(16) static constexpr uint8_t kFields[2][16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                                         {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15}};
  // Four lanes of a word and its bytes' reversals: low field, its reverse, high field, its reverse.
  static constexpr uint8_t kZero = 0x80;
  alignas(16) static constexpr uint8_t kSpread[2][16] = {
      {0, 1, kZero, kZero, 5, 4, kZero, kZero, 2, 3, kZero, kZero, 7, 6, kZero, kZero},
      {8, 9, kZero, kZero, 13, 12, kZero, kZero, 10, 11, kZero, kZero, 15, 14, kZero, kZero}};

  // The inverse of blocks_to_vectors.
  static HWY_INLINE VU vectors_to_blocks(VU x) {
    if constexpr (kLanes == 4) {
      return x;
    } else {
      alignas(64) int32_t from[kLanes];
      constexpr std::size_t kBlocks = kLanes / 4;
      for (std::size_t i = 0; i < kLanes; ++i) from[i] = int32_t(i % 4 * kBlocks + i / 4);
      return hn::TableLookupLanes(x, hn::SetTableIndices(kWords, from));
    }
  }

  static HWY_INLINE hn::Vec<Bytes> reverse_bits_in_bytes(hn::Vec<Bytes> x) {
    alignas(16) static constexpr uint8_t kReversed[16] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
    const auto reversed = hn::LoadDup128(kBytes, kReversed);
    const auto low = hn::Set(kBytes, uint8_t{0xf});
    const auto high_nibbles = hn::BitCast(kBytes, hn::ShiftRight<4>(hn::BitCast(kHalves, x)));
    const auto from_low = hn::TableLookupBytes(reversed, hn::And(x, low));
    const auto from_high = hn::TableLookupBytes(reversed, hn::And(high_nibbles, low));
    return hn::Or(hn::BitCast(kBytes, hn::ShiftLeft<4>(hn::BitCast(kHalves, from_low))), from_high);
  }

  static HWY_INLINE VU spread(VU pairs, const uint8_t (&order)[16]) {
    return hn::BitCast(kWords, hn::TableLookupBytesOr0(hn::BitCast(kBytes, pairs), hn::LoadDup128(kBytes, order)));
  }

  int nibbles_;
};

// Philox4x32-10 of kLanes / 2 counters at once, one in each 64-bit lane: only the low half of a lane counts until the
// end, and a product's low half is where the next multiplication reads it.
class Philox {
 public:
  explicit HWY_INLINE Philox(const PhiloxWords& stream)
      : stream_low_(stream.stream & 0xffff'ffff), stream_high_(stream.stream >> 32) {
    uint32_t low = uint32_t(stream.seed), high = uint32_t(stream.seed >> 32);
    for (int round = 0; round < kRounds; ++round, low += 0x9E37'79B9, high += 0xBB67'AE85)
      key_low_[round] = low, key_high_[round] = high;
  }

  // Words 4 * block to 4 * block + kStep - 1 of the stream. Two chains of rounds run side by side: one alone leaves the
  // multipliers waiting.
  static constexpr std::size_t kStep = 4 * kLanes;
  HWY_INLINE void blocks(uint64_t block, uint32_t* out) const {
    Counter a = counter_at(block), b = counter_at(block + kLanes / 2);
    rounds<0, 1, 2, 3, 4, 5, 6, 7, 8, 9>(a, b);
    store(a, out);
    store(b, out + 2 * kLanes);
  }

 private:
  using VL = hn::Vec<Longs>;
  static constexpr int kRounds = 10;

  struct Counter {
    VL c0, c1, c2, c3;
  };

  // On x86 a shuffle: the ports that shift are busy multiplying.
  static HWY_INLINE VL high_half(VL x) { return hn::BitCast(kLongs, hn::DupOdd(hn::BitCast(kWords, x))); }

  HWY_INLINE Counter counter_at(uint64_t block) const {
    const VL low = hn::Add(hn::Set(kLongs, block), counter_order());
    return {low, high_half(low), hn::Set(kLongs, stream_low_), hn::Set(kLongs, stream_high_)};
  }

  template <int... round>
  HWY_INLINE void rounds(Counter& a, Counter& b) const {
    ((a = next<round>(a), b = next<round>(b)), ...);
  }

  template <int round>
  HWY_INLINE Counter next(const Counter& c) const {
    const VL product0 = hn::MulEven(hn::BitCast(kWords, c.c0), words(0xD251'1F53));
    const VL product1 = hn::MulEven(hn::BitCast(kWords, c.c2), words(0xCD9E'8D57));
    return {hn::Xor3(high_half(product1), c.c1, hn::Set(kLongs, key_low_[round])), product1,
            hn::Xor3(high_half(product0), c.c3, hn::Set(kLongs, key_high_[round])), product0};
  }

  // Even lanes hold the first half of the counters, odd ones the second: interleaving puts them in order.
  static HWY_INLINE VL counter_order() {
    constexpr std::size_t kCounters = kLanes / 2;
    alignas(64) uint64_t order[kCounters];
    for (std::size_t i = 0; i < kCounters; ++i) order[i] = i / 2 + i % 2 * (kCounters / 2);
    return hn::Load(kLongs, order);
  }

  static HWY_INLINE VL joined(VL low, VL high) {
    return select_bits(hn::Set(kLongs, uint64_t{0xffff'ffff}), low, hn::ShiftLeft<32>(high));
  }

  static HWY_INLINE void store(const Counter& c, uint32_t* out) {
    const VL lower = joined(c.c0, c.c1), upper = joined(c.c2, c.c3);
    hn::StoreU(hn::BitCast(kWords, hn::InterleaveLower(lower, upper)), kWords, out);
    hn::StoreU(hn::BitCast(kWords, hn::InterleaveUpper(kLongs, lower, upper)), kWords, out + kLanes);
  }

  uint64_t stream_low_, stream_high_;
  uint64_t key_low_[kRounds], key_high_[kRounds];
};

// Words first to first + count - 1 of the stream, from out[first % 4] on; `out` has room for whole blocks of vectors.
HWY_INLINE void fill_words(const PhiloxWords& stream, uint64_t first, std::size_t count, uint32_t* out) {
  const Philox philox{stream};
  uint64_t block = first / 4;
  for (std::size_t i = 0; i < first % 4 + count; i += Philox::kStep, block += Philox::kStep / 4)
    philox.blocks(block, out + i);
}

}  // namespace halfulp::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

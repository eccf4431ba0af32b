// The encoding kernels for one instruction set. Included once for each by encode.cpp: no include guard.

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>

#include "emulation/simd/constants.h"
#include "emulation/simd/encode_job.h"
#include "emulation/simd/scalar.h"
#include "emulation/simd/vectors.h"

HWY_BEFORE_NAMESPACE();
namespace halfulp::simd::HWY_NAMESPACE {

using Mask = decltype(greater(VU{}, VU{}));

// ---- magnitudes to the line

// The format's subnormals: x + smallest has an ulp of 2^-23 smallest, so its bits count those. The sum is rounded to
// nearest: where that was upward, `cut` goes one back; `lost` is where it changed x.
struct Subnormals {
  VU smallest;

  explicit HWY_INLINE Subnormals(const EncodeConstants& k) : smallest(words(k.smallest)) {}

  HWY_INLINE Mask here(VU magnitude) const { return greater(smallest, magnitude); }

  HWY_INLINE VU cut(VU magnitude) const {
    const VF x = float_of(magnitude), sum = hn::Add(x, float_of(smallest));
    const Mask above = hn::RebindMask(kWords, hn::Gt(hn::Sub(sum, float_of(smallest)), x)), subnormal = here(magnitude);
    const VU line = hn::IfThenElse(subnormal, hn::Sub(bits_of(sum), words(0x0080'0000)), magnitude);
    return hn::IfThenElse(hn::And(subnormal, above), hn::Sub(line, words(1)), line);
  }

  HWY_INLINE Mask lost(VU magnitude) const {
    const VF x = float_of(magnitude), sum = hn::Add(x, float_of(smallest));
    return hn::And(here(magnitude), hn::RebindMask(kWords, hn::Ne(hn::Sub(sum, float_of(smallest)), x)));
  }
};

// Magnitudes on the line, plus the offset, cut.
template <Line line>
struct ToLine;

template <>
struct ToLine<Line::subnormals> {
  Subnormals subnormals;
  explicit HWY_INLINE ToLine(const EncodeConstants& k) : subnormals(k) {}
  HWY_INLINE VU cut(VU m) const { return subnormals.cut(m); }
  HWY_INLINE Mask lost(VU m) const { return subnormals.lost(m); }
};

template <>
struct ToLine<Line::as_f32> {
  explicit HWY_INLINE ToLine(const EncodeConstants&) {}
  HWY_INLINE VU cut(VU m) const { return m; }
  HWY_INLINE Mask lost(VU) const { return hn::MaskFromVec(hn::Zero(kWords)); }
};

// A format whose smallest number is 2^-127 has FP32's subnormals down to it as its lowest binade: doubled, their bits
// continue the line downward.
template <>
struct ToLine<Line::binades> {
  VU smallest, doubled_below;
  explicit HWY_INLINE ToLine(const EncodeConstants& k)
      : smallest(words(k.smallest)), doubled_below(words(k.smallest == 0 ? 0x0080'0000 : 0)) {}
  HWY_INLINE VU cut(VU m) const {
    const VU hidden = words(0x0080'0000);
    const VU doubled = hn::Sub(larger_of(hn::Add(m, m), hidden), hidden);
    return larger_of(smallest, hn::IfThenElse(greater(doubled_below, m), doubled, m));
  }
  HWY_INLINE Mask lost(VU) const { return hn::MaskFromVec(hn::Zero(kWords)); }
};

// ---- rounding: a magnitude that is not beyond `most`, to its code at bit kCodeShift; other bits are arbitrary. Of the
//      random modes, what `fast` gives has line_flip in it.

template <Round round, Line line>
struct Rounder;

constexpr bool is_random(Round round) { return round == Round::random16 || round == Round::random32; }

// magnitude + 2^(e + shift) has the ulp of the format at exponent e, the larger one of x and of the smallest normal.
template <Line line>
struct Rounder<Round::nearest_sum, line> {
  static constexpr int kCodeShift = 0;
  VU exponents = words(0x7f80'0000), smallest, addend;
  Count shift;

  explicit HWY_INLINE Rounder(const EncodeConstants& k)
      : smallest(words(k.smallest)), addend(words((uint32_t(k.shift) << 23) | k.sum_low)), shift(k.shift) {}

  HWY_INLINE VU fast(VU magnitude, VU) const {
    const VU e = larger_of(hn::And(magnitude, exponents), smallest);
    const VF sum = hn::Add(float_of(magnitude), float_of(hn::Add(e, addend)));
    return hn::Add(bits_of(sum), shift_right(e, shift));
  }
};

template <Line line>
struct Rounder<Round::nearest_line, line> {
  static constexpr int kCodeShift = 0;
  VU step, one = words(1);
  Count shift;

  explicit HWY_INLINE Rounder(const EncodeConstants& k) : step(words(k.step[0])), shift(k.shift) {}

  HWY_INLINE VU fast(VU magnitude, VU) const {
    const VU odd = hn::And(shift_right(magnitude, shift), one);
    return shift_right(hn::Add(hn::Add(magnitude, step), odd), shift);
  }
};

template <Line line>
struct Rounder<Round::any, line> {
  ToLine<line> to_line;
  VU offset, positive_step, negative_step, odd_step, always_odd;
  Count shift;

  explicit HWY_INLINE Rounder(const EncodeConstants& k)
      : to_line(k),
        offset(words(k.offset)),
        positive_step(words(k.step[0])),
        negative_step(words(k.step[1])),
        odd_step(words(k.odd_step)),
        always_odd(words(k.always_odd)),
        shift(k.shift) {}

  HWY_INLINE VU exact(VU magnitude, Mask negative, VU) const {
    const VU one = words(1), cut = hn::Sub(to_line.cut(magnitude), offset);
    const VU on_line = hn::IfThenElse(to_line.lost(magnitude), hn::Or(cut, one), cut);
    const VU odd = hn::And(hn::Or(shift_right(on_line, shift), always_odd), one);
    const VU step = hn::IfThenElse(negative, negative_step, positive_step);
    const VU odd_part = hn::And(odd_step, hn::Sub(hn::Zero(kWords), odd));
    return shift_right(hn::Add(hn::Add(on_line, step), odd_part), shift);
  }
};

// 16 random bits, added to the upper 16 of those that are dropped.
template <Line line>
struct Rounder<Round::random16, line> {
  static constexpr int kCodeShift = 16;
  ToLine<line> to_line;
  VU offset;
  Count unread;

  explicit HWY_INLINE Rounder(const EncodeConstants& k) : to_line(k), offset(words(k.offset)), unread(k.shift - 16) {}

  HWY_INLINE VU fast(VU magnitude, VU random) const {
    return hn::Add(shift_right(to_line.cut(magnitude), unread), random);
  }
  HWY_INLINE VU exact(VU magnitude, Mask, VU random) const {
    const VU on_line = hn::Sub(to_line.cut(magnitude), offset);
    return hn::ShiftRight<16>(hn::Add(shift_right(on_line, unread), random));
  }
};

// 32 random bits, of which those that lie below the line are not added: they matter only where the sum of the others
// is all ones and the magnitude lost bits on its way to the line. `undecided` is 0 in such lanes, and in a few more.
template <Line line>
struct Rounder<Round::random32, line> {
  static constexpr int kCodeShift = 0;
  ToLine<line> to_line;
  VU offset, dropped;
  Count shift, unread;

  explicit HWY_INLINE Rounder(const EncodeConstants& k)
      : to_line(k),
        offset(words(k.offset)),
        dropped(words((uint32_t{1} << k.shift) - 1)),
        shift(k.shift),
        unread(32 - k.shift) {}

  // The offset has no bits among those that are dropped.
  HWY_INLINE VU sum(VU magnitude, VU random) const {
    return hn::Add(to_line.cut(magnitude), shift_right(random, unread));
  }
  HWY_INLINE VU fast(VU magnitude, VU random) const { return shift_right(sum(magnitude, random), shift); }
  HWY_INLINE VU exact(VU magnitude, Mask, VU random) const {
    return shift_right(hn::Sub(sum(magnitude, random), offset), shift);
  }
  HWY_INLINE VU undecided(VU magnitude, VU random) const { return hn::AndNot(sum(magnitude, random), dropped); }
};

// ---- sign, Inf and NaN

template <Round round, Line line, Finish finish>
struct Encoder {
  static constexpr int kCodeShift = Rounder<round, line>::kCodeShift;
  Rounder<round, line> rounder;
  VU magnitude_bits = words(0x7fff'ffff), inf = words(0x7f80'0000);
  VU most, nan, magnitude_mask;
  Count sign_shift;

  explicit HWY_INLINE Encoder(const EncodeConstants& k)
      : rounder(k),
        most(words(k.most[0])),
        nan(words(finish == Finish::nan_with_sign ? k.nan_on_line : (k.nan_code ^ flip_of(k)) << kCodeShift)),
        magnitude_mask(words(k.magnitude_mask << kCodeShift)),
        sign_shift(k.sign_shift - kCodeShift) {}

  static HWY_INLINE uint32_t flip_of(const EncodeConstants& k) { return is_random(round) ? k.line_flip : 0; }

  HWY_INLINE VU limited(VU x) const { return smaller_of(hn::And(x, magnitude_bits), most); }

  // A NaN with a sign takes the way of a number, one without a sign is put in at the end.
  HWY_INLINE VU code(VU x, VU random) const {
    const Mask is_nan = greater(hn::And(x, magnitude_bits), inf);
    const VU sign = shift_right(x, sign_shift);
    if constexpr (finish == Finish::nan_with_sign) {
      return select_bits(magnitude_mask, rounder.fast(hn::IfThenElse(is_nan, nan, limited(x)), random), sign);
    } else {
      return hn::IfThenElse(is_nan, nan, select_bits(magnitude_mask, rounder.fast(limited(x), random), sign));
    }
  }
};

template <Round round, Line line>
struct Encoder<round, line, Finish::any> {
  static constexpr int kCodeShift = 0;
  const EncodeConstants& k;
  Rounder<round, line> rounder;
  Count sign_shift, shift;

  explicit HWY_INLINE Encoder(const EncodeConstants& constants)
      : k(constants), rounder(constants), sign_shift(constants.sign_shift), shift(constants.shift) {}

  static HWY_INLINE VU magnitude_of(VU x) { return hn::And(x, words(0x7fff'ffff)); }
  static HWY_INLINE Mask is_negative(VU x) {
    return hn::MaskFromVec(hn::BitCast(kWords, hn::BroadcastSignBit(ints_of(x))));
  }

  HWY_INLINE VU limited(VU x) const {
    return smaller_of(magnitude_of(x), hn::IfThenElse(is_negative(x), words(k.most[1]), words(k.most[0])));
  }

  HWY_INLINE VU nan_code_of(VU x) const {
    const VU payload = hn::And(shift_right(magnitude_of(x), shift), words(k.nan_payload));
    const VU sign = hn::And(shift_right(x, sign_shift), words(k.nan_sign));
    return hn::Sub(hn::Or(hn::Or(payload, words(k.nan_code)), sign), words(k.nan_minus));
  }

  HWY_INLINE VU code(VU x, VU random) const {
    const VU magnitude = magnitude_of(x), inf = words(0x7f80'0000);
    VU code = rounder.exact(limited(x), is_negative(x), random);
    code = hn::IfThenElse(hn::Eq(magnitude, inf), words(k.inf_code), code);
    const VU sign = shift_right(x, sign_shift), zero = hn::Zero(kWords);
    const VU kept = hn::IfThenElse(hn::Eq(code, zero), words(k.zero_sign), words(k.sign));
    code = hn::Or(code, hn::And(sign, kept));
    const VU other = hn::IfThenElseZero(greater(magnitude, zero), words(k.negative_other));
    code = hn::IfThenElse(hn::And(is_negative(x), hn::MaskFromVec(other)), words(k.negative_code), code);
    return hn::IfThenElse(greater(magnitude, inf), nan_code_of(x), code);
  }
};

// ---- four vectors of codes to memory, in order

// 32-bit lanes of the four vectors in the order of memory, given the order in which lanes of a 128-bit block were
// joined: position 4 * vector + block was lane `vector` of block `block`.
HWY_INLINE VU blocks_to_vectors(VU joined) {
  if constexpr (kLanes == 4) {
    return joined;
  } else {
    alignas(64) int32_t from[kLanes];
    constexpr std::size_t kBlocks = kLanes / 4;
    for (std::size_t i = 0; i < kLanes; ++i) from[i] = int32_t(i % kBlocks * 4 + i / kBlocks);
    return hn::TableLookupLanes(joined, hn::SetTableIndices(kWords, from));
  }
}

// Byte 4 * v + i of a block is byte v of its lane i.
HWY_INLINE VU bytes_by_vector(VU lanes) {
  alignas(16) static constexpr uint8_t kOrder[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const auto order = hn::LoadDup128(kBytes, kOrder);
  return hn::BitCast(kWords, hn::TableLookupBytes(hn::BitCast(kBytes, lanes), order));
}

// The codes of four vectors as bytes, in order. At bit 0 they are alone in their lanes; at bit 16 they fill a byte with
// others' bits around it.
template <int code_shift>
HWY_INLINE VU packed_bytes_of(const VU (&codes)[4]) {
  if constexpr (code_shift == 0) {
    const VU ab = hn::Or(codes[0], hn::ShiftLeft<8>(codes[1]));
    const VU cd = hn::Or(hn::ShiftLeft<16>(codes[2]), hn::ShiftLeft<24>(codes[3]));
    return blocks_to_vectors(bytes_by_vector(hn::Or(ab, cd)));
  } else {
    static_assert(code_shift == 16);
    const VU ab = select_bits(words(0x0000'00ff), hn::ShiftRight<16>(codes[0]), hn::ShiftRight<8>(codes[1]));
    const VU cd = select_bits(words(0x00ff'0000), codes[2], hn::ShiftLeft<8>(codes[3]));
    return blocks_to_vectors(bytes_by_vector(select_bits(words(0x0000'ffff), ab, cd)));
  }
}

enum class Width { nibbles, bytes, halves, any };  // any: asked at run time

HWY_INLINE void store_halves(const VU (&codes)[4], uint8_t* out) {
  const hn::Rebind<uint16_t, Words> half;
  auto* to = reinterpret_cast<uint16_t*>(out);
  hn::StoreU(hn::TruncateTo(half, codes[0]), half, to);
  hn::StoreU(hn::TruncateTo(half, codes[1]), half, to + kLanes);
  hn::StoreU(hn::TruncateTo(half, codes[2]), half, to + 2 * kLanes);
  hn::StoreU(hn::TruncateTo(half, codes[3]), half, to + 3 * kLanes);
}

HWY_INLINE void store_nibbles(VU bytes, uint8_t* out) {
  const auto pairs = hn::BitCast(kHalves, bytes);
  const auto nibbles = hn::And(hn::Or(pairs, hn::ShiftRight<4>(pairs)), hn::Set(kHalves, uint16_t{0xff}));
  const hn::Rebind<uint8_t, Halves> narrow;
  hn::StoreU(hn::TruncateTo(narrow, nibbles), narrow, out);
}

template <Width width, int code_shift>
HWY_INLINE void store_group(const VU (&codes)[4], int bits, VU flip, uint8_t* out) {
  if (width == Width::halves || (width == Width::any && bits == 16)) {
    store_halves(codes, out);
  } else if (width == Width::nibbles || (width == Width::any && bits == 4)) {
    store_nibbles(hn::Xor(packed_bytes_of<code_shift>(codes), flip), out);
  } else {
    hn::StoreU(hn::BitCast(kBytes, hn::Xor(packed_bytes_of<code_shift>(codes), flip)), kBytes, out);
  }
}

// ---- random bits

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

// ---- arrays

inline constexpr std::size_t kStrip = 1024;  // elements whose factors or random words are prepared together
static_assert(kStrip % kGroup == 0);

template <Round round>
HWY_INLINE void load_random(const FieldsOfFour& fields, const uint32_t* words_at, VU (&random)[4]) {
  if constexpr (round == Round::random16) {
    fields.load(words_at, random);
  } else if constexpr (round == Round::random32) {
    random[0] = hn::LoadU(kWords, words_at);
    random[1] = hn::LoadU(kWords, words_at + kLanes);
    random[2] = hn::LoadU(kWords, words_at + 2 * kLanes);
    random[3] = hn::LoadU(kWords, words_at + 3 * kLanes);
  } else {
    random[0] = random[1] = random[2] = random[3] = hn::Zero(kWords);
  }
}

template <class E>
HWY_INLINE bool any_undecided(const E& e, const VU (&x)[4], const VU (&random)[4]) {
  const VU a = e.rounder.undecided(e.limited(x[0]), random[0]), b = e.rounder.undecided(e.limited(x[1]), random[1]);
  const VU c = e.rounder.undecided(e.limited(x[2]), random[2]), d = e.rounder.undecided(e.limited(x[3]), random[3]);
  const VU least = smaller_of(smaller_of(a, b), smaller_of(c, d));
  return !hn::AllFalse(kWords, hn::Eq(least, hn::Zero(kWords)));
}

inline void encode_words_scalar(const EncodeConstants& k, const VU (&x)[4], const VU (&random)[4], uint8_t* out) {
  alignas(64) float values[kGroup];
  alignas(64) uint32_t words_of[kGroup];
  for (std::size_t v = 0; v < 4; ++v) {
    hn::Store(float_of(x[v]), kFloats, values + v * kLanes);
    hn::Store(random[v], kWords, words_of + v * kLanes);
  }
  for (std::size_t i = 0; i < kGroup; ++i) {
    const uint32_t code = encode(k.format, k.policy, values[i], {.word = words_of[i], .count = 32});
    store_at(k.storage, reinterpret_cast<std::byte*>(out), i, code);
  }
}

// Elements to fetch ahead of the one that is read: the processor's own prefetching leaves an array that is in no cache
// at two thirds of this speed.
inline constexpr std::size_t kAhead = 1024;

HWY_INLINE void fetch_ahead(const float* x) {
  hwy::Prefetch(x + kAhead);
  hwy::Prefetch(x + kAhead + kLanes);
  hwy::Prefetch(x + kAhead + 2 * kLanes);
  hwy::Prefetch(x + kAhead + 3 * kLanes);
}

HWY_INLINE VF factor_at(const EncodeJob& job, std::size_t i) {
  return hn::Set(kFloats, job.factors[i >> job.block_log2]);
}

// One strip or less: `random` points to the words of its elements.
template <Round round, Line line, Finish finish, Width width>
struct Strip {
  static constexpr bool kFlips = finish != Finish::any && is_random(round);
  const EncodeConstants& k;
  std::size_t bits = std::size_t(k.storage.bits);
  Encoder<round, line, finish> encoder{k};
  FieldsOfFour fields{k.storage};
  VU flip = words(kFlips ? k.line_flip * 0x0101'0101 : 0);

  static constexpr std::size_t words_before(std::size_t elements) {
    return round == Round::random16 ? elements / 4 : round == Round::random32 ? elements : 0;
  }
  std::size_t bytes_before(std::size_t elements) const { return elements * bits / 8; }

  // Element i of the job and those after it, times their factor where the job has factors.
  HWY_INLINE VU value(const EncodeJob& job, std::size_t i) const {
    const VF loaded = hn::LoadU(kFloats, job.x + i);
    return bits_of(job.factors == nullptr ? loaded : hn::Mul(loaded, factor_at(job, i)));
  }

  HWY_INLINE void group(const EncodeJob& job, std::size_t i, const uint32_t* random_words, uint8_t* out) const {
    const VU values[4] = {value(job, i), value(job, i + kLanes), value(job, i + 2 * kLanes),
                          value(job, i + 3 * kLanes)};
    VU random[4];
    load_random<round>(fields, random_words, random);
    const VU codes[4] = {encoder.code(values[0], random[0]), encoder.code(values[1], random[1]),
                         encoder.code(values[2], random[2]), encoder.code(values[3], random[3])};
    store_group<width, decltype(encoder)::kCodeShift>(codes, k.storage.bits, flip, out);
    if constexpr (round == Round::random32 && line == Line::subnormals)
      if (HWY_UNLIKELY(any_undecided(encoder, values, random))) encode_words_scalar(k, values, random, out);
  }

  // Elements first to first + count - 1 of the job, in whole groups; `random` and `out` are those of the first.
  HWY_INLINE void whole_groups(const EncodeJob& job, std::size_t first, std::size_t count, const uint32_t* random,
                               uint8_t* out) const {
    for (std::size_t i = 0; i < count; i += kGroup) {
      fetch_ahead(job.x + first + i);
      group(job, first + i, random + words_before(i), out + bytes_before(i));
    }
  }

  // Fewer than a group, with their factors applied.
  void tail(const float* x, std::size_t count, const uint32_t* random, uint8_t* out) const {
    alignas(64) float values[kGroup] = {};
    alignas(64) uint32_t words_of[kGroup] = {};
    alignas(64) uint8_t codes[2 * kGroup];
    std::copy_n(x, count, values);
    if (round == Round::random16) std::copy_n(random, (count + 3) / 4, words_of);
    if (round == Round::random32) std::copy_n(random, count, words_of);
    group({.x = values}, 0, words_of, codes);
    std::memcpy(out, codes, (count * bits + 7) / 8);
  }
};

// The elements of a strip with their factors applied, in `out`.
HWY_INLINE void apply_factors(const EncodeJob& job, std::size_t first, std::size_t count, float* out) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const VF factor = hn::Set(kFloats, job.factors[(first + i) >> job.block_log2]);
    const VF x = hn::LoadU(kFloats, job.x + first + i);
    hwy::Prefetch(job.x + first + i + kAhead);
    hn::StoreU(job.use == FactorUse::multiply ? hn::Mul(x, factor) : hn::Div(x, factor), kFloats, out + i);
  }
  for (; i < count; ++i) {
    const float factor = job.factors[(first + i) >> job.block_log2], x = job.x[first + i];
    out[i] = job.use == FactorUse::multiply ? x * factor : x / factor;
  }
}

// The job's random words from element `first` on: those given, or Philox's in `buffer`.
template <Round round>
HWY_INLINE const uint32_t* random_words_of(const EncodeJob& job, std::size_t first, std::size_t count,
                                           uint32_t* buffer) {
  if constexpr (round == Round::random16) return job.words + first / 4;
  if constexpr (round != Round::random32) return nullptr;
  fill_words(job.philox, job.philox.first + first, count, buffer);
  return buffer + (job.philox.first + first) % 4;
}

// A strip with its factors applied beforehand: where the kernel does not multiply, and at the end.
template <Round round, Line line, Finish finish, Width width>
void encode_strips(const EncodeConstants& k, const EncodeJob& job) {
  const Strip<round, line, finish, width> strip{k};
  alignas(64) float scaled_x[kStrip];
  alignas(64) uint32_t philox[round == Round::random32 ? kStrip + 4 * kGroup : 1];
  const bool multiplies = finish != Finish::any && job.use == FactorUse::multiply;
  for (std::size_t first = 0; first < job.count; first += kStrip) {
    const std::size_t count = std::min(kStrip, job.count - first), whole = count / kGroup * kGroup;
    const uint32_t* random = random_words_of<round>(job, first, count, philox);
    auto* out = reinterpret_cast<uint8_t*>(job.codes) + strip.bytes_before(first);
    const bool beforehand = job.factors != nullptr && (!multiplies || whole != count);
    if (beforehand) apply_factors(job, first, count, scaled_x);
    const float* x = beforehand ? scaled_x : job.x + first;
    if (beforehand && !multiplies) {
      strip.whole_groups({.x = x}, 0, whole, random, out);
    } else {
      strip.whole_groups(job, first, whole, random, out);
    }
    if (whole != count)
      strip.tail(x + whole, count - whole, random + strip.words_before(whole), out + strip.bytes_before(whole));
  }
}

// ---- from values to template arguments

template <Round round, Finish finish>
void encode_width(const EncodeConstants& k, const EncodeJob& job) {
  if (k.storage.bits == 4) return encode_strips<round, Line::subnormals, finish, Width::nibbles>(k, job);
  if (k.storage.bits == 8) return encode_strips<round, Line::subnormals, finish, Width::bytes>(k, job);
  if constexpr (round == Round::nearest_sum) encode_strips<round, Line::subnormals, finish, Width::halves>(k, job);
}

template <Round round>
void encode_fast(const EncodeConstants& k, const EncodeJob& job) {
  if (k.finish == Finish::nan_without_sign) return encode_width<round, Finish::nan_without_sign>(k, job);
  encode_width<round, Finish::nan_with_sign>(k, job);
}

inline void encode_nearest_line(const EncodeConstants& k, const EncodeJob& job) {
  constexpr Round kRound = Round::nearest_line;
  constexpr Line kLine = Line::as_f32;
  if (k.finish == Finish::nan_without_sign)
    return encode_strips<kRound, kLine, Finish::nan_without_sign, Width::halves>(k, job);
  encode_strips<kRound, kLine, Finish::nan_with_sign, Width::halves>(k, job);
}

template <Round round>
void encode_any(const EncodeConstants& k, const EncodeJob& job) {
  switch (k.line) {
    case Line::subnormals: return encode_strips<round, Line::subnormals, Finish::any, Width::any>(k, job);
    case Line::as_f32: return encode_strips<round, Line::as_f32, Finish::any, Width::any>(k, job);
    case Line::binades: return encode_strips<round, Line::binades, Finish::any, Width::any>(k, job);
  }
}

template <Round round>
void encode_random(const EncodeConstants& k, const EncodeJob& job) {
  if (k.finish == Finish::any) return encode_any<round>(k, job);
  encode_fast<round>(k, job);
}

inline void encode_array(const EncodeConstants& k, const EncodeJob& job) {
  switch (k.round) {
    case Round::nearest_sum: return encode_fast<Round::nearest_sum>(k, job);
    case Round::nearest_line: return encode_nearest_line(k, job);
    case Round::any: return encode_any<Round::any>(k, job);
    case Round::random16: return encode_random<Round::random16>(k, job);
    case Round::random32: return encode_random<Round::random32>(k, job);
  }
}

inline void philox_array(PhiloxWords stream, uint32_t* out, std::size_t count) {
  alignas(64) uint32_t buffer[kStrip + 4 * kGroup];
  for (std::size_t first = 0; first < count; first += kStrip) {
    const std::size_t size = std::min(kStrip, count - first);
    fill_words(stream, stream.first + first, size, buffer);
    std::copy_n(buffer + (stream.first + first) % 4, size, out + first);
  }
}

}  // namespace halfulp::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

// The encoding kernels for one instruction set. Included once for each by encode.cpp: no include guard.

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>

#include "emulation/simd/constants.h"
#include "emulation/simd/encode_job.h"
#include "emulation/simd/scalar.h"
#include "emulation/simd/vectors.h"

// Parts of this file.
#include "emulation/simd/pack_kernels.h"
#include "emulation/simd/random_kernels.h"
#include "emulation/simd/round_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace halfulp::simd::HWY_NAMESPACE {

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

// From values to template arguments.

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

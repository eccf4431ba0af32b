#pragma once
// Arrays through formats/codec.h, many elements at once: every function gives the bits that the scalar one named in its
// comment gives, on every instruction set. Knows no recipes: scales come in as factors. Any length, any alignment.
// Where an FP32 multiplication or division meets two NaNs, or makes one of no NaN, its sign is the processor's choice.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/format.h"
#include "formats/policy.h"

namespace halfulp::simd {

enum class FactorUse { multiply, divide };

// What each element is multiplied or divided by, in one FP32 operation rounded to nearest: element i by
// values[i / block]. No values: elements are taken as they are.
struct BlockFactors {
  std::span<const float> values{};
  std::size_t block = 1;  // a power of two; below 16 the scalar code does the work
  FactorUse use = FactorUse::multiply;
};

// Codes in memory: 4 (formats/packing.h: the even element in the low nibble), 8, 16 or 32 bits each. A code fills the
// low bits, or lies `shift` bits higher.
struct Storage {
  int bits;
  int shift = 0;
};

// codes[i] = encode(format, policy, x[i] * factor). `codes` holds packed_bytes(storage.bits, x.size()) bytes, rounded
// up; the last byte's unused nibble is zero. policy.rounding is not stochastic.
void encode_blocks(const Format& format, const Policy& policy, Storage storage, std::span<const float> x,
                   const BlockFactors& factors, std::span<std::byte> codes);

// Random bits as cvt.rs takes them: words[i / 4] serves elements 4k to 4k+3 with 16 bits each, by the mapping of
// RandomField::pairs_interleaved in formats/ptx_cvt.h where codes have 4 bits, of RandomField::pairs where they have
// more. ceil(x.size() / 4) words.
struct WordOfFour {
  std::span<const uint32_t> words;
};

// 32 random bits for each element: random_word(seed, stream, first + i) of lib/philox.h, RandomBits::count 32.
struct PhiloxWords {
  uint64_t seed;
  uint64_t stream;
  uint64_t first = 0;
};

// The same for Rounding::stochastic. Any other rounding in `policy` reads no random bits.
void encode_blocks(const Format& format, const Policy& policy, Storage storage, std::span<const float> x,
                   const BlockFactors& factors, WordOfFour random, std::span<std::byte> codes);
void encode_blocks(const Format& format, const Policy& policy, Storage storage, std::span<const float> x,
                   const BlockFactors& factors, PhiloxWords random, std::span<std::byte> codes);

// y[i] = decode(format, codes[i]) * factor, from the byte at codes[0] on.
void decode_blocks(const Format& format, Storage storage, std::span<const std::byte> codes, const BlockFactors& factors,
                   std::span<float> y);

// y[i] = decode_bits(format, codes[i]): a NaN keeps its payload.
void to_f32(const Format& format, Storage storage, std::span<const std::byte> codes, std::span<float> y);

// words[i] = random_word(random.seed, random.stream, random.first + i)
void philox_words(PhiloxWords random, std::span<uint32_t> words);

// What a NaN does to the largest magnitude: nothing, or makes it the quiet NaN 0x7fc00000.
enum class NanMagnitude { ignored, propagates };

// amax[k] = the largest magnitude of elements k * block to (k + 1) * block - 1, fewer in the last block; 0 of none.
// block >= 1; amax.size() == ceil(x.size() / block).
void block_amax(std::span<const float> x, std::size_t block, NanMagnitude nan, std::span<float> amax);

// The largest magnitude of all, starting at `start` >= 0 (or NaN). The order does not matter.
float amax(std::span<const float> x, NanMagnitude nan, float start = 0);

// The instruction sets that this build has kernels for and this processor can run, best first.
std::vector<std::string_view> targets();

// While it lives, every function above uses one of targets(). For tests; not while another thread uses the kernels.
class ForcedTarget {
 public:
  explicit ForcedTarget(std::string_view name);
  ~ForcedTarget();
  ForcedTarget(const ForcedTarget&) = delete;
  ForcedTarget& operator=(const ForcedTarget&) = delete;
};

}  // namespace halfulp::simd

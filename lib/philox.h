#pragma once
// Philox4x32-10 random words (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11): a function of
// (seed, stream, index), with no state. What values become of the words is lib/random_values.h.

#include <cstdint>
#include <string_view>

#include "lib/host_device.h"

namespace halfulp {

struct PhiloxKey {
  uint32_t low;
  uint32_t high;
};

// Four words: a counter going in, random words coming out. Not std::array, whose members device code cannot call.
struct PhiloxBlock {
  uint32_t words[4];
  HOST_DEVICE constexpr uint32_t operator[](uint64_t i) const { return words[i]; }
};

HOST_DEVICE constexpr PhiloxBlock philox_round(PhiloxKey key, PhiloxBlock counter) {
  const uint64_t product0 = uint64_t{0xD251'1F53} * counter[0];
  const uint64_t product1 = uint64_t{0xCD9E'8D57} * counter[2];
  return {{uint32_t(product1 >> 32) ^ counter[1] ^ key.low, uint32_t(product1),
           uint32_t(product0 >> 32) ^ counter[3] ^ key.high, uint32_t(product0)}};
}

// The keys of the rounds. They hold for a seed, so that who wants many blocks computes them once.
struct PhiloxKeys {
  static constexpr int kRounds = 10;
  PhiloxKey of_round[kRounds];
};

HOST_DEVICE constexpr PhiloxKeys philox_keys(PhiloxKey key) {
  PhiloxKeys keys{};
  for (PhiloxKey& round : keys.of_round) {
    round = key;
    key = {key.low + 0x9E37'79B9, key.high + 0xBB67'AE85};  // the golden ratio and sqrt(3) - 1, in 32 bits
  }
  return keys;
}

HOST_DEVICE constexpr PhiloxKeys philox_keys(uint64_t seed) {
  return philox_keys(PhiloxKey{uint32_t(seed), uint32_t(seed >> 32)});
}

HOST_DEVICE constexpr PhiloxBlock philox_rounds(const PhiloxKeys& keys, PhiloxBlock counter) {
  for (const PhiloxKey& key : keys.of_round) counter = philox_round(key, counter);
  return counter;
}

HOST_DEVICE constexpr PhiloxBlock philox4x32(PhiloxKey key, PhiloxBlock counter) {
  return philox_rounds(philox_keys(key), counter);
}

// Block number `block` of a stream. Streams never overlap: the stream is one half of the counter, the block the other.
// Transformer Engine counts alike (its subsequence is the stream, its offset the block); curand's offset counts words.
HOST_DEVICE constexpr PhiloxBlock random_block(const PhiloxKeys& keys, uint64_t stream, uint64_t block) {
  return philox_rounds(keys, {{uint32_t(block), uint32_t(block >> 32), uint32_t(stream), uint32_t(stream >> 32)}});
}

HOST_DEVICE constexpr PhiloxBlock random_block(uint64_t seed, uint64_t stream, uint64_t block) {
  return random_block(philox_keys(seed), stream, block);
}

// Word number `index` of a stream.
HOST_DEVICE constexpr uint32_t random_word(uint64_t seed, uint64_t stream, uint64_t index) {
  return random_block(seed, stream, index / 4)[index % 4];
}

// Words 2 * index (low half) and 2 * index + 1 (high half) of a stream.
HOST_DEVICE constexpr uint64_t random_bits64(uint64_t seed, uint64_t stream, uint64_t index) {
  const PhiloxBlock block = random_block(seed, stream, index / 2);
  const uint64_t first = index % 2 * 2;
  return uint64_t{block[first + 1]} << 32 | block[first];
}

// A stream number for a name, e.g. a tensor's: 64-bit FNV-1a (RFC 9923) of its bytes.
constexpr uint64_t stream_of(std::string_view name) {
  uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const char c : name) hash = (hash ^ uint8_t(c)) * 0x0000'0100'0000'01b3;
  return hash;
}

// Known answers: Random123's kat_vectors, philox4x32 10 rounds.
static_assert(philox4x32({0, 0}, {{0, 0, 0, 0}})[0] == 0x6627'e8d5);
static_assert(philox4x32({0, 0}, {{0, 0, 0, 0}})[3] == 0x9b00'dbd8);
static_assert(philox4x32({~0u, ~0u}, {{~0u, ~0u, ~0u, ~0u}})[0] == 0x408f'276d);
static_assert(philox4x32({~0u, ~0u}, {{~0u, ~0u, ~0u, ~0u}})[3] == 0x6d54'51fd);

}  // namespace halfulp

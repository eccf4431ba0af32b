// Philox4x32-10 against published known answers. Random123's own code is the oracle in philox_oracle_test.cpp.

#include "lib/philox.h"

#include <gtest/gtest.h>

#include <array>

namespace halfulp {
namespace {

using Words = std::array<uint32_t, 4>;

Words words_of(PhiloxBlock block) { return {block[0], block[1], block[2], block[3]}; }

TEST(Philox, MatchesKnownAnswerOfZeros) {
  EXPECT_EQ(words_of(philox4x32({0, 0}, {{0, 0, 0, 0}})), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

TEST(Philox, MatchesKnownAnswerOfOnes) {
  EXPECT_EQ(words_of(philox4x32({~0u, ~0u}, {{~0u, ~0u, ~0u, ~0u}})),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

// Random123's third vector: digits of pi.
TEST(Philox, MatchesKnownAnswerOfPi) {
  EXPECT_EQ(words_of(philox4x32({0xa4093822, 0x299f31d0}, {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}})),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// Subsequence and offset of Transformer Engine's and curand's generators.
TEST(Philox, BlocksOfSubsequence0) {
  EXPECT_EQ(words_of(random_block(1234, 0, 0)), (Words{0x2090b348, 0xda7cf0ab, 0x4401906f, 0xcbca470e}));
}

TEST(Philox, BlocksOfSubsequence1) {
  EXPECT_EQ(words_of(random_block(1234, 1, 0)), (Words{0xd115a128, 0x52fc7c75, 0xc7f33f17, 0x0f1539db}));
}

TEST(Philox, HighHalvesOfSeedStreamAndBlockCount) {
  const uint64_t high = uint64_t{1} << 32;
  const Words base = words_of(random_block(1, 2, 3));
  EXPECT_NE(words_of(random_block(1 + high, 2, 3)), base);
  EXPECT_NE(words_of(random_block(1, 2 + high, 3)), base);
  EXPECT_NE(words_of(random_block(1, 2, 3 + high)), base);
}

TEST(Philox, WordsAreTheBlocksInOrder) {
  for (uint64_t index = 0; index < 40; ++index) {
    EXPECT_EQ(random_word(7, 8, index), words_of(random_block(7, 8, index / 4))[index % 4]) << index;
  }
}

TEST(Philox, Bits64AreTwoWordsLowFirst) {
  for (uint64_t index = 0; index < 40; ++index) {
    const uint64_t expected = uint64_t{random_word(7, 8, 2 * index + 1)} << 32 | random_word(7, 8, 2 * index);
    EXPECT_EQ(random_bits64(7, 8, index), expected) << index;
  }
}

// Test vectors of the FNV reference distribution.
TEST(StreamOf, MatchesFnv1aVectors) {
  EXPECT_EQ(stream_of(""), 0xcbf29ce484222325);
  EXPECT_EQ(stream_of("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(stream_of("foobar"), 0x85944171f73967e8);
}

// The sign of char must not matter. Computed with Python's integers.
TEST(StreamOf, BytesAboveAsciiAreUnsigned) { EXPECT_EQ(stream_of("\xff"), 0xaf64724c8602eb6e); }

}  // namespace
}  // namespace halfulp

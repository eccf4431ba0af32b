// Every float32 input through the best instruction set's kernel and through the scalar codec, to nearest-even.

#include <gtest/gtest.h>

#include <cstddef>
#include <ios>
#include <iostream>
#include <span>
#include <vector>

#include "emulation/simd/simd.h"
#include "formats/catalog.h"
#include "formats/codec.h"
#include "formats/packing.h"
#include "tests/exhaustive/sweep.h"

namespace halfulp {
namespace {

constexpr std::size_t kBatch = 1 << 16;

// Format and policy are template arguments, so that encode folds into the format's own code.
template <int id, Policy policy>
Tally compare_chunk(uint64_t first, uint64_t end) {
  constexpr int kBits = kFormats[id].storage_bits;
  std::vector<float> x(kBatch);
  std::vector<std::byte> codes(packed_bytes(kBits, kBatch));
  Tally tally;
  for (uint64_t batch = first; batch < end; batch += kBatch) {
    for (std::size_t i = 0; i < kBatch; ++i) x[i] = bit_cast<float>(uint32_t(batch + i));
    simd::encode_blocks(kFormatAt<id>, policy, {kBits}, x, {}, codes);
    for (std::size_t i = 0; i < kBatch; ++i)
      tally.add(batch + i, encode(kFormatAt<id>, policy, x[i]), load_code<kBits>(codes.data(), i));
  }
  return tally;
}

template <int id, Overflow overflow>
void sweep() {
  constexpr Policy kPolicy{.rounding = Rounding::nearest_even, .overflow = overflow};
  Tally total;
  for (const Tally& part : for_each_chunk<Tally>(compare_chunk<id, kPolicy>)) total.add(part);
  std::cout << total.compared << " inputs compared, " << total.mismatches << " mismatches\n";
  EXPECT_EQ(total.compared, uint64_t{1} << 32);
  for (const auto& [input, expected, got] : total.first)
    ADD_FAILURE() << std::hex << "input 0x" << input << " expected 0x" << expected << " got 0x" << got;
}

TEST(SimdEveryFloat, E4m3Saturating) { sweep<format_id("e4m3"), Overflow::saturate>(); }
TEST(SimdEveryFloat, E4m3Overflowing) { sweep<format_id("e4m3"), Overflow::to_special>(); }
TEST(SimdEveryFloat, E5m2Saturating) { sweep<format_id("e5m2"), Overflow::saturate>(); }
TEST(SimdEveryFloat, E5m2Overflowing) { sweep<format_id("e5m2"), Overflow::to_special>(); }
TEST(SimdEveryFloat, E2m1) { sweep<format_id("e2m1"), Overflow::saturate>(); }
TEST(SimdEveryFloat, Bf16) { sweep<format_id("bf16"), Overflow::to_special>(); }

}  // namespace
}  // namespace halfulp

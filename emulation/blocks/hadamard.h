#pragma once
// The random Hadamard transform along rows, in groups of 2 to 128 elements, defined to the bit. Not a model of the
// tensor core that computes it: see hadamard().

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "lib/host_device.h"
#include "lib/philox.h"

namespace halfulp {

// The sign that each element of a group is multiplied by before the transform.
enum class HadamardSigns { none, te, seeded };

struct HadamardSignsEntry {
  std::string_view name;
  HadamardSigns signs;
  std::string_view meaning;
  std::string_view source;
};

// clang-format off
inline constexpr auto kHadamardSigns = std::to_array<HadamardSignsEntry>({
    {.name = "none", .signs = HadamardSigns::none,
     .meaning = "all +1",
     .source = "NVIDIA/TransformerEngine pytorch/tensor/nvfp4_tensor.py, get_no_random_sign_vector"},
    {.name = "te", .signs = HadamardSigns::te,
     .meaning = "the 16 signs that Transformer Engine never redraws: bit i of 0xd7e8 set where element i changes its sign",
     .source = "NVIDIA/TransformerEngine pytorch/tensor/nvfp4_tensor.py, get_wgrad_sign_vector"},
    {.name = "seeded", .signs = HadamardSigns::seeded,
     .meaning = "bits of Philox4x32-10 of the seed, stream 'hadamard signs'",
     .source = "Salmon et al., SC'11; the use of the bits is halfulp's"},
});
// clang-format on

// Whether the groups of a row share one vector of signs. A matrix product over the row needs the same signs in both of
// its operands, whose rows are as long: so the vector may depend on the group's position in the row, never on the row.
enum class SignVectors { one, per_group };

// The format that a result is rounded to.
enum class HadamardResult { bf16, f32 };

struct Hadamard {
  int size = 16;  // elements of a group: 2, 4, ..., 128
  HadamardSigns signs = HadamardSigns::te;
  SignVectors vectors = SignVectors::one;
  uint64_t seed = 0;  // of seeded signs
  HadamardResult result = HadamardResult::bf16;
};

inline constexpr int kMaxHadamardSize = 128;
inline constexpr int kTeHadamardSize = 16;
inline constexpr uint32_t kTeSignMask = 0xd7e8;
inline constexpr uint64_t kHadamardStream = stream_of("hadamard signs");

// The signs of group number `group` of a row: element k changes its sign where bit k % 32 of word k / 32 is set. Seeded
// signs are the Philox block of that number, or block 0 where the groups share one vector; so a smaller size has the
// first signs of a larger one.
HOST_DEVICE constexpr PhiloxBlock sign_bits(const Hadamard& h, uint64_t group) {
  switch (h.signs) {
    case HadamardSigns::none: break;
    case HadamardSigns::te: return {{kTeSignMask, 0, 0, 0}};
    case HadamardSigns::seeded: return random_block(h.seed, kHadamardStream, h.vectors == SignVectors::one ? 0 : group);
  }
  return {};
}

// What is wrong with the options, or with rows of that length. Throws UsageError or InputError.
void check_hadamard(const Hadamard& h, uint64_t row_length);

// Each group x of n = h.size elements to y[j] = sum over k of x[k] s[k] H[k][j] / sqrt(n), with Sylvester's matrix
// H[k][j] = (-1)^popcount(k & j). To the bit:
//   1. a sign is changed, not multiplied by;
//   2. the sum is taken in double by butterflies a + b, a - b, of elements 1 apart, then 2, 4, ..., n/2 apart;
//   3. a sum of zero is +0, as a matrix instruction makes it;
//   4. it is multiplied by the double nearest to 1/sqrt(n), a power of two for n = 4, 16, 64;
//   5. and rounded once, to nearest even, to h.result: beyond its range Inf; every NaN is 0x7fff (BF16) or 0x7fff'ffff.
// The sum is exact where the group's bits span 53 - log2(n) places: for n = 16, BF16 inputs within 2^41 of each other.
//
// Transformer Engine adds in the tensor core's FP32 and rounds that to BF16. Of 4.2 million BF16 results each, none
// differs from this definition for Gaussian inputs, signed zeros, subnormals, Inf, NaN and sums that overflow; 1 does
// for exponents spread over 2^-4 to 2^4, 12 over 2^-8 to 2^8, 133 over 2^-20 to 2^20 (measured on an H200).
//
// x is whole rows; y, of the same size, may be x. Throws as check_hadamard().
void hadamard(const Hadamard& h, uint64_t row_length, std::span<const float> x, std::span<float> y);

// The transpose, which is the inverse up to rounding: x[k] = s[k] * sum over j of y[j] H[j][k] / sqrt(n), the same
// steps with the sign changed after the sum.
void inverse_hadamard(const Hadamard& h, uint64_t row_length, std::span<const float> y, std::span<float> x);

}  // namespace halfulp

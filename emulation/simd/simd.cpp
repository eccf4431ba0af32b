#include "emulation/simd/simd.h"

#include <algorithm>

#include "emulation/simd/scalar.h"

namespace halfulp::simd {

void encode_blocks(const Format& format, const Policy& policy, Storage storage, std::span<const float> x,
                   const BlockFactors& factors, std::span<std::byte> codes) {
  encode_scalar(format, policy, storage, x, factors, NoRandom{}, codes);
}

void encode_blocks(const Format& format, const Policy& policy, Storage storage, std::span<const float> x,
                   const BlockFactors& factors, WordOfFour random, std::span<std::byte> codes) {
  encode_scalar(format, policy, storage, x, factors, random, codes);
}

void encode_blocks(const Format& format, const Policy& policy, Storage storage, std::span<const float> x,
                   const BlockFactors& factors, PhiloxWords random, std::span<std::byte> codes) {
  encode_scalar(format, policy, storage, x, factors, random, codes);
}

void decode_blocks(const Format& format, Storage storage, std::span<const std::byte> codes, const BlockFactors& factors,
                   std::span<float> y) {
  decode_scalar(format, storage, codes, factors, y);
}

void to_f32(const Format& format, Storage storage, std::span<const std::byte> codes, std::span<float> y) {
  to_f32_scalar(format, storage, codes, y);
}

void philox_words(PhiloxWords random, std::span<uint32_t> words) {
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = random_word(random.seed, random.stream, random.first + i);
}

void block_amax(std::span<const float> x, std::size_t block, NanMagnitude nan, std::span<float> amax) {
  for (std::size_t k = 0; k < amax.size(); ++k)
    amax[k] = amax_scalar(x.subspan(k * block, std::min(block, x.size() - k * block)), nan, 0);
}

float amax(std::span<const float> x, NanMagnitude nan, float start) { return amax_scalar(x, nan, start); }

std::vector<std::string_view> targets() { return {"scalar"}; }

ForcedTarget::ForcedTarget(std::string_view) {}
ForcedTarget::~ForcedTarget() = default;

}  // namespace halfulp::simd

// The kernels are compiled once for each instruction set: foreach_target.h includes the header that the compile
// definition HWY_TARGET_INCLUDE names for all but the one that this file is compiled for, which comes last.
#include <hwy/foreach_target.h>

#include <bit>

#include "emulation/simd/encode_kernels.h"
#include "emulation/simd/scalar.h"
#include "emulation/simd/simd.h"

namespace halfulp::simd {
namespace {

HWY_EXPORT(encode_array);
HWY_EXPORT(philox_array);

constexpr std::size_t kLeastBlock = 16;  // no vector spans two blocks

// Whether a kernel does the work; asked once for each call.
bool takes(const Format& format, const Policy& policy, Storage storage, const BlockFactors& factors,
           RandomKind random) {
  const bool blocks = factors.values.empty() || (std::has_single_bit(factors.block) && factors.block >= kLeastBlock);
  return blocks && has_encode_kernel(format, policy, storage, random);
}

EncodeJob job_of(std::span<const float> x, const BlockFactors& factors, std::span<std::byte> codes) {
  return {.x = x.data(),
          .count = x.size(),
          .factors = factors.values.empty() ? nullptr : factors.values.data(),
          .block_log2 = std::countr_zero(factors.block),
          .use = factors.use,
          .codes = codes.data()};
}

void run(const Format& format, const Policy& policy, Storage storage, const EncodeJob& job, RandomKind random) {
  HWY_DYNAMIC_DISPATCH(encode_array)(encode_constants(format, policy, storage, random), job);
}

}  // namespace

void encode_blocks(const Format& format, const Policy& policy, Storage storage, std::span<const float> x,
                   const BlockFactors& factors, std::span<std::byte> codes) {
  if (!takes(format, policy, storage, factors, RandomKind::none))
    return encode_scalar(format, policy, storage, x, factors, NoRandom{}, codes);
  run(format, policy, storage, job_of(x, factors, codes), RandomKind::none);
}

void encode_blocks(const Format& format, const Policy& policy, Storage storage, std::span<const float> x,
                   const BlockFactors& factors, WordOfFour random, std::span<std::byte> codes) {
  if (!takes(format, policy, storage, factors, RandomKind::word_of_four))
    return encode_scalar(format, policy, storage, x, factors, random, codes);
  EncodeJob job = job_of(x, factors, codes);
  job.words = random.words.data();
  run(format, policy, storage, job, RandomKind::word_of_four);
}

void encode_blocks(const Format& format, const Policy& policy, Storage storage, std::span<const float> x,
                   const BlockFactors& factors, PhiloxWords random, std::span<std::byte> codes) {
  if (!takes(format, policy, storage, factors, RandomKind::philox))
    return encode_scalar(format, policy, storage, x, factors, random, codes);
  EncodeJob job = job_of(x, factors, codes);
  job.philox = random;
  run(format, policy, storage, job, RandomKind::philox);
}

void philox_words(PhiloxWords random, std::span<uint32_t> words) {
  HWY_DYNAMIC_DISPATCH(philox_array)(random, words.data(), words.size());
}

}  // namespace halfulp::simd

// Compiled once for each instruction set, as encode.cpp is.
#include <hwy/foreach_target.h>

#include <bit>
#include <cstring>

#include "emulation/simd/decode_kernels.h"
#include "emulation/simd/scalar.h"
#include "emulation/simd/simd.h"

namespace halfulp::simd {
namespace {

HWY_EXPORT(decode_array);
HWY_EXPORT(divide_array);

constexpr std::size_t kLeastBlock = 16;  // no vector spans two blocks

}  // namespace

void decode_blocks(const Format& format, Storage storage, std::span<const std::byte> codes, const BlockFactors& factors,
                   std::span<float> y) {
  const bool blocks = factors.values.empty() || (std::has_single_bit(factors.block) && factors.block >= kLeastBlock);
  if (!blocks || !has_decode_kernel(format, storage)) return decode_scalar(format, storage, codes, factors, y);
  const DecodeConstants k = decode_constants(format, storage, NanOutput::quiet);
  const bool multiplies = !factors.values.empty() && factors.use == FactorUse::multiply;
  DecodeJob job{.codes = codes.data(),
                .count = y.size(),
                .factors = multiplies ? factors.values.data() : nullptr,
                .block_log2 = std::countr_zero(factors.block),
                .y = y.data()};
  HWY_DYNAMIC_DISPATCH(decode_array)(k, job);
  if (factors.values.empty() || multiplies) return;
  job.factors = factors.values.data();
  HWY_DYNAMIC_DISPATCH(divide_array)(job);
}

void to_f32(const Format& format, Storage storage, std::span<const std::byte> codes, std::span<float> y) {
  if (storage.bits == 32 && format.bits() == 32) {
    std::memcpy(y.data(), codes.data(), y.size_bytes());
    return;
  }
  if (!has_decode_kernel(format, storage)) return to_f32_scalar(format, storage, codes, y);
  const DecodeConstants k = decode_constants(format, storage, NanOutput::payload);
  HWY_DYNAMIC_DISPATCH(decode_array)
  (k, {.codes = codes.data(), .count = y.size(), .factors = nullptr, .block_log2 = 0, .y = y.data()});
}

}  // namespace halfulp::simd

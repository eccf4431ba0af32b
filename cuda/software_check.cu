#include "cuda/software_check.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cuda/arch/exponent.cuh"
#include "cuda/arch/nearest.cuh"
#include "cuda/arch/stochastic.cuh"
#include "cuda/memory.h"
#include "formats/codec.h"
#include "formats/ptx_cvt.h"
#include "lib/philox.h"

namespace halfulp {
namespace {

constexpr unsigned kThreads = 256, kBlocks = 4096;
constexpr int kShown = 4;
constexpr Policy kNearest{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate};
constexpr Policy kStochastic{.rounding = Rounding::stochastic, .overflow = Overflow::saturate};

struct Tally {
  unsigned long long compared;
  unsigned long long mismatches;
  SoftwareMismatch shown[kShown];
};

__device__ void tally_one(Tally* tally, unsigned long long& compared, uint32_t bits, uint32_t got, uint32_t model) {
  ++compared;
  if (got == model) return;
  const unsigned long long number = atomicAdd(&tally->mismatches, 1ull);
  if (number < kShown) tally->shown[number] = {bits, got, model};
}

template <class Fn>
__device__ void for_every_float(Tally* tally, Fn&& fn) {
  unsigned long long compared = 0;
  for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < uint64_t{1} << 32; i += gridDim.x * blockDim.x)
    fn(uint32_t(i), compared);
  atomicAdd(&tally->compared, compared);
}

template <int format_id>
constexpr Format kFormatAt = kFormats[format_id].format;

template <int format_id, Rounding rounding>
__global__ void compare_nearest(Tally* tally) {
  constexpr Format format = kFormatAt<format_id>;
  constexpr Policy policy{.rounding = rounding, .overflow = Overflow::saturate};
  for_every_float(tally, [&](uint32_t bits, unsigned long long& compared) {
    const uint32_t model = encode(format, policy, bit_cast<float>(bits));
    tally_one(tally, compared, bits, arch::nearest_code<format_id>(bits), model);
  });
}

// A number among others, where its bits say.
template <int n>
struct Among {
  float x[n];
  int place;
  __device__ explicit Among(float number) : place(int(bit_cast<uint32_t>(number) % n)) {
    constexpr float kOthers[] = {1, -2, 3, -4, 0.5f, -1.5f, 6, -6};
#pragma unroll
    for (int i = 0; i < n; ++i) x[i] = i == place ? number : kOthers[i];
  }
  __device__ uint32_t code(uint32_t codes) const { return codes >> 32 / n * place & uint32_t(low_mask(32 / n)); }
};

template <int format_id>
__global__ void compare_nibbles(Tally* tally) {
  constexpr Format format = kFormatAt<format_id>;
  constexpr Policy policy = kNearest;
  for_every_float(tally, [&](uint32_t bits, unsigned long long& compared) {
    const float x = bit_cast<float>(bits);
    if (x != x) return;
    const Among<8> is(x);
    const uint32_t model = encode(format, policy, x);
    tally_one(tally, compared, bits, is.code(arch::line_nibbles<format_id>(is.x, 1)), model);
    if (!(fabsf(x) < arch::kLineEnd<format_id>)) return;
    constexpr auto kBelow = arch::Magnitudes::below_line_end;
    tally_one(tally, compared, bits, is.code(arch::line_nibbles<format_id, kBelow>(is.x, 1)), model);
  });
}

// What a number has below the ulp of a format, in units of 2^-32 of it, cut. By arithmetic that no form has.
__device__ uint32_t fraction_of_ulp(const Format& f, float x) {
  const double magnitude = fabs(double(x));
  const int leading = magnitude > 0 ? ilogb(magnitude) : 0;
  const double ulps = ldexp(magnitude, f.mantissa_bits - max(leading, f.min_exponent()));
  return isinf(ulps) ? 0 : uint32_t(ldexp(ulps - floor(ulps), 32));
}

__device__ uint32_t word_of(uint32_t bits) { return random_word(0, 0, bits); }

template <int format_id, int n>
__global__ void compare_registers(Tally* tally) {
  constexpr Format format = kFormatAt<format_id>;
  constexpr Policy policy = kStochastic;
  for_every_float(tally, [&](uint32_t bits, unsigned long long& compared) {
    const float x = bit_cast<float>(bits);
    if (x != x) return;
    const Among<n> is(x);
    const uint32_t random = word_of(bits), fraction = fraction_of_ulp(format, x);
    for (const uint32_t word : {0u, 1u, 1u << 31, ~0u, random, ~fraction, ~fraction + 1}) {
      uint32_t words[n];
#pragma unroll
      for (int i = 0; i < n; ++i) words[i] = i == is.place ? word : random * (2 * i + 1);
      const uint32_t got = is.code(arch::stochastic_register<format_id>(is.x, 1, words));
      tally_one(tally, compared, bits, got, encode(format, policy, x, {.word = word, .count = 32}));
    }
  });
}

template <int format_id>
__global__ void compare_fours(Tally* tally) {
  constexpr Format format = kFormatAt<format_id>;
  constexpr Policy policy = kStochastic;
  for_every_float(tally, [&](uint32_t bits, unsigned long long& compared) {
    const float x = bit_cast<float>(bits);
    if (x != x) return;
    const Among<8> is(x);
    const uint32_t random = word_of(bits);
    for (const uint32_t word : {0u, ~0u, random, random * 3}) {
      const bool low = is.place < 4;
      const uint32_t got =
          is.code(arch::stochastic_nibbles<format_id>(is.x, 1, low ? word : ~word, low ? ~word : word));
      const RandomBits of_four = random_bits_of_four(four_lanes(4), word, is.place % 4);
      tally_one(tally, compared, bits, got, encode(format, policy, x, of_four));
    }
  });
}

template <int format_id, Rounding rounding>
__global__ void compare_exponents(Tally* tally) {
  constexpr Format format = kFormatAt<format_id>;
  constexpr Policy policy{.rounding = rounding, .overflow = Overflow::saturate};
  for_every_float(tally, [&](uint32_t bits, unsigned long long& compared) {
    const uint32_t magnitude = bits & 0x7fff'ffffu;
    const uint32_t model = encode(format, policy, bit_cast<float>(magnitude));
    tally_one(tally, compared, bits, arch::exponent_code<rounding>(magnitude), model);
  });
}

using Kernel = void (*)(Tally*);

template <int format_id>
constexpr std::array<Kernel, kSoftwareForms> kernels_of() {
  constexpr FormatEntry entry = kFormats[format_id];
  constexpr bool nibbles = entry.storage_bits == 4;
  std::array<Kernel, kSoftwareForms> kernels{};
  if constexpr (arch::has_nearest_code(entry.format, kNearest))
    kernels[std::size_t(SoftwareForm::nearest_code)] = compare_nearest<format_id, Rounding::nearest_even>;
  if constexpr (arch::has_line_code(entry.format) && nibbles)
    kernels[std::size_t(SoftwareForm::line_nibbles)] = compare_nibbles<format_id>;
  if constexpr (arch::has_stochastic_code(entry.format, kStochastic))
    kernels[std::size_t(SoftwareForm::stochastic_register)] = compare_registers<format_id, (nibbles ? 8 : 4)>;
  if constexpr (arch::has_stochastic_code(entry.format, kStochastic) && nibbles)
    kernels[std::size_t(SoftwareForm::stochastic_nibbles)] = compare_fours<format_id>;
  if constexpr (arch::has_exponent_code(entry.format, kNearest)) {
    kernels[std::size_t(SoftwareForm::exponent_up)] = compare_exponents<format_id, Rounding::up>;
    kernels[std::size_t(SoftwareForm::exponent_nearest)] = compare_exponents<format_id, Rounding::nearest_even>;
  }
  return kernels;
}

template <std::size_t... id>
constexpr std::array<std::array<Kernel, kSoftwareForms>, sizeof...(id)> kernels(std::index_sequence<id...>) {
  return {kernels_of<int(id)>()...};
}
constexpr auto kKernels = kernels(std::make_index_sequence<kFormats.size()>{});

SoftwareComparison run(Kernel kernel) {
  const Tally nothing{};
  const DeviceArray<Tally> on_device(std::span(&nothing, 1));
  kernel<<<kBlocks, kThreads>>>(on_device.data());
  check(cudaGetLastError());
  const Tally tally = on_device.on_host()[0];
  const auto shown = std::min<unsigned long long>(tally.mismatches, kShown);
  return {tally.compared, tally.mismatches, {tally.shown, tally.shown + shown}};
}

}  // namespace

std::optional<SoftwareComparison> compare_software(int format_id, SoftwareForm form) {
  const Kernel kernel = kKernels[std::size_t(format_id)][std::size_t(form)];
  if (kernel == nullptr) return std::nullopt;
  return run(kernel);
}

SoftwareComparison compare_with_ties_away() {
  return run(compare_nearest<find_format("e2m1"), Rounding::nearest_away>);
}

}  // namespace halfulp

#include "cuda/software_check.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cuda/arch/nearest.cuh"
#include "cuda/memory.h"
#include "formats/codec.h"

namespace halfulp {
namespace {

constexpr unsigned kThreads = 256, kBlocks = 4096;
constexpr int kShown = 4;
constexpr Policy kNearest{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate};

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

template <int format_id>
__global__ void compare_nibbles(Tally* tally) {
  constexpr Format format = kFormatAt<format_id>;
  constexpr Policy policy = kNearest;
  for_every_float(tally, [&](uint32_t bits, unsigned long long& compared) {
    const float x = bit_cast<float>(bits);
    if (x != x) return;
    float eight[8] = {1, -2, 3, -4, 0.5f, -1.5f, 6, -6};
    const int place = int(bits % 8);
#pragma unroll
    for (int i = 0; i < 8; ++i) eight[i] = i == place ? x : eight[i];
    const uint32_t got = arch::line_nibbles<format_id>(eight, 1) >> 4 * place & 0xf;
    tally_one(tally, compared, bits, got, encode(format, policy, x));
  });
}

using Kernel = void (*)(Tally*);

template <int format_id>
constexpr Kernel nearest_kernel() {
  if constexpr (arch::has_nearest_code(kFormats[format_id].format, kNearest))
    return compare_nearest<format_id, Rounding::nearest_even>;
  return nullptr;
}

template <int format_id>
constexpr Kernel nibbles_kernel() {
  constexpr FormatEntry entry = kFormats[format_id];
  if constexpr (arch::has_line_code(entry.format) && entry.storage_bits == 4) return compare_nibbles<format_id>;
  return nullptr;
}

template <std::size_t... id>
constexpr std::array<std::array<Kernel, 2>, sizeof...(id)> kernels(std::index_sequence<id...>) {
  return {std::array<Kernel, 2>{nearest_kernel<int(id)>(), nibbles_kernel<int(id)>()}...};
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

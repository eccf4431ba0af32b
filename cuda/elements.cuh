#pragma once
// Elements of F32, F16 and BF16 arrays as FP32 numbers, by vectors of 16 bytes.

#include <cstdint>

#include "cuda/arch/cvt.cuh"
#include "cuda/arch/magnitude.cuh"
#include "cuda/launch.h"
#include "lib/bits.h"
#include "lib/dtype.h"

namespace halfulp::gpu {

struct F32 {
  static constexpr bool kIsBf16 = false;
  static constexpr int kOf16Bytes = 4, kSignificandBits = 24;
  __device__ static float number(uint32_t word, int) { return bit_cast<float>(word); }
};

struct Bf16 {
  static constexpr bool kIsBf16 = true;
  static constexpr int kOf16Bytes = 8, kSignificandBits = 8;
  __device__ static float number(uint32_t word, int i) {
    return bit_cast<float>(i == 0 ? word << 16 : word & 0xffff'0000u);
  }
};

struct F16 {
  static constexpr bool kIsBf16 = false;
  static constexpr int kToF32 = find_ptx_cvt("cvt.f32.f16");
  static constexpr int kOf16Bytes = 8, kSignificandBits = 11;
  __device__ static float number(uint32_t word, int i) {
    const uint32_t half = i == 0 ? word & 0xffff : word >> 16;
    return bit_cast<float>(arch::convert<kToF32>(&half));
  }
};

// Element number i.
template <class Source>
__device__ float element(const void* x, uint64_t i) {
  if constexpr (Source::kOf16Bytes == 4) {
    return Source::number(static_cast<const uint32_t*>(x)[i], 0);
  } else {
    return Source::number(static_cast<const uint16_t*>(x)[i], 0);
  }
}

// Position of a dtype's source in a table of kernels for F32, F16, Bf16.
constexpr std::size_t source_index(Dtype dtype) { return dtype == Dtype::f32 ? 0 : dtype == Dtype::f16 ? 1 : 2; }

// Calls fn with the source of a dtype: F32, F16 or BF16.
template <class Fn>
auto with_source(Dtype dtype, Fn&& fn) {
  if (dtype == Dtype::f32) return fn(F32{});
  if (dtype == Dtype::f16) return fn(F16{});
  return fn(Bf16{});
}

// One of n values, from `first` on, by an associative function of two, in a tree: a chain would wait for each.
template <int n, int first = 0, class T, int all, class Fn>
__device__ T fold(const T (&values)[all], Fn fn) {
  if constexpr (n == 1) {
    return values[first];
  } else {
    return fn(fold<n / 2, first>(values, fn), fold<n - n / 2, first + n / 2>(values, fn));
  }
}

// A run of elements in registers, as they are and as FP32.
template <class Source, int n>
struct Run {
  static constexpr int kWords = n * 4 / Source::kOf16Bytes;
  uint32_t words[kWords];
  float x[n];

  // Requires that element number `first` lies on 16 bytes.
  __device__ Run(const void* elements, uint64_t first) {
    const uint4* vectors = static_cast<const uint4*>(elements) + first / Source::kOf16Bytes;
#pragma unroll
    for (int i = 0; i < kWords / 4; ++i) {
      const uint4 vector = vectors[i];
      words[4 * i] = vector.x, words[4 * i + 1] = vector.y, words[4 * i + 2] = vector.z, words[4 * i + 3] = vector.w;
    }
#pragma unroll
    for (int i = 0; i < n; ++i) x[i] = Source::number(words[i * kWords / n], i % (n / kWords));
  }

  // NaN where one is.
  __device__ float largest_magnitude() const {
    if constexpr (Source::kIsBf16) {
      const uint32_t both =
          fold<kWords>(words, [](uint32_t a, uint32_t b) { return arch::larger_bf16_magnitudes(a, b); });
      const uint32_t largest = arch::larger_bf16_magnitudes(both, both >> 16);
      return bit_cast<float>((largest & 0x7fff) << 16);
    } else {
      return fabsf(fold<n>(x, [](float a, float b) { return arch::larger_magnitude(a, b); }));
    }
  }

  // 0 where all are NaN.
  __device__ float largest_number() const {
    float largest = 0;
#pragma unroll
    for (int i = 0; i < n; ++i) largest = fmaxf(largest, fabsf(x[i]));
    return largest;
  }

  __device__ bool has_number() const {
    bool has = false;
#pragma unroll
    for (int i = 0; i < n; ++i) has = has || x[i] == x[i];
    return has;
  }
};

// Two elements side by side as they lie in memory.
template <class Source>
struct Pair {
  static constexpr int kWords = 8 / Source::kOf16Bytes;
  uint32_t words[kWords];

  __device__ float operator[](int i) const {
    if constexpr (kWords == 2) return Source::number(words[i], 0);
    return Source::number(words[0], i);
  }
  __device__ static Pair at(const void* elements, uint64_t first) {
    if constexpr (kWords == 2) {
      const uint2 two = static_cast<const uint2*>(elements)[first / 2];
      return {{two.x, two.y}};
    } else {
      return {{static_cast<const uint32_t*>(elements)[first / 2]}};
    }
  }
};

// `n` words as vectors of 16 bytes, or one of 8 bytes. Requires that they lie on as many.
template <int n>
__device__ void store(std::byte* to, const uint32_t (&words)[n]) {
  if constexpr (n == 2) {
    *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
  } else {
    static_assert(n % 4 == 0);
#pragma unroll
    for (int i = 0; i < n; i += 4)
      reinterpret_cast<uint4*>(to)[i / 4] = make_uint4(words[i], words[i + 1], words[i + 2], words[i + 3]);
  }
}

}  // namespace halfulp::gpu

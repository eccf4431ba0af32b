#pragma once
// Bit reinterpretation and bit positions, constexpr on CPU and GPU.

#include <cstdint>

#include "lib/host_device.h"

namespace halfulp {

// std::bit_cast is not callable in device code without an extra nvcc flag; the builtin is.
template <class To, class From>
HOST_DEVICE constexpr To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

// Position of the highest set bit. Requires x != 0.
HOST_DEVICE constexpr int floor_log2(uint64_t x) { return 63 - __builtin_clzll(x); }

// The lowest `count` bits set. Requires 0 <= count <= 64.
HOST_DEVICE constexpr uint64_t low_mask(int count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

// The low 16 bits in reverse order.
HOST_DEVICE constexpr uint32_t reverse16(uint32_t x) {
  x = (x & 0x5555) << 1 | (x >> 1 & 0x5555);
  x = (x & 0x3333) << 2 | (x >> 2 & 0x3333);
  x = (x & 0x0f0f) << 4 | (x >> 4 & 0x0f0f);
  return (x & 0x00ff) << 8 | (x >> 8 & 0x00ff);
}

// 2^e as float, exact for every e that float holds: -149 <= e <= 127.
HOST_DEVICE constexpr float power_of_two(int e) {
  return e >= -126 ? bit_cast<float>(uint32_t(e + 127) << 23) : bit_cast<float>(uint32_t{1} << (e + 149));
}

}  // namespace halfulp

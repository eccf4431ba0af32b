#pragma once
// Codes in memory: little-endian, and where two share a byte the even element is in the low nibble.

#include <cstddef>
#include <cstdint>

#include "lib/host_device.h"

namespace halfulp {

// Bytes of `count` codes of `bits` bits each. Requires that they fill whole bytes.
HOST_DEVICE constexpr uint64_t packed_bytes(int bits, uint64_t count) { return count * uint64_t(bits) / 8; }

// Code number i of an array. bits is 4, 8, 16 or 32.
template <int bits>
HOST_DEVICE constexpr uint32_t load_code(const std::byte* codes, uint64_t i) {
  if constexpr (bits == 4) {
    return uint32_t(codes[i / 2]) >> (4 * (i % 2)) & 0xf;
  } else {
    uint32_t code = 0;
    for (int byte = bits / 8 - 1; byte >= 0; --byte)
      code = code << 8 | uint32_t(codes[i * (bits / 8) + uint64_t(byte)]);
    return code;
  }
}

// Stores code number i. For 4 bits the even element must be stored first: it clears the odd one.
template <int bits>
HOST_DEVICE constexpr void store_code(std::byte* codes, uint64_t i, uint32_t code) {
  if constexpr (bits == 4) {
    codes[i / 2] = i % 2 == 0 ? std::byte(code) : codes[i / 2] | std::byte(code << 4);
  } else {
    for (int byte = 0; byte < bits / 8; ++byte) codes[i * (bits / 8) + uint64_t(byte)] = std::byte(code >> (8 * byte));
  }
}

}  // namespace halfulp

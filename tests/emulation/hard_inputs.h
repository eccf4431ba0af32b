#pragma once
// Elements on which implementations of a recipe part: every kind of number, blocks of them, ties.

#include <algorithm>
#include <cfloat>
#include <cstdint>
#include <limits>
#include <vector>

#include "emulation/blocks/quantize.h"
#include "lib/random_values.h"

namespace halfulp {

// Normal values whose size changes from block to block, by up to 2^16.
inline std::vector<float> uneven_normals(std::size_t count, uint64_t stream = 0) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i)
    x[i] = float(normal(1, stream, i)) * power_of_two(int(random_word(2, stream, i / 16) % 17) - 8);
  return x;
}

// Any 32 bits: every exponent, subnormals, Inf, NaN.
inline std::vector<float> any_bits(std::size_t count, uint64_t stream = 0) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = bit_cast<float>(random_word(3, stream, i));
  return x;
}

// All BF16 numbers, 41 apart: 16 of them span five binades.
inline std::vector<float> all_bf16() {
  std::vector<float> x(1 << 16);
  for (uint32_t i = 0; i < 1 << 16; ++i) x[i] = bit_cast<float>((i * 41 & 0xffff) << 16);
  return x;
}

inline std::vector<float> special_values() {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values{
      0,   1,     0x1p-149f, 0x1.fffffcp-127f, 0x1p-126f,   0x1p-127f, 1e-36f, 0x1p-20f, 5, 6, 0.25f, 448,
      464, 57344, 2688,      0x1p127f,         0x1.fep127f, FLT_MAX,   kInf,   kNaN};
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return values;
}

// Runs of 128 elements: of one special value, of zeros but for one, of a special value among normal ones, of a mix.
inline std::vector<float> special_blocks() {
  const std::vector<float> values = special_values();
  std::vector<float> x;
  for (std::size_t v = 0; v < values.size(); ++v) {
    x.insert(x.end(), 128, values[v]);
    x.insert(x.end(), 128, v % 2 == 0 ? 0.f : -0.f);
    x[x.size() - 1 - v] = values[v];
    for (std::size_t i = 0; i < 128; ++i) x.push_back(i % 37 == v % 37 ? values[v] : float(normal(4, v, i)));
    for (std::size_t i = 0; i < 128; ++i) x.push_back(values[random_word(5, v, i) % values.size()]);
  }
  return x;
}

// Halves and quarters of steps under scales near a power of two: ties of every format up to 8 bits.
inline std::vector<float> ties(std::size_t count) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) {
    const int exponent = int(random_word(6, 0, i / 128) % 5) - 2;
    const float quarters = float(int(random_word(6, 1, i) % 97) - 48) / 8;
    x[i] = (i % 16 == 0 ? 6 : quarters) * power_of_two(exponent);
  }
  return x;
}

}  // namespace halfulp

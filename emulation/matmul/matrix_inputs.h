#pragma once
// Operands to try a matrix instruction on, a function of their position: whoever has the instruction makes the same
// ones. Element `at` of a tile's operand, counted in its rows, is made of random_word(mode, operand, tile * 2^16 + at)
// of lib/philox.h with seed kMatrixSeed.

#include <array>
#include <cstdint>
#include <string_view>

#include "formats/format.h"
#include "lib/host_device.h"
#include "lib/philox.h"

namespace halfulp {

// Each shows another part of an accumulator.
enum class MatrixMode {
  bits,      // any code, NaN and Inf too
  narrow,    // numbers from 1/4 to 8
  wide,      // any number
  low,       // subnormals and the smallest normals
  floor,     // products near the least exponent that an accumulator looks at; c is 0 or tiny
  zeros,     // seven of ten are zero, of either sign
  cancel,    // odd elements of K undo even ones, but for one of eight
  overflow,  // the largest binades
  ties,      // significands with few bits, c with its last ones
};
inline constexpr std::array<std::string_view, 9> kMatrixModeNames{"bits",  "narrow", "wide",     "low", "floor",
                                                                  "zeros", "cancel", "overflow", "ties"};

enum class MatrixSide { a, b, c };

namespace detail {

// Codes of a format from the fields of a random word: low bits of the word for the mantissa, the sign above, the rest
// chooses the exponent.
struct MatrixDraw {
  Format format;
  uint32_t word;

  HOST_DEVICE constexpr uint32_t sign() const { return (word >> 24 & 1) != 0 ? format.sign_mask() : 0; }
  HOST_DEVICE constexpr uint32_t mantissa() const { return word & (format.hidden() - 1); }
  HOST_DEVICE constexpr uint32_t pick(uint32_t bound) const { return (word >> 25) % bound; }
  // With an exponent field, brought into the format's finite range.
  HOST_DEVICE constexpr uint32_t code(int field, uint32_t mantissa) const {
    const int last = int(format.max_code() >> format.mantissa_bits);
    const uint32_t in_range = uint32_t(field < 0 ? 0 : field > last ? last : field);
    const uint32_t magnitude = in_range << format.mantissa_bits | mantissa;
    return sign() | (magnitude > format.max_code() ? format.max_code() : magnitude);
  }
  HOST_DEVICE constexpr uint32_t number() const {
    const uint32_t magnitude = (word ^ word >> 13) & format.magnitude_mask();
    return sign() | (magnitude > format.max_code() ? format.max_code() : magnitude);
  }
};

// Exponents of a and b add up to what each k has, near -133; formats that do not reach so low give their smallest.
HOST_DEVICE constexpr uint32_t draw_near_floor(const MatrixDraw& draw, MatrixSide side, uint32_t at, int k) {
  if (side == MatrixSide::c) return draw.pick(2) == 0 ? 0 : draw.code(0, draw.mantissa() & 0xff);
  const int apart = int(at % uint32_t(k)) % 16, exponent = side == MatrixSide::a ? -66 + apart : -67 - apart;
  return draw.code(exponent + draw.format.bias + int(draw.pick(8)) - 4, draw.mantissa());
}

HOST_DEVICE constexpr uint32_t draw_tie(const MatrixDraw& draw, MatrixSide side) {
  const uint32_t ones = draw.format.hidden() - 1, few[4] = {0, 1, draw.format.hidden() / 2, ones};
  if (side == MatrixSide::c) return draw.code(draw.format.bias + int(draw.pick(12)) - 2, ones & ~(draw.word & 7));
  return draw.code(draw.format.bias + int(draw.pick(24)) - 12, few[draw.word & 3] & ones);
}

HOST_DEVICE constexpr uint32_t draw_input(const MatrixDraw& draw, MatrixMode mode, MatrixSide side, uint32_t at,
                                          int k) {
  const Format& format = draw.format;
  switch (mode) {
    case MatrixMode::bits: return draw.word & format.code_mask();
    case MatrixMode::narrow: return draw.code(format.bias - 2 + int(draw.pick(5)), draw.mantissa());
    case MatrixMode::wide: return draw.number();
    case MatrixMode::low: return draw.code(int(draw.pick(4)), draw.mantissa());
    case MatrixMode::floor: return draw_near_floor(draw, side, at, k);
    case MatrixMode::zeros: return draw.pick(10) < 7 ? draw.sign() : draw.number();
    case MatrixMode::cancel: return draw.code(format.bias - 4 + int(draw.pick(9)), draw.mantissa());
    case MatrixMode::overflow:
      return draw.code(int(format.max_code() >> format.mantissa_bits) - int(draw.pick(3)), draw.mantissa());
    case MatrixMode::ties: return draw_tie(draw, side);
  }
  return 0;
}
}  // namespace detail

inline constexpr uint64_t kMatrixSeed = 0x6d61'7472'6978;  // "matrix"
inline constexpr uint64_t kMatrixTileElements = uint64_t{1} << 16;

// Code `at` of an operand of one tile, whose rows have k elements.
HOST_DEVICE constexpr uint32_t matrix_input(const Format& format, MatrixMode mode, MatrixSide side, int k,
                                            uint64_t tile, uint32_t at) {
  const uint64_t stream = uint64_t(mode) * 4 + uint64_t(side), index = tile * kMatrixTileElements + at;
  uint32_t word = random_word(kMatrixSeed, stream, index), flipped = 0;
  const bool is_odd = side != MatrixSide::c && at % uint32_t(k) % 2 == 1;
  if (mode == MatrixMode::cancel && is_odd && word % 8 != 0) {
    word = random_word(kMatrixSeed, stream, index - 1);
    flipped = side == MatrixSide::a ? format.sign_mask() : 0;
  }
  return detail::draw_input({format, word}, mode, side, at, k) ^ flipped;
}

}  // namespace halfulp

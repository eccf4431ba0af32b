#pragma once
// Tiles of matrix instructions, with scales where they have some: operands to try one on, and what its accumulator
// makes of them.

#include <cstdint>
#include <string>
#include <vector>

#include "emulation/matmul/matrix_form.h"
#include "emulation/matmul/matrix_inputs.h"

namespace halfulp {

// One code to a word: [tiles, m, k], [tiles, n, k], [tiles, m, row_scales], [tiles, n, row_scales] and
// [tiles, m, n] of c and d.
struct ScaledTiles {
  std::vector<uint32_t> a, b, a_scales, b_scales, c, d;
};

// As PTX spells it. tcgen05 is told of the formats in a descriptor: they are no part of its name.
std::string ptx_of(const ScaledInstruction& is);

// Position in kScaledInstructions; -1: none.
int find_scaled_instruction(std::string_view ptx, std::string_view a, std::string_view b);

// Tiles number `first` on, without d: codes as matrix_input() draws them, and scales from words of streams 3 and
// 3 + 64 of a mode: any byte (bits), any number (wide, zeros), the smallest (low) or largest (overflow) of the format,
// E8M0 that brings products to an accumulator's floor (floor), and else one times 2^-8 to 2^7.
ScaledTiles scaled_inputs(const MatrixForm& is, MatrixMode mode, uint64_t first, uint64_t count);

// What a row makes of tiles, which need not be the instruction's own; element `at` of d.
uint32_t scaled_output(const MatrixForm& is, const Accumulator& row, const ScaledTiles& tiles, std::size_t at);

}  // namespace halfulp

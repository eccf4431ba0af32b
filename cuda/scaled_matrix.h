#pragma once
// Blackwell's matrix instructions run on the GPU over tiles, one instruction to a tile: what its tensor cores answer,
// or what their models do in the same code. Not a product of matrices: that is gemm_block_scaled.h.

#include <cstdint>
#include <vector>

#include "cuda/arch/form.h"
#include "emulation/matmul/scaled_instruction.h"

namespace halfulp {

// One code to a word: [tiles, m, k], [tiles, n, k], [tiles, m, row_scales], [tiles, n, row_scales] and, FP32,
// [tiles, m, n] of c and d.
struct ScaledTiles {
  std::vector<uint32_t> a, b, a_scales, b_scales, c, d;
};

// Whether the code that runs on the present GPU has an instruction, by position in kScaledInstructions.
arch::Form scaled_instruction_form(int id);

// Fills `d`. Requires arrays of the instruction's sizes: std::logic_error.
void multiply_scaled_tiles(int id, ScaledTiles& tiles);

}  // namespace halfulp

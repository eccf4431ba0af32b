#pragma once
// Blackwell's matrix instructions run on the GPU over tiles, one instruction to a tile: what its tensor cores answer,
// or what their models do in the same code. Not a product of matrices: that is gemm_block_scaled.h.

#include "cuda/arch/form.h"
#include "emulation/matmul/scaled_tiles.h"

namespace halfulp {

// Whether the code that runs on the present GPU has an instruction, by position in kScaledInstructions.
arch::Form scaled_instruction_form(int id);

// Fills `d`. Requires arrays of the instruction's sizes: std::logic_error.
void multiply_scaled_tiles(int id, ScaledTiles& tiles);

}  // namespace halfulp

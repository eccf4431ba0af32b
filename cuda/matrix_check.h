#pragma once
// Matrix instructions run on the GPU over tiles of matrix_inputs.h, and held to a model there. Not a fast product.

#include <cstdint>
#include <vector>

#include "emulation/matmul/accumulator.h"
#include "emulation/matmul/matrix_tiles.h"

namespace halfulp {

// Whether the code that runs on the present GPU has an instruction, by position in kMatrixInstructions.
bool has_matrix_instruction(int id);

// What the instruction, or its model where the code has none, makes of tiles.
MatrixAnswers multiply_tiles(int id, const MatrixTiles& tiles);
// And of other operands, without d: their d.
std::vector<uint32_t> multiply_tiles(int id, const MatrixAnswers& operands);

// The instruction against `model`, which need not be its own.
MatrixComparison compare_tiles(int id, const MatrixTiles& tiles, const Accumulator& model);

}  // namespace halfulp

#pragma once
// Tiles that a matrix instruction multiplied, and how it compares with a model.

#include <cstdint>
#include <vector>

#include "emulation/matmul/matrix_inputs.h"

namespace halfulp {

// Tiles of matrix_inputs.h.
struct MatrixTiles {
  MatrixMode mode;
  uint64_t first, count;
};

// Codes, one to an element: [tiles, m, k], [tiles, n, k], and [tiles, m, n] of c and d.
struct MatrixAnswers {
  std::vector<uint32_t> a, b, c, d;
};

struct MatrixMismatch {
  uint64_t tile;
  int row, col;
  uint32_t got, model;
};
struct MatrixComparison {
  uint64_t outputs = 0, mismatches = 0;
  std::vector<MatrixMismatch> shown;  // some of them
};

}  // namespace halfulp

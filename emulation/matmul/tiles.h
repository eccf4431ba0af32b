#pragma once
// The fast way of gemm.h: tiles of a product by the vector kernels.

#include <cstddef>
#include <cstdint>
#include <span>

#include "emulation/matmul/panels.h"

namespace halfulp {

// Some rows and columns of the product.
struct Tile {
  std::size_t row, rows, col, cols;
};

// The tile's elements of d[m, n]. Requires has_panels(); the tables are of the job's a and b.
void multiply_tile(const GemmJob& job, const TermTables& a, const TermTables& b, const Tile& tile,
                   std::span<uint32_t> d);

}  // namespace halfulp

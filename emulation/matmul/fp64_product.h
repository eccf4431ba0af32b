#pragma once
// Matrix products in FP64, for figures whose own rounding must be far below what they measure. By Eigen; the order of
// its sums depends on the shapes and on the instruction set that this is compiled for, by default one for all
// processors of an architecture. What is exact, or a tensor core's, is in exact_product.h and gemm.h.

#include <cstddef>
#include <span>

namespace halfulp {

// d = a @ b^T, of a [m, k], b [n, k] and d [m, n], each row after row. One thread.
void multiply_fp64(std::size_t m, std::size_t n, std::size_t k, std::span<const double> a, std::span<const double> b,
                   std::span<double> d);

}  // namespace halfulp

#include "emulation/matmul/fp64_product.h"

#include <Eigen/Core>

namespace halfulp {
namespace {

// Eigen divides K by the size of the caches: said here, so that sums are formed alike on every machine.
const bool kSameCaches = [] {
  Eigen::setCpuCacheSizes(32 << 10, 1 << 20, 8 << 20);
  return true;
}();

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const RowMajor> view(std::span<const double> x, std::size_t rows, std::size_t cols) {
  return {x.data(), Eigen::Index(rows), Eigen::Index(cols)};
}

}  // namespace

void multiply_fp64(std::size_t m, std::size_t n, std::size_t k, std::span<const double> a, std::span<const double> b,
                   std::span<double> d) {
  Eigen::Map<RowMajor>(d.data(), Eigen::Index(m), Eigen::Index(n)).noalias() =
      view(a, m, k) * view(b, n, k).transpose();
}

}  // namespace halfulp

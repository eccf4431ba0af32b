#include <algorithm>
#include <cmath>

#include "emulation/matmul/gemm.h"
#include "emulation/matmul/reference.h"
#include "emulation/matmul/slices.h"

namespace halfulp {
namespace {

struct Element {
  const GemmJob& job;
  std::size_t i, j;
  DotOperand a = dot_operand(job.a, i, job.k), b = dot_operand(job.b, j, job.k);

  uint32_t chain(std::size_t first, std::size_t end, uint32_t c) const {
    const auto add = keeps_all_bits(job.row) ? add_reference_products : add_products;
    return add(job.row, a, b, int(first), int(end), c);
  }

  float promoted(std::size_t first, std::size_t end) const {
    const auto every = std::size_t(job.row.promotion.every);
    float total = 0;
    for (std::size_t k = first; k < end; k += every) {
      const float sum = bit_cast<float>(chain(k, std::min(end, k + every), 0));
      total = promote(job, i, j, k / every, sum, total);
    }
    return total;
  }

  float slice(std::size_t first, std::size_t end) const {
    return job.row.promotion.every != 0 ? promoted(first, end) : bit_cast<float>(chain(first, end, 0));
  }
};

}  // namespace

uint32_t gemm_element(const GemmJob& job, std::size_t i, std::size_t j) {
  const uint32_t c = job.c.empty() ? 0 : job.c[i * job.n + j];
  const Element element{job, i, j};
  if (!adds_in_f32(job.row)) return element.chain(0, job.k, c);
  const std::size_t length = slice_length(job);
  float total = 0;
  for (std::size_t first = 0; first < job.k; first += length)
    total += element.slice(first, std::min(job.k, first + length));
  return f32_code(total + bit_cast<float>(c));
}

}  // namespace halfulp

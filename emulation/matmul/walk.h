#pragma once
// How one output of a product comes about, block by block: what each product is, what is left of it after the cut, what
// the sum is rounded to. The arithmetic is dot_product.h's; results are those of gemm.h.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulation/matmul/dot_product.h"
#include "emulation/matmul/gemm.h"

namespace halfulp {

// A product, a group's scaled sum or, where count is 0, the accumulator.
struct WalkedTerm {
  int first = 0, count = 0;  // products k
  Operand term{};
  int64_t cut = 0;  // in units of 2^unit of the block
};

// A block: terms, their sum after the cut, and the code that it is rounded to.
struct WalkedBlock {
  int first, count;  // products k between these; of pairs of four every other pair
  int largest_exponent;
  int unit;  // exponent of the lowest kept bit
  std::vector<WalkedTerm> terms;
  int64_t sum;
  uint32_t result;
};

// An addition of its own, in FP32 or, of FP16 sums, in FP16, rounded to nearest even: of a promotion, a slice, or c.
struct WalkedAddition {
  float total, addend;
  float factor;  // of the addend, in one rounding with the addition
  uint32_t result;
};

struct WalkedStep {
  enum class Kind { block, promotion, slice, start } kind;  // start: c is added
  WalkedBlock block{};
  WalkedAddition addition{};
};

// Element [i, j]. The last step's result is gemm_element(job, i, j), before any epilogue; none where K is 0. Requires
// that refusal() is empty and that the row is no reference: kept_bits are not all.
std::vector<WalkedStep> walk_element(const GemmJob& job, std::size_t i, std::size_t j);

inline uint32_t result_of(const WalkedStep& step) {
  return step.kind == WalkedStep::Kind::block ? step.block.result : step.addition.result;
}

}  // namespace halfulp

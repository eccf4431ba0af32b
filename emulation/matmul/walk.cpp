#include "emulation/matmul/walk.h"

#include <algorithm>

#include "emulation/matmul/slices.h"

namespace halfulp {
namespace {

// Terms, of which `counts` says which take part in the largest exponent whatever they are.
WalkedBlock add_terms(const Accumulator& row, std::vector<WalkedTerm> terms, const std::vector<char>& counts) {
  BlockSum sum(row.kept_bits, row.least_exponent);
  for (std::size_t t = 0; t < terms.size(); ++t) {
    sum.see(terms[t].term);
    if (counts[t]) sum.see_exponent(terms[t].term.exponent);
  }
  for (WalkedTerm& term : terms) {
    term.cut = sum.cut(term.term);
    sum.add(term.term);
  }
  return {.first = 0,
          .count = 0,
          .largest_exponent = sum.largest_exponent(),
          .unit = sum.largest_exponent() - row.kept_bits,
          .terms = std::move(terms),
          .sum = sum.sum(),
          .result = round_sum(row.sum, sum.total())};
}

class Walk {
 public:
  Walk(const GemmJob& job, std::size_t i, std::size_t j)
      : job_(job), i_(i), j_(j), a_(dot_operand(job.a, i, job.k)), b_(dot_operand(job.b, j, job.k)) {}

  std::vector<WalkedStep> steps;

  uint32_t chain(int first, int end, uint32_t c) {
    for (; first < end; first += job_.row.block) {
      const int count = std::min(end - first, job_.row.block);
      c = job_.row.order == SumOrder::pairs_of_four ? pairs_of_four(first, count, c) : block(first, count, c);
    }
    return c;
  }

  float promoted(std::size_t first, std::size_t end) {
    const auto every = std::size_t(job_.row.promotion.every);
    float total = 0;
    for (std::size_t k = first; k < end; k += every) {
      const float sum = bit_cast<float>(chain(int(k), int(std::min(end, k + every)), 0));
      const float factor = promotion_factor(k / every);
      total = add(WalkedStep::Kind::promotion, total, sum, promote(job_, i_, j_, k / every, sum, total), factor);
    }
    return total;
  }

  float slice(std::size_t first, std::size_t end) {
    return job_.row.promotion.every != 0 ? promoted(first, end) : bit_cast<float>(chain(int(first), int(end), 0));
  }

  float add(WalkedStep::Kind kind, float total, float addend, float result, float factor = 1) {
    steps.push_back({.kind = kind, .addition = {total, addend, factor, f32_code(result)}});
    return result;
  }

 private:
  uint32_t keep(WalkedBlock block, int first, int count) {
    block.first = first, block.count = count;
    const uint32_t result = block.result;
    steps.push_back({.kind = WalkedStep::Kind::block, .block = std::move(block)});
    return result;
  }

  uint32_t block(int first, int count, uint32_t c) {
    const bool groups = job_.row.scales == SumScales::groups;
    std::vector<WalkedTerm> terms{{.term = operand_of(job_.row.sum.format, c)}};
    std::vector<char> counts{0};
    for (int k = first; k < first + count; k += groups ? kSumGroup : 1) {
      const detail::GroupTerm term =
          groups ? detail::group_term(a_, b_, k) : detail::GroupTerm{detail::product_term(job_.row, a_, b_, k), false};
      terms.push_back({.first = k, .count = groups ? kSumGroup : 1, .term = term.term});
      counts.push_back(term.counts ? 1 : 0);
    }
    return keep(add_terms(job_.row, std::move(terms), counts), first, count);
  }

  uint32_t pairs_of_four(int first, int count, uint32_t c) {
    uint32_t sum = 0;
    for (int half = 0; half < 2; ++half) {
      std::vector<WalkedTerm> terms{{.term = operand_of(job_.row.sum.format, sum)}};
      for (int k = first; k < first + count; ++k)
        if (k % 4 / 2 == half)
          terms.push_back({.first = k, .count = 1, .term = detail::product_term(job_.row, a_, b_, k)});
      const std::vector<char> counts(terms.size(), 0);
      sum = keep(add_terms(job_.row, std::move(terms), counts), first, count);
    }
    const Format& format = job_.row.sum.format;
    const uint32_t result = detail::add_sums(job_.row.sum, sum, c);
    const WalkedAddition addition{decode(format, c), decode(format, sum), 1, result};
    steps.push_back({.kind = WalkedStep::Kind::start, .addition = addition});
    return result;
  }

  float promotion_factor(std::size_t at) const {
    if (job_.row.promotion.step == PromotionStep::add) return 1;
    return promote(job_, i_, j_, at, 1, 0);
  }

  const GemmJob& job_;
  std::size_t i_, j_;
  DotOperand a_, b_;
};

}  // namespace

std::vector<WalkedStep> walk_element(const GemmJob& job, std::size_t i, std::size_t j) {
  const uint32_t c = job.c.empty() ? 0 : job.c[i * job.n + j];
  Walk walk(job, i, j);
  if (!adds_in_f32(job.row)) {
    walk.chain(0, int(job.k), c);
    return std::move(walk.steps);
  }
  const std::size_t length = slice_length(job);
  float total = 0;
  for (std::size_t first = 0; first < job.k; first += length) {
    const float sum = walk.slice(first, std::min(job.k, first + length));
    total = job.row.slices == 1 ? total + sum : walk.add(WalkedStep::Kind::slice, total, sum, total + sum);
  }
  walk.add(WalkedStep::Kind::start, total, bit_cast<float>(c), total + bit_cast<float>(c));
  return std::move(walk.steps);
}

}  // namespace halfulp

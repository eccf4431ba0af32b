#pragma once
// Operands of a matrix product as the vector kernels take them (simd/matmul_job.h): values and exponents instead of
// codes, in steps of what the row adds at a time, the last step filled up with zeros.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulation/matmul/gemm.h"

namespace halfulp {

// A code's value, and its exponent as dot_product.h sees it or one that stands for a zero or no number.
struct Term {
  float value;
  int32_t exponent;
};

// The terms of a format's codes: looked up where the format has fewer codes than will be asked for.
class TermTable {
 public:
  TermTable(const Accumulator& row, const Format& format, std::size_t uses);
  Term operator[](uint32_t code) const {
    const uint32_t bits = code & mask_;
    return terms_.empty() ? term_of(row_, format_, bits) : terms_[bits];
  }

 private:
  static Term term_of(const Accumulator& row, const Format& format, uint32_t code);

  Accumulator row_;
  Format format_;
  uint32_t mask_;
  std::vector<Term> terms_;
};

struct TermTables {
  TermTable terms, scales;
  TermTables(const Accumulator& row, const GemmOperand& x)
      : terms(row, x.format, x.codes.size()), scales(row, x.scale_format, x.scales.size()) {}
};

// Whether the kernels can do a job.
bool has_panels(const GemmJob& job);

// How K is laid out.
struct StepLayout {
  std::size_t k, step, steps;  // products, of a step, steps of all
  SumOrder order;
  std::size_t unit;  // products that share their scales: a step or a group

  explicit StepLayout(const GemmJob& job);
  std::size_t terms() const { return step * steps; }
  std::size_t units() const { return terms() / unit; }
  std::size_t position(std::size_t at) const;
};

enum class Side { a, b };

// Some rows of one operand. Of row r at position p: values[(r * terms() + p)] for A, values[p * rows + r] for B;
// likewise exponents, and what is of units.
class Panel {
 public:
  Panel(Side side, const GemmJob& job, const TermTables& tables);

  // Rows `first` to `first + count` of the operand, and zeros up to `rows`.
  void fill(std::size_t first, std::size_t count, std::size_t rows);

  std::vector<float> values, scales;
  std::vector<int32_t> exponents, scale_exponents;
  std::vector<uint32_t> masks;  // of groups

 private:
  void fill_terms(std::size_t from, std::size_t row);
  void fill_scales(std::size_t from, std::size_t row);
  std::size_t place(std::size_t row, std::size_t at, std::size_t each) const {
    return side_ == Side::a ? row * each + at : at * rows_ + row;
  }

  Side side_;
  const GemmJob& job_;
  const GemmOperand& operand_;
  StepLayout layout_;
  const TermTables& tables_;
  std::size_t rows_ = 0;
};

}  // namespace halfulp

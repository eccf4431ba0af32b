#pragma once
// Exact sums of exact products, A @ B^T, of operands in FP64: what results of accumulators are held against. Knows no
// accumulator and no format.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace halfulp {

// A matrix [rows, k].
struct ExactOperand {
  std::span<const double> values;
  std::size_t rows;
  std::size_t k;
};

// An exact number, rounded.
struct Rounded {
  double nearest;
  double
      odd;  // the number where it is a double, else of the two doubles around it the odd one: rounds on as the number
};

class ExactProduct {
 public:
  // Both have the same k. Exact where no product of two values that are not zero is below 2^-960.
  ExactProduct(const ExactOperand& a, const ExactOperand& b);

  // Doubles whose exact sum is element [i, j]; one that is not finite where the element is not.
  std::vector<double> element(std::size_t i, std::size_t j) const;

 private:
  // Values as multiples of 2^unit where all of a row are finite and fit.
  struct Fixed {
    std::vector<int64_t> multiples;
    std::vector<char> fits;  // for each row
    int unit = 0;
    int bits = 0;
  };
  static Fixed fixed(const ExactOperand& x);
  enum class Sum { of_64_bits, of_128_bits, exact };

  ExactOperand a_, b_;
  Fixed fixed_a_, fixed_b_;
  Sum sum_;
};

// The exact sum of factor * part over `parts`, and of x * y.
Rounded scaled_sum(std::span<const double> parts, double factor, double x = 0, double y = 0);

}  // namespace halfulp

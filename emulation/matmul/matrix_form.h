#pragma once
// What both tables of matrix instructions have in common, and one numbering of their rows: those of instruction.h, then
// those of scaled_instruction.h.

#include <string>
#include <string_view>

#include "emulation/matmul/instruction.h"
#include "emulation/matmul/scaled_instruction.h"

namespace halfulp {

// D = (A * scales) @ (B * scales)^T + C; see the tables.
struct MatrixForm {
  std::string_view a, b, d;  // formats
  int m, n, k;
  int row_scales = 0;
  std::string_view scale = "";

  MatrixForm(const MatrixInstruction& is) : a(is.a), b(is.b), d(is.d), m(is.m), n(is.n), k(is.k) {}
  MatrixForm(const ScaledInstruction& is)
      : a(is.a), b(is.b), d("f32"), m(is.m), n(is.n), k(is.k), row_scales(is.row_scales), scale(is.scale) {}
};

inline constexpr int kPlainForms = int(kMatrixInstructions.size());
inline constexpr int kMatrixForms = kPlainForms + int(kScaledInstructions.size());

MatrixForm matrix_form(int form);

// As PTX spells it; tcgen05 is told of the formats in a descriptor, which are no part of its name.
std::string ptx_of_form(int form);

// -1: none.
int find_matrix_form(std::string_view ptx, std::string_view a, std::string_view b);

// Position in kAccumulators of what adds it up on GPUs of a compute capability, 90 for 9.0; -1 where none is known.
int accumulator_of_form(int form, int capability);

}  // namespace halfulp

#include "emulation/matmul/matrix_form.h"

#include "emulation/matmul/scaled_tiles.h"

namespace halfulp {
namespace {

const ScaledInstruction& scaled(int form) { return kScaledInstructions[std::size_t(form - kPlainForms)]; }

}  // namespace

MatrixForm matrix_form(int form) {
  return form < kPlainForms ? MatrixForm(kMatrixInstructions[std::size_t(form)]) : MatrixForm(scaled(form));
}

std::string ptx_of_form(int form) {
  return form < kPlainForms ? std::string(kMatrixInstructions[std::size_t(form)].ptx) : ptx_of(scaled(form));
}

int find_matrix_form(std::string_view ptx, std::string_view a, std::string_view b) {
  for (int form = 0; form < kMatrixForms; ++form)
    if (matrix_form(form).a == a && matrix_form(form).b == b && ptx_of_form(form) == ptx) return form;
  return -1;
}

int accumulator_of_form(int form, int capability) {
  return form < kPlainForms ? accumulator_on(kMatrixInstructions[std::size_t(form)], capability)
                            : find_accumulator(scaled(form).accumulator);
}

}  // namespace halfulp

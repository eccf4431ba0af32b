#pragma once
// A formula over arrays: the same operations as evaluate(), element by element.

#include <array>
#include <span>

#include "emulation/blocks/formula.h"

namespace halfulp {

// What the symbols stand for: an array of out.size() elements, or one value for all.
struct Columns {
  std::array<const float*, kSymbols.size()> arrays{};
  Values constants;

  Columns& with(Symbol symbol, std::span<const float> values) {
    arrays[std::size_t(symbol)] = values.data();
    return *this;
  }
};

// out[i] = evaluate(formula, the i-th values). Requires !formula.empty(). `out` may be one of the arrays.
void evaluate(const Formula& formula, const Columns& columns, std::span<float> out);

}  // namespace halfulp

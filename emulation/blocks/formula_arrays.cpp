#include "emulation/blocks/formula_arrays.h"

#include <algorithm>
#include <utility>

namespace halfulp {
namespace {

constexpr std::size_t kSlice = 512;
using Slice = std::array<float, kSlice>;

// out[i] = apply(op, p[i], q[i], r[i]), `op` known to the compiler.
using Loop = void (*)(const float* p, const float* q, const float* r, float* out, std::size_t count);

template <Op op>
void loop(const float* p, const float* q, const float* r, float* out, std::size_t count) {
  constexpr int kArguments = arguments_of(op);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = apply(op, p[i], kArguments > 1 ? q[i] : 0, kArguments > 2 ? r[i] : 0);
}

template <int... op>
constexpr auto loops(std::integer_sequence<int, op...>) {
  return std::array<Loop, sizeof...(op)>{loop<Op(op)>...};
}

constexpr auto kLoops = loops(std::make_integer_sequence<int, int(Op::search_e2m1) + 1>());

void evaluate_slice(const Formula& formula, const Columns& columns, std::size_t first, std::span<float> out) {
  std::array<Slice, Formula::kMaxDepth> buffers;
  std::array<const float*, Formula::kMaxDepth + 2> stack{};
  std::size_t depth = 0;
  for (int i = 0; i < formula.size(); ++i) {
    const Step& step = formula[i];
    const int arguments = step.arguments;
    depth -= std::size_t(arguments);
    float* const result = buffers[depth].data();
    const float* const array = step.op == Op::symbol ? columns.arrays[std::size_t(step.symbol)] : nullptr;
    if (arguments > 0) {
      kLoops[std::size_t(step.op)](stack[depth], stack[depth + 1], stack[depth + 2], result, out.size());
    } else if (!array) {
      std::fill_n(result, out.size(), step.op == Op::constant ? step.constant : columns.constants[step.symbol]);
    }
    stack[depth++] = array ? array + first : result;
  }
  std::copy_n(stack[0], out.size(), out.data());
}

}  // namespace

void evaluate(const Formula& formula, const Columns& columns, std::span<float> out) {
  for (std::size_t first = 0; first < out.size(); first += kSlice)
    evaluate_slice(formula, columns, first, out.subspan(first, std::min(kSlice, out.size() - first)));
}

}  // namespace halfulp

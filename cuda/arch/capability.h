#pragma once
// The target that code is compiled for, spelled as the catalog's rows spell it. Not the GPU's, which is known at run
// time only.

#include <string_view>

#include "formats/ptx_cvt.h"

// From 12.9 on nvcc says which variant of a target it compiles for. Before, "100a" would be taken for "100", and what
// only the variant has would be replaced by software without a word.
#if defined(__CUDACC__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1209
#error "halfulp's CUDA code needs nvcc 12.9 or later"
#endif

namespace halfulp::arch {

// "90a" for sm_90a; nothing in host code.
struct Target {
  char text[8] = {};
  constexpr std::string_view name() const { return text; }
};

namespace detail {
// Requires number < 10000: "100" and its variant, 'a' for the architecture's own, 'f' for its family's, 0 for neither.
constexpr Target spell(int number, char variant) {
  Target target;
  int digits = number < 100 ? 2 : number < 1000 ? 3 : 4;
  target.text[digits] = variant;
  for (; digits > 0; number /= 10) target.text[--digits] = char('0' + number % 10);
  return target;
}
static_assert(spell(103, 'f').name() == "103f" && spell(80, '\0').name() == "80");
}  // namespace detail

#if defined(__CUDA_ARCH_SPECIFIC__)
inline constexpr Target kTarget = detail::spell(__CUDA_ARCH__ / 10, 'a');
#elif defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
inline constexpr Target kTarget = detail::spell(__CUDA_ARCH__ / 10, 'f');
#elif defined(__CUDA_ARCH__)
inline constexpr Target kTarget = detail::spell(__CUDA_ARCH__ / 10, '\0');
#else
inline constexpr Target kTarget;
#endif

// What no row knows is refused, not emulated: the oldest rows list every target.
static_assert(kTarget.name().empty() || has_target(kSinces[0].targets, kTarget.name()),
              "halfulp does not know which conversions this target has: see kSinces in formats/ptx_cvt.h");

}  // namespace halfulp::arch

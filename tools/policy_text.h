#pragma once
// The choices of formats/policy.h in words.

#include <array>
#include <string_view>

#include "formats/policy.h"

namespace halfulp {

inline constexpr std::array<std::string_view, 7> kNanInputTexts{
    "all magnitude bits one, sign dropped: NaN, or the largest value where there is no NaN (PTX cvt)",
    "the same, sign kept (CUDA header, double to e4m3)",
    "sign and upper payload kept, made quiet (IEEE 754-2019 §6.2.3; CUDA header, double to e5m2)",
    "sign and the quiet bit alone (ml_dtypes, PyTorch)",
    "signed zero where there is no NaN (LLVM APFloat)",
    "sign and as much of the payload as fits kept, not made quiet; where bits are cut a signalling NaN can become Inf "
    "(PTX cvt.f32.bf16, rna.tf32)",
    "low payload bits cut, less one ulp: a finite value or another NaN (PTX cvt.rna.satfinite.tf32)"};
static_assert(kNanInputTexts.size() == kNanInputNames.size());

inline constexpr std::array<std::string_view, 3> kNegativeInputTexts{"the sign is ignored (PTX cvt to ue8m0)",
                                                                     "NaN (ml_dtypes, e8m0)", "the smallest code"};
static_assert(kNegativeInputTexts.size() == kNegativeInputNames.size());

}  // namespace halfulp

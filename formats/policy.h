#pragma once
// What a conversion does where the standards leave the choice open. Each choice has a name and a user.

#include <array>
#include <string_view>

#include "formats/rounding.h"

namespace halfulp {

// A result beyond the largest finite value.
enum class Overflow {
  saturate,    // largest finite value (PTX .satfinite; OFP8 v1.0 §5.3 saturating mode)
  to_special,  // Inf, or NaN where there is no Inf (OFP8 v1.0 §5.3 non-saturating mode); IEEE 754-2019 §7.4
};

// An infinite input.
enum class InfInput {
  overflow,  // the same as a finite value that overflows (PTX cvt)
  to_nan,    // NaN where the format has no Inf, even when finite values saturate (ml_dtypes, saturating e4m3)
};

// A NaN input.
enum class NanInput {
  all_ones,         // magnitude all ones, sign dropped: NaN, or +max where there is no NaN (PTX cvt)
  signed_all_ones,  // the same, sign kept (CUDA header conversions from double to e4m3)
  payload,          // sign and upper payload bits kept, quiet bit set (IEEE 754-2019 §6.2.3, CUDA double to e5m2)
  quiet,            // sign kept, quiet bit alone (ml_dtypes, PyTorch)
  zero,             // signed zero where there is no NaN, else as `payload` (LLVM APFloat)
  truncate,  // as much of the payload as fits, not made quiet: cut, it can be Inf (PTX cvt.f32.bf16, cvt.rna.tf32)
  truncate_minus_ulp,  // the same, less one ulp: a finite value or another NaN (PTX cvt.rna.satfinite.tf32)
};

// A negative input of a format without a sign. A zero is never negative.
enum class NegativeInput {
  magnitude,  // the sign is ignored (PTX cvt to ue8m0)
  to_nan,     // ml_dtypes, e8m0
  to_zero,    // the smallest code
};

// A zero result whose sign would be negative.
enum class ZeroResult {
  keeps_sign,  // where the format has a -0 (IEEE 754-2019 §6.3, PTX cvt)
  positive,    // -0 is never produced (ggml)
};

struct Policy {
  Rounding rounding;
  Overflow overflow;
  InfInput inf = InfInput::overflow;
  NanInput nan = NanInput::all_ones;
  NegativeInput negative = NegativeInput::magnitude;
  ZeroResult zero = ZeroResult::keeps_sign;

  friend constexpr bool operator==(const Policy&, const Policy&) = default;
};

inline constexpr std::array<std::string_view, 2> kOverflowNames{"saturate", "to-special"};
inline constexpr std::array<std::string_view, 2> kInfInputNames{"overflow", "to-nan"};
inline constexpr std::array<std::string_view, 7> kNanInputNames{
    "all-ones", "signed-all-ones", "payload", "quiet", "zero", "truncate", "truncate-minus-ulp"};
inline constexpr std::array<std::string_view, 3> kNegativeInputNames{"magnitude", "to-nan", "to-zero"};
inline constexpr std::array<std::string_view, 2> kZeroResultNames{"keeps-sign", "positive"};
static_assert(kZeroResultNames.size() == std::size_t(ZeroResult::positive) + 1);
static_assert(kOverflowNames.size() == std::size_t(Overflow::to_special) + 1);
static_assert(kInfInputNames.size() == std::size_t(InfInput::to_nan) + 1);
static_assert(kNanInputNames.size() == std::size_t(NanInput::truncate_minus_ulp) + 1);
static_assert(kNegativeInputNames.size() == std::size_t(NegativeInput::to_zero) + 1);

}  // namespace halfulp

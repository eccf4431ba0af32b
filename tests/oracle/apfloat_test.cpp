// encode against LLVM 19's APFloat: every format and rounding mode that both have.

#include <gtest/gtest.h>
#include <llvm/ADT/APFloat.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ios>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <tuple>

#include "formats/catalog.h"
#include "formats/codec.h"
#include "tests/oracle/boundary_inputs.h"

namespace halfulp {
namespace {

using llvm::APFloat;

struct FormatRow {
  std::string_view name;
  APFloat::Semantics semantics;
};

constexpr FormatRow kRows[] = {
    {"e2m1", APFloat::S_Float4E2M1FN},
    {"e2m3", APFloat::S_Float6E2M3FN},
    {"e3m2", APFloat::S_Float6E3M2FN},
    {"e4m3", APFloat::S_Float8E4M3FN},
    {"e5m2", APFloat::S_Float8E5M2},
    {"e4m3fnuz", APFloat::S_Float8E4M3FNUZ},
    {"e5m2fnuz", APFloat::S_Float8E5M2FNUZ},
    {"tf32", APFloat::S_FloatTF32},
    {"bf16", APFloat::S_BFloat},
    {"f16", APFloat::S_IEEEhalf},
};

struct ModeRow {
  Rounding rounding;
  llvm::RoundingMode theirs;
};

constexpr ModeRow kModes[] = {
    {Rounding::nearest_even, APFloat::rmNearestTiesToEven},
    {Rounding::nearest_away, APFloat::rmNearestTiesToAway},
    {Rounding::toward_zero, APFloat::rmTowardZero},
    {Rounding::up, APFloat::rmTowardPositive},
    {Rounding::down, APFloat::rmTowardNegative},
};

template <class Source>
uint32_t converted(Source x, const FormatRow& row, llvm::RoundingMode mode) {
  APFloat value(x);
  bool inexact;
  value.convert(APFloat::EnumToSemantics(row.semantics), mode, &inexact);
  return uint32_t(value.bitcastToAPInt().getZExtValue());
}

// APFloat does not saturate; a NaN keeps its payload, and where there is no NaN becomes zero.
constexpr Policy policy_of(Rounding rounding) {
  return {.rounding = rounding, .overflow = Overflow::to_special, .nan = NanInput::zero};
}

// A format with neither Inf nor NaN treats Inf as APFloat treats a NaN there, not as an overflow.
template <class Source>
uint32_t expected_code(const Format& f, Rounding rounding, Source x) {
  if (f.specials == Specials::finite_only && std::isinf(x)) x = std::copysign(Source(NAN), x);
  return encode(f, policy_of(rounding), x);
}

class EveryFormatAndMode : public testing::TestWithParam<std::tuple<FormatRow, ModeRow>> {
 protected:
  template <class Source>
  void check(Source x) {
    const auto& [row, mode] = GetParam();
    const uint32_t theirs = converted(x, row, mode.theirs), ours = expected_code(format_, mode.rounding, x);
    ++compared_;
    if (theirs != ours && mismatches_++ < 4)
      ADD_FAILURE() << row.name << ' ' << kRoundings[size_t(mode.rounding)].name << " input " << std::hexfloat << x
                    << std::hex << " APFloat 0x" << theirs << " halfulp 0x" << ours;
  }

  void check_both(double x) {
    check(x);
    if (const auto narrow = float(x); double(narrow) == x) check(narrow);
  }

  void report() const {
    std::cout << compared_ << " inputs compared, " << mismatches_ << " mismatches\n";
    EXPECT_EQ(mismatches_, 0u);
  }

  const Format format_ = kFormats[size_t(find_format(std::get<0>(GetParam()).name))].format;

 private:
  uint64_t compared_ = 0;
  uint64_t mismatches_ = 0;
};

TEST_P(EveryFormatAndMode, AgreesWithApfloat) {
  constexpr int kRandom = 1 << 21;
  for (uint32_t upper = 0; upper < 0x1'0000; ++upper) check(bit_cast<float>(upper << 16));
  oracle::visit_boundaries(format_, [&](double x) { check_both(x); });
  std::mt19937_64 bits(5);
  for (int i = 0; i < kRandom; ++i) {
    const uint64_t word = bits();
    check(bit_cast<float>(uint32_t(word)));
    check(bit_cast<double>(word));
    const double x = oracle::random_in_range(format_, bits);
    check(float(x));
    check(x);
  }
  report();
}

INSTANTIATE_TEST_SUITE_P(Apfloat, EveryFormatAndMode,
                         testing::Combine(testing::ValuesIn(kRows), testing::ValuesIn(kModes)),
                         [](const auto& instance) {
                           std::string name =
                               std::string(std::get<0>(instance.param).name) + "_" +
                               std::string(kRoundings[size_t(std::get<1>(instance.param).rounding)].name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace halfulp

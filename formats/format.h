#pragma once
// A floating-point format as data. Everything else about it is derived.

#include <cstdint>

#include "lib/host_device.h"

namespace halfulp {

enum class Sign { none, one_bit };

// Which codes are not numbers.
enum class Specials {
  ieee,           // all-ones exponent: mantissa 0 is Inf, the others are NaN (IEEE 754-2019 §3.4)
  nan_only,       // the all-ones magnitude is NaN, there is no Inf (OCP OFP8 v1.0 §5, E4M3)
  negative_zero,  // the code of -0 is the only NaN, there is no Inf and no -0 ("fnuz")
  finite_only,    // every code is a number (OCP MX v1.0 §5.3, FP4 and FP6)
};

enum class Subnormals { yes, no };  // a format without them has no zero either (E8M0)

struct Format {
  Sign sign;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;
  Subnormals subnormals;

  HOST_DEVICE constexpr int bits() const { return (sign == Sign::one_bit) + sign_shift(); }
  HOST_DEVICE constexpr int sign_shift() const { return exponent_bits + mantissa_bits; }
  HOST_DEVICE constexpr uint32_t sign_mask() const { return sign == Sign::one_bit ? uint32_t{1} << sign_shift() : 0; }
  HOST_DEVICE constexpr uint32_t magnitude_mask() const { return (uint32_t{1} << sign_shift()) - 1; }
  HOST_DEVICE constexpr uint32_t code_mask() const { return sign_mask() | magnitude_mask(); }
  // The significand's leading bit, as wide as the mantissa leaves it.
  HOST_DEVICE constexpr uint32_t hidden() const { return uint32_t{1} << mantissa_bits; }
  // Exponent of the smallest normal value, 2^min_exponent.
  HOST_DEVICE constexpr int min_exponent() const { return (subnormals == Subnormals::yes ? 1 : 0) - bias; }

  // Code of the largest finite magnitude.
  HOST_DEVICE constexpr uint32_t max_code() const {
    switch (specials) {
      case Specials::ieee: return magnitude_mask() - hidden();
      case Specials::nan_only: return magnitude_mask() - 1;
      case Specials::negative_zero: return magnitude_mask();
      case Specials::finite_only: return magnitude_mask();
    }
    return 0;
  }
  // Exponent of the largest finite value: "emax" of OCP MX v1.0 §6.3.
  HOST_DEVICE constexpr int max_exponent() const { return int(max_code() >> mantissa_bits) - bias; }

  HOST_DEVICE constexpr bool has_inf() const { return specials == Specials::ieee; }
  HOST_DEVICE constexpr bool has_nan() const { return specials != Specials::finite_only; }
  HOST_DEVICE constexpr bool has_negative_zero() const {
    return sign == Sign::one_bit && specials != Specials::negative_zero && subnormals == Subnormals::yes;
  }

  friend constexpr bool operator==(const Format&, const Format&) = default;
};

}  // namespace halfulp

// The logarithm of formulas against MPFR's, correctly rounded.

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cmath>
#include <cstdint>

#include "emulation/blocks/formula.h"
#include "lib/philox.h"

namespace halfulp {
namespace {

class Log2Oracle : public testing::Test {
 protected:
  Log2Oracle() { mpfr_init2(value_, 24); }
  ~Log2Oracle() override { mpfr_clear(value_); }
  Log2Oracle(const Log2Oracle&) = delete;
  Log2Oracle& operator=(const Log2Oracle&) = delete;

  float rounded_log2(float x) {
    mpfr_set_flt(value_, x, MPFR_RNDN);
    mpfr_log2(value_, value_, MPFR_RNDN);
    return mpfr_get_flt(value_, MPFR_RNDN);
  }

  void expect_log2(uint32_t bits) {
    const float x = bit_cast<float>(bits);
    ASSERT_EQ(apply(Op::log2, x), rounded_log2(x)) << std::hexfloat << x;
  }

 private:
  mpfr_t value_;
};

TEST_F(Log2Oracle, AgreesNearEveryPowerOfTwo) {
  for (uint32_t exponent = 0; exponent < 255; ++exponent)
    for (uint32_t i = 0; i < 256; ++i) {
      expect_log2((exponent << 23) + i + 1);
      expect_log2((exponent << 23) + 0x007f'ffff - i);
    }
}

TEST_F(Log2Oracle, AgreesOnRandomNumbers) {
  for (uint64_t i = 0; i < 1 << 18; ++i) expect_log2(1 + random_word(1, 0, i) % 0x7f7f'ffff);
}

// Near 1 a logarithm is a small number.
TEST_F(Log2Oracle, AgreesNearOne) {
  for (uint64_t i = 0; i < 1 << 18; ++i) expect_log2(0x3f80'0000 - 0x4000 + random_word(1, 1, i) % 0x8000);
}

}  // namespace
}  // namespace halfulp

// Philox4x32-10 against Random123's own implementation.

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <random>

#undef philox4x32  // Random123's C interface has a macro of that name
#include "lib/philox.h"

namespace halfulp {
namespace {

TEST(PhiloxOracle, MatchesRandom123OnRandomKeysAndCounters) {
  std::mt19937 generator(20260101);
  const auto word = [&] { return uint32_t(generator()); };
  for (int i = 0; i < 100'000; ++i) {
    const r123::Philox4x32::ctr_type counter = {{word(), word(), word(), word()}};
    const r123::Philox4x32::key_type key = {{word(), word()}};
    const auto expected = r123::Philox4x32()(counter, key);
    const PhiloxBlock got = philox4x32({key[0], key[1]}, {{counter[0], counter[1], counter[2], counter[3]}});
    for (size_t k = 0; k < 4; ++k) ASSERT_EQ(got[k], expected[k]) << "case " << i << " word " << k;
  }
}

}  // namespace
}  // namespace halfulp

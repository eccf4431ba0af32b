// Needs headers only: the codec at compile time.

#include "formats/catalog.h"
#include "formats/codec.h"

using namespace halfulp;

constexpr Format kE2M1 = format_named("e2m1");
constexpr Policy kPolicy{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate};
static_assert(decode(kE2M1, encode(kE2M1, kPolicy, 5.0f)) == 4.0f, "5 is a tie of 4 and 6, and 4 is even");

int main() {}

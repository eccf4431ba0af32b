#pragma once
// A hash of 64 bits, for checksums that do not depend on the order of what they are of. Not a random generator: that is
// lib/philox.h.

#include <cstdint>

#include "lib/host_device.h"

namespace halfulp {

// One step from state z: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
HOST_DEVICE constexpr uint64_t splitmix64(uint64_t z) {
  z += 0x9e37'79b9'7f4a'7c15;
  z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
  z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
  return z ^ (z >> 31);
}
static_assert(splitmix64(0) == 0xe220'a839'7b1d'cdaf, "the first output of the authors' generator from seed 0");

}  // namespace halfulp

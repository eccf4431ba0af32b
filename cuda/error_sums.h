#pragma once
// The errors of a recipe, added up on the present GPU: x goes there once, and only sums come back.

#include <span>

#include "emulation/backend.h"

namespace halfulp {

// As RecipeFunctions::tally_errors: the bits of the CPU.
void tally_errors_on_gpu(const ErrorPart& part, std::span<const float> x, const Randomness& random, ErrorTally& tally);

}  // namespace halfulp

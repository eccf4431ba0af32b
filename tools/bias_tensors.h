#pragma once
// The bias of one tensor under one recipe, for `halfulp bias` of tensors and of captures.

#include <cstddef>

#include "emulation/analysis/bias.h"
#include "lib/cli.h"
#include "lib/progress.h"
#include "lib/tensor_source.h"
#include "tools/inputs.h"

namespace halfulp {

// Requires that refusal() of the reading is empty. `random` is read by recipes whose bias has no closed form.
BiasSums bias_sums(const Recipe& recipe, const Tensor& tensor, const Reading& reading, float amax,
                   const Randomness& random, ErrorDetail detail, int threads, Progress& progress);

// --detail
ErrorDetail error_detail(const Arguments& arguments);

}  // namespace halfulp

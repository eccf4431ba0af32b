#pragma once
// What NVIDIA GPUs do for the program. Includes nothing of CUDA's, so that a caller needs no toolkit.

#include "emulation/backend.h"

namespace halfulp {

extern const Backend kCudaBackend;

}  // namespace halfulp

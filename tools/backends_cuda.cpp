// The backends of a build with CUDA.

#include "cuda/backend.h"
#include "tools/backends.h"

namespace halfulp {

std::span<const Backend* const> backends() {
  static constexpr const Backend* kBackends[] = {&kCudaBackend};
  return kBackends;
}

}  // namespace halfulp

// A kernel for each conversion of the catalog, to be read as PTX: which of them hold the instruction?

#include <array>
#include <utility>

#include "cuda/arch/cvt.cuh"

namespace halfulp {

// Named by its catalog position: probe<42> is _ZN7halfulp5probeILi42EE...
template <int id>
__global__ void probe(const uint32_t* sources, uint32_t word, uint32_t* result) {
  *result = arch::convert<id>(sources, word);
}

using Probe = void (*)(const uint32_t*, uint32_t, uint32_t*);

// What makes the compiler emit them.
template <std::size_t... id>
constexpr std::array<Probe, sizeof...(id)> probes(std::index_sequence<id...>) {
  return {probe<int(id)>...};
}
extern const std::array<Probe, kPtxCvts.size()> kProbes;
const std::array<Probe, kPtxCvts.size()> kProbes = probes(std::make_index_sequence<kPtxCvts.size()>{});

}  // namespace halfulp

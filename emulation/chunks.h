#pragma once
// A tensor in chunks: bounded memory, any number of threads, and chunks that depend on the tensor alone.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "emulation/elements.h"
#include "lib/tensor_source.h"
#include "lib/threads.h"

namespace halfulp {

// A multiple of the elements of every instruction.
inline constexpr uint64_t kChunkElements = uint64_t{1} << 18;

// Calls fn(first, elements) for each chunk of the tensor, `first` being the position of the chunk's first element, and
// gives back the memory of what was read. fn runs on `threads` threads at the same time.
template <class Source, class Fn>
void for_each_chunk(const Tensor& tensor, int threads, Fn&& fn) {
  const uint64_t total = tensor.elements();
  const int bits = row(tensor.dtype).bits;
  parallel_for((total + kChunkElements - 1) / kChunkElements, threads, [&](std::size_t chunk) {
    const uint64_t first = chunk * kChunkElements;
    std::vector<Source> elements(std::min(kChunkElements, total - first));
    load_elements<Source>(tensor.dtype, tensor.bytes.data(), first, elements);
    fn(first, std::span<const Source>(elements));
    tensor.release(first * uint64_t(bits) / 8, (first + elements.size()) * uint64_t(bits) / 8);
  });
}

}  // namespace halfulp

#pragma once
// Whether the streams of random words behind many draws are independent, which their bias and noise rest on: no stretch
// of one may be in another, and bits of one may tell nothing of another's. Not a test of a generator: it is what a bad
// seeding does that is looked for, over the first words of each stream.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "lib/json.h"

namespace halfulp {

// Word number `index` of a stream; called by several threads at once.
using RandomWords = std::function<uint32_t(uint64_t stream, uint64_t index)>;

// Words index + shift of stream `first` are words index of stream `second`, four of them or more.
struct StreamOverlap {
  uint64_t first;
  uint64_t second;  // the same stream where a stretch of it comes again
  int64_t shift;
};

struct StreamCheck {
  uint64_t pairs = 0;                      // whose bits were compared
  double worst_z = 0;                      // of all correlations, in standard errors
  double limit = 0;                        // which independent streams exceed once in 10^6 checks
  std::optional<StreamOverlap> overlap{};  // of the first streams of the list that overlap

  bool independent() const { return !overlap && worst_z <= limit; }
};

// Overlap is exact over the first `words` words of all streams, so at every shift below that. Correlations are those of
// a few bits of two streams at equal indices and one or two apart: of all pairs, or of about 2^18 of them that lie
// nearest to each other in the list.
StreamCheck check_streams(std::span<const uint64_t> streams, const RandomWords& word, int threads,
                          std::size_t words = 1024);

// {independent, limit, overlap, pairs, worst_z}; overlap is null or {first, second, shift}
Json summary(const StreamCheck& check);

}  // namespace halfulp

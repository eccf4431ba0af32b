#include "emulation/analysis/streams.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <tuple>
#include <vector>

#include "lib/threads.h"

namespace halfulp {
namespace {

constexpr std::size_t kRun = 4;     // words: 128 bits, which two runs of 2^40 share by chance once in 2^49 checks
constexpr std::size_t kShifts = 3;  // 0, 1 and 2 words apart
// Of a word: those that decide a rounding with 32 random bits, or with either half of a word, and the last one.
constexpr int kBits[] = {31, 30, 15, 14, 0};
constexpr std::size_t kNumberOfBits = std::size(kBits);

// All words, [streams, words].
struct Words {
  std::size_t streams, words;
  std::vector<uint32_t> values;

  std::span<const uint32_t> of(std::size_t stream) const { return std::span(values).subspan(stream * words, words); }
};

Words draw(std::span<const uint64_t> streams, const RandomWords& word, int threads, std::size_t words) {
  Words all{.streams = streams.size(), .words = words, .values = std::vector<uint32_t>(streams.size() * words)};
  parallel_for(streams.size(), threads, [&](std::size_t s) {
    for (std::size_t i = 0; i < words; ++i) all.values[s * words + i] = word(streams[s], i);
  });
  return all;
}

// A run of kRun words, and where it starts.
struct Run {
  uint64_t low, high;
  uint32_t stream, index;

  bool same_words(const Run& o) const { return low == o.low && high == o.high; }
  friend auto operator<=>(const Run&, const Run&) = default;
};

std::vector<Run> sorted_runs(const Words& all) {
  std::vector<Run> runs;
  runs.reserve(all.values.size());
  for (uint32_t s = 0; s < all.streams; ++s) {
    const auto w = all.of(s);
    for (uint32_t i = 0; i + kRun <= w.size(); ++i)
      runs.push_back({uint64_t{w[i]} << 32 | w[i + 1], uint64_t{w[i + 2]} << 32 | w[i + 3], s, i});
  }
  std::ranges::sort(runs);
  return runs;
}

// Of the overlaps between neighbours in order, of which there are some where there are any: that of the first streams,
// by the least shift.
std::optional<StreamOverlap> first_overlap(std::span<const uint64_t> streams, const std::vector<Run>& runs) {
  using Place = std::tuple<uint32_t, uint32_t, int64_t, int64_t>;  // streams by their place, |shift|, shift
  std::optional<Place> first;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const Run &a = runs[i - 1], &b = runs[i];
    if (!a.same_words(b)) continue;
    const int64_t shift = int64_t{a.index} - int64_t{b.index};
    const Place place{a.stream, b.stream, std::abs(shift), shift};
    if (!first || place < *first) first = place;
  }
  if (!first) return std::nullopt;
  const auto& [a, b, distance, shift] = *first;
  return StreamOverlap{.first = streams[a], .second = streams[b], .shift = shift};
}

// One bit of words [shift, shift + 64 n) of each stream, packed: [streams, bits, shifts, n].
struct PackedBits {
  std::size_t n;
  std::vector<uint64_t> values;

  const uint64_t* of(std::size_t stream, std::size_t bit, std::size_t shift) const {
    return &values[((stream * kNumberOfBits + bit) * kShifts + shift) * n];
  }
};

PackedBits pack(const Words& all, int threads) {
  const std::size_t n = (all.words - (kShifts - 1)) / 64, of_stream = kNumberOfBits * kShifts * n;
  PackedBits packed{.n = n, .values = std::vector<uint64_t>(all.streams * of_stream)};
  parallel_for(all.streams, threads, [&](std::size_t s) {
    uint64_t* out = &packed.values[s * of_stream];
    for (const int bit : kBits)
      for (std::size_t shift = 0; shift < kShifts; ++shift)
        for (std::size_t i = 0; i < n; ++i, ++out)
          for (std::size_t j = 0; j < 64; ++j) *out |= uint64_t{all.of(s)[shift + 64 * i + j] >> bit & 1} << j;
  });
  return packed;
}

// Standard errors by which the number of equal bits is off one half.
double z_of_bits(const uint64_t* a, const uint64_t* b, std::size_t n) {
  int differing = 0;
  for (std::size_t i = 0; i < n; ++i) differing += std::popcount(a[i] ^ b[i]);
  const double bits = 64 * double(n);
  return std::fabs(bits - 2 * differing) / std::sqrt(bits);
}

constexpr std::size_t kCorrelations = kNumberOfBits * (2 * kShifts - 1);  // of a pair

double worst_z_of_pair(const PackedBits& packed, std::size_t s, std::size_t t) {
  double worst = 0;
  for (std::size_t bit = 0; bit < kNumberOfBits; ++bit)
    for (std::size_t shift = 0; shift < kShifts; ++shift) {
      worst = std::max(worst, z_of_bits(packed.of(s, bit, shift), packed.of(t, bit, 0), packed.n));
      if (shift > 0) worst = std::max(worst, z_of_bits(packed.of(s, bit, 0), packed.of(t, bit, shift), packed.n));
    }
  return worst;
}

// All pairs where they are few, else the nearest ones of each stream.
std::size_t farthest(std::size_t streams) {
  constexpr std::size_t kPairs = std::size_t{1} << 18;
  return streams * streams / 2 <= kPairs ? streams : std::max<std::size_t>(1, kPairs / streams);
}

// Pairs of streams at most `distance` apart in the list.
void correlate(const PackedBits& packed, std::size_t streams, std::size_t distance, int threads, StreamCheck& check) {
  std::vector<double> worst(streams);
  parallel_for(streams, threads, [&](std::size_t s) {
    for (std::size_t t = s + 1; t < streams && t <= s + distance; ++t)
      worst[s] = std::max(worst[s], worst_z_of_pair(packed, s, t));
  });
  for (std::size_t s = 0; s < streams; ++s) check.pairs += std::min(distance, streams - 1 - s);
  if (streams > 0) check.worst_z = std::ranges::max(worst);
}

// Hoeffding: fair independent bits exceed z with a probability of at most 2 exp(-z^2 / 2), here shared out among all
// correlations (Bonferroni).
double limit_of(uint64_t pairs) {
  constexpr double kFalseAlarms = 1e-6;
  return std::sqrt(2 * std::log(2 * double(std::max<uint64_t>(pairs, 1) * kCorrelations) / kFalseAlarms));
}

}  // namespace

StreamCheck check_streams(std::span<const uint64_t> streams, const RandomWords& word, int threads, std::size_t words) {
  const Words all = draw(streams, word, threads, words);
  StreamCheck check{.overlap = first_overlap(streams, sorted_runs(all))};
  correlate(pack(all, threads), streams.size(), farthest(streams.size()), threads, check);
  check.limit = limit_of(check.pairs);
  return check;
}

Json summary(const StreamCheck& check) {
  Json json{{"independent", check.independent()},
            {"limit", check.limit},
            {"overlap", nullptr},
            {"pairs", check.pairs},
            {"worst_z", check.worst_z}};
  if (check.overlap)
    json["overlap"] = {
        {"first", check.overlap->first}, {"second", check.overlap->second}, {"shift", check.overlap->shift}};
  return json;
}

}  // namespace halfulp

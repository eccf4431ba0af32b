#pragma once
// Walks all 2^32 float32 bit patterns in chunks of 2^24 consecutive ones, on every processor. Not a test.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

namespace halfulp {

inline constexpr uint64_t kChunks = 256;
inline constexpr uint64_t kChunkInputs = uint64_t{1} << 24;

// Calls work(first, end) for the bit patterns of each chunk; the results are in the order of the chunks.
template <class Result, class Work>
std::vector<Result> for_each_chunk(const Work& work) {
  std::vector<Result> results(kChunks);
  std::atomic<uint64_t> next = 0;
  const auto run = [&] {
    for (uint64_t chunk = next++; chunk < kChunks; chunk = next++)
      results[chunk] = work(chunk * kChunkInputs, (chunk + 1) * kChunkInputs);
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(run);
  threads.clear();  // joins them
  return results;
}

// HALFULP_EXHAUSTIVE_STRIDE of the environment: 1 takes everything, as it is without it.
inline uint64_t exhaustive_stride() {
  const char* text = std::getenv("HALFULP_EXHAUSTIVE_STRIDE");
  return text == nullptr ? 1 : std::max(uint64_t{1}, uint64_t{std::strtoull(text, nullptr, 10)});
}

struct Mismatch {
  uint64_t input;
  uint32_t expected;
  uint32_t got;
};

// How many inputs were compared, how many came out wrong, and the first few of those.
struct Tally {
  static constexpr size_t kShown = 4;
  uint64_t compared = 0;
  uint64_t mismatches = 0;
  std::vector<Mismatch> first;

  void add(uint64_t input, uint32_t expected, uint32_t got) {
    ++compared;
    if (expected == got) return;
    if (mismatches++ < kShown) first.push_back({input, expected, got});
  }
  void add(const Tally& other) {
    compared += other.compared;
    mismatches += other.mismatches;
    for (const Mismatch& m : other.first)
      if (first.size() < kShown) first.push_back(m);
  }
};

// Compares two functions of a float32 bit pattern on the patterns 0, stride, 2 * stride, ...
template <class Expected, class Got>
Tally compare_floats(const Expected& expected, const Got& got, uint64_t stride) {
  Tally total;
  for (const Tally& part : for_each_chunk<Tally>([&](uint64_t first, uint64_t end) {
         Tally tally;
         for (uint64_t bits = (first + stride - 1) / stride * stride; bits < end; bits += stride)
           tally.add(bits, expected(uint32_t(bits)), got(uint32_t(bits)));
         return tally;
       }))
    total.add(part);
  return total;
}

}  // namespace halfulp

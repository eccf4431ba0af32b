#include "cuda/error_sums.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

#include "cuda/check.h"
#include "cuda/elements.cuh"
#include "cuda/host_arrays.h"
#include "cuda/memory.h"

namespace halfulp {
namespace {

using Word = unsigned long long;  // what atomicAdd takes

// Rows of counts. Numbers that are not counted are ordered as their words are, and 0 is none.
enum Count {
  elements,
  nonfinite_in,
  nonfinite_out,
  clipped,
  dead_zone,
  clusters,
  largest_error,   // bits of an FP64 magnitude
  greatest_scale,  // rank
  least_scale,     // complement of a rank
  kCounts
};

// The strata of FP32 numbers follow one another: their binades begin at that of 2^-149, and end below 2^128.
constexpr int kLeastFp32Binade = -149, kSkippedBinades = kLeastFp32Binade - kLeastBinade;
constexpr std::size_t kFp32Strata = kFirstBinade + 128 - kLeastFp32Binade;
__device__ int place_of_stratum(int stratum) { return stratum < kFirstBinade ? stratum : stratum - kSkippedBinades; }
int stratum_at_place(std::size_t place) { return place < kFirstBinade ? int(place) : int(place) + kSkippedBinades; }

// A tally in the memory of the GPU, in one array of zeros at first. Exact sums are limbs, to which integers are added,
// so that the order in which threads come does not matter.
struct GpuTally {
  Word* counts;
  Word* moments;  // limbs
  Word* strata;   // of each stratum clusters and limbs
  Word* codes;
  Word* scales;
  Word* crests;
};
constexpr std::size_t kMomentWords = ClusterMoments<ClusterSums::kVariables>::kSums * ExactSum::kLimbs;
constexpr std::size_t kStratumLimbs = ClusterMoments<StratumSum::kVariables>::kSums * ExactSum::kLimbs;
constexpr std::size_t kStratumWords = 1 + kStratumLimbs;

struct TallyJob {
  const Recipe* recipe;
  TensorScale tensor;
  ClusterGrid grid;
  const float* x;
  const float* q;
  const std::byte* scales;
  bool has_scales, counts_scales;
  GpuTally tally;
};

__device__ void add_exactly(Word* limbs, double x) {
  const ExactAddend addend = exact_addend(x);
#pragma unroll
  for (int i = 0; i < 3; ++i)
    if (addend.limbs[i] != 0) atomicAdd(&limbs[addend.first + i], Word(addend.limbs[i]));
}

template <std::size_t variables>
__device__ void add_cluster(Word* limbs, const double (&of)[variables]) {
  const Addends<variables> addends = addends_of(of);
#pragma unroll
  for (std::size_t i = 0; i < Addends<variables>::kCount; ++i) add_exactly(limbs + i * ExactSum::kLimbs, addends.of[i]);
}

// Of all threads of a warp; each sum fits in 32 bits, as a cluster's elements do.
__device__ void add_over_warp(Word* count, uint64_t n) {
  const unsigned sum = __reduce_add_sync(~0u, unsigned(n));
  if (threadIdx.x % 32 == 0 && sum > 0) atomicAdd(count, Word(sum));
}

__device__ void raise_over_warp(Word* largest, Word x) {
  for (int distance = 16; distance > 0; distance /= 2) x = max(x, __shfl_xor_sync(~0u, x, distance));
  if (threadIdx.x % 32 == 0 && x > 0) atomicMax(largest, x);
}

// The scale of a cluster, counted: 1 where there are none.
__device__ float scale_of(const TallyJob& job, uint64_t cluster, uint32_t& rank) {
  if (!job.has_scales) return 1;
  const uint32_t code = load_stored(job.recipe->scale.storage_bits(), job.scales, job.grid.block(cluster));
  if (job.counts_scales) atomicAdd(&job.tally.scales[code], Word{1});
  const float scale = decode(job.recipe->scale.format(), code);
  if (scale == scale) rank = rank_of(scale);
  return scale;
}

constexpr unsigned kClusterThreads = 32;  // few, so that large clusters go to many processors

// One cluster a thread.
__global__ void __launch_bounds__(kClusterThreads) add_clusters(TallyJob job) {
  const uint64_t cluster = uint64_t(blockIdx.x) * kClusterThreads + threadIdx.x;
  Word* const counts = job.tally.counts;
  ClusterSums sums;
  uint32_t rank = 0;
  if (cluster < job.grid.count()) {
    const double largest = largest_value(*job.recipe, job.tensor, scale_of(job, cluster, rank));
    sums = cluster_sums(cluster_at(job.grid, job.x, job.q, cluster), largest);
    if (sums.of[ClusterSums::count] > 0) add_cluster(job.tally.moments, sums.of);
    if (job.has_scales && sums.of[ClusterSums::squared_value] > 0)
      atomicAdd(&job.tally.crests[crest_bin(sums)], Word{1});
  }
  add_over_warp(&counts[elements], sums.elements);
  add_over_warp(&counts[nonfinite_in], sums.nonfinite_in);
  add_over_warp(&counts[nonfinite_out], sums.nonfinite_out);
  add_over_warp(&counts[clipped], sums.clipped);
  add_over_warp(&counts[dead_zone], sums.dead_zone);
  add_over_warp(&counts[clusters], sums.of[ClusterSums::count] > 0);
  raise_over_warp(&counts[largest_error], bit_cast<Word>(sums.max_abs_error));
  raise_over_warp(&counts[greatest_scale], rank);
  raise_over_warp(&counts[least_scale], rank == 0 ? 0 : ~rank);
}

constexpr unsigned kThreads = 256;

// One element a thread, which adds up the strata that begin with it in its cluster.
__global__ void __launch_bounds__(kThreads) add_strata(TallyJob job, int kinds) {
  const ClusterGrid& grid = job.grid;
  const uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x, row = i / grid.cols, col = i % grid.cols;
  if (row >= grid.rows) return;
  const Cluster<float> cluster = cluster_at(grid, job.x, job.q, row / grid.height * grid.across() + col / grid.width);
#pragma unroll 1
  for (int kind = 0; kind < kinds; ++kind) {
    const StratumSum sum = sum_of_begun_stratum(cluster, StratumKind(kind), row % grid.height, col % grid.width);
    if (sum.of[StratumSum::count] == 0) continue;
    const int place = place_of_stratum(stratum_of(StratumKind(kind), double(job.x[row * grid.stride + col])));
    Word* const words = job.tally.strata + std::size_t(place) * kStratumWords;
    atomicAdd(&words[0], Word{1});
    add_cluster(words + 1, sum.of);
  }
}

constexpr unsigned kFewCodes = 256, kMaxCtas = 1024;

// Codes that are few are counted by each CTA first, as all threads would wait for the same words.
__global__ void __launch_bounds__(kThreads)
    count_codes(const std::byte* codes, int bits, int shift, ClusterGrid grid, std::size_t size, Word* counts) {
  __shared__ unsigned of_cta[kFewCodes];
  for (unsigned code = threadIdx.x; code < kFewCodes; code += kThreads) of_cta[code] = 0;
  __syncthreads();
  const uint64_t step = uint64_t(gridDim.x) * kThreads;
  for (uint64_t i = uint64_t(blockIdx.x) * kThreads + threadIdx.x; i < grid.rows * grid.cols; i += step) {
    const uint32_t code = load_stored(bits, codes, i / grid.cols * grid.stride + i % grid.cols) >> shift;
    if (size <= kFewCodes) {
      atomicAdd(&of_cta[code], 1u);
    } else {
      atomicAdd(&counts[code], Word{1});
    }
  }
  __syncthreads();
  for (unsigned code = threadIdx.x; code < kFewCodes; code += kThreads)
    if (of_cta[code] > 0) atomicAdd(&counts[code], Word(of_cta[code]));
}

// The array behind a GpuTally, and what it adds to a tally of the host.
class TallyArray {
 public:
  TallyArray(ErrorDetail detail, const ErrorTally& like)
      : strata_(detail == ErrorDetail::strata ? kFp32Strata : kFirstEighth),
        codes_(kCounts + kMomentWords + strata_ * kStratumWords),
        scales_(codes_ + like.codes.size()),
        crests_(scales_ + like.scales.size()),
        words_(crests_ + like.crests.size()) {
    check(cudaMemsetAsync(words_.data(), 0, words_.size() * sizeof(Word)));
  }

  GpuTally on_gpu() const {
    Word* const words = words_.data();
    return {.counts = words,
            .moments = words + kCounts,
            .strata = words + kCounts + kMomentWords,
            .codes = words + codes_,
            .scales = words + scales_,
            .crests = words + crests_};
  }

  void add_to(ErrorTally& tally) const {
    const std::vector<Word> words = words_.on_host();
    add_counts(words, tally);
    tally.moments.add_limbs(words[clusters], limbs_at(words, kCounts, kMomentWords));
    for (std::size_t place = 0; place < strata_; ++place) {
      const std::size_t at = kCounts + kMomentWords + place * kStratumWords;
      if (words[at] > 0)
        tally.strata[stratum_at_place(place)].add_limbs(words[at], limbs_at(words, at + 1, kStratumLimbs));
    }
    for (std::size_t i = 0; i < tally.codes.size(); ++i) tally.codes[i] += words[codes_ + i];
    for (std::size_t i = 0; i < tally.scales.size(); ++i) tally.scales[i] += words[scales_ + i];
    for (std::size_t i = 0; i < tally.crests.size(); ++i) tally.crests[i] += words[crests_ + i];
  }

 private:
  static std::span<const int64_t> limbs_at(const std::vector<Word>& words, std::size_t at, std::size_t count) {
    return {reinterpret_cast<const int64_t*>(words.data() + at), count};
  }

  static void add_counts(const std::vector<Word>& words, ErrorTally& tally) {
    tally.elements += words[elements];
    tally.nonfinite_in += words[nonfinite_in];
    tally.nonfinite_out += words[nonfinite_out];
    tally.clipped += words[clipped];
    tally.dead_zone += words[dead_zone];
    tally.max_abs_error = std::max(tally.max_abs_error, bit_cast<double>(words[largest_error]));
    tally.greatest_scale = std::max(tally.greatest_scale, uint32_t(words[greatest_scale]));
    tally.least_scale = std::min(tally.least_scale, ~uint32_t(words[least_scale]));
  }

  std::size_t strata_;
  std::size_t codes_, scales_, crests_;  // where they begin
  DeviceArray<Word> words_;
};

void add_up(const ErrorPart& part, const TallyJob& job, const std::byte* codes, std::size_t codes_counted) {
  const uint64_t counted = job.grid.rows * job.grid.cols;
  add_clusters<<<gpu::ctas(job.grid.count(), kClusterThreads), kClusterThreads>>>(job);
  add_strata<<<gpu::ctas(counted, kThreads), kThreads>>>(job, stratum_kinds(part.detail));
  if (codes_counted > 0) {
    const FormatEntry& element = part.recipe->element.entry();
    count_codes<<<std::min(gpu::ctas(counted, kThreads), kMaxCtas), kThreads>>>(
        codes, element.storage_bits, element.storage_shift, job.grid, codes_counted, job.tally.codes);
  }
  check(cudaGetLastError());
}

}  // namespace

void tally_errors_on_gpu(const ErrorPart& part, std::span<const float> x, const Randomness& random, ErrorTally& tally) {
  const Recipe& recipe = *part.recipe;
  const ClusterGrid grid = cluster_grid(part);
  if (grid.count() == 0) return;
  const DeviceArray<Recipe> row(std::span(&recipe, 1));
  const DeviceArray<float> values(x), q(x.size());
  const DeviceArray<std::byte> codes(code_bytes(recipe, part.shape)), scales(scale_bytes(recipe, part.shape));
  const GpuQuantizeJob there{.shape = part.shape,
                             .dtype = Dtype::f32,
                             .x = values.data(),
                             .tensor = part.tensor,
                             .random = random,
                             .codes = codes.data(),
                             .scales = scales.data()};
  const GpuDequantizeJob back{
      .shape = part.shape, .tensor = part.tensor, .codes = codes.data(), .scales = scales.data(), .y = q.data()};
  quantize_on_gpu(recipe, there, kernel_for(recipe, there));
  dequantize_on_gpu(recipe, back, kernel_for(recipe, back));
  const TallyArray sums(part.detail, tally);
  const TallyJob job{.recipe = row.data(),
                     .tensor = part.tensor,
                     .grid = grid,
                     .x = values.data(),
                     .q = q.data(),
                     .scales = scales.data(),
                     .has_scales = has_scale(recipe),
                     .counts_scales = !tally.scales.empty(),
                     .tally = sums.on_gpu()};
  add_up(part, job, codes.data(), tally.codes.size());
  sums.add_to(tally);
}

}  // namespace halfulp

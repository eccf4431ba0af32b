// Kernels on the GPU that is here: the median of 20 runs by the GPU's own events, and what share of the bandwidth of a
// copy within its memory that is, counting the fewest bytes that must move. The copy is timed in the same run.

#include <benchmark/benchmark.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/amax.h"
#include "cuda/check.h"
#include "cuda/gemm.h"
#include "cuda/kernel_recipes.h"
#include "cuda/memory.h"
#include "cuda/quantize.h"
#include "formats/catalog.h"
#include "formats/codec.h"
#include "lib/random_values.h"

namespace halfulp {
namespace {

constexpr uint64_t kElements = uint64_t{1} << 28, kCols = 8192;
constexpr float kAmax = 8;

// Normal numbers, a run of 2^20 of them over and over.
DeviceArray<std::byte> normals(Dtype dtype) {
  constexpr uint64_t kPeriod = 1 << 20;
  std::vector<float> x(kPeriod);
  for (uint64_t i = 0; i < kPeriod; ++i) x[i] = float(normal(1, 0, i));
  std::vector<std::byte> period(kPeriod * row(dtype).bits / 8);
  if (dtype == Dtype::f32) {
    std::memcpy(period.data(), x.data(), period.size());
  } else {
    quantize<float>(recipe_named("bf16"), {}, {1, kPeriod}, x, {}, period, {});
  }
  DeviceArray<std::byte> all(kElements / kPeriod * period.size());
  for (uint64_t i = 0; i < all.size(); i += period.size())
    check(cudaMemcpy(all.data() + i, period.data(), period.size(), cudaMemcpyHostToDevice));
  return all;
}

double median_seconds(const std::function<void()>& run) {
  constexpr int kWarm = 3, kRuns = 20;
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  std::vector<float> milliseconds;
  for (int i = 0; i < kWarm + kRuns; ++i) {
    check(cudaEventRecord(begin));
    run();
    check(cudaEventRecord(end));
    check(cudaEventSynchronize(end));
    float elapsed = 0;
    check(cudaEventElapsedTime(&elapsed, begin, end));
    if (i >= kWarm) milliseconds.push_back(elapsed);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::ranges::nth_element(milliseconds, milliseconds.begin() + kRuns / 2);
  return double(milliseconds[kRuns / 2]) * 1e-3;
}

double copy_bytes_per_second() {
  static const double rate = [] {
    const DeviceArray<std::byte> from(2 * kElements), to(2 * kElements);
    const double seconds =
        median_seconds([&] { check(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDeviceToDevice)); });
    return 2 * double(from.size()) / seconds;
  }();
  return rate;
}

void report(benchmark::State& state, double bytes, const std::function<void()>& run) {
  double seconds = 0;
  for (auto _ : state) state.SetIterationTime(seconds = median_seconds(run));
  state.counters["elements"] = benchmark::Counter(double(kElements) / seconds);
  state.counters["bytes"] = benchmark::Counter(bytes / seconds);
  state.counters["of_copy"] = benchmark::Counter(bytes / seconds / copy_bytes_per_second());
}

void copy(benchmark::State& state) {
  const DeviceArray<std::byte> from(2 * kElements), to(2 * kElements);
  report(state, 2 * double(from.size()),
         [&] { check(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDeviceToDevice)); });
}

void amax(benchmark::State& state, Dtype dtype) {
  const DeviceArray<std::byte> x = normals(dtype);
  const float start = 0;
  const DeviceArray<float> result(std::span<const float>(&start, 1));
  report(state, double(x.size()),
         [&] { raise_largest_magnitude(AmaxNan::ignored, dtype, x.data(), kElements, result.data()); });
}

void quantize_rows(benchmark::State& state, const Recipe& recipe, Dtype dtype) {
  const Matrix shape{.rows = kElements / kCols, .cols = kCols};
  const DeviceArray<std::byte> x = normals(dtype);
  const DeviceArray<std::byte> codes(code_bytes(recipe, shape)), scales(scale_bytes(recipe, shape));
  const GpuQuantizeJob job{.shape = shape,
                           .dtype = dtype,
                           .x = x.data(),
                           .tensor = tensor_scale(recipe, kAmax),
                           .random = {.seed = 1, .stream = 2},
                           .codes = codes.data(),
                           .scales = scales.data()};
  report(state, double(x.size() + codes.size() + scales.size()),
         [&] { quantize_on_gpu(recipe, job, Kernel::compiled); });
}

enum class Passes { one, two, columns_only };

struct ColumnKind {
  std::string_view name;
  std::string_view recipe;
  ColumnLayout layout;
  std::optional<Hadamard> rotation{};
  Rounding rounding = Rounding::nearest_even;
};
const ColumnKind kColumnKinds[] = {
    {"nvfp4/te", "nvfp4/te", ColumnLayout::transposed},
    {"nvfp4/te/rotated", "nvfp4/te", ColumnLayout::transposed, Hadamard{}},
    {"nvfp4/te/rotated/stochastic_te", "nvfp4/te", ColumnLayout::transposed, Hadamard{}, Rounding::stochastic},
    {"mxfp8/te", "mxfp8/te", ColumnLayout::in_place},
    {"mxfp8/te/transposed", "mxfp8/te", ColumnLayout::transposed},
};

// Rows and columns of BF16, in one pass or in two over the same matrix; or the columns alone.
void quantize_both(benchmark::State& state, const ColumnKind& kind, Passes passes) {
  Recipe recipe = kRecipes[std::size_t(find_recipe(kind.recipe))];
  recipe.policy.rounding = kind.rounding;
  if (is_random(recipe)) recipe.random = RandomSource::te;
  const Matrix shape{.rows = kElements / kCols, .cols = kCols};
  const DeviceArray<std::byte> x = normals(Dtype::bf16);
  const DeviceArray<std::byte> codes(code_bytes(recipe, shape)), scales(scale_bytes(recipe, shape)),
      column_codes(codes.size()), column_scales(scales.size());
  const TensorScale tensor = tensor_scale(recipe, kAmax);
  const GpuQuantizeJob rows{.shape = shape,
                            .dtype = Dtype::bf16,
                            .x = x.data(),
                            .tensor = tensor,
                            .codes = codes.data(),
                            .scales = scales.data()};
  GpuQuantizeJob no_rows = rows;
  no_rows.codes = nullptr;
  const GpuColumns columns{.layout = kind.layout,
                           .tensor = tensor,
                           .rotation = kind.rotation,
                           .codes = column_codes.data(),
                           .scales = column_scales.data()};
  const double outputs = passes == Passes::columns_only ? 1 : 2;
  report(state, double(x.size()) + outputs * double(codes.size() + scales.size()), [&] {
    if (passes == Passes::two) quantize_on_gpu(recipe, rows, Kernel::compiled);
    quantize_both_on_gpu(recipe, passes == Passes::one ? rows : no_rows, columns);
  });
}

void rotated_amax(benchmark::State& state) {
  const DeviceArray<std::byte> x = normals(Dtype::bf16);
  const float start = 0;
  const DeviceArray<float> result(std::span<const float>(&start, 1));
  const GpuQuantizeJob rows{.shape = {.rows = kElements / kCols, .cols = kCols},
                            .dtype = Dtype::bf16,
                            .x = x.data(),
                            .codes = nullptr,
                            .scales = nullptr};
  report(state, double(x.size()), [&] { raise_rotated_magnitude(AmaxNan::ignored, rows, {}, result.data()); });
}

// Products that are bit-exact: multiply-adds a second.
struct ProductKind {
  std::string_view accumulator, format, scales;
};
const ProductKind kProductKinds[] = {
    {"sm90.hmma.f32", "bf16", ""},     {"sm90.qgmma.f32", "e4m3", ""},           {"sm90.mma_sync_fp8.f32", "e4m3", ""},
    {"deepgemm.sm90.fp8", "e4m3", ""}, {"sm100.utcqmma_mx.f32", "e4m3", "e8m0"}, {"sm100.omma.f32", "e2m1", "ue4m3"},
};

// Codes of normal numbers, a run of 2^16 of them over and over.
std::vector<uint32_t> normal_codes(const Format& format, std::size_t count) {
  constexpr std::size_t kPeriod = 1 << 16;
  const Policy policy{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate};
  std::vector<uint32_t> codes(count);
  for (std::size_t i = 0; i < count; ++i)
    codes[i] = i < kPeriod ? encode(format, policy, 2 * float(normal(1, 0, i)), {}) : codes[i - kPeriod + i / kPeriod];
  return codes;
}

void multiply(benchmark::State& state, const ProductKind& kind) {
  constexpr std::size_t kSide = 8192, kK = 4096;
  const Format format = kFormats[std::size_t(find_format(kind.format))].format;
  const std::size_t scaled = kind.scales.empty() ? 0 : kind.scales == "ue4m3" ? 16 : 32;
  const DeviceArray<uint32_t> codes(std::span<const uint32_t>(normal_codes(format, kSide * kK))), d(kSide * kSide);
  GemmOperand x{.format = format, .codes = {codes.data(), codes.size()}};
  std::vector<uint32_t> ones;
  if (scaled != 0) {
    x.scale_format = kFormats[std::size_t(find_format(kind.scales))].format;
    x.scaled = scaled;
    ones.assign(kSide * kK / scaled, uint32_t(x.scale_format.bias) << x.scale_format.mantissa_bits);
  }
  const DeviceArray<uint32_t> scales{std::span<const uint32_t>(ones)};
  x.scales = {scales.data(), scales.size()};
  const GemmJob job{.row = kAccumulators[std::size_t(find_accumulator(kind.accumulator))],
                    .m = kSide,
                    .n = kSide,
                    .k = kK,
                    .a = x,
                    .b = x};
  double seconds = 0;
  for (auto _ : state)
    state.SetIterationTime(seconds = median_seconds([&] { gemm_on_gpu(job, {d.data(), d.size()}); }));
  state.counters["MAC/s"] = benchmark::Counter(double(kSide) * kSide * kK / seconds);
}

void add(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime()->Iterations(1);
}

void add_all() {
  add("copy", copy);
  for (const ColumnKind& kind : kColumnKinds) {
    const auto add_passes = [&](const std::string& name, Passes passes) {
      add(name + std::string(kind.name),
          [&kind, passes](benchmark::State& state) { quantize_both(state, kind, passes); });
    };
    add_passes("rows_and_columns/one_pass/", Passes::one);
    add_passes("rows_and_columns/two_passes/", Passes::two);
    add_passes("columns/", Passes::columns_only);
  }
  for (const ProductKind& kind : kProductKinds)
    add("gemm/" + std::string(kind.accumulator) + "/" + std::string(kind.format),
        [&kind](benchmark::State& state) { multiply(state, kind); });
  add("amax/rotated/bf16", rotated_amax);
  for (const Dtype dtype : {Dtype::bf16, Dtype::f32}) {
    const std::string from = dtype == Dtype::f32 ? "/f32" : "/bf16";
    add("amax" + from, [=](benchmark::State& state) { amax(state, dtype); });
    for (const Recipe& recipe : kKernelRecipes) {
      const bool of_fours = is_random(recipe) && recipe.random == RandomSource::te;
      const std::string how = !is_random(recipe) ? "" : of_fours ? "/stochastic_te" : "/stochastic_ideal";
      add("quantize/" + std::string(recipe.name) + how + from,
          [&recipe, dtype](benchmark::State& state) { quantize_rows(state, recipe, dtype); });
    }
  }
}

}  // namespace
}  // namespace halfulp

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fputs("gpu_bench: no GPU\n", stderr);
    return 4;
  }
  halfulp::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  cudaDeviceProp properties;
  halfulp::check(cudaGetDeviceProperties(&properties, 0));
  benchmark::AddCustomContext("gpu", properties.name);
  benchmark::RunSpecifiedBenchmarks();
}

// Multiply-adds a second of bit-exact matrix products on one thread: 256 x 256 outputs, K = 4096, operands as training
// has them (normal values, quantized). Which answers are right is the tests' business.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/matmul/gemm.h"
#include "formats/catalog.h"
#include "formats/codec.h"
#include "lib/random_values.h"

namespace halfulp {
namespace {

constexpr std::size_t kSide = 256, kK = 4096;

struct BenchOperand {
  std::vector<uint32_t> codes, scales;
};

BenchOperand normal_operand(const Format& format, std::size_t scaled, uint64_t stream) {
  BenchOperand x{std::vector<uint32_t>(kSide * kK), {}};
  const Policy policy{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate};
  for (std::size_t i = 0; i < x.codes.size(); ++i)
    x.codes[i] = encode(format, policy, 2 * float(normal(1, stream, i)), {});
  if (scaled != 0) x.scales.resize(kSide * kK / scaled);
  return x;
}

void multiply(benchmark::State& state, std::string_view accumulator, std::string_view format, std::string_view scales) {
  const Format f = kFormats[std::size_t(find_format(format))].format;
  const std::size_t scaled = scales.empty() ? 0 : scales == "ue4m3" ? 16 : 32;
  BenchOperand a = normal_operand(f, scaled, 0), b = normal_operand(f, scaled, 1);
  GemmJob job{.row = kAccumulators[std::size_t(find_accumulator(accumulator))],
              .m = kSide,
              .n = kSide,
              .k = kK,
              .a = {.format = f, .codes = a.codes},
              .b = {.format = f, .codes = b.codes}};
  if (scaled != 0) {
    const Format scale = kFormats[std::size_t(find_format(scales))].format;
    for (uint32_t& x : a.scales) x = (uint32_t(scale.bias) << scale.mantissa_bits) - uint32_t(&x - &a.scales[0]) % 7;
    b.scales = a.scales;
    job.a.scale_format = job.b.scale_format = scale;
    job.a.scales = a.scales, job.b.scales = b.scales;
    job.a.scaled = job.b.scaled = scaled;
  }
  std::vector<uint32_t> d(kSide * kSide);
  for (auto _ : state) {
    gemm(job, 1, d);
    benchmark::DoNotOptimize(d.data());
  }
  state.counters["MAC/s"] =
      benchmark::Counter(double(state.iterations()) * kSide * kSide * kK, benchmark::Counter::kIsRate);
}

void add(std::string_view accumulator, std::string_view format, std::string_view scales = "") {
  const std::string name = std::string(accumulator) + "/" + std::string(format);
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    multiply(state, accumulator, format, scales);
  })->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace halfulp

int main(int argc, char** argv) {
  halfulp::add("sm90.hmma.f32", "bf16");
  halfulp::add("sm90.qgmma.f32", "e4m3");
  halfulp::add("sm90.hmma.f16", "f16");
  halfulp::add("sm90.mma_sync_fp8.f32", "e4m3");
  halfulp::add("deepgemm.sm90.fp8", "e4m3");
  halfulp::add("sm100.utcqmma_mx.f32", "e4m3", "e8m0");
  halfulp::add("sm100.omma.f32", "e2m1", "ue4m3");
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

// How many elements a second the CPU does, on one thread, in every row of the catalogs. Run it on a machine that does
// nothing else; which answers are right is the business of the tests.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/analysis/error.h"
#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipes.h"
#include "formats/catalog.h"
#include "formats/codec.h"
#include "lib/exact_sum.h"
#include "lib/random_values.h"

namespace halfulp {
namespace {

constexpr std::size_t kElements = 1 << 16;  // 256 KiB of FP32: in the second-level cache
constexpr Policy kSaturate{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate};

const std::vector<float>& normal_values() {
  static const std::vector<float> values = [] {
    std::vector<float> x(kElements);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(normal(1, 0, i));
    return x;
  }();
  return values;
}

void report_elements(benchmark::State& state) {
  state.SetItemsProcessed(int64_t(state.iterations()) * int64_t(kElements));
}

void encode_f32(benchmark::State& state, int format_id) {
  const std::vector<float>& x = normal_values();
  std::vector<uint32_t> codes(kElements);
  with_format(format_id, [&]<int id>() {
    for (auto _ : state) {
      for (std::size_t i = 0; i < kElements; ++i) codes[i] = encode(kFormatAt<id>, kSaturate, x[i]);
      benchmark::DoNotOptimize(codes.data());
      benchmark::ClobberMemory();
    }
  });
  report_elements(state);
}

void decode_codes(benchmark::State& state, int format_id) {
  std::vector<float> x(kElements);
  with_format(format_id, [&]<int id>() {
    constexpr Format f = kFormatAt<id>;
    for (auto _ : state) {
      for (std::size_t i = 0; i < kElements; ++i) x[i] = decode(f, uint32_t(i) & f.code_mask());
      benchmark::DoNotOptimize(x.data());
      benchmark::ClobberMemory();
    }
  });
  report_elements(state);
}

constexpr Matrix kShape{.rows = 128, .cols = kElements / 128};

// normal_values() in a recipe, and room for the way there and back.
struct Quantized {
  const Recipe& recipe;
  TensorScale tensor;
  std::vector<std::byte> codes;
  std::vector<std::byte> scales;
  std::vector<float> values;

  explicit Quantized(int recipe_id)
      : recipe(kRecipes[std::size_t(recipe_id)]),
        tensor(tensor_scale(recipe, largest_magnitude(recipe, 0, normal_values()))),
        codes(code_bytes(recipe, kShape)),
        scales(scale_bytes(recipe, kShape)),
        values(kElements) {
    quantize_values();
  }

  void quantize_values() { quantize<float>(recipe, tensor, kShape, normal_values(), {}, codes, scales); }
};

void quantize_tensor(benchmark::State& state, int recipe_id) {
  Quantized q(recipe_id);
  for (auto _ : state) {
    q.quantize_values();
    benchmark::ClobberMemory();
  }
  report_elements(state);
}

void dequantize_tensor(benchmark::State& state, int recipe_id) {
  Quantized q(recipe_id);
  for (auto _ : state) {
    dequantize(q.recipe, q.tensor, kShape, q.codes, q.scales, q.values);
    benchmark::ClobberMemory();
  }
  report_elements(state);
}

void error_figures(benchmark::State& state, int recipe_id) {
  const Quantized q(recipe_id);
  for (auto _ : state) {
    ErrorSums sums(q.recipe, ErrorDetail::summary);
    sums.add(q.tensor, kShape, std::span<const float>(normal_values()));
    benchmark::DoNotOptimize(sums);
  }
  report_elements(state);
}

void exact_sum(benchmark::State& state) {
  for (auto _ : state) {
    ExactSum sum;
    for (const float x : normal_values()) sum.add(x);
    benchmark::DoNotOptimize(sum.value());
  }
  report_elements(state);
}

// One benchmark "WHAT/NAME" for each row of a catalog.
template <class Catalog>
void register_rows(std::string_view what, const Catalog& catalog, void (*run)(benchmark::State&, int)) {
  for (std::size_t id = 0; id < catalog.size(); ++id) {
    const std::string name = std::string(what) + "/" + std::string(catalog[id].name);
    benchmark::RegisterBenchmark(name.c_str(), [run, id](benchmark::State& state) { run(state, int(id)); });
  }
}

}  // namespace
}  // namespace halfulp

int main(int argc, char** argv) {
  using namespace halfulp;
  register_rows("encode_f32", kFormats, encode_f32);
  register_rows("decode", kFormats, decode_codes);
  register_rows("quantize", kRecipes, quantize_tensor);
  register_rows("dequantize", kRecipes, dequantize_tensor);
  register_rows("error", kRecipes, error_figures);
  benchmark::RegisterBenchmark("exact_sum_add", exact_sum);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}

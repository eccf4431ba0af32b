// How many elements a second the array kernels, and recipes that rest on them, do on one thread, and what share that is
// of a plain read of the values (encoding, largest magnitudes) or of a plain write of them (decoding), timed in the
// same run. Arrays of 2^16 elements lie in the second-level cache; those of 2^26 are larger than any cache. Which
// answers are right is the tests' business.

#include <benchmark/benchmark.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipes.h"
#include "emulation/simd/simd.h"
#include "formats/catalog.h"
#include "lib/random_values.h"

namespace halfulp {
namespace {

constexpr std::size_t kSizes[] = {std::size_t{1} << 16, std::size_t{1} << 26};
constexpr Policy kNearest{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate};
constexpr Policy kStochastic{.rounding = Rounding::stochastic, .overflow = Overflow::saturate};

struct Arrays {
  std::vector<float> x;
  std::vector<float> y;
  std::vector<float> factors;
  std::vector<uint32_t> words;
  std::vector<std::byte> codes;
  std::vector<std::byte> scales;
  std::vector<std::byte> bf16;

  explicit Arrays(std::size_t n)
      : x(n), y(n), factors(n / 16), words(n / 4), codes(2 * n), scales(n / 16), bf16(2 * n) {
    constexpr std::size_t kPeriod = 1 << 16;
    for (std::size_t i = 0; i < n; ++i) x[i] = i < kPeriod ? float(normal(1, 0, i)) : x[i - kPeriod];
    for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = 1 + float(i % 7) / 8;
    simd::philox_words({1, 2}, words);
    const FormatEntry& format = kFormats[std::size_t(find_format("bf16"))];
    simd::encode_blocks(format.format, kNearest, {format.storage_bits}, x, {}, bf16);
  }
};

Arrays& arrays_of(std::size_t n) {
  static std::map<std::size_t, Arrays> arrays;
  return arrays.try_emplace(n, n).first->second;
}

[[gnu::target_clones("default", "avx2", "avx512f")]] uint32_t read_all(const float* x, std::size_t n) {
  const auto* bits = reinterpret_cast<const std::byte*>(x);
  uint64_t any[32] = {};
  for (std::size_t i = 0; i < n * sizeof(float); i += sizeof(any)) {
    uint64_t part[32];
    __builtin_memcpy(part, bits + i, sizeof(part));
    for (std::size_t k = 0; k < 32; ++k) any[k] |= part[k];
  }
  uint64_t all = 0;
  for (const uint64_t a : any) all |= a;
  return uint32_t(all);
}

[[gnu::target_clones("default", "avx2", "avx512f")]] void write_all(float* y, std::size_t n, float value) {
  for (std::size_t i = 0; i < n; ++i) y[i] = value;
}

void plain_read(Arrays& a) { benchmark::DoNotOptimize(read_all(a.x.data(), a.x.size())); }
void plain_write(Arrays& a) { write_all(a.y.data(), a.y.size(), float(a.x[0])); }

// Processor time of this thread, as the benchmarks count it.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + double(now.tv_nsec) * 1e-9;
}

// Elements a second of the fastest of several runs.
double best_rate(void (*run)(Arrays&), std::size_t n) {
  Arrays& arrays = arrays_of(n);
  const int repeats = int(std::max<std::size_t>(1, (1 << 22) / n));
  double best = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const double start = thread_seconds();
    for (int i = 0; i < repeats; ++i) {
      run(arrays);
      benchmark::ClobberMemory();
    }
    best = std::max(best, double(n) * repeats / (thread_seconds() - start));
  }
  return best;
}

double rate_of(void (*run)(Arrays&), std::size_t n) {
  static std::map<std::pair<void (*)(Arrays&), std::size_t>, double> rates;
  const auto [rate, is_new] = rates.try_emplace({run, n}, 0);
  if (is_new) rate->second = best_rate(run, n);
  return rate->second;
}

// Registers NAME/ELEMENTS for each size. `against` is the plain loop that the counter of_read or of_write compares
// with.
// `prepare` is not timed.
template <class Work>
void add(const std::string& name, void (*against)(Arrays&), Work work, std::function<void(Arrays&)> prepare = {}) {
  for (const std::size_t n : kSizes) {
    benchmark::RegisterBenchmark((name + "/" + std::to_string(n)).c_str(), [=](benchmark::State& state) {
      Arrays& arrays = arrays_of(n);
      if (prepare) prepare(arrays);
      for (auto _ : state) {
        work(arrays);
        benchmark::ClobberMemory();
      }
      const auto elements = double(state.iterations()) * double(n);
      state.SetItemsProcessed(int64_t(elements));
      state.counters[against == plain_read ? "of_read" : "of_write"] =
          benchmark::Counter(elements / rate_of(against, n), benchmark::Counter::kIsRate);
    });
  }
}

struct Code {
  Format format;
  simd::Storage storage;
};

Code code_named(std::string_view name) {
  const FormatEntry& entry = kFormats[std::size_t(find_format(name))];
  return {entry.format, {entry.storage_bits, entry.storage_shift}};
}

void add_encoding(const std::string& name) {
  const Code code = code_named(name);
  const auto encode_with = [=](std::size_t block, simd::FactorUse use, const Policy& policy) {
    return [=](Arrays& a) {
      const simd::BlockFactors factors =
          block == 0 ? simd::BlockFactors{} : simd::BlockFactors{.values = a.factors, .block = block, .use = use};
      simd::encode_blocks(code.format, policy, code.storage, a.x, factors, a.codes);
    };
  };
  add("encode/" + name, plain_read, encode_with(0, simd::FactorUse::multiply, kNearest));
  add("encode/" + name + "/blocks_of_16", plain_read, encode_with(16, simd::FactorUse::multiply, kNearest));
  add("encode/" + name + "/blocks_of_32", plain_read, encode_with(32, simd::FactorUse::multiply, kNearest));
  add("encode/" + name + "/divided_32", plain_read, encode_with(32, simd::FactorUse::divide, kNearest));
  Policy up = kNearest;
  up.rounding = Rounding::up;
  add("encode/" + name + "/up", plain_read, encode_with(0, simd::FactorUse::multiply, up));
}

void add_stochastic(const std::string& name) {
  const Code code = code_named(name);
  add("stochastic/" + name + "/word_of_four", plain_read, [=](Arrays& a) {
    simd::encode_blocks(code.format, kStochastic, code.storage, a.x, {}, simd::WordOfFour{a.words}, a.codes);
  });
  add("stochastic/" + name + "/philox", plain_read, [=](Arrays& a) {
    simd::encode_blocks(code.format, kStochastic, code.storage, a.x, {}, simd::PhiloxWords{1, 2}, a.codes);
  });
}

void add_decoding(const std::string& name) {
  const Code code = code_named(name);
  const auto encode = [=](Arrays& a) { simd::encode_blocks(code.format, kNearest, code.storage, a.x, {}, a.codes); };
  const auto decode = [=](Arrays& a) {
    simd::decode_blocks(code.format, code.storage, a.codes, {.values = a.factors, .block = 16}, a.y);
  };
  const auto widen = [=](Arrays& a) { simd::to_f32(code.format, code.storage, a.codes, a.y); };
  add("decode/" + name + "/blocks_of_16", plain_write, decode, encode);
  add("to_f32/" + name, plain_write, widen, encode);
}

// A recipe from FP32, its tensor's amax known, and back; and from BF16, widened piece by piece as a file is.
void add_recipe(const std::string& name) {
  const Recipe& recipe = kRecipes[std::size_t(find_recipe(name))];
  const TensorScale scale = tensor_scale(recipe, 5);
  const auto part = [&recipe](std::size_t n) { return Matrix{.rows = 1, .cols = n}; };
  const auto quantize_part = [=, &recipe](Arrays& a, std::size_t first, std::span<const float> x) {
    const Matrix shape = part(x.size()), before = part(first);
    quantize(recipe, scale, shape, x, {.seed = 1, .first_element = first},
             std::span(a.codes).subspan(code_bytes(recipe, before), code_bytes(recipe, shape)),
             std::span(a.scales).subspan(scale_bytes(recipe, before), scale_bytes(recipe, shape)));
  };
  add("quantize/" + name, plain_read, [=](Arrays& a) { quantize_part(a, 0, a.x); });
  add("quantize_bf16/" + name, plain_read, [=](Arrays& a) {
    const Code bf16 = code_named("bf16");
    std::vector<float> piece(std::size_t{1} << 16);
    for (std::size_t first = 0; first < a.x.size(); first += piece.size()) {
      simd::to_f32(bf16.format, bf16.storage, std::span(a.bf16).subspan(2 * first), piece);
      quantize_part(a, first, piece);
    }
  });
  add(
      "dequantize/" + name, plain_write,
      [=, &recipe](Arrays& a) { dequantize(recipe, scale, part(a.x.size()), a.codes, a.scales, a.y); },
      [=](Arrays& a) { quantize_part(a, 0, a.x); });
}

void add_amax(std::size_t block) {
  add("amax/blocks_of_" + std::to_string(block), plain_read, [=](Arrays& a) {
    simd::block_amax(a.x, block, simd::NanMagnitude::ignored, std::span(a.y).first(a.x.size() / block));
  });
}

void add_all() {
  add("read", plain_read, plain_read);
  add("write", plain_write, plain_write);
  for (const char* name : {"e4m3", "e5m2", "e2m1", "bf16", "e8m0"}) add_encoding(name);
  for (const char* name : {"e4m3", "e2m1"}) add_stochastic(name);
  for (const char* name : {"e4m3", "e2m1", "f16", "bf16"}) add_decoding(name);
  for (const char* name :
       {"mxfp8/te", "mxfp8/ocp", "nvfp4/te", "nvfp4/modelopt", "nvfp4/te-4over6-mse", "mxfp4/tseng", "fp8/te"})
    add_recipe(name);
  add_amax(16);
  add_amax(32);
  add("amax/whole", plain_read,
      [](Arrays& a) { benchmark::DoNotOptimize(simd::amax(a.x, simd::NanMagnitude::ignored)); });
}

// Threads that move can share a core with another for a while.
void pin_to_last_cpu() {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0) std::perror("the thread is not pinned");
    return;
  }
}

}  // namespace
}  // namespace halfulp

int main(int argc, char** argv) {
  halfulp::pin_to_last_cpu();
  halfulp::add_all();
  benchmark::AddCustomContext("instruction_set", std::string(halfulp::simd::targets().front()));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}

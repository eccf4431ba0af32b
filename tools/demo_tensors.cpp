// demo_tensors FILE.safetensors: four tensors of the kinds that quantization meets. The same bytes on every machine.

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/philox.h"
#include "lib/random_values.h"
#include "lib/safetensors.h"

namespace halfulp {
namespace {

constexpr uint64_t kRows = 512, kColumns = 4096, kSeed = 1;

float gaussian(uint64_t stream, uint64_t i) { return float(normal(kSeed, stream, i)); }

float heavy_tailed(uint64_t stream, uint64_t i) { return float(student_t3(kSeed, stream, i)); }

// One column of 128 is 60 times as large, as in the activations of language models.
float with_outlier_channels(uint64_t stream, uint64_t i) {
  const float z = float(normal(kSeed, stream, i));
  return i % kColumns % 128 == 5 ? 60 * z : z;
}

// Below the smallest normal FP32 number, 2^-126, as gradients without loss scaling can be.
float subnormal(uint64_t stream, uint64_t i) { return float(normal(kSeed, stream, i) * 0x1p-130); }

struct Kind {
  std::string_view name;
  float (*value)(uint64_t stream, uint64_t i);
};

constexpr std::array kKinds{Kind{"gaussian", gaussian}, Kind{"student_t", heavy_tailed},
                            Kind{"outlier_channels", with_outlier_channels}, Kind{"subnormals", subnormal}};

std::vector<float> values_of(const Kind& kind) {
  std::vector<float> values(kRows * kColumns);
  for (uint64_t i = 0; i < values.size(); ++i) values[i] = kind.value(stream_of(kind.name), i);
  return values;
}

void write_tensors(const char* path) {
  std::vector<std::vector<float>> values;
  std::vector<TensorData> tensors;
  for (const Kind& kind : kKinds) values.push_back(values_of(kind));
  for (std::size_t k = 0; k < kKinds.size(); ++k)
    tensors.push_back({.spec = {.name = std::string(kKinds[k].name), .dtype = Dtype::f32, .shape = {kRows, kColumns}},
                       .bytes = std::as_bytes(std::span(values[k]))});
  write_safetensors(path, tensors, {});
}

}  // namespace
}  // namespace halfulp

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: demo_tensors FILE.safetensors\n", stderr), 2;
  try {
    halfulp::write_tensors(argv[1]);
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "demo_tensors: %s\n", error.what()), 4;
  }
}

// demo_tensors FILE.safetensors [CAPTURE.safetensors]: four tensors of the kinds that quantization meets, and what a
// training step of twelve linear layers could have captured. The same bytes on every machine.

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

// What a layer's products are made of: 256 tokens, 128 features in and out.
struct CapturedRole {
  std::string_view name;
  uint64_t rows;
  float (*value)(uint64_t layer, uint64_t stream, uint64_t i);
};

constexpr uint64_t kFeatures = 128, kTokens = 256, kLayers = 12;

// Features of which one in 64 is larger, the more so the later the layer.
float activation(uint64_t layer, uint64_t stream, uint64_t i) {
  const float z = float(normal(kSeed, stream, i));
  return i % kFeatures % 64 == 5 ? z * float(4 + 4 * layer) : z;
}
float weight(uint64_t, uint64_t stream, uint64_t i) { return float(normal(kSeed, stream, i)) * 0.02f; }
float gradient(uint64_t, uint64_t stream, uint64_t i) { return float(student_t3(kSeed, stream, i)) * 1e-4f; }

constexpr std::array kRolesCaptured{CapturedRole{"pretrain_fwd/x_fprop", kTokens, activation},
                                    CapturedRole{"pretrain_fwd/w_fprop", kFeatures, weight},
                                    CapturedRole{"pretrain_bwd/dy_dgrad", kTokens, gradient}};

void write_capture(const char* path) {
  std::vector<std::vector<float>> values;
  std::vector<TensorData> tensors;
  for (uint64_t layer = 0; layer < kLayers; ++layer) {
    for (const CapturedRole& role : kRolesCaptured) {
      const std::string name = std::string(role.name) + "/" + std::to_string(layer);
      std::vector<float>& x = values.emplace_back(role.rows * kFeatures);
      for (uint64_t i = 0; i < x.size(); ++i) x[i] = role.value(layer, stream_of(name), i);
      tensors.push_back({.spec = {.name = name, .dtype = Dtype::f32, .shape = {role.rows, kFeatures}},
                         .bytes = std::as_bytes(std::span(x))});
    }
  }
  write_safetensors(path, tensors, {});
}

}  // namespace
}  // namespace halfulp

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3)
    return std::fputs("usage: demo_tensors FILE.safetensors [CAPTURE.safetensors]\n", stderr), 2;
  try {
    halfulp::write_tensors(argv[1]);
    if (argc == 3) halfulp::write_capture(argv[2]);
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "demo_tensors: %s\n", error.what()), 4;
  }
}

// The backends of a program for tests: a GPU that has the conversions with few inputs, and answers as the models do. It
// computes recipes as the CPU does, but for the lowest bit of each array's first code, and that it tallies errors with
// every element clipped, so that a test sees who did it, and multiplies with the first output's lowest bit changed; its
// kernels as the CPU does, but for the recipe that HALFULP_WRONG_KERNEL in the environment names. Where that has
// HALFULP_GPU_LACKS=driver the driver is too old, where it has =memory there is too little of it.

#include <cstdlib>
#include <string_view>

#include "cuda/messages.h"
#include "lib/error.h"
#include "tests/emulation/fake_device.h"
#include "tools/backends.h"

namespace halfulp {
namespace {

bool lacks(std::string_view what) {
  const char* text = std::getenv("HALFULP_GPU_LACKS");
  return text != nullptr && text == what;
}

DeviceInfo open_narrow(int index) {
  if (lacks("driver"))
    throw EnvironmentError(no_gpu_text({.driver = 12040, .runtime = 13000, .driver_is_too_old = true, .error = {}}));
  DeviceInfo info = kFakeBackend.open(index);
  for (std::size_t id = 0; id < kPtxCvts.size(); ++id)
    info.native[id] = count_inputs(domain_of(conversion(int(id))), CvtInputs::every) <= 65536;
  for (const ScaledInstruction& is : kScaledInstructions) info.native_scaled.push_back(is.unit == ScaledUnit::tcgen05);
  return info;
}

void quantize_visibly(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape, std::span<const float> x,
                      const Randomness& random, std::span<std::byte> codes, std::span<std::byte> scales) {
  if (lacks("memory")) throw EnvironmentError(out_of_memory_text(x.size_bytes(), 16, 32));
  quantize<float>(recipe, tensor, shape, x, random, codes, scales);
  if (!codes.empty()) codes[0] ^= std::byte{1};
}

void tally_visibly(const ErrorPart& part, std::span<const float> x, const Randomness& random, ErrorTally& tally) {
  std::vector<std::byte> codes(code_bytes(*part.recipe, part.shape)), scales(scale_bytes(*part.recipe, part.shape));
  std::vector<float> q(x.size());
  quantize_visibly(*part.recipe, part.tensor, part.shape, x, random, codes, scales);
  dequantize(*part.recipe, part.tensor, part.shape, codes, scales, q);
  tally_errors<float>(part, x, codes, scales, q, tally);
  tally.clipped = tally.elements;
}

void multiply_visibly(const GemmJob& job, std::span<uint32_t> d) {
  gemm(job, 1, d);
  if (!d.empty()) d[0] ^= 1;
}

void multiply_scaled_visibly(int id, ScaledTiles& tiles) {
  const ScaledInstruction& is = kScaledInstructions[std::size_t(id)];
  const Accumulator& row = kAccumulators[std::size_t(find_accumulator(is.accumulator))];
  tiles.d.clear();
  for (std::size_t i = 0; i < tiles.c.size(); ++i) tiles.d.push_back(scaled_output(is, row, tiles, i));
  if (std::getenv("HALFULP_WRONG_MATRIX") != nullptr) tiles.d[37] ^= 1;
}

std::string form(const Recipe&) { return "by the test"; }

// Element 3 of row 2: the mistake of a kernel that takes its lanes in another order.
void break_kernel() {
  const char* recipe = std::getenv("HALFULP_WRONG_KERNEL");
  if (recipe == nullptr) return;
  wrong_kernel() = {recipe, [](const KernelMatrix& x, std::span<std::byte> codes, std::span<std::byte>) {
                      codes[codes.size() * (2 * x.shape.cols + 3) / x.shape.elements()] ^= std::byte{0x10};
                    }};
}

}  // namespace

std::span<const Backend* const> backends() {
  static const Backend kNarrow = [] {
    break_kernel();
    Backend backend = kFakeBackend;
    backend.name = "cuda";
    backend.open = open_narrow;
    backend.recipes.quantize = quantize_visibly;
    backend.recipes.tally_errors = tally_visibly;
    backend.recipe_form = form;
    backend.multiply = multiply_visibly;
    backend.multiply_scaled_tiles = multiply_scaled_visibly;
    return backend;
  }();
  static const Backend* const kBackends[] = {&kNarrow};
  return kBackends;
}

}  // namespace halfulp

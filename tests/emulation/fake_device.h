#pragma once
// A device for tests: the models stand in for a GPU's instructions, and one of them can be made wrong. Fast where
// nothing is wrong.

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "emulation/backend.h"
#include "emulation/blocks/recipes.h"
#include "emulation/elements.h"
#include "emulation/recordings/models.h"

namespace halfulp {

// What the "hardware" does otherwise than the model: answers of one instruction, changed.
struct WrongInstruction {
  int ptx_cvt_id = -1;
  std::function<uint32_t(const CvtInput& input, uint32_t answer)> answer = {};
};

inline WrongInstruction& wrong_instruction() {
  static WrongInstruction wrong;
  return wrong;
}

// What its kernels do otherwise than the CPU: bytes of one recipe, changed.
struct WrongKernel {
  std::string_view recipe = {};
  std::function<void(const KernelMatrix& x, std::span<std::byte> codes, std::span<std::byte> scales)> change = {};
};

inline WrongKernel& wrong_kernel() {
  static WrongKernel wrong;
  return wrong;
}

inline int& sweeps_of_fake_device() {
  static int count = 0;
  return count;
}

namespace detail {
inline uint32_t fake_answer(int id, CvtInputs inputs, uint32_t i) {
  const PtxCvt& op = conversion(id);
  const CvtInput input = cvt_input(domain_of(op), inputs, i);
  uint32_t answer = convert_register(op, input.sources, input.word);
  if (id == wrong_instruction().ptx_cvt_id) answer = wrong_instruction().answer(input, answer);
  return answer & uint32_t(low_mask(answer_bits(op, inputs)));
}

inline CvtChunk fake_chunk(int id, CvtInputs inputs, uint32_t chunk) {
  if (id != wrong_instruction().ptx_cvt_id) return {model_checksum(id, inputs, chunk), 0};
  CvtChunk sums{0, 0};
  const uint32_t count = uint32_t(chunk_inputs(domain_of(conversion(id)), inputs));
  for (uint32_t n = 0; n < count; ++n) {
    const uint32_t i = chunk * count + n, answer = fake_answer(id, inputs, i);
    sums.checksum += answer_hash(i, answer);
    sums.mismatches += answer != model_answer(id, inputs, i);
  }
  return sums;
}

inline std::vector<CvtChunk> fake_sweep(int id, CvtInputs inputs, std::span<const uint32_t> chunks) {
  ++sweeps_of_fake_device();
  std::vector<CvtChunk> sums;
  for (const uint32_t chunk : chunks) sums.push_back(fake_chunk(id, inputs, chunk));
  return sums;
}

inline std::vector<uint32_t> fake_convert(int id, CvtInputs inputs, CvtRange range) {
  std::vector<uint32_t> answers(range.count);
  for (uint32_t n = 0; n < range.count; ++n) answers[n] = fake_answer(id, inputs, range.first + n * range.stride);
  return answers;
}

inline constexpr std::array<Recipe, 3> kFakeKernels = [] {
  std::array<Recipe, 3> recipes{recipe_named("bf16"), recipe_named("nvfp4/te-2d"), recipe_named("nvfp4/te")};
  recipes[2].policy.rounding = Rounding::stochastic;
  recipes[2].random = RandomSource::te;
  return recipes;
}();

inline KernelForms fake_forms(const Recipe& recipe) {
  KernelForms forms{.native_elements = true, .native_scales = {}};
  if (has_scale(recipe)) forms.native_scales = false;
  return forms;
}

inline void run_fake_kernel(const Recipe& recipe, const KernelMatrix& x, std::span<std::byte> codes,
                            std::span<std::byte> scales) {
  std::vector<float> numbers(x.shape.elements());
  load_elements<float>(x.dtype, x.elements.data(), 0, numbers);
  quantize<float>(recipe, x.tensor, x.shape, numbers, x.random, codes, scales);
  if (recipe.name == wrong_kernel().recipe) wrong_kernel().change(x, codes, scales);
}

inline DeviceInfo open_fake(int) {
  return {.name = "Fake GPU",
          .compute = "10.0",
          .target = "sm_100a",
          .driver = "1.2.3",
          .cuda = "13.0.88",
          .native = std::vector<bool>(kPtxCvts.size(), true)};
}
}  // namespace detail

inline const Backend kFakeBackend{.name = "fake",
                                  .targets = "sm_100a",
                                  .count = [] { return 1; },
                                  .open = detail::open_fake,
                                  .sweep_cvt = detail::fake_sweep,
                                  .convert = detail::fake_convert,
                                  .kernels = detail::kFakeKernels,
                                  .kernel_forms = detail::fake_forms,
                                  .run_kernel = detail::run_fake_kernel};

}  // namespace halfulp

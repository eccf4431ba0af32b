#include "cuda/host_arrays.h"

#include <cuda_runtime.h>

#include "cuda/arch/form.h"
#include "cuda/dequantize.h"
#include "cuda/kernel_recipes.h"
#include "cuda/memory.h"
#include "cuda/quantize.h"
#include "cuda/recipe_code.cuh"

namespace halfulp {
namespace {

template <class Job>
Kernel kernel_for(const Recipe& recipe, const Job& job) {
  return has_compiled_kernel(recipe, job) ? Kernel::compiled : Kernel::definition;
}

}  // namespace

void quantize_host_arrays(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape,
                          std::span<const float> x, const Randomness& random, std::span<std::byte> codes,
                          std::span<std::byte> scales) {
  const DeviceArray<float> on_device(x);
  const DeviceArray<std::byte> new_codes(codes.size()), new_scales(scales.size());
  const GpuQuantizeJob job{.shape = shape,
                           .dtype = Dtype::f32,
                           .x = on_device.data(),
                           .tensor = tensor,
                           .random = random,
                           .codes = new_codes.data(),
                           .scales = new_scales.data()};
  quantize_on_gpu(recipe, job, kernel_for(recipe, job));
  new_codes.copy_to(codes);
  new_scales.copy_to(scales);
}

void dequantize_host_arrays(const Recipe& recipe, const TensorScale& tensor, const Matrix& shape,
                            std::span<const std::byte> codes, std::span<const std::byte> scales, std::span<float> y) {
  const DeviceArray<std::byte> old_codes(codes), old_scales(scales);
  const DeviceArray<float> values(y.size());
  const GpuDequantizeJob job{
      .shape = shape, .tensor = tensor, .codes = old_codes.data(), .scales = old_scales.data(), .y = values.data()};
  dequantize_on_gpu(recipe, job, kernel_for(recipe, job));
  values.copy_to(y);
}

std::string recipe_form_on_gpu(const Recipe& recipe) {
  if (find_kernel(recipe) < 0) return "by definition";
  const int cvt = gpu::find_conversion(recipe.element, recipe.policy);
  const bool native = cvt >= 0 && arch::loaded_forms().forms[std::size_t(cvt)] == arch::Form::native;
  return "compiled kernel, conversion to " + std::string(recipe.element.name()) +
         (native ? " native" : " in software") + "; partial blocks by definition";
}

}  // namespace halfulp

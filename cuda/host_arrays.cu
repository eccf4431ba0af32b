#include "cuda/host_arrays.h"

#include <cuda_runtime.h>

#include <vector>

#include "cuda/arch/form.h"
#include "cuda/kernel_recipes.h"
#include "cuda/memory.h"
#include "cuda/recipe_code.cuh"

namespace halfulp {

Kernel kernel_for(const Recipe& recipe, const GpuQuantizeJob& job) {
  return has_compiled_kernel(recipe, job) ? Kernel::compiled : Kernel::definition;
}

Kernel kernel_for(const Recipe& recipe, const GpuDequantizeJob& job) {
  return has_compiled_kernel(recipe, job) ? Kernel::compiled : Kernel::definition;
}

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
  return "compiled kernel, conversion to " + std::string(recipe.element.name()) +
         (kernel_forms_on_gpu(recipe).native_elements ? " native" : " in software") + "; partial blocks by definition";
}

KernelForms kernel_forms_on_gpu(const Recipe& recipe) {
  const std::vector<arch::Form> forms = arch::loaded_forms().forms;
  const auto is_native = [&](const FormatName& to, const Policy& policy, gpu::Part part) {
    const int cvt = gpu::find_conversion(to, policy, part);
    return cvt >= 0 && forms[std::size_t(cvt)] == arch::Form::native;
  };
  // No instruction takes 32 random bits for each element.
  const bool ideal = is_stochastic(recipe.policy.rounding) && recipe.random == RandomSource::ideal;
  KernelForms is{.native_elements = !ideal && is_native(recipe.element, recipe.policy, gpu::Part::element),
                 .native_scales = {}};
  if (has_scale(recipe)) is.native_scales = is_native(recipe.scale, recipe.scale_policy, gpu::Part::scale);
  return is;
}

void run_kernel_on_gpu(const Recipe& recipe, const KernelMatrix& x, std::span<std::byte> codes,
                       std::span<std::byte> scales) {
  const DeviceArray<std::byte> elements(x.elements), new_codes(codes.size()), new_scales(scales.size());
  const GpuQuantizeJob job{.shape = x.shape,
                           .dtype = x.dtype,
                           .x = elements.data(),
                           .tensor = x.tensor,
                           .random = x.random,
                           .codes = new_codes.data(),
                           .scales = new_scales.data()};
  quantize_on_gpu(recipe, job, Kernel::compiled);
  new_codes.copy_to(codes);
  new_scales.copy_to(scales);
}

}  // namespace halfulp

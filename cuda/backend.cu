#include "cuda/backend.h"

#include <cuda_runtime.h>

#include <fstream>
#include <string>

#include "cuda/arch/form.h"
#include "cuda/check.h"
#include "cuda/cvt_check.h"
#include "cuda/error_sums.h"
#include "cuda/gemm.h"
#include "cuda/host_arrays.h"
#include "cuda/kernel_recipes.h"
#include "cuda/matrix_check.h"
#include "cuda/memory.h"
#include "cuda/messages.h"
#include "cuda/scaled_matrix.h"
#include "cuda/targets.h"
#include "emulation/matmul/instruction.h"

namespace halfulp {
namespace {

[[noreturn]] void throw_no_gpu(cudaError_t error) {
  int runtime = 0, driver = 0;
  cudaRuntimeGetVersion(&runtime);
  cudaDriverGetVersion(&driver);
  throw EnvironmentError(no_gpu_text({.driver = driver,
                                      .runtime = runtime,
                                      .driver_is_too_old = error == cudaErrorInsufficientDriver,
                                      .error = cudaGetErrorString(error)}));
}

int count_gpus() {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) throw_no_gpu(error);
  if (count == 0) throw_no_gpu(cudaErrorNoDevice);
  return count;
}

// What the driver's kernel module says of itself; the CUDA runtime knows no more than what CUDA it supports.
std::string driver_version() {
  std::string version;
  std::getline(std::ifstream("/sys/module/nvidia/version"), version);
  return version;
}

std::string compiler_version() {
  return std::to_string(__CUDACC_VER_MAJOR__) + "." + std::to_string(__CUDACC_VER_MINOR__) + "." +
         std::to_string(__CUDACC_VER_BUILD__);
}

std::vector<bool> native_scaled() {
  std::vector<bool> native;
  for (std::size_t id = 0; id < kScaledInstructions.size(); ++id)
    native.push_back(scaled_instruction_form(int(id)) == arch::Form::native);
  return native;
}

DeviceInfo open_gpu(int index) {
  const int count = count_gpus();
  if (index >= count) {
    throw EnvironmentError("cuda:" + std::to_string(index) + ": this machine has " + std::to_string(count) +
                           (count == 1 ? " GPU, cuda:0" : " GPUs, from cuda:0 on"));
  }
  check(cudaSetDevice(index));
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, index));
  const std::string compute = std::to_string(properties.major) + "." + std::to_string(properties.minor);
  if (!has_gpu()) {
    throw EnvironmentError(no_code_text(
        {.gpu = properties.name, .major = properties.major, .minor = properties.minor, .targets = kCudaTargets}));
  }
  keep_memory(index);
  arch::LoadedForms loaded = arch::loaded_forms();
  std::vector<bool> native;
  for (const arch::Form form : loaded.forms) native.push_back(form == arch::Form::native);
  std::vector<bool> native_matrices;
  for (std::size_t id = 0; id < kMatrixInstructions.size(); ++id)
    native_matrices.push_back(has_matrix_instruction(int(id)));
  return {.name = properties.name,
          .compute = compute,
          .target = std::move(loaded.target),
          .driver = driver_version(),
          .cuda = compiler_version(),
          .native = std::move(native),
          .native_matrices = std::move(native_matrices),
          .native_scaled = native_scaled()};
}

}  // namespace

const Backend kCudaBackend{
    .name = "cuda",
    .targets = kCudaTargets,
    .count = count_gpus,
    .open = open_gpu,
    .sweep_cvt = sweep_on_gpu,
    .convert = convert_on_gpu,
    .recipes = {.quantize = quantize_host_arrays,
                .dequantize = dequantize_host_arrays,
                .tally_errors = tally_errors_on_gpu},
    .recipe_form = recipe_form_on_gpu,
    .kernels = kKernelRecipes,
    .kernel_forms = kernel_forms_on_gpu,
    .run_kernel = run_kernel_on_gpu,
    .multiply_tiles = multiply_tiles,
    .multiply_operands = multiply_tiles,
    .compare_tiles = compare_tiles,
    .multiply_scaled_tiles = multiply_scaled_tiles,
    .multiply = gemm_by_gpu,
};

}  // namespace halfulp

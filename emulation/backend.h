#pragma once
// What a device does for the program, as functions that its folder fills: callers neither include its headers nor ask
// what was built. tools/backends.h lists those of the build; the CPU's are the functions of emulation/ themselves.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "emulation/analysis/error_tally.h"
#include "emulation/blocks/quantize.h"
#include "emulation/matmul/gemm.h"
#include "emulation/matmul/matrix_tiles.h"
#include "emulation/matmul/scaled_tiles.h"
#include "formats/cvt_inputs.h"

namespace halfulp {

// A device as it is recorded. Empty where it cannot be asked.
struct DeviceInfo {
  std::string name;                        // "NVIDIA H200"
  std::string compute;                     // its compute capability, "9.0"
  std::string target;                      // of the code that it runs, "sm_90a"
  std::string driver;                      // "580.159.04"
  std::string cuda;                        // that the code was compiled with, "13.0.88"
  std::vector<bool> native;                // by position in kPtxCvts: whether that code has the instruction
  std::vector<bool> native_matrices = {};  // likewise in kMatrixInstructions
  std::vector<bool> native_scaled = {};    // and in kScaledInstructions
};

// What an instruction answers in a chunk of inputs.
struct CvtChunk {
  uint64_t checksum;    // formats/cvt_inputs.h
  uint64_t mismatches;  // answers that the model, on the device, does not give

  friend bool operator==(const CvtChunk&, const CvtChunk&) = default;
};

// Inputs by number: first, first + stride, ... mod 2^32.
struct CvtRange {
  uint32_t first;
  uint32_t stride;
  uint32_t count;
};

// Recipes over arrays of the host: functions of the same meaning and the same bits as those of blocks/quantize.h.
struct RecipeFunctions {
  void (*quantize)(const Recipe&, const TensorScale&, const Matrix&, std::span<const float> x, const Randomness&,
                   std::span<std::byte> codes, std::span<std::byte> scales);
  void (*dequantize)(const Recipe&, const TensorScale&, const Matrix&, std::span<const std::byte> codes,
                     std::span<const std::byte> scales, std::span<float> y);
  // Quantizes, dequantizes and adds the errors to the tally: what tally_errors() makes of the same codes and values.
  // For clusters of up to kMaxDeviceCluster elements, each of which one thread adds up. Null where the CPU does that.
  void (*tally_errors)(const ErrorPart&, std::span<const float> x, const Randomness&, ErrorTally& tally) = nullptr;
};
inline constexpr uint64_t kMaxDeviceCluster = uint64_t{1} << 16;
inline constexpr RecipeFunctions kCpuRecipes{.quantize = quantize<float>, .dequantize = dequantize};

// What `with` makes of FP32 numbers; of others, which a recipe without scales takes exactly, what the CPU makes.
template <class Source>
void quantize(const RecipeFunctions& with, const Recipe& recipe, const TensorScale& tensor, const Matrix& shape,
              std::span<const Source> x, const Randomness& random, std::span<std::byte> codes,
              std::span<std::byte> scales) {
  if constexpr (std::is_same_v<Source, float>) {
    with.quantize(recipe, tensor, shape, x, random, codes, scales);
  } else {
    quantize<Source>(recipe, tensor, shape, x, random, codes, scales);
  }
}

// A matrix of F32, F16 or BF16 for a kernel: whole blocks, on the host.
struct KernelMatrix {
  Dtype dtype;
  Matrix shape;
  std::span<const std::byte> elements;
  TensorScale tensor;
  Randomness random;
};

// Whether a recipe's kernel converts by an instruction, or in software: elements, and scales where it has some.
struct KernelForms {
  bool native_elements;
  std::optional<bool> native_scales;

  friend bool operator==(const KernelForms&, const KernelForms&) = default;
};

// Each function throws EnvironmentError where the device fails.
struct Backend {
  std::string_view name;     // of --device, before the colon
  std::string_view targets;  // that it was compiled for

  // How many devices there are; throws where that is none.
  int (*count)();
  // Makes a device the one that the other functions use. Throws where it cannot run the build's code.
  DeviceInfo (*open)(int index);

  // The instruction over chunks of inputs; the device has it natively.
  std::vector<CvtChunk> (*sweep_cvt)(int ptx_cvt_id, CvtInputs inputs, std::span<const uint32_t> chunks);
  // Its answers, in the low answer_bits().
  std::vector<uint32_t> (*convert)(int ptx_cvt_id, CvtInputs inputs, CvtRange range);

  RecipeFunctions recipes = kCpuRecipes;
  // What computes a recipe there, in words; null where that is the CPU's code.
  std::string (*recipe_form)(const Recipe& recipe) = nullptr;

  // The recipes that have a kernel of their own, how it converts there, and what it makes of a matrix.
  std::span<const Recipe> kernels = {};
  KernelForms (*kernel_forms)(const Recipe& recipe) = nullptr;
  void (*run_kernel)(const Recipe& recipe, const KernelMatrix& x, std::span<std::byte> codes,
                     std::span<std::byte> scales) = nullptr;

  // What a matrix instruction that the device has makes of tiles; of other operands, without d, its d; and how often it
  // differs from a model.
  MatrixAnswers (*multiply_tiles)(int matrix_instruction_id, const MatrixTiles& tiles) = nullptr;
  std::vector<uint32_t> (*multiply_operands)(int matrix_instruction_id, const MatrixAnswers& operands) = nullptr;
  MatrixComparison (*compare_tiles)(int matrix_instruction_id, const MatrixTiles& tiles,
                                    const Accumulator& model) = nullptr;
  // What an instruction of kScaledInstructions, or its model where the device has none, makes of tiles: their d.
  void (*multiply_scaled_tiles)(int scaled_instruction_id, ScaledTiles& tiles) = nullptr;
  // gemm(), of arrays of the host.
  void (*multiply)(const GemmJob& job, std::span<uint32_t> d) = nullptr;
};

}  // namespace halfulp

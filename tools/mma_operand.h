#pragma once
// The operands of a matrix product as the command line names them: values that a format holds exactly, or codes and
// scales that `halfulp quantize` wrote. Adds nothing up.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/blocks/recipe.h"
#include "emulation/matmul/accumulator.h"
#include "emulation/matmul/gemm.h"
#include "emulation/panels.h"
#include "formats/catalog.h"
#include "lib/cli.h"
#include "lib/tensor_source.h"

namespace halfulp {

// Matrices [tiles, rows, k] as codes, with their scales as the accumulator's row takes them.
struct MmaOperand {
  std::string spec;    // as on the command line
  std::string recipe;  // of a quantized one
  const FormatEntry* format;
  int rank;  // 2, or 3 with tiles
  std::size_t tiles, rows, k;
  std::vector<uint32_t> codes;
  const FormatEntry* scale_format = nullptr;
  std::vector<uint32_t> scales{};  // codes, [tiles, rows, ceil(k / scaled)]
  std::size_t scaled = 0;
  std::vector<float> promotion_scales{};  // [tiles, rows, ceil(k / promotion.every)]
  std::vector<float> row_factors{};       // of the epilogue, [tiles, rows]
  float factor = 1;                       // of the epilogue
  float amax = 0;                         // of the tensor, where it has a scale of its own
  std::string rotation{};                 // what it was rotated by; empty where it was not
  std::vector<uint64_t> shape{};          // of the tensor
  MatrixView source{};                    // how its rows lie in it, without padding

  GemmOperand tile(std::size_t number) const;
  // The exact value of each element of a tile, but for `factor`.
  std::vector<double> values(std::size_t number, const Promotion& promotion) const;
};

// Reads FILE[:TENSOR]. `format` is the option that names the format: --a-format or --b-format. Throws Error.
MmaOperand read_operand(const Arguments& arguments, const std::string& spec, std::string_view format,
                        const Accumulator& row);

// The tensor FILE[:TENSOR] in FP64 as it was before it became the operand: [tiles, rows, k], padding being zero.
std::vector<double> read_source(const Arguments& arguments, const std::string& spec, const MmaOperand& operand);

// Codes of `format` for the elements of a tensor, which it must hold exactly: else an InputError names the first that
// it does not. `option` is what would name another format; empty where none does.
std::vector<uint32_t> exact_codes(const Tensor& tensor, const FormatEntry& format, std::string_view option);

// The elements in FP64, where that holds them exactly.
std::vector<double> exact_values(const Tensor& tensor);

}  // namespace halfulp

#pragma once
// A matrix product as the command line asks for it: operands, accumulator, epilogue. Computes it; compares nothing.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "emulation/backend.h"
#include "emulation/matmul/epilogue.h"
#include "emulation/matmul/gemm.h"
#include "lib/cli.h"
#include "lib/progress.h"
#include "tools/mma_operand.h"

namespace halfulp {

struct MmaProduct {
  Accumulator row;  // with --promote-every and --slices
  MmaOperand a, b;
  std::size_t tiles, m, n, k;
  std::vector<uint32_t> start{};  // what accumulators start with, codes [tiles, m, n]; none: 0
  std::vector<float> c{};         // of the epilogue, [tiles, m, n]
  bool scales = false;            // whether the epilogue multiplies by alpha
  float alpha = 1, beta = 0;
  double exact_alpha = 1;  // of the exact product: the operands' scales unrounded, or --alpha

  std::vector<uint64_t> shape() const;  // of D
  uint64_t products() const { return uint64_t(tiles) * m * n * k; }
  GemmJob job(std::size_t tile) const;
  Epilogue epilogue(std::size_t tile) const;
};

// The row that --accumulator names, with --promote-every and --slices. Throws UsageError.
Accumulator accumulator_of(const Arguments& arguments);
// The row of that name; an unknown one is a UsageError that suggests.
const Accumulator& accumulator_named(std::string_view name);

// Reads operands and --c as a row takes them; throws where they do not fit each other, or have no place in it.
MmaProduct read_operands(const Arguments& arguments, const std::string& a, const std::string& b,
                         const Accumulator& row);

// The arguments A and B, and --c, for a row that adds them up: throws where it cannot.
MmaProduct read_product(const Arguments& arguments, const Accumulator& row);

// The device of --device that multiplies under a row, opened; null: the CPU. Says so on stderr. Throws where it cannot.
const Backend* multiplying_device(const Arguments& arguments, const Accumulator& row);

// D, [tiles, m, n], as codes of row.sum.format, by a device or the CPU's threads.
std::vector<uint32_t> compute(const MmaProduct& product, const Backend* device, int threads, Progress& progress);

}  // namespace halfulp

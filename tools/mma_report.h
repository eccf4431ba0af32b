#pragma once
// What `halfulp mma` says of a product. Compares it with exact ones; computes none otherwise.

#include <optional>
#include <string>
#include <vector>

#include "emulation/analysis/product_error.h"
#include "lib/json.h"
#include "lib/table.h"
#include "tools/mma_product.h"

namespace halfulp {

// The operands before they were quantized, [tiles, rows, k].
struct MmaSources {
  std::vector<double> a, b;
};

struct MmaReport {
  const MmaProduct& product;
  const std::vector<uint32_t>& d;
  std::size_t step;      // every how many-th output of a row is compared; 0: none
  ProductErrors errors;  // of those
};

// How many outputs apart the compared ones lie, for at most `outputs`, or for 2^31 multiply-adds.
std::size_t comparison_step(const MmaProduct& product, std::optional<uint64_t> outputs);

// `advance` is told of compared outputs.
MmaReport compare(const MmaProduct& product, const std::vector<uint32_t>& d, const std::optional<MmaSources>& sources,
                  std::size_t step, int threads, const std::function<void(uint64_t)>& advance);

// The elements of D are part of it where there are few.
Json to_json(const MmaReport& report);
std::string to_text(const MmaReport& report, Color color);

// Figures by the names that --fail-on takes.
Json flat_figures(const MmaReport& report);

}  // namespace halfulp

#pragma once
// Recipes with a field or two changed, and what they make of matrices: what the reproductions have in common.

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipe.h"

namespace halfulp::reproduce {

using Fields = std::vector<std::pair<std::string_view, std::string_view>>;

// A row of the catalog and what is different.
Recipe with_fields(const Recipe& like, const Fields& fields);

// For nvfp4/te: rounded stochastically, a block's largest element to 6 * 16/17 at most, because its scale may be
// rounded down by as much. The tensor's leaves the room that the largest scale then needs.
const Fields& stochastic_with_headroom();

// Standard normal values, the same for the same name.
std::vector<float> normals(std::string_view name, const Matrix& shape);

// The values that the codes of x stand for.
std::vector<float> quantized(const Recipe& recipe, const Matrix& shape, std::span<const float> x,
                             const Randomness& random = {});

// NVFP4 under scales up to 256, a block's largest element to 6 or to 4 after both were rounded stochastically, each
// with random bits of its own: whichever came out with the smaller squared error.
std::vector<float> stochastic_four_over_six(const Matrix& shape, std::span<const float> x, uint64_t seed,
                                            uint64_t stream_of_6, uint64_t stream_of_4);

std::vector<float> transposed(const Matrix& shape, std::span<const float> x);

// Mean over clusters that are independent of each other, and its standard error.
struct Mean {
  double value;
  double se;
};
Mean mean_of(std::span<const double> clusters);

}  // namespace halfulp::reproduce

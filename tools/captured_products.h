#pragma once
// The products of a captured layer, each operand under the rule that the policy has for its role.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tools/bias_products.h"
#include "tools/captured.h"

namespace halfulp {

struct CapturedProduct {
  LinearProduct product;
  CapturedName name;  // of its first operand
  const Captured *a, *b;
};

// Of every layer and step fprop, dgrad and wgrad where the tensors of both operands are there, or those that they are
// the same as.
std::vector<CapturedProduct> products_of(const Capture& capture);

// Loads the operands; none where one of them is not whole blocks. Throws InputError where their shapes do not fit.
std::optional<ProductExperiment> experiment_of(const Capture& capture, const CapturedProduct& product, uint64_t seed,
                                               std::size_t draws);

// product_figures() with {product, phase, layer, step}; `drawn` is called after each draw.
Json figures_of(const CapturedProduct& product, const ProductExperiment& experiment, int threads,
                const std::function<void()>& drawn);

}  // namespace halfulp

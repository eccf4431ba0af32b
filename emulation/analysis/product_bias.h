#pragma once
// The bias of a product of two quantized operands: what stays of its error over draws of the rounding, and over batches
// of tokens. Figures only; draws are in product_draws.h.

#include <functional>

#include "emulation/analysis/product_draws.h"
#include "lib/json.h"

namespace halfulp {

// What the sum of a product runs over. That over tokens is a gradient, which other tokens would have given otherwise.
enum class SumsOver { features, tokens };

// Names as in the table of metrics that `halfulp bias --help` prints. Two biases are told apart, and are not to be
// compared: "squared_bias" of these operands, over draws; and "population", over batches of tokens, where what one
// batch is wrong by may be the opposite of what another is. `drawn` is called after each draw.
Json product_figures(const ProductExperiment& experiment, SumsOver over, int threads,
                     const std::function<void()>& drawn = {});

}  // namespace halfulp

#pragma once
// The bias of a linear layer's products over many draws, for `halfulp bias --x --w` and for captures.

#include <string>
#include <vector>

#include "emulation/analysis/product_bias.h"
#include "emulation/training/roles.h"
#include "lib/json.h"
#include "lib/table.h"
#include "lib/tensor_source.h"

namespace halfulp {

// How a matrix becomes an operand whose rows a product sums along.
enum class Along { rows, columns };

// Every element of a matrix as FP32, its rows or its columns as rows. Throws InputError where the tensor is no matrix
// of narrow floating-point numbers.
ProductOperand load_operand(const Tensor& tensor, Along along);

// Whether the random words of these experiments are independent of each other.
Json check_draws(const std::vector<const ProductExperiment*>& experiments, int threads);

// Figures of products, each with its name.
std::string products_text(const Json& products, Color color);

}  // namespace halfulp

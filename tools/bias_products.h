#pragma once
// The bias of a linear layer's products over many draws, for `halfulp bias --x --w` and for captures.

#include <optional>
#include <string>
#include <vector>

#include "emulation/analysis/product_draws.h"
#include "lib/json.h"
#include "lib/tensor_source.h"

namespace halfulp {

// How a matrix becomes an operand whose rows a product sums along.
enum class Along { rows, columns };

// Every element of a matrix as FP32, its rows or its columns as rows. Throws InputError where the tensor is no matrix
// of narrow floating-point numbers.
ProductOperand load_operand(const Tensor& tensor, Along along);

// The three products of a linear layer, of x [tokens, in], w [out, in] and dy [tokens, out].
enum class LinearProduct { fprop, dgrad, wgrad };
inline constexpr std::string_view kLinearProductNames[] = {"fprop", "dgrad", "wgrad"};

// What the sum of a product runs over: that over tokens is a gradient, which other tokens would have given otherwise.
enum class SumsOver { features, tokens };

// Its figures: G1, G2, G4 to G6 of the bias table in the README, and G7 where the product sums over tokens.
Json product_figures(const ProductExperiment& experiment, SumsOver over, int threads,
                     const std::function<void()>& drawn = {});

// Whether the random words of these experiments are independent of each other.
Json check_draws(const std::vector<const ProductExperiment*>& experiments, int threads);

}  // namespace halfulp

#pragma once
// What `halfulp bias` does, by its subject. tools/bias.cpp chooses; each subject is a file tools/bias_<subject>.cpp.

#include "lib/cli.h"

namespace halfulp {

// A PTX conversion, or --format: the rounding bias in closed form.
ExitCode bias_of_conversion(const Arguments& arguments);

// Tensors under recipes: error, bias and what they are made of.
ExitCode bias_of_tensors(const Arguments& arguments);

// --x and --w, and --dy: products of quantized operands over many draws.
ExitCode bias_of_products(const Arguments& arguments);

// A capture, tensors named PHASE/ROLE/LAYER[/STEP], under --policy or one recipe.
ExitCode bias_of_capture(const Arguments& arguments);

}  // namespace halfulp

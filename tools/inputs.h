#pragma once
// The tensors that a command line names, and what every verb does with them.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulation/blocks/quantize.h"
#include "lib/cli.h"
#include "lib/progress.h"
#include "lib/tensor_source.h"

namespace halfulp {

// The tensors of every FILE[:TENSOR], less what --include and --exclude leave out. Throws where nothing is left.
std::vector<Tensor> open_inputs(const Arguments& arguments, const std::vector<std::string>& specs);

// The only tensor of one FILE[:TENSOR]; --dtype applies. Throws where there are several.
Tensor open_input(const Arguments& arguments, const std::string& spec);

// Where a tensor is, for an error about it.
Where where(const Tensor& tensor);

// Throws UsageError where --amax is given and is no FP32 magnitude, or none of the recipes has a tensor scale.
float given_amax(const Arguments& arguments);
void check_amax(const Arguments& arguments, const std::vector<const Recipe*>& recipes);

// The tensor's largest magnitude as the recipe takes it: --amax, else read from the tensor.
float amax_of(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor, int threads, Progress& progress);

// How many times amax_of() and one more pass read the tensor.
int passes(const Arguments& arguments, const Recipe& recipe);

// --axis for a tensor of this shape, from the end: -1 is the last. Throws UsageError where it has no such dimension.
int axis_of(const Arguments& arguments, std::span<const uint64_t> shape);

// Why the recipe cannot take the tensor along that axis; empty where it can.
std::string refusal(const Recipe& recipe, const Tensor& tensor, int axis);

// Throws UsageError where a recipe needs --seed and it is not given, or it is given and none needs it.
void check_randomness(const Arguments& arguments, const std::vector<const Recipe*>& recipes);

// The random bits of a recipe for a tensor, by --seed. `number` counts the tensors of a run.
Randomness randomness_of(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor, std::size_t number);

}  // namespace halfulp

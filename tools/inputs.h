#pragma once
// The tensors that a command line names, and what every verb does with them.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulation/panels.h"
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

// --hadamard and --signs. Throws UsageError where they contradict each other.
Rotation rotation_of(const Arguments& arguments);

// How a tensor is read for a recipe: --axis, --pad, --transpose, --hadamard.
struct Reading {
  TensorLayout layout;
  Rotation rotation;
};
// Requires that the tensor has the axis: refusal(). Throws UsageError where the options contradict each other.
Reading reading_of(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor);

// Why the recipe cannot take a tensor of this shape so, or this tensor; empty where it can.
std::string refusal(const Recipe& recipe, const std::vector<uint64_t>& shape, const Reading& reading);
std::string refusal(const Recipe& recipe, const Tensor& tensor, const Reading& reading);
// The same, pointing to --pad where the tensor would be taken as it is read with it.
std::string refusal(const Recipe& recipe, const Tensor& tensor, const Reading& reading, const Reading& padded);
std::string refusal(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor);

// The tensor's largest magnitude as the recipe takes it: --amax, else read from the tensor.
float amax_of(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor, const Reading& reading,
              int threads, Progress& progress);

// How many times amax_of() and one more pass read the tensor.
int passes(const Arguments& arguments, const Recipe& recipe);

// Throws UsageError where --seed is needed and not given, or given and not needed.
void check_seed(const Arguments& arguments, const std::vector<const Recipe*>& recipes);

// The random bits of a recipe for a tensor, by --seed. `number` counts the tensors of a run.
Randomness randomness_of(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor, std::size_t number);

}  // namespace halfulp

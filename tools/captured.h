#pragma once
// The tensors of a capture, each with the rule that a policy has for it. Reads no elements.

#include <vector>

#include "emulation/panels.h"
#include "emulation/training/capture.h"
#include "emulation/training/training_policy.h"
#include "lib/cli.h"
#include "lib/tensor_source.h"

namespace halfulp {

struct Captured {
  Tensor tensor;
  CapturedName name;
  RoleRule rule;
};

struct Capture {
  TrainingPolicy policy;
  std::vector<Captured> tensors;  // by phase, role, layer and step; layers in the order of their numbers
  int layers;                     // one more than the last layer's number
};

// The files of SUBJECT under --policy, or under --recipe, which every role then has. Throws InputError for a tensor
// that is not named as those of captures are.
Capture open_capture(const Arguments& arguments);

// What a rule rotates by in a layer and step. Signs that it does not fix are those of the seed, the rule's id, and what
// it draws them anew for.
Rotation rotation_of(const RoleRule& rule, const CapturedName& name, uint64_t seed);

}  // namespace halfulp

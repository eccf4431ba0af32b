#pragma once
// One element's error taken apart: what is left of it as the causes are added one after the other. Exact in closed form
// for stochastic rounding too, over all random words. Adds up nothing.

#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include "emulation/analysis/cluster.h"
#include "emulation/analysis/error_tally.h"
#include "emulation/blocks/quantize.h"

namespace halfulp {

// The causes of an error, each with the error that there is once it has been added to those before it.
enum class Stage {
  grid,       // rounding to the element's format under the ideal scale, which takes the block's largest magnitude to
              // the largest value; beyond the dead zone
  scale,      // the scale that the recipe chose and rounded instead
  dead_zone,  // values that come back as zero
  clip,       // values beyond the largest one
};
inline constexpr int kStages = 4;
inline constexpr std::string_view kStageNames[kStages] = {"grid", "scale", "dead_zone", "clip"};

// An error's expectation over the random words, and that of its square.
struct Moments {
  double mean = 0;
  double square = 0;
};

struct StageErrors {
  Moments of[kStages]{};  // the last one is the recipe's own
  const Moments& total() const { return of[kStages - 1]; }
};

// What a block's elements have in common.
struct StagedBlock {
  const Recipe* recipe;
  TensorScale tensor;
  float scale;       // value of the scale's code
  float factor;      // m, where the errors are expectations
  double amax;       // largest magnitude of its elements; 0 where none is finite
  double largest;    // that a code stands for
  bool closed_form;  // the errors are expectations, not those of the values that came back
};

// Whether the expectation over a recipe's random words is known without drawing them: of a stochastic recipe whose
// scales are not random.
bool has_closed_form(const Recipe& recipe);

// The block of these elements under a scale code. `amax` is its largest finite magnitude.
StagedBlock staged_block(const Recipe& recipe, const TensorScale& tensor, uint32_t scale_code, float amax);

// Of elements of one row and what came back from their codes. Where one of the two is not finite the errors mean
// nothing.
template <class Source>
void stage_errors(const StagedBlock& block, std::span<const Source> x, std::span<const float> q,
                  std::span<StageErrors> out);

}  // namespace halfulp

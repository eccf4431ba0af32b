// halfulp bias: what rounding does on average, of a conversion, a tensor, a product, or a training phase.

#include "tools/bias.h"

#include <string>
#include <vector>

#include "emulation/training/roles.h"
#include "lib/tensor_source.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

bool names_instruction(const std::vector<std::string>& subjects) {
  return !subjects.empty() && subjects.front().starts_with("cvt.");
}

// Whether the first tensor of a directory, or file, is named as those of a capture are.
bool names_capture(const std::vector<std::string>& subjects) {
  if (subjects.empty()) return false;
  const std::vector<Tensor> tensors = open_tensor_spec(subjects.front());
  if (tensors.empty()) return false;
  const std::string& name = tensors.front().name;
  return find_phase(name.substr(0, name.find('/'))) >= 0;
}

ExitCode run(const Arguments& arguments) {
  const std::vector<std::string>& subjects = arguments.positionals("SUBJECT");
  if (arguments.has("--format") || names_instruction(subjects)) return bias_of_conversion(arguments);
  if (arguments.has("--x")) return bias_of_products(arguments);
  if (arguments.has("--policy") || names_capture(subjects)) return bias_of_capture(arguments);
  return bias_of_tensors(arguments);
}

constexpr std::string_view kNotes =
    R"(SUBJECT says what is asked.

A PTX conversion, or --format with --rounding: E[q(x)] - x over all random words, in closed form, in ulps of the result
(an ulp is the distance of the neighbours between which x lies). Means are over x > 0 that is uniform, log-uniform, or
every value of the source type (--as) once; for n random bits and a source with s more bits than the result the last is
-(2^-n - 2^-s) / 2, the convention of arXiv:2504.20634. The lanes of a .rs pair share 16 bits: their covariance is a sum
over all of them. --json has the curve over the number line.

Tensors, with --recipe; e = q - x, and for stochastic rounding E[e] and E[e^2] over all words, so no seed matters:
  shrinkage    -sum e x / sum x^2;  mean_error  mean of e;  z  standard errors from zero, over blocks
  detectable   the smallest mean error that would have been found, 4 standard errors
  rel_mse      sum e^2 / sum x^2 = grid + scale + dead_zone + clip, and shrinkage likewise:
    grid       rounding under the scale that takes the block's largest magnitude to the largest value, zeros left out
    scale      what the recipe's own scale, chosen and rounded, adds or saves
    dead_zone  values that come back as zero;  clip  values beyond the largest
A figure is called biased from 4 standard errors on. JSON has also by_sign, the worst blocks with their codes, and, with
--detail, by_eighth and by_binade. Ratios are of sums over blocks; their standard errors are by the delta method.

Products, --x X --w W [--dy DY]: y = x w^T, dx = dy w and dw = dy^T x in FP64, quantized anew --draws times:
  error of a draw      |d - g|^2 / |g|^2, g the exact product; standard error over tiles of 16 rows
  projection, cosine   <d, g> / <g, g> and the cosine, means over draws
  squared bias         |E d - g|^2 / |g|^2 of these operands, from pairs of different draws: unbiased, may be negative
  noise                E |d - g|^2 / |g|^2 less that;  slope  of the error of the mean of draws: -1 without bias
  exact / noise        |g| / (sigma sqrt of their number): below sqrt 3 steps stop to help (arXiv:2505.19115)
  noise / batch noise  of dw: quantization's variance over that of 4 to 16 batches of tokens
  squared bias over batches  of dw, what stays over other tokens: not to be compared with that of these operands
Where nothing is random all of the error is bias for these operands. The random words of all draws are checked for
overlap and correlation before anything is said. Large products are sampled by rows and columns.

A capture, tensors named PHASE/ROLE/LAYER or PHASE/ROLE/LAYER/STEP, with --policy or --recipe: the table of tensors per
phase, role and layer, each along the dimension that its product sums over; what hurts most, by rel_mse and by shrinkage
where it is found; a heat map; with --products the products of each layer. x_wgrad, dy_wgrad and w_dgrad that are not
there are x_fprop, dy_dgrad and w_fprop.)";

}  // namespace

Verb bias_verb() {
  return {
      .name = "bias",
      .summary = "rounding bias: in closed form, of tensors, of products, per training phase",
      .examples = {{"halfulp bias cvt.rs.satfinite.e2m1x4.f32", "what a stochastic conversion gives on average"},
                   {"halfulp bias --format e5m2 --rounding stochastic --random-bits 3 --as bf16",
                    "and one that no GPU has"},
                   {"halfulp bias model.safetensors -r nvfp4/te", "what makes up the bias of each tensor"},
                   {"halfulp bias --x x.npy --w w.npy --dy dy.npy -r nvfp4/te+rounding=stochastic --draws 256",
                    "is a linear layer's gradient biased, or only noisy?"},
                   {"halfulp bias capture/ --policy nvidia-nvfp4", "phase by phase, role by role, layer by layer"}},
      .positionals = {{.name = "SUBJECT",
                       .help = "a PTX conversion, files of tensors as for 'halfulp error', or a capture",
                       .count = Positional::Count::any}},
      .options = {"--recipe",  "--format",  "--rounding", "--random-bits", "--as",       "--values",
                  "--x",       "--w",       "--dy",       "--draws",       "--products", "--fresh-signs",
                  "--axis",    "--pad",     "--hadamard", "--signs",       "--seed",     "--include",
                  "--exclude", "--amax",    "--dtype",    "--policy",      "--json",     "--csv",
                  "--detail",  "--fail-on", "--color",    "--threads",     "--progress"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp

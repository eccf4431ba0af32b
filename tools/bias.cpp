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

}  // namespace

Verb bias_verb() {
  return {
      .name = "bias",
      .summary = "rounding bias: in closed form, of tensors, of products, per training phase",
      .examples = {{"halfulp bias cvt.rs.satfinite.e2m1x4.f32", "what a stochastic conversion gives on average"},
                   {"halfulp bias model.safetensors -r nvfp4/te", "what makes up the bias of each tensor"}},
      .positionals = {{.name = "SUBJECT",
                       .help = "a PTX conversion, or files of tensors as for 'halfulp error'",
                       .count = Positional::Count::any}},
      .options = {"--recipe",  "--format",  "--rounding", "--random-bits", "--as",       "--values",
                  "--x",       "--w",       "--dy",       "--draws",       "--products", "--fresh-signs",
                  "--axis",    "--pad",     "--hadamard", "--signs",       "--seed",     "--include",
                  "--exclude", "--amax",    "--dtype",    "--policy",      "--json",     "--csv",
                  "--detail",  "--fail-on", "--color",    "--threads",     "--progress"},
      .run = run,
  };
}

}  // namespace halfulp

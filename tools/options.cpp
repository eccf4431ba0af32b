#include "tools/options.h"

#include <unistd.h>

#include "formats/catalog.h"
#include "lib/threads.h"
#include "tools/backends.h"

namespace halfulp {
namespace {

// clang-format off
constexpr Option kOptions[] = {
    // What is computed.
    {.names = "--recipe,-r", .value_name = "NAME[,NAME]",
     .help = "how tensors become codes and scales: a name that 'halfulp formats recipes' lists, NAME+FIELD=TEXT with "
             "the fields of 'halfulp formats recipe-fields', or a TOML file", .group = "What"},
    {.names = "--diff", .value_name = "RECIPE",
     .help = "show where this recipe and the named one part", .group = "What"},
    {.names = "--axis", .value_name = "N",
     .help = "dimension along which blocks lie, from 0, or from the end if negative", .group = "What",
     .default_value = "-1"},
    {.names = "--format,-f", .value_name = "NAME",
     .help = "a number format; 'halfulp formats formats' lists them", .group = "What"},
    {.names = "--pad", .help = "add zeros to a tensor that is not whole blocks", .group = "What"},
    {.names = "--transpose",
     .help = "store the codes with --axis as the last dimension, as Transformer Engine stores columnwise copies of "
             "NVFP4 and FP8; for any recipe, also one without blocks (fp8/te, bf16)", .group = "What"},
    {.names = "--hadamard", .value_name = "N",
     .help = "rotate groups of N elements along --axis first, rounding to BF16; N is 2, 4, 8, 16, 32, 64 or 128",
     .group = "What"},
    {.names = "--signs", .value_name = "KIND",
     .help = "signs before the rotation: te (16 fixed ones), seeded or none; without it te where N is 16, else none",
     .group = "What"},
    {.names = "--keep-rotated", .help = "leave values as --hadamard rotated them", .group = "What"},
    {.names = "--scale-layout", .value_name = "NAME",
     .help = "how scales are stored: linear, padded-128x4, padded-4x128 or swizzled-128x4; "
             "'halfulp formats scale-layouts' tells how each lies", .group = "Output",
     .default_value = "linear"},
    {.names = "--nibbles", .value_name = "ORDER",
     .help = "which element lies in a byte's low nibble: even-low, even-high or split-halves", .group = "Output",
     .default_value = "even-low"},
    {.names = "--amax", .value_name = "X",
     .help = "largest magnitude for the tensor scale, instead of the tensor's own; rounded to FP32", .group = "What"},
    {.names = "--as", .value_name = "TYPE",
     .help = "type that values are read as: f32, f64, f16 or bf16", .group = "What", .default_value = "f32"},
    {.names = "--rounding", .value_name = "MODE",
     .help = "how --format is rounded to; 'halfulp formats roundings' lists the modes", .group = "What",
     .default_value = "nearest-even"},
    {.names = "--values", .value_name = "X[,X]", .help = "numbers to look at, each by itself", .group = "What"},
    {.names = "--random-bits", .value_name = "N",
     .help = "random bits of stochastic rounding, 1 to 32", .group = "What", .default_value = "16"},
    {.names = "--random", .value_name = "FILE[:TENSOR]",
     .help = "random words of .rs instructions, one U32 or I32 per destination register, instead of those of --seed",
     .group = "What"},
    {.names = "--seed", .value_name = "N",
     .help = "seed of random numbers; the same seed gives the same result", .group = "What"},
    {.names = "--instruction,-i", .value_name = "NAME[,NAME]",
     .help = "only these PTX conversions; 'halfulp formats instructions' lists them", .group = "What"},
    {.names = "--matrices", .value_name = "FOLDER",
     .help = "also record matrix instructions, a file for each", .group = "What"},
    {.names = "--quick", .help = "every 16th chunk of inputs only", .group = "What"},
    {.names = "--sample", .value_name = "N",
     .help = "chunks of each sweep that are compared, spread over it", .group = "What", .default_value = "4"},
    {.names = "--full", .help = "compare every chunk that was recorded", .group = "What"},
    {.names = "--block", .value_name = "N",
     .help = "number of the block in the tensor, in the order of its elements, from 0", .group = "What"},
    {.names = "--include", .value_name = "GLOB",
     .help = "only tensors whose name matches; repeatable, or separated by commas", .group = "What"},
    {.names = "--exclude", .value_name = "GLOB",
     .help = "no tensors whose name matches; repeatable, or separated by commas", .group = "What"},
    {.names = "--dtype", .value_name = "DTYPE",
     .help = "what the elements of a .npy file without a number type are (BF16, F8_E4M3, ...)", .group = "What"},
    {.names = "--accumulator,-a", .value_name = "NAME",
     .help = "how products are added up; 'halfulp formats accumulators' lists the names", .group = "What"},
    {.names = "--a-format", .value_name = "NAME",
     .help = "format of A's elements, where its file does not say it", .group = "What"},
    {.names = "--b-format", .value_name = "NAME",
     .help = "format of B's elements, where its file does not say it", .group = "What"},
    {.names = "--c,-c", .value_name = "FILE[:TENSOR]",
     .help = "what accumulators start with; with --beta what the epilogue adds", .group = "What"},
    {.names = "--promote-every", .value_name = "N",
     .help = "add sums of N products in FP32, instead of as the accumulator has it; 0: never", .group = "What"},
    {.names = "--slices", .value_name = "N",
     .help = "slices of K whose sums are added in FP32, instead of as the accumulator has it", .group = "What"},
    {.names = "--alpha", .value_name = "X",
     .help = "factor of the sums in FP32, instead of the product of the operands' tensor scales", .group = "What"},
    {.names = "--beta", .value_name = "X", .help = "factor of C in the epilogue", .group = "What"},
    {.names = "--explain", .value_name = "I,J",
     .help = "walk through one output, or T,I,J of tile T, block by block", .group = "What"},
    {.names = "--source-a", .value_name = "FILE[:TENSOR]",
     .help = "A before it was quantized: how much of the error is the operands'", .group = "What"},
    {.names = "--source-b", .value_name = "FILE[:TENSOR]", .help = "B before it was quantized", .group = "What"},
    {.names = "--compare", .value_name = "N",
     .help = "at most N outputs are compared with the exact product, spread over D; 0: none; without it as many as 2^31 "
             "multiply-adds allow", .group = "What"},
    {.names = "--x", .value_name = "FILE[:TENSOR]",
     .help = "activations [tokens, in] of a linear layer, or the first operand of a product", .group = "What"},
    {.names = "--w", .value_name = "FILE[:TENSOR]",
     .help = "weights [out, in], or the second operand", .group = "What"},
    {.names = "--dy", .value_name = "FILE[:TENSOR]",
     .help = "gradients of the output [tokens, out]: dgrad and wgrad too", .group = "What"},
    {.names = "--draws", .value_name = "N",
     .help = "how often the product is quantized anew, each time with random bits of its own", .group = "What",
     .default_value = "64"},
    {.names = "--products", .help = "also the products of each captured layer, over --draws", .group = "What"},
    {.names = "--fresh-signs", .help = "new random signs of --hadamard for each draw", .group = "What"},
    {.names = "--policy", .value_name = "NAME|FILE",
     .help = "which recipe each role has in each phase of training; 'halfulp formats policies' lists those there are",
     .group = "What"},
    // Where it goes.
    {.names = "--output,-o", .value_name = "FILE",
     .help = "output file, written whole or not at all", .group = "Output"},
    {.names = "--force", .help = "record again what the file has already", .group = "Output"},
    {.names = "--packed", .help = "write the instruction's destination registers instead of a code per element",
     .group = "Output"},
    {.names = "--json", .help = "print the result as JSON", .group = "Output"},
    {.names = "--csv", .help = "print the result as CSV", .group = "Output"},
    {.names = "--detail", .help = "add what a table has no room for to the JSON", .group = "Output"},
    {.names = "--fail-on", .value_name = "TEST",
     .help = "exit with 1 if any result is so, such as 'rel_mse>0.01'; repeatable", .group = "Output"},
    {.names = "--color", .value_name = "WHEN",
     .help = "auto, always or never", .group = "Output", .default_value = "auto"},
    // How it runs. None of these changes a result.
    {.names = "--threads,-j", .value_name = "N",
     .help = "threads; the result is the same for any number", .group = "Running"},
    {.names = "--device", .value_name = "DEVICE",
     .help = "cpu or cuda:N, the GPU of that number", .group = "Running", .default_value = "cpu"},
    {.names = "--progress", .value_name = "WHEN",
     .help = "auto, plain or none", .group = "Running", .default_value = "auto"},
};
// clang-format on

}  // namespace

std::span<const Option> option_table() { return kOptions; }

int threads_of(const Arguments& arguments) {
  return arguments.has("--threads") ? int(arguments.integer("--threads", 1, 1024)) : default_threads();
}

ProgressMode progress_of(const Arguments& arguments) { return parse_progress_mode(arguments.string("--progress")); }

Color color_of(const Arguments& arguments) {
  const std::string when = arguments.choice("--color", {"auto", "always", "never"});
  if (when == "auto") return color_for(STDOUT_FILENO);
  return when == "always" ? Color::on : Color::off;
}

OutputMode output_mode_of(const Arguments& arguments) {
  const bool json = arguments.flag("--json"), csv = arguments.flag("--csv");
  if (json && csv) throw UsageError("--json and --csv: the result is one or the other");
  return json ? OutputMode::json : csv ? OutputMode::csv : OutputMode::text;
}

void check_device(const Arguments& arguments) {
  if (chosen_device(arguments, "cpu").backend == nullptr) return;
  throw EnvironmentError("--device " + arguments.string("--device") + ": this verb computes on the CPU only; use " +
                         "--device cpu");
}

int format_of(std::string_view name) {
  const int id = find_format(name);
  if (id >= 0) return id;
  std::vector<std::string> names;
  for (const FormatEntry& row : kFormats) names.emplace_back(row.name);
  throw UsageError("no format is called '" + std::string(name) + "'" + did_you_mean(name, names) +
                   " ('halfulp formats formats' lists them all)");
}

}  // namespace halfulp

// halfulp mma: a matrix product under a named accumulator, and what the accumulator and the operands' quantization
// cost.

#include <fmt/format.h>

#include <iostream>

#include "lib/error.h"
#include "lib/json.h"
#include "lib/notice.h"
#include "lib/npy.h"
#include "lib/threshold.h"
#include "tools/mma_explain.h"
#include "tools/mma_product.h"
#include "tools/mma_report.h"
#include "tools/options.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr std::string_view kNotes =
    R"(A is [M, K] and B is [N, K]; D = A @ B^T is [M, N]. Of three dimensions, [tiles, M, K] and [tiles, N, K], each tile is
a product of its own: with M, N and K of an instruction, one instruction.
An operand is a tensor of values that its format holds exactly; or of its codes, as U8, U16 or U32; or a file that
'halfulp quantize' wrote, whatever its axis, order, scale layout and nibbles; FILE:TENSOR names one of several. Scales of blocks go where the accumulator's row
has them: into the instruction (utcqmma_mx, omma), the promotion (deepgemm), each element in FP32 (ref.fp32...). One
without such a place refuses them. K may be any number of products: the last block is shorter, as an instruction's whose
other operands are zero; omma rows want multiples of 16.

The epilogue is in FP32, each operation rounded to nearest even, in this order:
  scale_b * (scale_a * sum)     scales of whole rows (PyTorch aten/src/ATen/native/cuda/RowwiseScaledMM.cu)
  alpha * sum                   alpha = global_scale_a * global_scale_b, one product in FP32, unless --alpha says it
                                (NVFP4; Transformer Engine rounds amax_a * amax_b * (1 / 7225344) instead: --alpha)
  fma(alpha, sum, beta * C)     with --beta (NVIDIA/cutlass epilogue/thread/linear_combination.h)
A promotion adds to an FP32 total, nearest even: sum + total (CUTLASS fp8_accumulation.hpp) or, with the scales of
DeepSeek's blocks, fma(scale_a * scale_b, sum, total) (DeepGEMM sm90_fp8_gemm_1d2d.cuh). Without --beta, C is what the
accumulators start with; with slices or promotions it is added last. Slices are K divided by their number, rounded up to
whole blocks or promotions: the last is shorter, and there may be fewer. Of 192 promoted every 128, two are 128 and 64.

Figures are against the exact product of the operands as they are given, scales unrounded; se are standard errors over
rows of D, or its columns where there are more, and z = value / se. An ulp is the distance of D's numbers at the exact
one. --source-a and --source-b, the tensors before quantization, split the error: total = operands + accumulator +
crossed. --fail-on takes the table's figures, correctly_rounded_share, max_abs_ulps, not_finite and overflowed.

What to see, and why (README.md has the numbers):
  FP8 mma.sync on Hopper is two FP16 instructions and an FADD (sm90.mma_sync_fp8.f32), wgmma is the FP8 datapath
  (sm90.qgmma.f32): 25 kept bits against 13. What is measured with the one says nothing of the other.
  1/16 x 1/16 in FP8 stalls at 64 under sm90.qgmma.f32: each product, 2^-8, is cut at 2^(6 - 13) = 2^-7.
  With promotion every 128 (--promote-every 128) it does not.
  13 kept bits cut every product toward zero, so errors do not average out: see shrinkage and its z.)";

std::optional<MmaSources> sources_of(const Arguments& arguments, const MmaProduct& product) {
  if (arguments.has("--source-a") != arguments.has("--source-b"))
    throw UsageError("--source-a and --source-b: the product before quantization needs both");
  if (!arguments.has("--source-a")) return std::nullopt;
  return MmaSources{.a = read_source(arguments, arguments.string("--source-a"), product.a),
                    .b = read_source(arguments, arguments.string("--source-b"), product.b)};
}

std::size_t step_of(const Arguments& arguments, const MmaProduct& product) {
  if (!arguments.has("--compare")) return comparison_step(product, std::nullopt);
  return comparison_step(product, arguments.unsigned_integer("--compare"));
}

void write_d(const std::string& path, const MmaProduct& product, const std::vector<uint32_t>& d) {
  if (product.row.sum.format.bits() == 32)
    return write_npy(path, Dtype::f32, product.shape(), std::as_bytes(std::span(d)));
  const std::vector<uint16_t> halves(d.begin(), d.end());
  write_npy(path, Dtype::f16, product.shape(), std::as_bytes(std::span(halves)));
}

void check_options(const Arguments& arguments) {
  if (arguments.has("--output") && arguments.path("--output").extension() == ".safetensors")
    throw UsageError("--output: mma writes .npy files, not .safetensors");
  color_of(arguments);
  for (const std::string& text : arguments.list("--fail-on")) parse_threshold(text);
}

// Before the work: whether there are such figures.
void check_figures(const Arguments& arguments, const MmaProduct& product) {
  const std::vector<uint32_t> none;
  const MmaReport nothing = compare(product, none, std::nullopt, 0, 1, [](uint64_t) {});
  for (const std::string& text : arguments.list("--fail-on")) fails(parse_threshold(text), flat_figures(nothing));
}

ExitCode check_thresholds(const Arguments& arguments, const MmaReport& report) {
  ExitCode code = ExitCode::good;
  const Json figures = flat_figures(report);
  for (const std::string& text : arguments.list("--fail-on")) {
    const Threshold threshold = parse_threshold(text);
    if (!fails(threshold, figures)) continue;
    notice(fmt::format("{} is {}, and --fail-on '{}'", threshold.metric,
                       shortest_decimal(to_double(figures.at(threshold.metric))), text));
    code = ExitCode::check_failed;
  }
  return code;
}

ExitCode multiply(const Arguments& arguments, const MmaProduct& product) {
  check_figures(arguments, product);
  const Backend* const device = multiplying_device(arguments, product.row);
  const int threads = threads_of(arguments);
  const std::optional<MmaSources> sources = sources_of(arguments, product);
  const std::size_t step = step_of(arguments, product);
  const uint64_t compared = step == 0 ? 0 : product.products() / step;
  Progress progress("mma", product.products() + compared, ProgressUnit::elements, progress_of(arguments));
  const std::vector<uint32_t> d = compute(product, device, threads, progress);
  const MmaReport report =
      compare(product, d, sources, step, threads, [&](uint64_t outputs) { progress.advance(outputs * product.k); });
  if (arguments.has("--output")) write_d(arguments.string("--output"), product, d);
  std::cout << (arguments.flag("--json") ? dump_result("mma", to_json(report)) : to_text(report, color_of(arguments)));
  return check_thresholds(arguments, report);
}

ExitCode explain(const Arguments& arguments, const MmaProduct& product) {
  check_device(arguments);
  for (const char* option : {"--output", "--source-a", "--source-b", "--compare", "--fail-on"})
    if (arguments.has(option))
      throw UsageError(fmt::format("--explain walks through one output; {} is of all", option));
  const OutputPosition at = position_of(arguments.string("--explain"), product);
  std::cout << (arguments.flag("--json") ? dump_result("mma", explain_json(product, at))
                                         : explain_text(product, at, color_of(arguments)));
  return ExitCode::good;
}

ExitCode run(const Arguments& arguments) {
  check_options(arguments);
  const MmaProduct product = read_product(arguments, accumulator_of(arguments));
  return arguments.has("--explain") ? explain(arguments, product) : multiply(arguments, product);
}

}  // namespace

Verb mma_verb() {
  return {
      .name = "mma",
      .summary = "a matrix product as a tensor core, a kernel or a reference adds it up, against the exact one",
      .examples =
          {{"halfulp mma tests/golden/h200/mma/wgmma_m64n8k32_e4m3.safetensors:a "
            "tests/golden/h200/mma/wgmma_m64n8k32_e4m3.safetensors:b -a sm90.qgmma.f32 --a-format e4m3 --b-format "
            "e4m3 -o d.npy",
            "tiles that an H200 multiplied (of the sources), as its FP8 wgmma does"},
           {"halfulp mma tests/golden/h200/mma/wgmma_m64n8k32_e4m3.safetensors:a "
            "tests/golden/h200/mma/wgmma_m64n8k32_e4m3.safetensors:b -a sm90.qgmma.f32 --a-format e4m3 --b-format "
            "e4m3 --explain 3,0,0",
            "one output of tile 3: what is cut, what is added, what is rounded"},
           {"halfulp quantize tests/golden/files/f4_c.npy -r nvfp4/te --pad -o q.safetensors && halfulp mma "
            "q.safetensors q.safetensors -a sm100.omma.f32",
            "what 'halfulp quantize' wrote; with --source-a and --source-b how much of the error is its"},
           {"halfulp dequantize q.safetensors -o x.npy && halfulp mma x.npy x.npy -a ref.fp32_sequential --slices 2 "
            "--a-format f32 --b-format f32 --fail-on 'max_abs_ulps>100'",
            "values, added up in FP32 in two slices of K; exit with 1 if any is off by more than 100 ulps"}},
      .positionals = {{.name = "A", .help = "[M, K]: FILE.npy or FILE.safetensors[:TENSOR]"},
                      {.name = "B", .help = "[N, K], likewise"}},
      .options = {"--accumulator", "--a-format", "--b-format", "--c",       "--promote-every", "--slices",  "--alpha",
                  "--beta",        "--source-a", "--source-b", "--explain", "--compare",       "--dtype",   "--output",
                  "--json",        "--fail-on",  "--color",    "--threads", "--device",        "--progress"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp

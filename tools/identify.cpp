// halfulp identify: which accumulator, order of K, slices and promotions made a product.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

#include "emulation/analysis/identify_accumulator.h"
#include "formats/packing.h"
#include "lib/error.h"
#include "lib/json.h"
#include "lib/utf8.h"
#include "tools/facts.h"
#include "tools/inputs.h"
#include "tools/mma_product.h"
#include "tools/number_text.h"
#include "tools/options.h"
#include "tools/quantized_file.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr std::string_view kNotes =
    R"(D is what a kernel made of A and B, [M, N], or [tiles, M, N] of as many tiles: F32, or F16 or BF16, to which FP32 sums
are then rounded to nearest even. Operands, --c, --alpha and --beta are as for 'halfulp mma', whose --help says in which
order an epilogue multiplies. A split or promoted kernel is found where it adds sums of equal runs of products.
Tried are every accumulator of 'halfulp formats accumulators' that takes the operands, with promotions after 32, 64, 96
and so on to 512, 768, 1024, 2048 and 4096 products (not the ref rows, whose sums keep all bits), with 2 to 32 slices of
K one after the other or interleaved by tiles of 16 to 256, with blocks from the last to the first, with C first or
added last, and of NVFP4 with alpha as the product of both tensors' scales and as Transformer Engine rounds it. A
candidate fits if all bits of all outputs are its own, a NaN's included. All that fit are
listed: on these data they are one. Data in which exponents are far apart tell more of them apart than small numbers do.
For the others the nearest variant is shown, and how many outputs refute it. Where nothing fits, the nearest is refuted by
the output that has the fewest products other than zero, bit by bit; 'halfulp mma --explain' walks through that output.
Exit code 0 where something fits, 1 where nothing does.)";

// A row for each way in which operands are read: where scales of blocks go.
std::vector<Accumulator> rows_to_read_for() {
  std::vector<Accumulator> kinds;
  for (const Accumulator& row : kAccumulators) {
    const auto same = [&](const Accumulator& other) {
      return other.scales == row.scales && (other.kept_bits == kAllBits) == (row.kept_bits == kAllBits) &&
             other.promotion.step == row.promotion.step;
    };
    if (std::ranges::any_of(kinds, same)) continue;
    kinds.push_back(row);
  }
  return kinds;
}

void check_formats(const Arguments& arguments, const std::vector<std::string>& files) {
  for (const auto& [position, option] : {std::pair{0, "--a-format"}, {1, "--b-format"}}) {
    const std::string& spec = files[std::size_t(position)];
    if (arguments.has(option) || is_quantized_file(split_tensor_spec(spec).path)) continue;
    const Tensor tensor = open_input(arguments, spec);
    if (tensor.dtype == Dtype::f32 || tensor.dtype == Dtype::f64)
      throw UsageError(fmt::format("{} is needed: {} holds {} elements, and which format a kernel read is not in it",
                                   option, printable(spec), row(tensor.dtype).name));
  }
}

// Products by what they are read for, with the rows that are read so.
struct ReadProduct {
  MmaProduct product;
  std::vector<Accumulator> rows;
  std::string_view alpha = {};  // what is said of it beside the row
};

// NVIDIA/TransformerEngine common/recipe/nvfp4.cu, compute_nvfp4_per_tensor_scale_kernel: rounded otherwise than the
// product of both tensors' scales.
float te_alpha(const MmaProduct& product) {
  constexpr float kFactor = float(1.0 / (6.0 * 6.0 * 448.0 * 448.0));
  return product.a.amax * product.b.amax * kFactor;
}

// Adds the products with Transformer Engine's alpha, where it is another.
void add_te_alpha(std::vector<ReadProduct>& products) {
  for (std::size_t i = 0, count = products.size(); i < count; ++i) {
    const MmaProduct& product = products[i].product;
    const bool nvfp4 = product.a.recipe.starts_with("nvfp4/") && product.b.recipe.starts_with("nvfp4/");
    if (!nvfp4 || te_alpha(product) == product.alpha) continue;
    products.push_back(products[i]);
    products.back().product.alpha = te_alpha(products[i].product);
    products.back().alpha = ", alpha as Transformer Engine rounds it";
  }
}

std::vector<ReadProduct> read_products(const Arguments& arguments, const std::vector<std::string>& files) {
  std::vector<ReadProduct> products;
  std::optional<InputError> refused;
  for (const Accumulator& kind : rows_to_read_for()) {
    std::vector<Accumulator> rows;
    for (const Accumulator& row : kAccumulators)
      if (row.scales == kind.scales && (row.kept_bits == kAllBits) == (kind.kept_bits == kAllBits) &&
          row.promotion.step == kind.promotion.step)
        rows.push_back(row);
    try {
      MmaProduct product = read_operands(arguments, files[0], files[1], kind);
      const bool scaled = !product.a.promotion_scales.empty() || !product.b.promotion_scales.empty();
      if (kind.promotion.step == PromotionStep::scaled && !scaled && !products.empty()) {
        products.front().rows.insert(products.front().rows.end(), rows.begin(), rows.end());  // they only add
      } else {
        products.push_back({std::move(product), std::move(rows)});
      }
    } catch (const InputError& error) {
      if (!refused) refused = error;
    }
  }
  if (products.empty()) throw *refused;
  if (!arguments.has("--alpha")) add_te_alpha(products);
  return products;
}

const FormatEntry& format_of_d(const Tensor& d) {
  for (const char* name : {"f32", "f16", "bf16"})
    if (const FormatEntry& format = kFormats[std::size_t(find_format(name))]; format.dtype == row(d.dtype).name)
      return format;
  throw InputError(where(d), fmt::format("has {} elements; a product is F32, F16 or BF16 (--dtype says so of a .npy "
                                         "file without a number type)",
                                         row(d.dtype).name));
}

std::vector<uint32_t> codes_of(const Tensor& d, const MmaProduct& product) {
  if (d.shape != product.shape())
    throw InputError(where(d),
                     fmt::format("has shape {}, and A @ B^T {}", shape_text(d.shape), shape_text(product.shape())));
  std::vector<uint32_t> codes(d.elements());
  for (std::size_t i = 0; i < codes.size(); ++i)
    codes[i] = row(d.dtype).bits == 32 ? load_code<32>(d.bytes.data(), i) : load_code<16>(d.bytes.data(), i);
  return codes;
}

std::vector<Observation> observations_of(const std::vector<ReadProduct>& products, std::span<const uint32_t> d) {
  std::vector<Observation> observations;
  for (const ReadProduct& read : products) {
    Observation observation{.tiles = {}, .rows = read.rows};
    const std::size_t size = read.product.m * read.product.n;
    for (std::size_t tile = 0; tile < read.product.tiles; ++tile)
      observation.tiles.push_back(
          {.job = read.product.job(tile), .epilogue = read.product.epilogue(tile), .d = d.subspan(tile * size, size)});
    observations.push_back(std::move(observation));
  }
  return observations;
}

std::string text_of(const std::vector<ReadProduct>& products, const SumCandidate& candidate) {
  return candidate_text(candidate) + std::string(products[candidate.observation].alpha);
}

Json candidate_json(const std::vector<ReadProduct>& products, const SumCandidate& candidate) {
  constexpr std::string_view kOrders[] = {"ascending", "descending", "interleaved"};
  return {{"accumulator", candidate.row.name},
          {"also", candidate.also},
          {"promote_every", candidate.row.promotion.every},
          {"slices", candidate.row.slices},
          {"order", kOrders[std::size_t(candidate.order)]},
          {"tile", candidate.tile},
          {"c", candidate.start == StartPlace::last ? "last" : "row"},
          {"alpha", double(products[candidate.observation].product.alpha)},
          {"text", text_of(products, candidate)}};
}

// An output's products that are not zero.
std::vector<Facts> product_rows(const MmaProduct& product, const Refutation& refutation) {
  const GemmJob job = product.job(refutation.tile);
  const DotOperand a = dot_operand(job.a, refutation.row, job.k), b = dot_operand(job.b, refutation.col, job.k);
  const auto text = [](const DotOperand& x, std::size_t k) {
    std::string words = code_and_value(x.format, x.codes[k] & x.format.code_mask());
    if (x.scales != nullptr) words += " x " + code_and_value(x.scale_format, x.scales[k / std::size_t(x.scaled)]);
    return words;
  };
  std::vector<Facts> rows;
  for (std::size_t k = 0; k < job.k; ++k) {
    const bool zero = (a.codes[k] & a.format.magnitude_mask()) == 0 || (b.codes[k] & b.format.magnitude_mask()) == 0;
    if (!zero) rows.push_back({{"k", int(k)}, {"a", text(a, k)}, {"b", text(b, k)}});
  }
  return rows;
}

struct Answer {
  const std::vector<ReadProduct>& products;
  const Identification& found;
  const FormatEntry& format;
};

Json to_json(const Answer& answer) {
  const Identification& found = answer.found;
  Json body{{"outputs", found.outputs},
            {"tried", found.tried},
            {"format", answer.format.name},
            {"fitting", Json::array()},
            {"refuted", Json::array()}};
  for (const SumCandidate& fit : found.fitting) body["fitting"].push_back(candidate_json(answer.products, fit));
  for (const RefutedCandidate& refuted : found.refuted) {
    Json json = candidate_json(answer.products, refuted.candidate);
    json["outputs"] = refuted.outputs, json["mismatches"] = refuted.mismatches;
    body["refuted"].push_back(std::move(json));
  }
  if (!found.refutation) return body;
  const Refutation& r = *found.refutation;
  const int bits = answer.format.format.bits();
  body["refutation"] = {{"candidate", candidate_json(answer.products, r.candidate)},
                        {"tile", r.tile},
                        {"row", r.row},
                        {"col", r.col},
                        {"observed", hex_bits(r.observed, bits)},
                        {"computed", hex_bits(r.computed, bits)},
                        {"products", to_json(product_rows(answer.products[r.candidate.observation].product, r))}};
  return body;
}

std::string also_text(const SumCandidate& candidate) {
  return candidate.also.empty() ? "" : fmt::format(" (the same: {})", fmt::join(candidate.also, ", "));
}

// Those that add least to their rows; where they fit, more slices or another order that change nothing fit too.
std::string fitting_text(const Answer& answer) {
  const Identification& found = answer.found;
  const std::size_t fits = found.fitting.size();
  std::string text =
      fmt::format("Every bit of the {} outputs is that of {}:\n", found.outputs,
                  fits == 1 ? "this" : fmt::format("each of these {}, which these data do not tell apart", fits));
  std::size_t shown = 0;
  for (const SumCandidate& fit : found.fitting) {
    if (additions_to(fit) > additions_to(found.fitting.front())) break;
    text += fmt::format("  {}{}\n", text_of(answer.products, fit), also_text(fit));
    ++shown;
  }
  if (shown < fits) text += fmt::format("  and {} that add more to these; --json has all\n", fits - shown);
  return text;
}

std::string refuted_text(const Answer& answer, Color color) {
  const Identification& found = answer.found;
  if (found.refuted.empty()) return "";
  std::vector<Facts> rows;
  for (const RefutedCandidate& refuted : found.refuted)
    rows.push_back({{"nearest of its row", text_of(answer.products, refuted.candidate)},
                    {"differ", Json(refuted.mismatches), fmt::format("{}", refuted.mismatches)},
                    {"of", Json(refuted.outputs), fmt::format("{}", refuted.outputs)}});
  return "\nRefuted, by so many of the outputs that were compared:\n\n" + to_text(to_table(rows), color);
}

std::string refutation_text(const Answer& answer, Color color) {
  constexpr std::size_t kShown = 32;
  const Refutation& r = *answer.found.refutation;
  const Format& f = answer.format.format;
  const MmaProduct& product = answer.products[r.candidate.observation].product;
  const std::string tile = product.a.rank == 2 ? "" : fmt::format("{}, ", r.tile);
  std::string text = fmt::format(
      "\nThe nearest is refuted by D[{}{}, {}], whose products are the fewest:\n"
      "  observed  {}  {}\n  computed  {}  {}\n  under     {}\n\n",
      tile, r.row, r.col, code_and_value(f, r.observed), fields_text(f, r.observed), code_and_value(f, r.computed),
      fields_text(f, r.computed), text_of(answer.products, r.candidate));
  std::vector<Facts> rows = product_rows(product, r);
  const std::size_t all = rows.size();
  if (all > kShown) rows.resize(kShown);
  if (!rows.empty()) text += to_text(to_table(rows), color);
  if (all > kShown) text += fmt::format("and {} more products; --json has all\n", all - kShown);
  return text + fmt::format("'halfulp mma --explain {}{},{}' walks through it.\n",
                            product.a.rank == 2 ? "" : fmt::format("{},", r.tile), r.row, r.col);
}

std::string to_text(const Answer& answer, Color color) {
  const Identification& found = answer.found;
  if (!found.fitting.empty()) return fitting_text(answer) + refuted_text(answer, color);
  std::string text = fmt::format("None of {} candidates makes all {} outputs.\n", found.tried, found.outputs) +
                     refuted_text(answer, color);
  return found.refutation ? text + refutation_text(answer, color) : text;
}

const std::vector<std::string>& files_of(const Arguments& arguments) {
  const std::vector<std::string>& files = arguments.positionals("FILE");
  if (files.size() == 2)
    throw UsageError(
        "identify A B D finds accumulators; two files, SOURCE and CANDIDATE, would be for recipes, which "
        "this version does not identify");
  if (files.size() != 3) throw UsageError(fmt::format("expected A B D, got {} files", files.size()));
  return files;
}

ExitCode run(const Arguments& arguments) {
  check_device(arguments);
  const Color color = color_of(arguments);
  const std::vector<std::string>& files = files_of(arguments);
  check_formats(arguments, files);
  const Tensor d = open_input(arguments, files[2]);
  const FormatEntry& format = format_of_d(d);
  const std::vector<ReadProduct> products = read_products(arguments, files);
  const std::vector<uint32_t> codes = codes_of(d, products.front().product);
  if (codes.empty()) throw InputError(where(d), "has no outputs");
  const Identification found =
      identify_accumulator(observations_of(products, codes), format.format, threads_of(arguments));
  if (found.tried == 0)
    throw InputError({.file = files[0], .tensor = {}, .byte = {}},
                     fmt::format("no accumulator takes {} and {} with the scales that they have",
                                 products.front().product.a.format->name, products.front().product.b.format->name));
  const Answer answer{.products = products, .found = found, .format = format};
  std::cout << (arguments.flag("--json") ? dump_result("identify", to_json(answer)) : to_text(answer, color));
  return found.fitting.empty() ? ExitCode::check_failed : ExitCode::good;
}

}  // namespace

Verb identify_verb() {
  return {
      .name = "identify",
      .summary = "which accumulator, order of K, slices and promotions make every bit of a product",
      .examples =
          {{"halfulp identify tests/golden/h200/mma/wgmma_m64n8k32_e4m3.safetensors:a "
            "tests/golden/h200/mma/wgmma_m64n8k32_e4m3.safetensors:b "
            "tests/golden/h200/mma/wgmma_m64n8k32_e4m3.safetensors:d --c "
            "tests/golden/h200/mma/wgmma_m64n8k32_e4m3.safetensors:c --a-format e4m3 --b-format e4m3",
            "an H200's answers to tiles (of the sources): which row's they are"},
           {"halfulp quantize tests/golden/files/f4_c.npy -r nvfp4/te --pad -o q.safetensors && halfulp mma "
            "q.safetensors q.safetensors -a sm100.omma.f32 -o d.npy && halfulp identify q.safetensors q.safetensors "
            "d.npy",
            "of operands that 'halfulp quantize' wrote"}},
      .positionals = {{.name = "FILE",
                       .help = "A, B and D: [M, K], [N, K] and [M, N]",
                       .count = Positional::Count::at_least_one}},
      .options = {"--a-format", "--b-format", "--c", "--alpha", "--beta", "--dtype", "--json", "--color", "--threads",
                  "--device"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp

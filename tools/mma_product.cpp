#include "tools/mma_product.h"

#include <fmt/format.h>

#include <cmath>

#include "lib/error.h"
#include "lib/notice.h"
#include "lib/utf8.h"
#include "tools/backends.h"
#include "tools/inputs.h"

namespace halfulp {
namespace {

void check_extents(const MmaOperand& a, const MmaOperand& b) {
  const Where place{.file = b.spec, .tensor = {}, .byte = {}};
  if (a.rank != b.rank || a.tiles != b.tiles)
    throw InputError(place, fmt::format("has {} and A ({}) {}; both are matrices, or have as many tiles",
                                        b.rank == 2 ? "a matrix" : fmt::format("{} tiles", b.tiles), a.spec,
                                        a.rank == 2 ? "a matrix" : fmt::format("{} tiles", a.tiles)));
  if (a.k != b.k)
    throw InputError(place, fmt::format("has K = {} and A ({}) {}: A is [M, K] and B is [N, K], both with K last", b.k,
                                        a.spec, a.k));
  if (a.rotation != b.rotation)
    throw InputError(place,
                     fmt::format("is {} and A ({}) {}: the product of one rotated operand is none of the tensors'",
                                 b.rotation.empty() ? "not rotated" : "rotated by " + b.rotation, a.spec,
                                 a.rotation.empty() ? "not rotated" : "rotated by " + a.rotation));
}

// --alpha or --beta as FP32.
float factor_of(const Arguments& arguments, std::string_view option) {
  const double written = arguments.number(option);
  const float factor = float(written);
  if (std::isfinite(written) && !std::isfinite(factor))
    throw UsageError(fmt::format("{}: {} is beyond FP32", option, written));
  return factor;
}

void read_alpha(const Arguments& arguments, MmaProduct& product) {
  const MmaOperand &a = product.a, &b = product.b;
  product.scales = arguments.has("--alpha") || a.factor != 1 || b.factor != 1;
  product.alpha = arguments.has("--alpha") ? factor_of(arguments, "--alpha") : a.factor * b.factor;
  product.exact_alpha = arguments.has("--alpha") ? double(product.alpha) : double(a.factor) * double(b.factor);
}

std::vector<float> values_of(const Format& format, const std::vector<uint32_t>& codes) {
  std::vector<float> values;
  for (const uint32_t code : codes) values.push_back(decode(format, code));
  return values;
}

void read_c(const Arguments& arguments, MmaProduct& product) {
  if (!arguments.has("--c")) {
    if (arguments.has("--beta")) throw UsageError("--beta is the factor of C, and there is no --c");
    return;
  }
  const Tensor tensor = open_input(arguments, arguments.string("--c"));
  if (tensor.shape != product.shape())
    throw InputError(where(tensor),
                     fmt::format("has shape {}, and D has {}", shape_text(tensor.shape), shape_text(product.shape())));
  const bool f16 = product.row.sum.format.bits() == 16;
  const FormatEntry& format = kFormats[std::size_t(find_format(f16 ? "f16" : "f32"))];
  std::vector<uint32_t> codes = exact_codes(tensor, format, "");
  if (!arguments.has("--beta")) {
    product.start = std::move(codes);
    return;
  }
  product.beta = factor_of(arguments, "--beta");
  product.c = values_of(format.format, codes);
}

void check_epilogue(const MmaProduct& product) {
  const bool row_factors = !product.a.row_factors.empty() || !product.b.row_factors.empty();
  if (product.row.sum.format.bits() != 32 && (product.scales || row_factors || !product.c.empty()))
    throw UsageError(
        fmt::format("{} has sums in FP16; the epilogue, for --alpha, --beta and the scales of whole "
                    "tensors and rows, is defined for FP32",
                    product.row.name));
  if (row_factors && !product.start.empty())
    throw UsageError(
        "--c: accumulators that start with C would have it multiplied by the rows' scales; --beta adds it "
        "in the epilogue");
}

// Throws where the row cannot take the product: UsageError where an option is the reason.
void check_row(const MmaProduct& product) {
  if (product.products() == 0) return;  // nothing is added up
  const std::string why = refusal(product.job(0));
  if (why.empty()) return;
  GemmJob plain = product.job(0);
  plain.row = accumulator_named(product.row.name);
  if (refusal(plain).empty()) throw UsageError(fmt::format("{} {} (--promote-every, --slices)", product.row.name, why));
  throw InputError({.file = product.a.spec, .tensor = {}, .byte = {}},
                   fmt::format("A is {} and B ({}) {}, K = {}: {} {}", product.a.format->name, product.b.spec,
                               product.b.format->name, product.k, product.row.name, why));
}

template <class T>
std::span<const T> tile_of(const std::vector<T>& all, std::size_t tiles, std::size_t tile) {
  const std::size_t size = tiles == 0 ? 0 : all.size() / tiles;
  return std::span(all).subspan(tile * size, size);
}

}  // namespace

const Accumulator& accumulator_named(std::string_view name) {
  const int id = find_accumulator(name);
  if (id >= 0) return kAccumulators[std::size_t(id)];
  std::vector<std::string> names;
  std::string all;
  for (const Accumulator& row : kAccumulators) {
    names.emplace_back(row.name);
    all += (all.empty() ? "" : ", ") + names.back();
  }
  throw UsageError(fmt::format("--accumulator: none is called '{}'{}; known: {}", shortened(std::string(name)),
                               did_you_mean(name, names), all));
}

Accumulator accumulator_of(const Arguments& arguments) {
  Accumulator row = accumulator_named(arguments.string("--accumulator"));
  if (arguments.has("--promote-every")) {
    row.promotion.every = int(arguments.integer("--promote-every", 0, 1 << 30));
    if (row.promotion.every == 0) row.promotion.step = PromotionStep::add;
  }
  if (arguments.has("--slices")) row.slices = int(arguments.integer("--slices", 1, 1 << 20));
  return row;
}

std::vector<uint64_t> MmaProduct::shape() const {
  return a.rank == 2 ? std::vector<uint64_t>{m, n} : std::vector<uint64_t>{tiles, m, n};
}

GemmJob MmaProduct::job(std::size_t tile) const {
  const bool none = tiles == 0;
  return {.row = row,
          .m = m,
          .n = n,
          .k = k,
          .a = none ? GemmOperand{.format = a.format->format, .codes = {}} : a.tile(tile),
          .b = none ? GemmOperand{.format = b.format->format, .codes = {}} : b.tile(tile),
          .c = tile_of(start, tiles, tile)};
}

Epilogue MmaProduct::epilogue(std::size_t tile) const {
  return {.scales = scales,
          .alpha = alpha,
          .beta = beta,
          .c = tile_of(c, tiles, tile),
          .row_factors = tile_of(a.row_factors, tiles, tile),
          .col_factors = tile_of(b.row_factors, tiles, tile)};
}

MmaProduct read_operands(const Arguments& arguments, const std::string& a, const std::string& b,
                         const Accumulator& row) {
  MmaProduct product{.row = row,
                     .a = read_operand(arguments, a, "--a-format", row),
                     .b = read_operand(arguments, b, "--b-format", row),
                     .tiles = 0,
                     .m = 0,
                     .n = 0,
                     .k = 0};
  check_extents(product.a, product.b);
  product.tiles = product.a.tiles;
  product.m = product.a.rows, product.n = product.b.rows, product.k = product.a.k;
  read_alpha(arguments, product);
  read_c(arguments, product);
  return product;
}

MmaProduct read_product(const Arguments& arguments, const Accumulator& row) {
  MmaProduct product = read_operands(arguments, arguments.positional("A"), arguments.positional("B"), row);
  check_epilogue(product);
  check_row(product);
  return product;
}

const Backend* multiplying_device(const Arguments& arguments, const Accumulator& row) {
  const ChosenDevice device = chosen_device(arguments, "cpu");
  if (device.backend == nullptr) return nullptr;
  if (keeps_all_bits(row)) throw UsageError(fmt::format("--device: {} is added up by the CPU alone", row.name));
  const DeviceInfo info = device.backend->open(device.index);
  if (device.backend->multiply == nullptr)
    throw EnvironmentError(
        fmt::format("--device {}: {} multiplies no matrices", arguments.string("--device"), info.name));
  notice(fmt::format("{}:{} ({}, {}): {} by its model", device.backend->name, device.index, info.name, info.target,
                     row.name));
  return device.backend;
}

std::vector<uint32_t> compute(const MmaProduct& product, const Backend* device, int threads, Progress& progress) {
  const std::size_t size = product.m * product.n;
  std::vector<uint32_t> d(product.tiles * size);
  for (std::size_t tile = 0; tile < product.tiles; ++tile) {
    const std::span<uint32_t> out = std::span(d).subspan(tile * size, size);
    if (device == nullptr) {
      gemm(product.job(tile), threads, out, [&](uint64_t count) { progress.advance(count); });
    } else {
      device->multiply(product.job(tile), out);
      progress.advance(uint64_t(size) * product.k);
    }
    const Epilogue epilogue = product.epilogue(tile);
    if (epilogue.is_nothing()) continue;
    for (std::size_t at = 0; at < size; ++at)
      out[at] = epilogue.apply(out[at], at / product.n, at % product.n, product.n);
  }
  return d;
}

}  // namespace halfulp

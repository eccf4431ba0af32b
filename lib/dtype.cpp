#include "lib/dtype.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "lib/error.h"

namespace halfulp {

namespace {

constexpr bool rows_stand_at_their_dtype() {
  for (size_t i = 0; i < std::size(kDtypes); ++i) {
    if (kDtypes[i].dtype != Dtype(i)) return false;
  }
  return std::size(kDtypes) == size_t(Dtype::u64) + 1;
}
static_assert(rows_stand_at_their_dtype());

std::string upper_case(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  return upper;
}

}  // namespace

std::optional<Dtype> dtype_named(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const DtypeRow& r) { return r.name == name; });
  if (found == std::end(kDtypes)) return std::nullopt;
  return found->dtype;
}

Dtype dtype_from_option(std::string_view option, std::string_view value) {
  if (auto dtype = dtype_named(upper_case(value))) return *dtype;
  std::vector<std::string_view> names;
  for (const DtypeRow& r : kDtypes) names.push_back(r.name);
  throw UsageError(fmt::format("{}: no element type '{}'; expected one of {}", option, value, fmt::join(names, ", ")));
}

std::string shape_text(std::span<const uint64_t> shape) {
  return fmt::format("({}{})", fmt::join(shape.begin(), shape.end(), ", "), shape.size() == 1 ? "," : "");
}

std::optional<uint64_t> element_count(std::span<const uint64_t> shape) {
  uint64_t count = 1;
  for (uint64_t dimension : shape) {
    if (__builtin_mul_overflow(count, dimension, &count)) return std::nullopt;
  }
  return count;
}

std::optional<uint64_t> bit_count(Dtype dtype, std::span<const uint64_t> shape) {
  const auto elements = element_count(shape);
  uint64_t bits = 0;
  if (!elements || __builtin_mul_overflow(*elements, uint64_t(row(dtype).bits), &bits)) return std::nullopt;
  return bits;
}

bool rows_fill_bytes(Dtype dtype, std::span<const uint64_t> shape) {
  if (*bit_count(dtype, shape) == 0) return true;
  return (shape.empty() ? 1 : shape.back()) * uint64_t(row(dtype).bits) % 8 == 0;
}

}  // namespace halfulp

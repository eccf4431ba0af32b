// Prints a digest of everything that the recipes and the error report compute on seeded data, one line per recipe.
// Built for several instruction sets and compilers, whose digests must be equal.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/analysis/error.h"
#include "emulation/blocks/quantize.h"
#include "emulation/blocks/recipes.h"
#include "lib/random_values.h"

namespace halfulp {
namespace {

constexpr std::size_t kElements = 1 << 15;

// 64-bit FNV-1a.
uint64_t digest(std::span<const std::byte> bytes) {
  return stream_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Ordinary values; then every exponent, subnormals, Inf and NaN too.
std::vector<float> data() {
  std::vector<float> x(kElements);
  for (std::size_t i = 0; i < kElements / 2; ++i) x[i] = float(normal(1, 0, i));
  for (std::size_t i = kElements / 2; i < kElements; ++i) x[i] = bit_cast<float>(random_word(1, 1, i));
  return x;
}

void print_digest(const Recipe& recipe, std::string_view what, std::span<const float> x) {
  const Matrix shape{.rows = 128, .cols = x.size() / 128};
  const TensorScale scale = tensor_scale(recipe, largest_magnitude(recipe, 0, x));
  std::vector<std::byte> codes(code_bytes(recipe, shape)), scales(scale_bytes(recipe, shape));
  quantize<float>(recipe, scale, shape, x, {}, codes, scales);
  std::vector<float> y(x.size());
  dequantize(recipe, scale, shape, codes, scales, y);
  for (float& value : y)
    if (value != value) value = 0;  // the sign and payload of a NaN are the machine's
  ErrorSums sums(recipe, ErrorDetail::strata);
  sums.add<float>(scale, shape, x);
  const std::string figures = dump_json(sums.figures());
  std::printf("%.*s %.*s codes %016jx scales %016jx values %016jx figures %016jx\n", int(recipe.name.size()),
              recipe.name.data(), int(what.size()), what.data(), uintmax_t(digest(codes)), uintmax_t(digest(scales)),
              uintmax_t(digest(std::as_bytes(std::span<const float>(y)))), uintmax_t(stream_of(figures)));
}

}  // namespace
}  // namespace halfulp

int main() {
  using namespace halfulp;
  const std::vector<float> x = data();
  for (const Recipe& recipe : kRecipes) {
    print_digest(recipe, "normal", std::span(x).first(kElements / 2));
    print_digest(recipe, "any", std::span(x).last(kElements / 2));
  }
}

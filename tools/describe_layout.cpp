// What `halfulp formats` says about the choices of quantize that are neither format nor recipe: where scales and
// nibbles lie, and the signs before a Hadamard transform.

#include <algorithm>

#include "emulation/blocks/hadamard.h"
#include "emulation/blocks/layout.h"
#include "tools/catalogs.h"

namespace halfulp {
namespace {

// A catalog of rows with name, meaning and source, which a user states by an option.
template <auto& rows>
struct Choices {
  static Facts list_row(const auto& row) {
    return {{"name", row.name}, {"meaning", row.meaning}, {"source", row.source}};
  }

  static std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const auto& row : rows) all.emplace_back(row.name);
    return all;
  }

  static std::vector<Facts> list() {
    std::vector<Facts> all;
    for (const auto& row : rows) all.push_back(list_row(row));
    return all;
  }

  static Description describe(std::string_view name) {
    const auto& row = *std::ranges::find_if(rows, [&](const auto& entry) { return entry.name == name; });
    return {.title = std::string(name), .facts = list_row(row)};
  }

  static Catalog catalog(std::string_view name, std::string_view singular, std::string_view title) {
    return {.name = name, .singular = singular, .title = title, .names = names, .list = list, .describe = describe};
  }
};

}  // namespace

Catalog scale_layout_catalog() {
  return Choices<kScaleLayouts>::catalog("scale-layouts", "scale-layout",
                                         "Scale layouts, for --scale-layout; without it linear");
}

Catalog nibble_order_catalog() {
  return Choices<kNibbleOrders>::catalog("nibble-orders", "nibble-order",
                                         "Nibble orders, for --nibbles; without it even-low");
}

Catalog hadamard_sign_catalog() {
  return Choices<kHadamardSigns>::catalog(
      "hadamard-signs", "hadamard-sign",
      "Signs before a Hadamard transform, for --signs; without it te for --hadamard 16, none for other sizes");
}

}  // namespace halfulp

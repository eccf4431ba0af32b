#pragma once
// Everything that has a name and a source, as `halfulp formats` lists and describes it.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "lib/json.h"
#include "lib/table.h"
#include "tools/facts.h"

namespace halfulp {

// All about one row.
struct Description {
  struct Section {
    std::string key;      // in JSON
    std::string heading;  // in text
    std::vector<Facts> rows;
  };
  std::string title;
  Facts facts;
  std::vector<Section> sections = {};
};

struct Catalog {
  std::string_view name;      // "formats"
  std::string_view singular;  // "format"
  std::string_view title;
  std::vector<std::string> (*names)();  // by which describe() knows its rows
  std::vector<Facts> (*list)();         // one row each
  Description (*describe)(std::string_view name);
};

Catalog format_catalog();
Catalog rounding_catalog();
Catalog recipe_catalog();
Catalog recipe_field_catalog();
Catalog formula_catalog();
Catalog scale_layout_catalog();
Catalog nibble_order_catalog();
Catalog hadamard_sign_catalog();
Catalog instruction_catalog();
Catalog accumulator_catalog();
Catalog policy_catalog();

}  // namespace halfulp

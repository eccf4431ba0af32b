#pragma once
// Results as JSON: sorted keys, shortest decimals that read back as the same double, the same bytes for the same
// result.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace halfulp {

// Its objects sort their keys.
using Json = nlohmann::json;

// The shortest decimal that reads back as x, always with a point or an exponent; "nan", "inf", "-inf".
std::string shortest_decimal(double x);

// Two spaces per level, an array of plain values on one line, a final newline. JSON has no NaN or Inf: they become the
// strings "nan", "inf", "-inf". Bytes that are not UTF-8 become U+FFFD.
std::string dump_json(const Json& value);

// The result of a verb: `body`, an object, with "schema": "halfulp.<verb>/1".
std::string dump_result(std::string_view verb, Json body);

// A number as dump_json writes it, read back: a number, or one of the three strings; null is NaN.
// Throws std::invalid_argument for anything else.
double to_double(const Json& value);

}  // namespace halfulp

#include "lib/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace halfulp {
namespace {

void append(std::string& out, const Json& value, size_t depth);

void append_indent(std::string& out, size_t depth) { out.append("\n").append(2 * depth, ' '); }

std::string quoted(const std::string& text) {
  constexpr int kOneLine = -1;
  return Json(text).dump(kOneLine, ' ', false, Json::error_handler_t::replace);
}

bool is_plain(const Json& value) { return value.is_primitive(); }

void append_array(std::string& out, const Json& array, size_t depth) {
  const bool one_line = std::all_of(array.begin(), array.end(), is_plain);
  std::string_view separator = "";
  out += '[';
  for (const Json& element : array) {
    out += separator;
    separator = one_line ? ", " : ",";
    if (!one_line) append_indent(out, depth + 1);
    append(out, element, depth + 1);
  }
  if (!one_line) append_indent(out, depth);
  out += ']';
}

void append_object(std::string& out, const Json& object, size_t depth) {
  if (object.empty()) {
    out += "{}";
    return;
  }
  std::string_view separator = "";
  out += '{';
  for (const auto& [key, value] : object.items()) {
    out += separator;
    separator = ",";
    append_indent(out, depth + 1);
    out += quoted(key) + ": ";
    append(out, value, depth + 1);
  }
  append_indent(out, depth);
  out += '}';
}

void append(std::string& out, const Json& value, size_t depth) {
  if (value.is_object()) {
    append_object(out, value, depth);
  } else if (value.is_array()) {
    append_array(out, value, depth);
  } else if (value.is_string()) {
    out += quoted(value.get_ref<const std::string&>());
  } else if (value.is_number_float()) {
    const double number = value.get<double>();
    out += std::isfinite(number) ? shortest_decimal(number) : '"' + shortest_decimal(number) + '"';
  } else {
    out += value.dump();
  }
}

}  // namespace

std::string shortest_decimal(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  char digits[32];  // the longest is -1.7976931348623157e+308
  std::string text(digits, std::to_chars(digits, digits + sizeof digits, x).ptr);
  // A reader must not take 1.0 for an integer.
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string dump_json(const Json& value) {
  std::string out;
  append(out, value, 0);
  return out + '\n';
}

std::string dump_result(std::string_view verb, Json body) {
  body["schema"] = "halfulp." + std::string(verb) + "/1";
  return dump_json(body);
}

double to_double(const Json& value) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (value.is_number()) return value.get<double>();
  if (value.is_null() || value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return kInf;
  if (value == "-inf") return -kInf;
  throw std::invalid_argument("not a number: " + value.dump());
}

}  // namespace halfulp

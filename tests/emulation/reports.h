#pragma once
// Public bug reports of this field by id, from tests/golden/public_reports.json.

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace halfulp::reports {

inline const nlohmann::json& report(std::string_view id) {
  static const nlohmann::json kReports = nlohmann::json::parse(std::ifstream(HALFULP_TEST_DATA "/public_reports.json"));
  for (const nlohmann::json& r : kReports)
    if (r.at("id") == id) return r;
  throw std::invalid_argument("no report " + std::string(id));
}

inline const nlohmann::json& expected(std::string_view id) { return report(id).at("expected"); }
inline const nlohmann::json& input(std::string_view id) { return report(id).at("input"); }

// "0x7D (416)".
inline uint32_t hexadecimal(const nlohmann::json& text) {
  return uint32_t(std::stoul(text.get<std::string>(), nullptr, 16));
}

}  // namespace halfulp::reports

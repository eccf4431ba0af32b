#include "emulation/training/capture.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <vector>

namespace halfulp {
namespace {

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

template <class Rows>
std::string names_of(const Rows& rows) {
  std::string names;
  for (const auto& row : rows) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

}  // namespace

CapturedName parse_captured_name(std::string_view name) {
  const std::vector<std::string_view> parts = parts_of(name);
  if (parts.size() < 3 || parts.size() > 4 || parts[2].empty())
    throw std::invalid_argument("is not named PHASE/ROLE/LAYER or PHASE/ROLE/LAYER/STEP");
  const int phase = find_phase(parts[0]), role = find_role(parts[1]);
  if (phase < 0)
    throw std::invalid_argument("names the phase '" + std::string(parts[0]) + "'; there are " + names_of(kPhases));
  if (role < 0)
    throw std::invalid_argument("names the role '" + std::string(parts[1]) + "'; there are " + names_of(kRoles));
  CapturedName captured{.place = {.phase = Phase(phase), .role = role}, .layer = std::string(parts[2]), .step = {}};
  if (parts.size() < 4) return captured;
  uint64_t step = 0;
  const auto [end, error] = std::from_chars(parts[3].data(), parts[3].data() + parts[3].size(), step);
  if (error != std::errc() || end != parts[3].data() + parts[3].size())
    throw std::invalid_argument("names the step '" + std::string(parts[3]) + "', which is no whole number");
  captured.step = step;
  return captured;
}

std::optional<int> layer_number(std::string_view layer) {
  for (std::size_t at = 0; at <= layer.size();) {
    const std::size_t end = std::min(layer.find('.', at), layer.size());
    const std::string_view part = layer.substr(at, end - at);
    int number = 0;
    const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (!part.empty() && error == std::errc() && rest == part.data() + part.size() && number >= 0) return number;
    at = end + 1;
  }
  return std::nullopt;
}

}  // namespace halfulp

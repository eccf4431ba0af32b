// What `halfulp formats` says about rounding modes.

#include <algorithm>

#include "formats/ptx_cvt.h"
#include "formats/rounding.h"
#include "tools/catalogs.h"

namespace halfulp {
namespace {

Fact ptx_fact(const RoundingEntry& entry) {
  if (entry.ptx.empty()) return {"ptx", Json(nullptr), "-"};
  return {"ptx", fmt::format(".{}", entry.ptx)};
}

Facts list_row(const RoundingEntry& entry) {
  return {{"name", entry.name}, ptx_fact(entry), {"meaning", entry.meaning}};
}

std::vector<Facts> list_roundings() {
  std::vector<Facts> rows;
  for (const RoundingEntry& entry : kRoundings) rows.push_back(list_row(entry));
  return rows;
}

std::vector<Facts> users_of(Rounding rounding) {
  std::vector<Facts> rows;
  for (const PtxCvtRow& row : kPtxCvts)
    if (ptx_cvt(row).policy.rounding == rounding) rows.push_back({{"used_by", row.name}});
  return rows;
}

Description describe(std::string_view name) {
  const auto is_named = [&](const RoundingEntry& entry) { return entry.name == name || entry.ptx == name; };
  const RoundingEntry& entry = *std::find_if(kRoundings.begin(), kRoundings.end(), is_named);
  return {.title = fmt::format("{}, a rounding mode", entry.name),
          .facts = list_row(entry),
          .sections = {{"users", "Instructions that round so", users_of(entry.rounding)}}};
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const RoundingEntry& entry : kRoundings) {
    all.emplace_back(entry.name);
    if (!entry.ptx.empty()) all.emplace_back(entry.ptx);
  }
  return all;
}

}  // namespace

Catalog rounding_catalog() {
  return {.name = "roundings",
          .singular = "rounding",
          .title = "Rounding modes",
          .names = names,
          .list = list_roundings,
          .describe = describe};
}

}  // namespace halfulp

#include "emulation/recordings/probes.h"

#include <sstream>

#include "emulation/recordings/probes_text.h"
#include "formats/catalog.h"

namespace halfulp {
namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::vector<std::vector<std::string>> rows_of(std::string_view text) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : split(std::string(text), '\n'))
    if (!line.empty() && line[0] != '#') rows.push_back(split(line, '\t'));
  return rows;
}

uint32_t hex(const std::string& text) { return uint32_t(std::stoul(text, nullptr, 16)); }

std::vector<uint32_t> hex_list(const std::string& text, int shift = 0) {
  std::vector<uint32_t> values;
  for (const std::string& part : split(text, ',')) values.push_back(hex(part) >> shift);
  return values;
}

// Columns: name, "f16->f32", K, a, b, c, answers.
void add_plain(const MatrixForm& form, std::vector<MatrixProbe>& probes) {
  if (form.a != form.b) return;
  const int shift = kFormats[std::size_t(find_format(form.a))].storage_shift;
  const std::string kind = std::string(form.a) + "->" + std::string(form.d);
  for (const std::vector<std::string>& row : rows_of(kProbesText))
    if (row[1] == kind && row[2] == std::to_string(form.k))
      probes.push_back({row[0], hex_list(row[3], shift), hex_list(row[4], shift), {}, {}, hex(row[5])});
}

// As many as the form has, where each is given so often.
bool fit(const MatrixForm& form, std::vector<uint32_t>& scales) {
  const auto wanted = std::size_t(form.row_scales);
  const std::size_t each = wanted == 0 ? 0 : scales.size() / wanted;
  if (each == 0 || scales.size() % wanted != 0) return false;
  for (std::size_t i = 0; i < scales.size(); ++i)
    if (scales[i] != scales[i / each * each]) return false;
  for (std::size_t i = 0; i < wanted; ++i) scales[i] = scales[i * each];
  scales.resize(wanted);
  return true;
}

// Columns: "FP4" (E2M1) or "MX8" (E4M3), name, a, b, "ue4m3 sa=78,78 sb=78,78" or of E8M0 without its name, c, answers.
void add_scaled(const MatrixForm& form, std::vector<MatrixProbe>& probes) {
  for (const std::vector<std::string>& row : rows_of(kScaledProbesText)) {
    const std::string_view format = row[0] == "FP4" ? "e2m1" : "e4m3";
    const std::string_view scale = row[4].starts_with("ue4m3") ? "ue4m3" : "e8m0";
    if (form.a != format || form.b != format || form.scale != scale) continue;
    const std::size_t sa = row[4].find("sa="), sb = row[4].find(" sb=");
    MatrixProbe probe{row[1],
                      hex_list(row[2]),
                      hex_list(row[3]),
                      hex_list(row[4].substr(sa + 3, sb - sa - 3)),
                      hex_list(row[4].substr(sb + 4)),
                      hex(row[5])};
    if (probe.a.size() == std::size_t(form.k) && fit(form, probe.a_scales) && fit(form, probe.b_scales))
      probes.push_back(probe);
  }
}

}  // namespace

std::vector<MatrixProbe> probes_of(const MatrixForm& form) {
  std::vector<MatrixProbe> probes;
  form.row_scales == 0 ? add_plain(form, probes) : add_scaled(form, probes);
  return probes;
}

}  // namespace halfulp

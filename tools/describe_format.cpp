// What `halfulp formats` says about number formats.

#include <cmath>

#include "emulation/blocks/recipes.h"
#include "formats/catalog.h"
#include "formats/codec.h"
#include "formats/ptx_cvt.h"
#include "tools/catalogs.h"
#include "tools/number_text.h"

namespace halfulp {
namespace {

double value_of(const Format& f, uint32_t code) { return double(decode(f, code)); }

std::string_view specials_text(Specials specials) {
  switch (specials) {
    case Specials::ieee: return "Inf and NaN";
    case Specials::nan_only: return "NaN, no Inf";
    case Specials::negative_zero: return "NaN in the place of -0, no Inf";
    case Specials::finite_only: return "none";
  }
  return "";
}

std::string_view specials_rule(Specials specials) {
  switch (specials) {
    case Specials::ieee: return "all-ones exponent: mantissa 0 is Inf, the others are NaN";
    case Specials::nan_only: return "the all-ones magnitude is NaN; there is no Inf";
    case Specials::negative_zero: return "the code of -0 is the only NaN; there is no Inf and no -0";
    case Specials::finite_only: return "every code is a number";
  }
  return "";
}

uint32_t min_normal_code(const Format& f) { return f.subnormals == Subnormals::yes ? f.hidden() : 0; }

bool has_subnormal_values(const Format& f) { return f.subnormals == Subnormals::yes && f.mantissa_bits > 0; }

Fact min_subnormal(const Format& f) {
  if (!has_subnormal_values(f)) return {"min_subnormal", Json(nullptr), "-"};
  return {"min_subnormal", value_of(f, 1)};
}

Fact dtype_fact(const FormatEntry& entry) {
  return {"dtype", entry.dtype.empty() ? Json(nullptr) : Json(std::string(entry.dtype)),
          entry.dtype.empty() ? "-" : std::string(entry.dtype)};
}

Facts list_row(const FormatEntry& entry) {
  const Format& f = entry.format;
  return {{"name", entry.name},
          {"bits", f.bits()},
          {"sign", f.sign == Sign::one_bit ? 1 : 0},
          {"exponent", f.exponent_bits},
          {"mantissa", f.mantissa_bits},
          {"bias", f.bias},
          {"max", value_of(f, f.max_code())},
          {"min_normal", value_of(f, min_normal_code(f))},
          min_subnormal(f),
          {"specials", specials_text(f.specials)},
          dtype_fact(entry),
          {"source", entry.source}};
}

std::vector<Facts> list_formats() {
  std::vector<Facts> rows;
  for (const FormatEntry& entry : kFormats) rows.push_back(list_row(entry));
  return rows;
}

// A decimal and the power of two or hexadecimal number behind it.
Fact exact_fact(std::string_view key, double x) { return {key, x, decimal(x) + " = " + hex_float(x)}; }

std::string storage_text(const FormatEntry& entry) {
  std::string text = fmt::format("{} bits", entry.storage_bits);
  if (entry.storage_bits == 4) text += ", two to a byte, the first in the low nibble";
  if (entry.storage_shift > 0) text += fmt::format(", the code above {} zero bits", entry.storage_shift);
  return text;
}

uint64_t finite_codes(const Format& f) {
  const uint64_t magnitudes = uint64_t{f.max_code()} + 1;
  if (f.sign == Sign::none) return magnitudes;
  return f.specials == Specials::negative_zero ? 2 * magnitudes - 1 : 2 * magnitudes;
}

// Half an ulp, relative to a power of two: the most that a correctly rounded normal value is off.
double unit_roundoff(const Format& f) { return std::ldexp(1.0, -f.mantissa_bits - 1); }

Facts format_facts(const FormatEntry& entry) {
  const Format& f = entry.format;
  Facts facts{{"name", entry.name},
              {"alias", entry.alias},
              {"source", entry.source},
              {"bits", f.bits()},
              {"sign_bits", f.sign == Sign::one_bit ? 1 : 0},
              {"exponent_bits", f.exponent_bits},
              {"mantissa_bits", f.mantissa_bits},
              {"bias", f.bias},
              {"min_exponent", f.min_exponent()},
              {"max_exponent", f.max_exponent()},
              exact_fact("max", value_of(f, f.max_code())),
              exact_fact("min_normal", value_of(f, min_normal_code(f)))};
  if (has_subnormal_values(f)) {
    facts.push_back(exact_fact("max_subnormal", value_of(f, f.hidden() - 1)));
    facts.push_back(exact_fact("min_subnormal", value_of(f, 1)));
  }
  facts.push_back(exact_fact("ulp_of_one", std::ldexp(1.0, -f.mantissa_bits)));
  facts.push_back(exact_fact("unit_roundoff", unit_roundoff(f)));
  facts.emplace_back("finite_codes", finite_codes(f),
                     fmt::format("{} of {}", finite_codes(f), uint64_t{1} << f.bits()));
  facts.emplace_back("specials", specials_rule(f.specials));
  facts.emplace_back("subnormals", f.subnormals == Subnormals::yes ? "yes" : "no, and no zero");
  facts.emplace_back("storage", storage_text(entry));
  facts.push_back(dtype_fact(entry));
  return facts;
}

Facts code_row(const Format& f, uint32_t code) {
  const Json value = value_of(f, code);
  return {{"code", code, code_text(f, code)}, {"fields", fields_text(f, code)}, {"value", value, value_text(f, code)}};
}

Facts named_code(const Format& f, std::string_view name, uint32_t code) {
  Facts facts{{"name", name}};
  for (Fact& fact : code_row(f, code)) facts.push_back(std::move(fact));
  return facts;
}

// The NaN that PTX cvt writes, and the first and last where there are several.
void add_nans(std::vector<Facts>& rows, const Format& f) {
  if (!f.has_nan()) return;
  rows.push_back(named_code(f, "NaN", canonical_nan(f)));
  if (f.specials != Specials::ieee || f.mantissa_bits < 2) return;
  rows.push_back(named_code(f, "first NaN", f.max_code() + 2));
  rows.push_back(named_code(f, "quiet NaN", ieee_nan(f, f.hidden() >> 1, false)));
}

std::vector<Facts> named_codes(const Format& f) {
  std::vector<Facts> rows;
  if (f.subnormals == Subnormals::yes) rows.push_back(named_code(f, "zero", 0));
  if (f.has_negative_zero()) rows.push_back(named_code(f, "negative zero", f.sign_mask()));
  if (has_subnormal_values(f)) {
    rows.push_back(named_code(f, "min subnormal", 1));
    rows.push_back(named_code(f, "max subnormal", f.hidden() - 1));
  }
  rows.push_back(named_code(f, "min normal", min_normal_code(f)));
  rows.push_back(named_code(f, "one", uint32_t(f.bias) << f.mantissa_bits));
  rows.push_back(named_code(f, "max", f.max_code()));
  if (f.sign == Sign::one_bit) rows.push_back(named_code(f, "lowest", f.sign_mask() | f.max_code()));
  if (f.has_inf()) rows.push_back(named_code(f, "Inf", f.max_code() + 1));
  add_nans(rows, f);
  return rows;
}

std::vector<Facts> users_of(std::string_view name) {
  std::vector<Facts> rows;
  for (const Recipe& recipe : kRecipes) {
    if (recipe.element.name() == name) rows.push_back({{"used_by", recipe.name}, {"as", "elements"}});
    if (recipe.scale.name() == name) rows.push_back({{"used_by", recipe.name}, {"as", "block scales"}});
  }
  for (const PtxCvtRow& row : kPtxCvts) {
    const PtxCvt op = ptx_cvt(row);
    if (op.to.name == name) rows.push_back({{"used_by", row.name}, {"as", "result"}});
    if (op.from.name == name) rows.push_back({{"used_by", row.name}, {"as", "source"}});
  }
  return rows;
}

std::vector<Facts> all_codes(const Format& f) {
  std::vector<Facts> rows;
  for (uint32_t code = 0; code <= f.code_mask(); ++code) rows.push_back(code_row(f, code));
  return rows;
}

Description describe(std::string_view name) {
  constexpr int kMostBitsOfATable = 8;
  const FormatEntry& entry = kFormats[std::size_t(find_format(name))];
  Description description{.title = fmt::format("{}, a number format", entry.name), .facts = format_facts(entry)};
  description.sections.push_back({"codes", "Codes with a name", named_codes(entry.format)});
  if (entry.name != "f32") description.sections.push_back({"users", "Who uses it", users_of(entry.name)});
  if (entry.format.bits() <= kMostBitsOfATable)
    description.sections.push_back({"values", "Every code", all_codes(entry.format)});
  return description;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const FormatEntry& entry : kFormats) {
    all.emplace_back(entry.name);
    all.emplace_back(entry.alias);
  }
  return all;
}

}  // namespace

Catalog format_catalog() {
  return {.name = "formats",
          .singular = "format",
          .title = "Formats",
          .names = names,
          .list = list_formats,
          .describe = describe};
}

}  // namespace halfulp

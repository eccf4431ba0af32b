#include "tools/kernel_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/error.h"
#include "tools/number_text.h"
#include "tools/recipe_option.h"

namespace halfulp {
namespace {

constexpr std::size_t kMostShown = 16;

Fact count_fact(std::string_view key, uint64_t count) { return {key, count, count_cell(count).text}; }

// A stored code as bits, fields and value.
void add_code(Facts& facts, const std::string& who, const FormatName& name, uint32_t stored) {
  const Format& format = name.format();
  const uint32_t code = stored >> name.entry().storage_shift & format.code_mask();
  facts.emplace_back(who, hex_bits(stored, name.storage_bits()));
  facts.emplace_back(who + "_fields", fields_text(format, code));
  facts.emplace_back(who + "_value", Json(double(decode(format, code))), value_text(format, code));
}

Facts differing_row(const std::string& element, const std::string& x, const FormatName& format, uint32_t recorded,
                    uint32_t model) {
  Facts facts{{"element", element}, {"x", x}};
  add_code(facts, "recorded", format, recorded);
  add_code(facts, "model", format, model);
  return facts;
}

// An element of the matrix as its bits and value.
std::string element_text(Dtype dtype, uint64_t i) {
  const Format& format = kFormats[std::size_t(find_format(dtype == Dtype::f32   ? "f32"
                                                          : dtype == Dtype::f16 ? "f16"
                                                                                : "bf16"))]
                             .format;
  uint32_t bits = 0;
  const std::vector<std::byte> bytes = kernel_elements(dtype, i, 1);
  for (std::size_t k = 0; k < bytes.size(); ++k) bits |= uint32_t(bytes[k]) << 8 * k;
  return fmt::format("{} ({})", hex_bits(bits, format.bits()), value_text(format, bits));
}

}  // namespace

const Recipe& recipe_of_recording(const std::string& path, const std::string& name) {
  try {
    if (!name.ends_with(".toml")) return recipe_of(name);
  } catch (const UsageError& error) {
    throw InputError({.file = path}, fmt::format("kernels/recipes/{}: {}", name, error.what()));
  }
  throw InputError({.file = path}, fmt::format("kernels/recipes/{}: expected the name of a recipe", name));
}

std::vector<KernelReplay> kernels_to_replay(const std::string& path, const Recording& recording) {
  std::vector<KernelReplay> replays;
  for (const RecordedKernel& kernel : recording.kernels)
    replays.push_back({.recorded = &kernel, .recipe = &recipe_of_recording(path, kernel.recipe)});
  return replays;
}

std::string form_text(std::optional<bool> native) { return !native ? "" : *native ? "native" : "software"; }

std::vector<Facts> kernel_rows(std::span<const RecordedKernel> kernels, std::string_view wrong_key,
                               std::span<const uint64_t> wrong) {
  std::vector<Facts> rows;
  for (std::size_t i = 0; i < kernels.size();) {
    const RecordedKernel& first = kernels[i];
    uint64_t elements = 0, differ = 0;
    std::string dtypes;
    for (; i < kernels.size() && kernels[i].recipe == first.recipe; ++i) {
      elements += elements_of(kernels[i]);
      differ += wrong[i];
      dtypes += (dtypes.empty() ? "" : ", ") + std::string(row(kernels[i].dtype).name);
    }
    rows.push_back({{"recipe", first.recipe},
                    {"of", dtypes},
                    {"elements", form_text(first.forms.native_elements)},
                    {"scales", form_text(first.forms.native_scales)},
                    count_fact("compared", elements),
                    count_fact(wrong_key, differ)});
  }
  return rows;
}

std::vector<Facts> run_rows(const Recipe& recipe, Dtype dtype, std::span<const DifferingRun> runs) {
  std::vector<Facts> rows;
  for (const auto& [recorded, model] : runs) {
    if (recorded.scale != model.scale && has_scale(recipe))
      rows.push_back(differing_row(fmt::format("scale of {}", kRunElements * recorded.run), "", recipe.scale,
                                   recorded.scale, model.scale));
    for (std::size_t k = 0; k < recorded.codes.size(); ++k) {
      if (recorded.codes[k] == model.codes[k]) continue;
      const uint64_t i = kRunElements * recorded.run + k;
      rows.push_back(differing_row(fmt::format("{}", i), element_text(dtype, i), recipe.element, recorded.codes[k],
                                   model.codes[k]));
    }
  }
  return rows;
}

std::string runs_text(const RecordedKernel& kernel, const Recipe& recipe, std::span<const DifferingRun> runs,
                      Color color) {
  std::string text = fmt::format("\n{} of {}: when it was recorded {} of {} runs of {} elements differed\n",
                                 kernel.recipe, row(kernel.dtype).name, count_cell(kernel.mismatches).text,
                                 count_cell(elements_of(kernel) / kRunElements).text, kRunElements);
  std::vector<Facts> rows = run_rows(recipe, kernel.dtype, runs);
  if (rows.empty()) {
    return text + fmt::format(
                      "The recording has no run that differs. 'halfulp record --force -r {}' on that GPU, with this "
                      "version, keeps some.\n",
                      kernel.recipe);
  }
  const std::size_t more = rows.size() > kMostShown ? rows.size() - kMostShown : 0;
  rows.resize(rows.size() - more);
  text += to_text(to_table(rows), color);
  return more == 0 ? text : text + fmt::format("and {} more (--json has them)\n", more);
}

}  // namespace halfulp

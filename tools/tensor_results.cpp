#include "tools/tensor_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/error.h"
#include "lib/notice.h"
#include "lib/table.h"
#include "lib/threshold.h"

namespace halfulp {

Json describe(const Tensor& tensor, const Recipe& recipe) {
  return {{"file", tensor.file},
          {"tensor", tensor.name},
          {"dtype", std::string(row(tensor.dtype).name)},
          {"shape", tensor.shape},
          {"recipe", std::string(recipe.name)}};
}

uint64_t elements_to_read(const Arguments& arguments, const std::vector<Tensor>& tensors,
                          const std::vector<const Recipe*>& recipes) {
  uint64_t elements = 0;
  for (const Tensor& tensor : tensors)
    for (const Recipe* recipe : recipes)
      if (refusal(arguments, *recipe, tensor).empty())
        elements += reading_of(arguments, *recipe, tensor).layout.padded.shape().elements() *
                    uint64_t(passes(arguments, *recipe));
  return elements;
}

bool taken_by_all(const Arguments& arguments, const std::vector<const Recipe*>& recipes, const Tensor& tensor) {
  return std::ranges::all_of(recipes,
                             [&](const Recipe* recipe) { return refusal(arguments, *recipe, tensor).empty(); });
}

void report_skipped(const Json& body, const Tensor& first) {
  const Json& skipped = body.at("skipped");
  if (body.at("results").empty()) throw InputError(where(first), skipped.front().at("reason").get<std::string>());
  std::map<std::string, std::vector<std::string>> tensors;
  for (const Json& json : skipped)
    tensors[json.at("reason").get<std::string>()].push_back(json.at("tensor").get<std::string>());
  for (const auto& [reason, names] : tensors)
    notice(fmt::format("skipped {}{}: {}", names.front(),
                       names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "", reason));
}

namespace {

std::vector<Cell> table_row(const Json& json, std::span<const FigureColumn> figures, Shown shown) {
  const bool total = !json.contains("tensor");
  std::vector<Cell> cells{total ? "(all)" : json.at("tensor").get<std::string>(), json.at("recipe").get<std::string>(),
                          count_cell(json.at("elements").get<uint64_t>())};
  if (shown == Shown::csv) {
    cells.emplace_back(total ? "" : json.at("file").get<std::string>());
    cells.emplace_back(total ? "" : shape_text(json.at("shape").get<std::vector<uint64_t>>()));
  }
  for (const FigureColumn& column : figures) {
    if (column.shown > shown) continue;
    const Json& value = json.at(Json::json_pointer(std::string(column.figure)));
    cells.push_back(value.is_null() ? Cell("-", "") : number_cell(to_double(value), column.digits));
  }
  return cells;
}

}  // namespace

Table figure_table(const Json& body, std::span<const FigureColumn> figures, Shown shown) {
  Table table{.columns = {{"tensor", Align::left}, {"recipe", Align::left}, {"elements"}}, .rows = {}};
  if (shown == Shown::csv) table.columns.insert(table.columns.end(), {{"file", Align::left}, {"shape", Align::left}});
  for (const FigureColumn& column : figures)
    if (column.shown <= shown) table.columns.push_back({std::string(column.title)});
  for (const char* part : {"results", "totals"})
    for (const Json& json : body.at(part)) table.rows.push_back(table_row(json, figures, shown));
  return table;
}

ExitCode check_thresholds(const Arguments& arguments, const Json& results) {
  ExitCode code = ExitCode::good;
  for (const std::string& text : arguments.list("--fail-on")) {
    const Threshold threshold = parse_threshold(text);
    for (const Json& json : results) {
      const Json& value = json.at(threshold.metric);
      if (value.is_null() || !fails(threshold, json)) continue;  // null: a figure that the recipe does not have
      notice(fmt::format("{} under {}: {} is {}, and --fail-on '{}'", json.at("tensor").get<std::string>(),
                         json.at("recipe").get<std::string>(), threshold.metric, shortest_decimal(to_double(value)),
                         text));
      code = ExitCode::check_failed;
    }
  }
  return code;
}

}  // namespace halfulp

#pragma once
// Figures of tensors under recipes: the loop over both, what is left out and why, and what --fail-on makes of them. For
// every verb that has a result per tensor and recipe; knows no figure.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/cli.h"
#include "lib/json.h"
#include "lib/progress.h"
#include "lib/table.h"
#include "tools/inputs.h"
#include "tools/options.h"

namespace halfulp {

// {file, tensor, dtype, shape, recipe}
Json describe(const Tensor& tensor, const Recipe& recipe);

// Elements to read, each as often as it is read, of all tensors that recipes take.
uint64_t elements_to_read(const Arguments& arguments, const std::vector<Tensor>& tensors,
                          const std::vector<const Recipe*>& recipes);

bool taken_by_all(const Arguments& arguments, const std::vector<const Recipe*>& recipes, const Tensor& tensor);

// Throws where there are no results; says on stderr what was left out and why, one line for each reason.
void report_skipped(const Json& body, const Tensor& first);

// A column of figures: where the number is in a result's JSON, and its digits in the text. Only a CSV, which no screen
// has to hold, has those of kCsv.
enum class Shown { always, csv };
struct FigureColumn {
  std::string_view title;
  std::string_view figure;  // a JSON pointer
  int digits;
  Shown shown = Shown::always;
};

// A row for each result and each of the totals, of a tensor, a recipe, its elements, and the figures.
Table figure_table(const Json& body, std::span<const FigureColumn> figures, Shown shown);

// --fail-on: says which results fail.
ExitCode check_thresholds(const Arguments& arguments, const Json& results);

// {results, skipped, totals}: a result of each tensor and recipe, Sums::figures() of `sums_of(recipe, tensor, number,
// progress)`. Totals, where there are several tensors, are over those that every recipe takes, so that they speak of
// the same values; `none(recipe)` has no tensor yet.
template <class Sums, class None, class Of>
Json measure_tensors(const Arguments& arguments, const std::string& label, const std::vector<Tensor>& tensors,
                     const std::vector<const Recipe*>& recipes, None&& none, Of&& sums_of) {
  Json body = {{"results", Json::array()}, {"skipped", Json::array()}, {"totals", Json::array()}};
  std::vector<Sums> totals;
  for (const Recipe* recipe : recipes) totals.push_back(none(*recipe));
  Progress progress(label, elements_to_read(arguments, tensors, recipes), ProgressUnit::elements,
                    progress_of(arguments));
  for (std::size_t number = 0; number < tensors.size(); ++number) {
    for (std::size_t i = 0; i < recipes.size(); ++i) {
      Json json = describe(tensors[number], *recipes[i]);
      const std::string reason = refusal(arguments, *recipes[i], tensors[number]);
      if (!reason.empty()) {
        json["reason"] = reason;
        body["skipped"].push_back(std::move(json));
        continue;
      }
      const Sums sums = sums_of(*recipes[i], tensors[number], number, progress);
      if (taken_by_all(arguments, recipes, tensors[number])) totals[i].merge(sums);
      json.update(sums.figures());
      body["results"].push_back(std::move(json));
    }
  }
  for (std::size_t i = 0; tensors.size() > 1 && i < recipes.size(); ++i) {
    body["totals"].push_back(totals[i].figures());
    body["totals"].back()["recipe"] = std::string(recipes[i]->name);
  }
  report_skipped(body, tensors.front());
  return body;
}

}  // namespace halfulp

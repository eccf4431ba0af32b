#include "tools/instruction_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "formats/ptx_cvt.h"
#include "lib/cli.h"
#include "lib/error.h"

namespace halfulp {
namespace {

// The words between the dots, in alphabetical order.
std::vector<std::string_view> sorted_words(std::string_view name) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    words.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  std::ranges::sort(words);
  return words;
}

std::string suggestion(std::string_view name) {
  std::vector<std::string> names;
  for (const PtxCvtRow& row : kPtxCvts) {
    if (sorted_words(row.name) == sorted_words(name)) return fmt::format("; PTX spells it '{}'", row.name);
    names.emplace_back(row.name);
  }
  return did_you_mean(name, names);
}

}  // namespace

int instruction_named(std::string_view name) {
  if (const int id = find_ptx_cvt(name); id >= 0) return id;
  throw UsageError(fmt::format("no conversion is called '{}'{} ('halfulp formats instructions' lists them all)", name,
                               suggestion(name)));
}

}  // namespace halfulp

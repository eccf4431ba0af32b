#pragma once
// What is said about one thing: named facts, each as a person and as a program reads it. One list makes text, CSV and
// JSON, so the three cannot disagree.

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/json.h"
#include "lib/table.h"

namespace halfulp {

struct Fact {
  Fact(std::string_view name, std::string_view words) : key(name), value(std::string(words)), text(words) {}
  Fact(std::string_view name, const char* words) : Fact(name, std::string_view(words)) {}
  Fact(std::string_view name, const std::string& words) : Fact(name, std::string_view(words)) {}
  Fact(std::string_view name, int number) : key(name), value(number), text(fmt::format("{}", number)) {}
  Fact(std::string_view name, double number);
  Fact(std::string_view name, Json exact, std::string shown)
      : key(name), value(std::move(exact)), text(std::move(shown)) {}

  std::string key;  // words joined by underscores
  Json value;
  std::string text;
};

using Facts = std::vector<Fact>;

Json to_json(const Facts& facts);
Json to_json(const std::vector<Facts>& rows);

// A row for each list of facts, all with the same keys; a column for each key.
Table to_table(const std::vector<Facts>& rows);

// One fact per line, its key in words.
std::string to_lines(const Facts& facts);

}  // namespace halfulp

#include "tools/packed_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <vector>

namespace halfulp {
namespace {

bool is_shareable(const Json& value) {
  return value.is_string() || (value.is_array() && std::ranges::all_of(value, &Json::is_primitive));
}

std::string real_text(double x) {
  const float nearest = float(x);
  return double(nearest) == x ? fmt::format("{}", nearest) : fmt::format("{:.7g}", x);
}

std::string plain_text(const Json& value) {
  constexpr int kCompact = -1;
  if (value.is_number_float()) return real_text(value.get<double>());
  std::string text;
  for (const char c : value.dump(kCompact, ' ', false, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

class Packer {
 public:
  explicit Packer(const Json& value) { count(value); }

  std::string pack(const Json& value) {
    if (value.is_object()) return pack_object(value);
    if (!is_shareable(value)) return value.is_array() ? pack_array(value) : plain_text(value);
    const std::string text = value.is_array() ? pack_array(value) : plain_text(value);
    constexpr std::size_t kReference = 8;  // characters that a reference takes
    if (text.size() <= kReference || counts_.at(text) == 1) return text;
    const auto [place, is_new] = shared_ids_.try_emplace(text, shared_.size());
    if (is_new) shared_.push_back(text);
    return fmt::format("[-2,{}]", place->second);
  }

  std::string shapes() const { return fmt::format("[{}]", fmt::join(shapes_, ",")); }
  std::string shared() const { return fmt::format("[{}]", fmt::join(shared_, ",")); }

 private:
  void count(const Json& value) {
    if (is_shareable(value)) ++counts_[value.is_array() ? pack_array_plainly(value) : plain_text(value)];
    if (value.is_structured())
      for (const Json& inner : value) count(inner);
  }

  static std::string pack_array_plainly(const Json& array) {
    std::string text = "[-1";
    for (const Json& element : array) text += ',' + plain_text(element);
    return text + ']';
  }

  std::string pack_array(const Json& array) {
    if (is_shareable(array)) return pack_array_plainly(array);
    std::string text = "[-1";
    for (const Json& element : array) text += ',' + pack(element);
    return text + ']';
  }

  std::string pack_object(const Json& object) {
    std::string keys, values;
    for (const auto& [key, value] : object.items()) {
      keys += (keys.empty() ? "" : ",") + plain_text(key);
      values += ',' + pack(value);
    }
    const auto [place, is_new] = shape_ids_.try_emplace(keys, shapes_.size());
    if (is_new) shapes_.push_back('[' + keys + ']');
    return fmt::format("[{}{}]", place->second, values);
  }

  std::unordered_map<std::string, uint64_t> counts_;  // of each shareable value, packed
  std::unordered_map<std::string, std::size_t> shape_ids_, shared_ids_;
  std::vector<std::string> shapes_, shared_;
};

}  // namespace

std::string packed_json(const Json& value) {
  Packer packer(value);
  const std::string root = packer.pack(value);
  return fmt::format(R"({{"shapes":{},"shared":{},"root":{}}})", packer.shapes(), packer.shared(), root);
}

}  // namespace halfulp

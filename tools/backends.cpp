#include "tools/backends.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "lib/error.h"
#include "lib/parse_number.h"

namespace halfulp {

ChosenDevice chosen_device(const Arguments& arguments, std::string_view otherwise) {
  const std::string text = arguments.has("--device") ? arguments.string("--device") : std::string(otherwise);
  if (text == "cpu") return {.backend = nullptr, .index = 0};
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string name = text.substr(0, colon);
  const std::optional<uint64_t> index = colon == text.size() ? 0 : parse_unsigned(text.substr(colon + 1));
  if (name != "cuda" || !index || *index > uint64_t(std::numeric_limits<int>::max()))
    throw UsageError(fmt::format("--device: '{}' is not a device; expected cpu or cuda:N", text));
  for (const Backend* backend : backends())
    if (backend->name == name) return {.backend = backend, .index = int(*index)};
  throw EnvironmentError(
      fmt::format("this build of halfulp has no CUDA backend for {}; build it with nvcc 12.9 or later on PATH", text));
}

}  // namespace halfulp

// codes_of SOURCE FORMAT ROUNDING OVERFLOW INF NAN NEGATIVE: reads raw f32 or f64 numbers from stdin, writes their
// codes as u32 to stdout. The names are those of the catalogs. For oracles written in another language; not installed.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "formats/catalog.h"
#include "formats/codec.h"

namespace halfulp {
namespace {

template <class Names>
int position_of(const Names& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw std::invalid_argument("no such name: " + std::string(name));
  return int(found - names.begin());
}

Rounding rounding_of(std::string_view name) {
  for (const RoundingEntry& row : kRoundings)
    if (row.name == name) return row.rounding;
  throw std::invalid_argument("no such rounding mode: " + std::string(name));
}

Policy policy_of(char** names) {
  return {.rounding = rounding_of(names[0]),
          .overflow = Overflow(position_of(kOverflowNames, names[1])),
          .inf = InfInput(position_of(kInfInputNames, names[2])),
          .nan = NanInput(position_of(kNanInputNames, names[3])),
          .negative = NegativeInput(position_of(kNegativeInputNames, names[4]))};
}

template <class Source>
void convert_stdin(const Format& f, const Policy& policy) {
  std::vector<Source> xs(1 << 16);
  std::vector<uint32_t> codes(xs.size());
  while (const size_t count = std::fread(xs.data(), sizeof(Source), xs.size(), stdin)) {
    std::transform(xs.begin(), xs.begin() + std::ptrdiff_t(count), codes.begin(),
                   [&](Source x) { return encode(f, policy, x); });
    if (std::fwrite(codes.data(), sizeof(uint32_t), count, stdout) != count)
      throw std::runtime_error("cannot write to stdout");
  }
}

void run(char** arguments) {
  const int format = find_format(arguments[1]);
  if (format < 0) throw std::invalid_argument("no such format: " + std::string(arguments[1]));
  const Policy policy = policy_of(arguments + 2);
  if (std::string_view(arguments[0]) == "f64")
    convert_stdin<double>(kFormats[size_t(format)].format, policy);
  else
    convert_stdin<float>(kFormats[size_t(format)].format, policy);
}

}  // namespace
}  // namespace halfulp

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr, "usage: codes_of f32|f64 FORMAT ROUNDING OVERFLOW INF NAN NEGATIVE < numbers > codes\n");
    return 2;
  }
  try {
    halfulp::run(argv + 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "codes_of: %s\n", error.what());
    return 2;
  }
  return 0;
}

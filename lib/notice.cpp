#include "lib/notice.h"

#include <cstdio>
#include <string>

#include "lib/utf8.h"

namespace halfulp {

void notice(std::string_view message) {
  const std::string line = "halfulp: " + printable(message) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace halfulp

#include "tools/verbs.h"

namespace halfulp {

Verb formats_verb() {
  return {.name = "formats",
          .summary = "not there yet",
          .examples = {},
          .positionals = {},
          .options = {},
          .run = [](const Arguments&) { return ExitCode::internal; }};
}

}  // namespace halfulp

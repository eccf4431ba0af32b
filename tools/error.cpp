#include "tools/verbs.h"

namespace halfulp {

Verb error_verb() {
  return {.name = "error",
          .summary = "not there yet",
          .examples = {},
          .positionals = {},
          .options = {},
          .run = [](const Arguments&) { return ExitCode::internal; }};
}

}  // namespace halfulp

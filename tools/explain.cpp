#include "tools/verbs.h"

namespace halfulp {

Verb explain_verb() {
  return {.name = "explain",
          .summary = "not there yet",
          .examples = {},
          .positionals = {},
          .options = {},
          .run = [](const Arguments&) { return ExitCode::internal; }};
}

}  // namespace halfulp

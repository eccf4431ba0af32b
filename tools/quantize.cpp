#include "tools/verbs.h"

namespace halfulp {

Verb quantize_verb() {
  return {.name = "quantize",
          .summary = "not there yet",
          .examples = {},
          .positionals = {},
          .options = {},
          .run = [](const Arguments&) { return ExitCode::internal; }};
}

}  // namespace halfulp

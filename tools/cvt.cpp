#include "tools/verbs.h"

namespace halfulp {

Verb cvt_verb() {
  return {.name = "cvt",
          .summary = "not there yet",
          .examples = {},
          .positionals = {},
          .options = {},
          .run = [](const Arguments&) { return ExitCode::internal; }};
}

}  // namespace halfulp

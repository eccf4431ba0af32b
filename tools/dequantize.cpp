#include "tools/verbs.h"

namespace halfulp {

Verb dequantize_verb() {
  return {.name = "dequantize",
          .summary = "not there yet",
          .examples = {},
          .positionals = {},
          .options = {},
          .run = [](const Arguments&) { return ExitCode::internal; }};
}

}  // namespace halfulp

// The halfulp program: dispatches to one file per verb.

#include <iostream>

#include "lib/process.h"
#include "tools/halfulp_version.h"
#include "tools/options.h"
#include "tools/verbs.h"

int main(int argc, char** argv) {
  using namespace halfulp;
  prepare_process();
  const Verb verbs[] = {
      formats_verb(), explain_verb(),  cvt_verb(),    quantize_verb(), dequantize_verb(), error_verb(),  bias_verb(),
      mma_verb(),     identify_verb(), record_verb(), replay_verb(),   report_verb(),     doctor_verb(),
  };
  const Program program{
      .name = "halfulp",
      .version = kVersion,
      .summary = "What bits come out of a narrow number format, and what the rounding does to the result",
      .options = option_table(),
      .verbs = verbs,
  };
  return run_program(program, argc, argv, std::cout, std::cerr);
}

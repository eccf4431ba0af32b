#pragma once
// The verbs of the program, one file each: tools/<verb>.cpp.

#include "lib/cli.h"

namespace halfulp {

Verb formats_verb();
Verb explain_verb();
Verb cvt_verb();
Verb quantize_verb();
Verb dequantize_verb();
Verb error_verb();
Verb bias_verb();
Verb mma_verb();
Verb identify_verb();
Verb record_verb();
Verb replay_verb();
Verb report_verb();
Verb doctor_verb();

}  // namespace halfulp

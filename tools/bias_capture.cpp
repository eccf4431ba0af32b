#include "lib/error.h"
#include "tools/bias.h"

namespace halfulp {

ExitCode bias_of_capture(const Arguments&) { throw UsageError("bias of capture is not there yet"); }

}  // namespace halfulp

#include "lib/error.h"
#include "tools/bias.h"

namespace halfulp {

ExitCode bias_of_conversion(const Arguments&) { throw UsageError("bias of conversion is not there yet"); }

}  // namespace halfulp

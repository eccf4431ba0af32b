#include "lib/error.h"
#include "tools/bias.h"

namespace halfulp {

ExitCode bias_of_products(const Arguments&) { throw UsageError("bias of products is not there yet"); }

}  // namespace halfulp
